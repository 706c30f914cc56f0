"""The shape of a short reply: what can be said of it before any option text is known.

A reply has the same shape over all items, so shapes are remembered: models say "The
answer is B." thousands of times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mlflow_mcq.graders.answer_words import Lead, without_lead
from mlflow_mcq.graders.homographs import as_shown, is_word
from mlflow_mcq.graders.labels import Split, fold, forms_of, peel, split_label, split_tail
from mlflow_mcq.graders.option_texts import Wanted, wanted

__all__ = ["Shape", "Split", "plain_pair", "shape_of", "splits_of"]

_SHORT = 100
_MOST_KNOWN = 8192
_KNOWN: dict[tuple[str, tuple[str, ...], bool], Shape] = {}

_JSON = re.compile(
    r'\{\s*"(?:final[ _])?(?:answer|option|choice|letter|label)"\s*:\s*'
    r'(?:"(?P<text>[^"\\]{1,400})"|(?P<number>\d{1,4}))\s*\}',
    re.IGNORECASE,
)
_BULLETS = ("- ", "• ", "> ", "→ ", "=> ")
_STRONG = ("`", "**", "__", "\\", "$\\", "$$\\", "<", "「", "『", "[", "(")


class Shape(NamedTuple):  # made for every reply, and three times faster than a dataclass
    """A reply, taken apart as far as its labels allow.

    Attributes:
        flat: The reply without end-of-turn tokens.
        core: Without white space, answer words and wrappers.
        texts: What may be an option's own text. The core of a lone label is left out
            where `looking_like` finds all that it could be.
        slot: Slot of the label, where the reply is nothing else.
        name: That label, as it was written.
        sure: It cannot be a word that happens to look like a label.
    """

    flat: str
    core: str
    texts: tuple[Wanted, ...]
    slot: int | None
    name: str
    sure: bool


def shape_of(body: str, labels: tuple[str, ...], cut: bool) -> Shape:
    """Take a reply apart.

    Args:
        body: The visible answer, stripped.
        labels: Labels by slot.
        cut: The reply ended at the token limit.

    Example:
        >>> shape = shape_of("**Answer:** (c)", ("A", "B", "C"), False)
        >>> shape.slot, shape.name, shape.core
        (2, 'c', '(c)')
    """
    key = (body, labels, cut)
    shape = _KNOWN.get(key)
    if shape is None:
        shape = _shape(body, labels, cut)
        # Only lone labels are said again and again; a text belongs to one item.
        if shape.slot is not None and len(body) <= _SHORT:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = shape
    return shape


def splits_of(shape: Shape, labels: tuple[str, ...]) -> tuple[Split, ...]:
    """The ways to read a reply as a label and a text.

    Example:
        >>> labels = ("A", "B")
        >>> [split.rest for split in splits_of(shape_of("B) tin", labels, False), labels)]
        ['tin']
    """
    flat, core = shape.flat, shape.core
    # A line break separates a label from its text, and `fold` has removed it.
    first, _, after = flat.partition("\n")
    two_lines = forms_of(labels).get(fold(first)) if after else None
    if two_lines:
        core = f"{two_lines[1]}: {fold(after)}"
    found = split_label(core, labels)
    if found is None and core[-1:] == ".":  # "**B. tin**."
        found = split_label(peel(core[:-1], brackets=False), labels)
    splits = found, split_tail(core, labels)
    return tuple(s for s in splits if s and _lone_label(s.rest, labels)[0] is None)


def _shape(body: str, labels: tuple[str, ...], cut: bool) -> Shape:
    flat = _without_end_marks(body)
    folded = fold(flat)
    before = folded
    core, lead = without_lead(peel(folded, brackets=False))
    if lead.found and core not in forms_of(labels):  # "The answer is option B"
        before, more = without_lead(core)
        lead = Lead(True, lead.colon or more.colon, lead.option or more.option)
        core = peel(before, brackets=False)
    elif not lead.found and core[:1] == "{":
        found = _JSON.fullmatch(core)
        if found:
            core, lead = fold(found["text"] or found["number"]), Lead(True, colon=True)
    hit, pointed = _lone_label(core, labels)
    texts = () if core == folded else (wanted(folded),)
    if core not in forms_of(labels):
        texts = (*texts, wanted(core))
    if hit is None:
        return Shape(flat, core, texts, None, "", False)
    slot, name = hit
    pointed = pointed or before.startswith(_STRONG)
    return Shape(flat, core, texts, slot, name, pointed or _meant(name, labels, lead, cut))


def _lone_label(core: str, labels: tuple[str, ...]) -> tuple[tuple[int, str] | None, bool]:
    """A label standing alone, and whether it has punctuation that only labels have."""
    forms = forms_of(labels)
    hit = forms.get(core)
    if hit:
        return hit[:2], hit[2]
    if core[:1].isalnum() and len(core) > _longest_form(labels) + 1:
        return None, False  # nothing to peel: most texts end here
    if core[-1:] == ".":
        core = core[:-1]
    elif core[-1:] == "!":
        hit = forms.get(peel(core[:-1], brackets=False))
        return (hit[:2], hit[2]) if hit else (None, False)
    bare = peel(core)
    hit = forms.get(bare)
    if hit:
        return hit[:2], bare != core
    for mark in _BULLETS:
        if core.startswith(mark):
            hit = forms.get(peel(core[len(mark) :].strip()))
            # "- 7" is minus seven.
            return (hit[:2], hit[2]) if hit and not hit[1].isdecimal() else (None, False)
    return None, False


@lru_cache(maxsize=256)
def _heads(labels: tuple[str, ...]) -> dict[str, int]:
    """Labels with their punctuation and a blank, as they stand before a text."""
    forms = forms_of(labels).items()
    return {f"{form} ": hit[0] for form, hit in forms if hit[2] and hit[1].isalnum()}


def plain_pair(body: str, options: Sequence[str], labels: tuple[str, ...]) -> int | None:
    """The slot of "B) mercury", read without taking the reply apart.

    The commonest reply of chat models after the bare label. It finds nothing where the
    long way might say otherwise: an option that begins like the reply, or that is
    itself hardly longer than a label.

    Example:
        >>> plain_pair("B) mercury", ["iron", "mercury"], ("A", "B"))
        1
        >>> plain_pair("A) mercury", ["iron", "mercury"], ("A", "B")) is None
        True
    """
    if not body.isascii():
        return None
    heads = _heads(labels)
    if body[-1:] == "." and not any(option.rstrip()[-1:] == "." for option in options):
        body = body[:-1]
    for slot, option in enumerate(options):
        if body.endswith(option) and heads.get(body[: -len(option)], -1) == slot:
            start = body[:2].lower()
            rival = any(not o.isascii() or o.lstrip()[:2].lower() == start for o in options)
            plain = option[:1].isalnum() and len(option) > _longest_form(labels) + 1
            return slot if plain and not rival else None
    return None


@lru_cache(maxsize=256)
def _longest_form(labels: tuple[str, ...]) -> int:
    return max(map(len, forms_of(labels)), default=0)


def _meant(name: str, labels: tuple[str, ...], lead: Lead, cut: bool) -> bool:
    """Whether a label that is a word as well was meant as a label.

    "The answer is a" may be all that a token limit left of "a lever"; nothing is lost
    by asking the judge.
    """
    if lead.option or not is_word(name, labels):
        return True
    return lead.colon and not cut and (name not in ("a", "i") or as_shown(name, labels))


_END_MARKS = (
    *("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|return|>"),
    *("</s>", "<end_of_turn>", "<eos>", "<|END_OF_TURN_TOKEN|>"),
)


def _without_end_marks(body: str) -> str:
    """Drop end-of-turn tokens that a decoder left in: nobody said them."""
    if body[-1:] != ">":
        return body
    end = len(body)
    while body.endswith(_END_MARKS, 0, end):
        end = body.rindex("<", 0, end)
    return body[:end].rstrip()
