"""Two parsers that published evaluations used, run beside the judge for comparison.

They are here to show what parsing costs, so they are kept wrong in the ways in which
they were wrong. They read the raw text, thinking included, as the published ones did.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.missing import no_answer
from mlflow_mcq.graders.strict import label_names
from mlflow_mcq.records import Generation, Grade

__all__ = ["REGEX_GRADERS", "RegexGrader", "bounded_choice", "naive_choice"]


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


@lru_cache(maxsize=256)
def _naive(labels: tuple[str, ...]) -> re.Pattern[str]:
    single = "".join(re.escape(label) for label in labels if len(label) == 1)
    return re.compile(f"[{single}]" if single else r"(?!)", re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=256)
def _bounded(labels: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"\b(?:{names})\b" if names else r"(?!)")


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
            yield no_answer(generation, self.name) or self._read(generation)

    def _read(self, generation: Generation) -> Grade:
        prompt = generation.prompt
        # A prompt without letters is read as if it had them, since a parser that looks
        # for A to D does so whatever was shown.
        slot = self.parse(generation.text, label_names(len(prompt.shown), prompt.labels or None))
        if slot is None:
            return Grade.unread(generation, self.name, "no_match")
        return Grade.of_choice(generation, self.name, prompt.orientation.order[slot], "regex")


REGEX_GRADERS: dict[str, RegexGrader] = {
    "regex_naive": RegexGrader("regex_naive", naive_choice),
    "regex_bounded": RegexGrader("regex_bounded", bounded_choice),
}
"""The baselines by name."""
