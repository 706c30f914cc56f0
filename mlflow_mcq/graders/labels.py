"""Labels on paper: which slot a short text names when it is nothing but a label.

No accent is folded (the French word "À" is not option A) and no script is mapped (a
Cyrillic "В" looks like B and is the third letter of its own alphabet). Full-width
letters, which are the same letters set wider, are folded.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Split", "fold", "forms_of", "peel", "split_label", "variants"]

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0x3002: ".",
    0x3010: "[",
    0x3011: "]",
    0x2019: "'",
}

_PAIRS = (
    *(("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ('"', '"'), ("'", "'")),
    *(("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("「", "」"), ("『", "』"), ("‘", "'")),
    *(("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")),
    *((rf"\{name}{{", "}") for name in ("boxed", "text", "textbf", "mathrm", "mathbf")),
    *((f"<{name}>", f"</{name}>") for name in ("answer", "b", "strong", "final_answer")),
)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_BY_FIRST: dict[str, list[tuple[str, str]]] = {}
for _pair in (*_PAIRS, *_BRACKETS):
    _BY_FIRST.setdefault(_pair[0][0], []).append(_pair)
_DEEPEST = 6


def fold(text: str) -> str:
    """Full-width forms to plain ones, white space to single blanks.

    Example:
        >>> fold("（Ｂ）  x")
        '(B) x'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_WIDE)
    return " ".join(text.split())


def peel(text: str, brackets: bool = True) -> str:
    """Take off wrappers that close what they open: bold, quotes, LaTeX, tags.

    Args:
        text: A short text.
        brackets: Also take off brackets. Off for option texts: the interval [0, 1] is
            not (0, 1).

    Example:
        >>> peel(r"$\\boxed{\\text{B}}$"), peel("(a)(b)")
        ('B', '(a)(b)')
    """
    for _ in range(_DEEPEST):
        text = text.strip()
        if text[:1] not in _BY_FIRST:
            return text
        inner = _inside(text, brackets)
        if inner is None:
            return text
        text = inner
    return text


def _inside(text: str, brackets: bool) -> str | None:
    for left, right in _BY_FIRST.get(text[:1], ()):
        if not brackets and (left, right) in _BRACKETS:
            continue
        if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : -len(right)]
            if _balanced(inner, left, right):
                return inner
    return None


def _balanced(inner: str, left: str, right: str) -> bool:
    """Whether the pair around ``inner`` closes only at its end."""
    if right not in inner:
        return True
    if left == right or len(right) > 1:
        return False
    depth = 0
    for char in inner:
        depth += (char == left[-1]) - (char == right)
        if depth < 0:
            return False
    return depth == 0


def variants(text: str) -> tuple[str, ...]:
    """A text as it is, without its wrappers, and without its full stop."""
    peeled = peel(text, brackets=False)
    if peeled.endswith("."):
        return text, peeled, peel(peeled[:-1], brackets=False)
    return (text,) if peeled == text else (text, peeled)


@lru_cache(maxsize=256)
def _names(labels: tuple[str, ...]) -> dict[str, int]:
    """Labels as shown, and in the other case where that names no second label."""
    names = {fold(label): slot for slot, label in reversed([*enumerate(labels)]) if fold(label)}
    shown = dict(names)
    for make in (str.lower, str.upper):
        other: dict[str, list[int]] = {}
        for name, slot in shown.items():
            other.setdefault(make(name), []).append(slot)
        names |= {n: s[0] for n, s in other.items() if len(s) == 1 and n not in shown}
    return names


@lru_cache(maxsize=256)
def forms_of(labels: tuple[str, ...]) -> dict[str, tuple[int, str, bool]]:
    """Every way to write a lone label: text to (slot, name, has label punctuation).

    The table is built once per label set: a lookup is what makes the rule fast.

    Example:
        >>> forms_of(("A", "B"))["(b)."]
        (1, 'b', True)
    """
    forms: dict[str, tuple[int, str, bool]] = {}
    for name, slot in _names(labels).items():
        forms[name] = (slot, name, False)
        for left, right in (("", ")"), *_BRACKETS):
            for end in ("", ".", ":"):
                forms.setdefault(f"{left}{name}{right}{end}", (slot, name, True))
        for end in (".", ":"):
            forms.setdefault(name + end, (slot, name, True))
    return forms


@dataclass(frozen=True, slots=True)
class Split:
    """A label followed by a text.

    Attributes:
        slot: The slot of the label.
        rest: The text after it.
        dash: Only a dash or a comma stood between them, which may belong to the text.
    """

    slot: int
    rest: str
    dash: bool


@lru_cache(maxsize=256)
def _head(labels: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(_names(labels), key=len, reverse=True)))
    return re.compile(
        rf"(?P<mark>\*\*|__|[*_`]|)(?P<open>[(\[{{]?)(?P<name>{names})"
        r"(?P<close>[)\]}]?)(?P<mid>[.:]?)(?P=mark)"
        r"(?P<sep>\s*[.:](?:\s+|(?=\w))|\s+[-–—]\s+|,\s+|\s*\n\s*|\s*)(?P<rest>\S.*)",
        re.DOTALL,
    )


def split_label(text: str, labels: tuple[str, ...]) -> Split | None:
    """Split "B) mercury" at its label; None where no label stands apart.

    Example:
        >>> split_label("(B): mercury", ("A", "B"))
        Split(slot=1, rest='mercury', dash=False)
        >>> split_label("Because", ("A", "B")) is None
        True
    """
    match = _head(labels).match(text) if _names(labels) else None
    if match is None:
        return None
    opened, close, sep = match["open"], match["close"], match["sep"]
    if opened and (opened, close) not in _BRACKETS:
        return None
    point = bool(close or match["mid"] or sep.strip(" \t\r") in (".", ":") or "\n" in sep)
    if not point and not sep.strip():
        return None  # "A lever" may be an article and a noun
    # "1.5" and "1 - 2" are numbers, not the label 1 with a text.
    if match["name"][-1].isdigit() and not (close or (point and sep[-1:].isspace())):
        return None
    return Split(_names(labels)[match["name"]], match["rest"].strip(), dash=not point)
