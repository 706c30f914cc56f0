"""The strict rule: a reply that is a label, or one option's own text, and nothing else.

It settles the rows that need no judge. It is never meant to be clever: whatever has a
word before or after the label is left to the judge, since "B is wrong" starts with a
bare B too. A wrong reading here would be counted without anybody looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.homographs import is_word
from mlflow_mcq.graders.labels import fold, forms_of
from mlflow_mcq.graders.option_texts import (
    looking_like,
    option_texts,
    own_in_any_case,
    slots_showing,
    wanted,
)
from mlflow_mcq.graders.reply_shape import Shape, Split, plain_pair, shape_of, splits_of
from mlflow_mcq.graders.thought import answer_part
from mlflow_mcq.orientations import MOST_SLOTS, letters_for

__all__ = ["Reading", "label_names", "read_strict", "strict_choice"]

_SLACK = 96
"""Characters that answer words and wrappers may add to the longest option."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the strict rule made of a reply.

    Attributes:
        slot: The slot that was chosen; None where none was.
        reason: ``strict`` with a slot; ``empty``, ``unfinished_thought`` or
            ``label_text_conflict`` where it is settled that no single option was named;
            empty where the rule abstains.
    """

    slot: int | None
    reason: str

    @property
    def slots(self) -> tuple[int, ...]:
        """The slot as a set of one; empty without it."""
        return () if self.slot is None else (self.slot,)

    @property
    def settled(self) -> bool:
        """Whether a judge has nothing left to say."""
        return bool(self.reason)


_ABSTAIN = Reading(None, "")
_EMPTY = Reading(None, "empty")
_UNFINISHED = Reading(None, "unfinished_thought")
_CONFLICT = Reading(None, "label_text_conflict")


@lru_cache(maxsize=64)
def _letters(n_options: int) -> tuple[str, ...]:
    return letters_for(min(n_options, MOST_SLOTS))


def label_names(n_options: int, labels: Sequence[str] | None) -> tuple[str, ...]:
    """The labels by slot: A, B, C, ... where None are given.

    Example:
        >>> label_names(2, None), label_names(2, ())
        (('A', 'B'), ())
    """
    return _letters(n_options) if labels is None else tuple(labels)[:n_options]


def strict_choice(
    text: str | None, options: Sequence[str], labels: Sequence[str] | None = None
) -> int | None:
    """The slot named by a reply that is nothing but a label or an option's own text.

    Args:
        text: The reply, raw; thinking is left out.
        options: Option texts in the order shown.
        labels: Labels in the order shown. None means A, B, C, ...; an empty sequence
            means that none were shown, so that only an option's own text counts.

    Returns:
        A slot (an index in the order *shown*); None abstains.

    Example:
        >>> metals = ["copper", "iron", "mercury"]
        >>> strict_choice("**Answer:** (c)", metals), strict_choice("C) mercury.", metals)
        (2, 2)
        >>> strict_choice("C, since it is liquid", metals) is None
        True
        >>> strict_choice("B) mercury", metals) is None
        True
    """
    return read_strict(text, options, labels).slot


def read_strict(
    text: str | None,
    options: Sequence[str],
    labels: Sequence[str] | None = None,
    sent: str = "",
    cut: bool = False,
) -> Reading:
    """As `strict_choice`, with the reason.

    Args:
        text: The reply, raw.
        options: Option texts in the order shown.
        labels: As for `strict_choice`.
        sent: The text that reached the model, which may have opened its thinking.
        cut: The reply ended at the token limit, so its last words may be missing.

    Example:
        >>> read_strict("B) mercury", ["copper", "iron", "mercury"]).reason
        'label_text_conflict'
    """
    if text is None:
        return _EMPTY
    answer = answer_part(text, sent)
    if answer.unfinished:
        return _UNFINISHED
    body = answer.text.strip()
    if not body:
        return _EMPTY
    names = label_names(len(options), labels)
    hit = forms_of(names).get(body)
    if hit and (hit[2] or not is_word(hit[1], names)):
        return _chosen(hit[0], looking_like(hit[1], options))
    # A much longer reply says more than a label. This gate also bounds all work below.
    longest = max(map(len, options), default=0)
    if len(body) > longest + _SLACK:
        return _ABSTAIN
    pair = plain_pair(body, options, names)
    if pair is not None:
        return Reading(pair, "strict")
    shape = shape_of(body, names, cut)
    whole = _whole(shape, options, longest)
    if shape.slot is not None:
        same = whole | looking_like(shape.name, options)
        return _chosen(shape.slot, same) if shape.sure or same == {shape.slot} else _ABSTAIN
    if whole:
        unclear = len(whole) > 1 or (cut and option_texts(tuple(options)).cut_short(shape.core))
        return _ABSTAIN if unclear else Reading(min(whole), "strict")
    for split in splits_of(shape, names):
        reading = _label_and_text(split, options, cut)
        if reading.settled:
            return reading
    return _ABSTAIN


def _chosen(slot: int, same_text: frozenset[int]) -> Reading:
    """Settle a label, unless another option's own text reads the same."""
    return Reading(slot, "strict") if same_text <= {slot} else _ABSTAIN


def _whole(shape: Shape, options: Sequence[str], longest: int) -> frozenset[int]:
    """The slots whose own text the whole reply is."""
    found: frozenset[int] = frozenset()
    for sought in shape.texts:
        if sought.shortest <= longest:
            found |= slots_showing(sought, options)
    return found


def _label_and_text(split: Split, options: Sequence[str], cut: bool) -> Reading:
    """A label with exactly its own text settles, with exactly another's it is settled OTHER."""
    if split.slot < len(options) and split.rest == fold(options[split.slot]):
        return Reading(split.slot, "strict")  # the same as below, without a table
    named = slots_showing(wanted(split.rest), options)
    if split.slot in named:
        return Reading(split.slot, "strict")
    if named:
        return _ABSTAIN if split.dash or cut else _CONFLICT
    text = split.rest.removesuffix(".")
    if text[:1] == "(" and text[-1:] == ")":  # "B (iron)"
        text = text[1:-1]
    # "B) IRON": the label says which text is meant, so its case may differ. Not where two
    # options differ by case alone.
    own = own_in_any_case(text, options, split.slot)
    return Reading(split.slot, "strict") if own else _ABSTAIN
