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

from mlflow_mcq.graders.homographs import starts_a_phrase
from mlflow_mcq.graders.translated import translated

__all__ = ["Split", "fold", "forms_of", "peel", "split_label", "split_tail", "variants"]

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0x3002: ".",
    0x3010: "[",
    0x3011: "]",
    0x2019: "'",
    0x0964: ".",  # the full stops of Hindi and of Urdu
    0x06D4: ".",
}

_PAIRS = (
    *(("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ('"', '"'), ("'", "'")),
    *(("```", "```"), ("`", "`")),
    *(("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("「", "」"), ("『", "』"), ("‘", "'")),
    *(("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")),
    *(
        (rf"\{name}{{", "}")
        for name in ("boxed", "fbox", "text", "textbf", "textit", "texttt", "emph")
    ),
    *((rf"\{name}{{", "}") for name in ("mathrm", "mathbf", "mathit", "mathsf", "underline")),
    *((f"<{name}>", f"</{name}>") for name in ("answer", "b", "strong", "em", "i", "code")),
    *((f"<{name}>", f"</{name}>") for name in ("final_answer", "response", "output", "solution")),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_FAR_BRACKETS = (("〈", "〉"), ("《", "》"), ("〔", "〕"))
_NOT_IN_TEXTS = frozenset({*_BRACKETS, *_FAR_BRACKETS})
_BY_FIRST: dict[str, list[tuple[str, str]]] = {}
for _pair in (*_PAIRS, *_BRACKETS, *_FAR_BRACKETS):
    _BY_FIRST.setdefault(_pair[0][0], []).append(_pair)
_DEEPEST = 6


def fold(text: str) -> str:
    """Full-width forms to plain ones, white space to single blanks.

    Example:
        >>> fold("（Ｂ）  x")
        '(B) x'
    """
    if not text.isascii():
        text = translated(unicodedata.normalize("NFC", text), _WIDE)
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
        if not brackets and (left, right) in _NOT_IN_TEXTS:
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
    """Labels as shown, without their own brackets, and in the other case.

    Each only where it names no second label.
    """
    names = {fold(label): slot for slot, label in reversed([*enumerate(labels)]) if fold(label)}
    bare: dict[str, list[int]] = {}
    for name, slot in names.items():
        bare.setdefault(name.strip("()[]{}.: "), []).append(slot)
    names |= {n: s[0] for n, s in bare.items() if n and len(s) == 1 and n not in names}
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
        dash: What stood between them may belong to the text (a dash, a comma, a blank),
            so only the option's own text confirms the label and no other denies it.
    """

    slot: int
    rest: str
    dash: bool


@lru_cache(maxsize=256)
def _head(labels: tuple[str, ...]) -> re.Pattern[str]:
    known = _names(labels)
    # Of "A)" and "A" only the plain one, since the pattern has brackets of its own.
    plain = [n for n in known if known.get(bare := n.strip("()[]{}.: ")) != known[n] or n == bare]
    names = "|".join(map(re.escape, sorted(plain, key=len, reverse=True)))
    return re.compile(
        rf"(?P<mark>\*\*|__|[*_`]|)(?P<open>[(\[{{]?)(?P<name>{names})"
        r"(?P<close>[)\]}]?)(?P<mid>[.:]?)(?P=mark)"
        r"(?P<sep>\s*[.:](?:\s+|(?=\w))|\s+[-–—=]\s+|\s*[,،、]\s*|\s*\n\s*|\s*)(?P<rest>\S.*)",
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
    if not point and not sep.strip() and not _apart(match):
        return None
    if match["name"][-1].isdecimal() and not (close or (point and sep[-1:].isspace())):
        # "1.5", "1 - 2" and "2 apples" are numbers, not a label with a text.
        if not (sep.strip() or point) or not match["rest"].lstrip("\"'`*“「(")[:1].isalpha():
            return None
        point = False
    return Split(_names(labels)[match["name"]], match["rest"].strip(), dash=not point)


def _apart(match: re.Match[str]) -> bool:
    """Whether a label with nothing but a blank after it stands apart from the text.

    "A lever" may be an article and a noun, and "Because" begins with a B.
    """
    name, sep, rest = match["name"], match["sep"], match["rest"]
    if not sep:
        # Circled numbers are written against their text: "②iron".
        return name[-1].isdigit() and not name[-1].isdecimal()
    if match["mark"] or rest[0] == "(":
        return not name[-1].isdecimal()
    return len(rest) > 1 and rest[0].isalnum() and not starts_a_phrase(name)


def split_tail(text: str, labels: tuple[str, ...]) -> Split | None:
    """Split "mercury (B)" at its label; None where it does not end with one in brackets.

    Example:
        >>> split_tail("mercury (B).", ("A", "B"))
        Split(slot=1, rest='mercury', dash=True)
    """
    text = text.removesuffix(".")
    start = max(text.rfind("("), text.rfind("["))
    if start < 1 or (text[start], text[-1]) not in _BRACKETS:
        return None
    slot = _names(labels).get(text[start + 1 : -1].strip())
    rest = text[:start].rstrip()
    return None if slot is None or not rest else Split(slot, rest, dash=True)
