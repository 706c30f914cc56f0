"""How often a judge is right, as far as rows of known truth can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from mlflow_mcq.clusters import Floats, Label, correctness
from mlflow_mcq.errors import DataError

__all__ = ["INFALLIBLE", "Calibration", "Rates"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Sensitivity and specificity with their variances.

    Attributes:
        se: Share of right answers that the judge calls right; in [0, 1].
        sp: Share of the others that it does not.
        v_se: Variance of ``se`` as an estimate.
        v_sp: Variance of ``sp``.
    """

    se: float
    sp: float
    v_se: float
    v_sp: float

    @property
    def power(self) -> float:
        """Youden's index ``se + sp - 1``: 0 for chance, 1 for a judge that never errs."""
        return self.se - (1 - self.sp)

    def outcome(self, said: Floats) -> Floats:
        """What a judged row is worth: ``(said + sp - 1) / power``, right on average.

        Example:
            >>> Rates(0.9, 0.8, 0.0, 0.0).outcome(np.array([0.0, 1.0])).round(4).tolist()
            [-0.2857, 1.1429]
        """
        return (said - (1 - self.sp)) / self.power


INFALLIBLE = Rates(1.0, 1.0, 0.0, 0.0)
"""Of a judge that never errs."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often a judge was right on rows whose truth is known.

    A *positive* is an answer that really is CORRECT; INCORRECT and OTHER are negatives.
    The rows count as independent: take the exam, or one labelled row an item.

    Attributes:
        tp: Right answers that the judge called right.
        fn: Right answers that it did not.
        tn: Answers not right that it did not call right.
        fp: Answers not right that it called right.

    Raises:
        DataError: A count is negative or no whole number.

    Example:
        >>> Calibration(tp=45, fn=5, tn=40, fp=10).sensitivity
        0.9
    """

    tp: int
    fn: int
    tn: int
    fp: int

    def __post_init__(self) -> None:
        for name in ("tp", "fn", "tn", "fp"):
            count = getattr(self, name)
            whole = isinstance(count, Integral) and not isinstance(count, bool)
            if not whole or count < 0:
                raise DataError(f"calibration {name}", "must be a count, 0 or more", count)

    @classmethod
    def of_rows(cls, judged: Iterable[Label], human: Iterable[Label]) -> Calibration:
        """Count the rows that both a judge and a person have labelled.

        Args:
            judged: What the judge said, a row each; empty where it failed.
            human: What a person said of the same rows; empty where nobody did.

        Raises:
            DataError: A label cannot be read, or the two differ in length.

        Example:
            >>> Calibration.of_rows(["CORRECT", "OTHER", "CORRECT"], [True, False, None])
            Calibration(tp=1, fn=0, tn=1, fp=0)
        """
        said, true = correctness(judged, "judged"), correctness(human, "human_label")
        if len(said) != len(true):
            raise DataError("human_label", f"one a row is needed, for {len(said)} rows", len(true))
        counts = ((true == t) & (said == s) for t, s in ((1, 1), (1, 0), (0, 0), (0, 1)))
        return cls(*(int(np.count_nonzero(one)) for one in counts))

    @property
    def n(self) -> int:
        """All rows."""
        return self.tp + self.fn + self.tn + self.fp

    @property
    def sensitivity(self) -> float | None:
        """Share of right answers that the judge called right; None without any."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def specificity(self) -> float | None:
        """Share of the other answers that it did not call right; None without any."""
        return self.tn / (self.tn + self.fp) if self.tn + self.fp else None

    @property
    def smoothed(self) -> Rates:
        """Both rates with two pseudo-rows each, one of them a hit, and their variances.

        Lang and Reiczigel (2014): a perfect score on few rows is no proof of a judge that
        never errs.
        """
        (se, v_se), (sp, v_sp) = _plus_two(self.tp, self.fn), _plus_two(self.tn, self.fp)
        return Rates(se, sp, v_se, v_sp)

    @property
    def useless(self) -> str:
        """Why nothing can be corrected with it; empty where something can."""
        se, sp = self.sensitivity, self.specificity
        if se is None:
            return "undefined: 0 calibration rows with a right answer"
        if sp is None:
            return "undefined: 0 calibration rows with an answer that is not right"
        # se + sp <= 1 in whole numbers: a rounded sum just above 1 would divide by dust.
        if int(self.tp) * int(self.tn) <= int(self.fn) * int(self.fp):
            return (
                f"undefined: the judge is no better than chance (sensitivity {se:.3f} + "
                f"specificity {sp:.3f} <= 1)"
            )
        return ""


def _plus_two(hits: int, misses: int) -> tuple[float, float]:
    n = hits + misses + 2
    rate = (hits + 1) / n
    return rate, rate * (1 - rate) / n
