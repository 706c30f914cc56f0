"""Parsers that published evaluations used, run beside the judge for comparison.

They are here to show what parsing costs, so they are kept wrong in the ways in which
they were wrong. They read the raw text, thinking included, as the published ones did.
Each is told the labels of its item, where the originals had A to D or A to J built in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.missing import asks_for_sets, no_answer
from mlflow_mcq.graders.strict import label_names
from mlflow_mcq.records import Generation, Grade

__all__ = [
    "ALL_REGEX_GRADERS",
    "REGEX_GRADERS",
    "RegexGrader",
    "answer_is_choice",
    "bounded_choice",
    "first_upper_choice",
    "last_bounded_choice",
    "mmlu_pro_choice",
    "naive_choice",
]

_NEVER = re.compile(r"(?!)")


def naive_choice(text: str, labels: Sequence[str]) -> int | None:
    """The first character anywhere that is one of the labels, in either case.

    Wrong on purpose: "At the garden" is read as A, "Answer: C" as A, a refusal ("I'm
    sorry, I can't") as whatever letter it happens to hold first. Labels of several
    characters are never found.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> naive_choice("Mercury, so C", ("A", "B", "C"))
        2
        >>> naive_choice("At the garden", ("A", "B", "C"))
        0
    """
    found = _naive(tuple(labels)).search(text)
    # ASCII case only: Unicode folding would find K in the Kelvin sign.
    return [label.upper() for label in labels].index(found[0].upper()) if found else None


def first_upper_choice(text: str, labels: Sequence[str]) -> int | None:
    """The first character anywhere that is one of the labels, as shown: ``[A-D]``.

    The plain character class of countless scripts. Wrong wherever a capitalised word
    comes first: "Both fit" is B, "Answer: C" is A, "Definitely not" is D. Blind to
    lower-case replies and to labels of several characters.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> first_upper_choice("mercury, so C", ("A", "B", "C"))
        2
        >>> first_upper_choice("Answer: C", ("A", "B", "C"))
        0
    """
    found = _first_upper(tuple(labels)).search(text)
    return list(labels).index(found[0]) if found else None


def bounded_choice(text: str, labels: Sequence[str]) -> int | None:
    """The first label, as shown, that stands as a word of its own.

    Wrong where a label is a word ("A gene codes for ..." is A, "I think" is I), where a
    label is named only to be rejected ("Not B but C" is B), and where several are
    named; blind to lower-case labels and to answers given as text.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> bounded_choice("At the garden: (C)", ("A", "B", "C"))
        2
        >>> bounded_choice("A gene is named, so C", ("A", "B", "C"))
        0
    """
    found = _bounded(tuple(labels)).search(text)
    return list(labels).index(found[0]) if found else None


def last_bounded_choice(text: str, labels: Sequence[str]) -> int | None:
    """The last label, as shown, that stands as a word of its own.

    Meant for replies that reason first. Wrong where anything is said after the answer
    ("B. The usual trap is A" is A), where the last sentence has the pronoun I or the
    article A, and in every list of all options.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> last_bounded_choice("A gene is named, so C", ("A", "B", "C"))
        2
        >>> last_bounded_choice("B. The usual trap is A.", ("A", "B", "C"))
        0
    """
    named = _bounded(tuple(labels)).findall(text)
    return list(labels).index(named[-1]) if named else None


def answer_is_choice(text: str, labels: Sequence[str]) -> int | None:
    """The label after the first "answer is", with or without brackets.

    The first step of the MMLU-Pro chain (Wang et al. 2024, arXiv 2406.01574, in its
    evaluation script), and the whole parser of many chain-of-thought papers. It has no
    bound after the label, so "the answer is Both" is B and "answer is Definitely not A"
    is D; the first announcement wins over its own correction; "answer is: C" and
    "answer is **C**" are missed.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> answer_is_choice("So the answer is (C).", ("A", "B", "C"))
        2
        >>> answer_is_choice("The answer is Both", ("A", "B", "C"))
        1
        >>> answer_is_choice("The answer is: C", ("A", "B", "C")) is None
        True
    """
    return _group(_answer_is(tuple(labels)), text, labels)


def mmlu_pro_choice(text: str, labels: Sequence[str]) -> int | None:
    """The three steps of MMLU-Pro: "answer is (X)", then "Answer: X", then the last label.

    After Wang et al. 2024 (arXiv 2406.01574). It adds to the faults of its steps that
    the last one takes whatever stands there: a refusal that ends with "... so I cannot
    say" on a ten-option item is I. The published script even draws a random letter
    where all three fail, which scores chance for silence; that is not copied.

    Args:
        text: The raw reply.
        labels: Labels by slot.

    Example:
        >>> labels = ("A", "B", "C")
        >>> mmlu_pro_choice("The answer is (B). Not C.", labels)
        1
        >>> mmlu_pro_choice("Answer: C, not B", labels)
        2
        >>> mmlu_pro_choice("Neither B nor C", labels)
        2
    """
    known = tuple(labels)
    for pattern in (_answer_is(known), _answer_colon(known)):
        slot = _group(pattern, text, labels)
        if slot is not None:
            return slot
    return last_bounded_choice(text, labels)


def _group(pattern: re.Pattern[str], text: str, labels: Sequence[str]) -> int | None:
    found = pattern.search(text)
    return list(labels).index(found[1]) if found else None


@lru_cache(maxsize=256)
def _naive(labels: tuple[str, ...]) -> re.Pattern[str]:
    single = "".join(re.escape(label) for label in labels if len(label) == 1)
    return re.compile(f"[{single}]", re.IGNORECASE | re.ASCII) if single else _NEVER


@lru_cache(maxsize=256)
def _first_upper(labels: tuple[str, ...]) -> re.Pattern[str]:
    single = "".join(re.escape(label) for label in labels if len(label) == 1)
    return re.compile(f"[{single}]") if single else _NEVER


@lru_cache(maxsize=256)
def _bounded(labels: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_any(labels)})\b") if labels else _NEVER


@lru_cache(maxsize=256)
def _answer_is(labels: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"answer is \(?({_any(labels)})\)?") if labels else _NEVER


@lru_cache(maxsize=256)
def _answer_colon(labels: tuple[str, ...]) -> re.Pattern[str]:
    # The published ".*", without DOTALL, takes the last one on the first line that has
    # any. Tied to line starts it finds the same, and a long line stays linear.
    if not labels:
        return _NEVER
    return re.compile(rf"^.*[aA]nswer:\s*({_any(labels)})", re.MULTILINE)


def _any(labels: tuple[str, ...]) -> str:
    # The longest first, so that label 12 is not read as 1.
    return "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class RegexGrader:
    """Grades by one of the parsers above.

    Attributes:
        name: Prefix of its metrics.
        parse: Text and labels to a slot.
    """

    name: str
    parse: Callable[[str, Sequence[str]], int | None]

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation; OTHER with ``no_match`` where none is found."""
        for generation in generations:
            settled = no_answer(generation, self.name) or asks_for_sets(generation, self.name)
            yield settled or self._read(generation)

    def _read(self, generation: Generation) -> Grade:
        prompt = generation.prompt
        if prompt.unseen:  # a letter here is the order of the data, which nobody saw
            return Grade.unread(generation, self.name, "options_unseen")
        # A prompt without letters is read as if it had them, since a parser that looks
        # for A to D does so whatever was shown.
        slot = self.parse(generation.text, label_names(len(prompt.shown), prompt.labels or None))
        if slot is None:
            return Grade.unread(generation, self.name, "no_match")
        return Grade.of_choice(generation, self.name, prompt.orientation.order[slot], "regex")


ALL_REGEX_GRADERS: dict[str, RegexGrader] = {
    name: RegexGrader(name, parse)
    for name, parse in (
        ("regex_naive", naive_choice),
        ("regex_first_upper", first_upper_choice),
        ("regex_bounded", bounded_choice),
        ("regex_last_bounded", last_bounded_choice),
        ("regex_answer_is", answer_is_choice),
        ("regex_mmlu_pro", mmlu_pro_choice),
    )
}
"""Every baseline by name."""

REGEX_GRADERS: dict[str, RegexGrader] = {
    name: ALL_REGEX_GRADERS[name] for name in ("regex_naive", "regex_bounded")
}
"""The baselines that run unless others are named."""
