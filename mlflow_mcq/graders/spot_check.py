"""The spot check of a regex: a hundred rows against the judge.

How much may be misread is a rule of `mlflow_mcq.diagnostics.arm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlflow_mcq.draws import lot
from mlflow_mcq.records import Grade, Verdict

__all__ = ["SpotCheck", "spot_check"]


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """What a regex made of rows that the judge has read.

    Attributes:
        n: Rows compared.
        n_wrong_letter: Both name an option, and not the same one.
        n_coerced_other: The judge says OTHER and the regex names an option: a refusal
            that was turned into a preference.
        n_missed: The judge names an option and the regex finds none. Not in the rate,
            since it is seen as a missing value and not as a wrong one.
    """

    n: int
    n_wrong_letter: int
    n_coerced_other: int
    n_missed: int

    @property
    def rate(self) -> float | None:
        """Share of wrong and coerced rows, in [0, 1]; low is good; None without rows."""
        return (self.n_wrong_letter + self.n_coerced_other) / self.n if self.n else None


def spot_check(
    judge_grades: Sequence[Grade], regex_grades: Sequence[Grade], n: int = 100, seed: int = 0
) -> SpotCheck:
    """Compare a regex with the judge on a random sample of rows.

    Rows are joined by key, never by position. Rows without a reading by the judge (its
    errors, and INCORRECT in its direct shape, which names no option) cannot be compared
    and are not drawn.

    Args:
        judge_grades: Grades of the judge.
        regex_grades: Grades of one regex over the same generations.
        n: Rows to draw; all where fewer can be compared.
        seed: Of the sample, which does not depend on the order of rows.

    Example:
        >>> spot_check([], []).rate is None
        True
    """
    read = {grade.generation.key: grade for grade in regex_grades if grade.verdict is not None}
    pairs = [
        (grade, read[grade.generation.key])
        for grade in judge_grades
        if _names_or_other(grade) and grade.generation.key in read
    ]
    pairs.sort(key=lambda pair: lot(seed, *pair[0].generation.key))
    sample = [(judge.choice, regex.choice) for judge, regex in pairs[: max(n, 0)]]
    return SpotCheck(
        n=len(sample),
        n_wrong_letter=sum(j is not None and r is not None and j != r for j, r in sample),
        n_coerced_other=sum(j is None and r is not None for j, r in sample),
        n_missed=sum(j is not None and r is None for j, r in sample),
    )


def _names_or_other(grade: Grade) -> bool:
    return grade.choice is not None or grade.verdict is Verdict.OTHER
