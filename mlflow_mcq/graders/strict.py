"""The strict rule: a reply that is a label, or one option's own text, and nothing else.

It settles the rows that need no judge. It is never meant to be clever: whatever has a
word before or after the label is left to the judge, since "B is wrong" starts with a
bare B too. A wrong reading here would be counted without anybody looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.answer_words import Lead, without_lead
from mlflow_mcq.graders.labels import fold, forms_of, peel, split_label
from mlflow_mcq.graders.option_texts import OptionTexts, looking_like, option_texts
from mlflow_mcq.graders.thought import answer_part
from mlflow_mcq.orientations import letters_for

__all__ = ["Reading", "label_names", "read_strict", "strict_choice"]

_SLACK = 96
"""Characters that answer words and wrappers may add to the longest option."""
_MOST_LETTERS = 702
_WORDS_TOO = frozenset({"a", "i", "I"})
"""Labels that are words as well: an article, a pronoun, "and"."""


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
    def settled(self) -> bool:
        """Whether a judge has nothing left to say."""
        return bool(self.reason)


_ABSTAIN = Reading(None, "")
_EMPTY = Reading(None, "empty")
_UNFINISHED = Reading(None, "unfinished_thought")
_CONFLICT = Reading(None, "label_text_conflict")


@lru_cache(maxsize=64)
def _letters(n_options: int) -> tuple[str, ...]:
    return letters_for(min(n_options, _MOST_LETTERS))


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
    if hit and (hit[2] or hit[1] not in _WORDS_TOO):
        return _chosen(hit[0], looking_like(hit[1], options))
    # A much longer reply says more than a label. This gate also bounds all work below.
    if len(body) > max(map(len, options), default=0) + _SLACK:
        return _ABSTAIN
    return _read(body, tuple(options), names, cut)


def _chosen(slot: int, same_text: frozenset[int]) -> Reading:
    """Settle a label, unless another option's own text reads the same."""
    return Reading(slot, "strict") if same_text <= {slot} else _ABSTAIN


def _read(body: str, options: tuple[str, ...], names: tuple[str, ...], cut: bool) -> Reading:
    known = option_texts(options)
    flat = _without_end_marks(body)
    folded = fold(flat)
    core, lead = without_lead(peel(folded, brackets=False))
    if lead.found and core not in forms_of(names):  # "The answer is option B"
        core, more = without_lead(core)
        lead = Lead(True, lead.colon or more.colon, lead.option or more.option)
        core = peel(core, brackets=False)
    whole = known.find(folded)
    if core != folded:
        whole |= known.find(core)
    hit, wrapped = _lone_label(core, names)
    if hit:
        slot, name, pointed = hit
        same = whole | looking_like(name, options)
        if not (pointed or wrapped or _sure(name, lead, cut)) and same != {slot}:
            return _ABSTAIN
        return _chosen(slot, same)
    if whole:
        unclear = len(whole) > 1 or (cut and known.cut_short(core))
        return _ABSTAIN if unclear else Reading(min(whole), "strict")
    return _label_and_text(flat, core, known, names, cut)


def _sure(name: str, lead: Lead, cut: bool) -> bool:
    """Whether a label that is a word as well was meant as a label.

    "The answer is a" may be all that a token limit left of "a lever"; nothing is lost
    by asking the judge.
    """
    if name not in _WORDS_TOO or lead.option:
        return True
    return name == "I" and lead.colon and not cut


def _lone_label(core: str, names: tuple[str, ...]) -> tuple[tuple[int, str, bool] | None, bool]:
    """A label standing alone, and whether something was wrapped around it."""
    forms = forms_of(names)
    if core in forms:
        return forms[core], False
    bare = peel(core.removesuffix("."))
    return forms.get(bare), bare != core.removesuffix(".")


def _label_and_text(
    flat: str, core: str, known: OptionTexts, names: tuple[str, ...], cut: bool
) -> Reading:
    # A line break separates a label from its text, and `fold` has removed it.
    first, _, after = flat.partition("\n")
    two_lines = forms_of(names).get(first.strip()) if after else None
    split = split_label(f"{two_lines[1]}: {fold(after)}" if two_lines else core, names)
    if split is None or _lone_label(split.rest, names)[0]:
        return _ABSTAIN  # prose, or a second label
    named = known.find(split.rest)
    if split.slot in named:
        return Reading(split.slot, "strict")
    return _CONFLICT if named and not (split.dash or cut) else _ABSTAIN


_END_MARKS = (
    *("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|return|>"),
    *("</s>", "<end_of_turn>", "<eos>"),
)


def _without_end_marks(body: str) -> str:
    """Drop end-of-turn tokens that a decoder left in: nobody said them."""
    end = len(body)
    while body.endswith(_END_MARKS, 0, end):
        end = body.rindex("<", 0, end)
    return body[:end].rstrip()
