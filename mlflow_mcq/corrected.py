"""Accuracy corrected for the errors of the judge.

A judge that calls 5 % of wrong answers right adds up to five points to a weak model and
hardly any to a strong one, so its raw accuracy is biased, and differently for each arm.
Two corrections are offered beside it. **When to believe which number:**

* **Judged accuracy** (`judged_accuracy`): what the judge said. Right if the judge hardly
  errs; its interval knows nothing of the judge's errors. Good for a look, and for the
  difference of two arms of equal accuracy.
* **Rogan-Gladen** (`rogan_gladen`): needs only counts of the judge's hits and misses, so
  the exam or a labelled set from elsewhere will do. Right if the judge errs on *these*
  rows as often as on the calibration rows, among right and among wrong answers; the share
  of right answers may differ. An exam of deliberately hard replies breaks that: it makes
  the judge look worse than it is here and corrects too much. A ``clipped`` estimate, or
  an interval that lies outside [0, 1], is a sign of it.
* **PPI++** (`mlflow_mcq.ppi.ppi_mean`): needs human labels of a *random* sample of these
  very rows, and nothing else: the judge may err in any way. Believe this one where it
  exists, from some 30 labelled items on. Labels of hand-picked rows (those on which
  graders disagree, say) make it wrong, and nothing in the numbers will show it.

Where the two corrections are far apart, the judge errs here in another way than on its
exam: label more rows, and believe PPI++.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from numbers import Integral

import numpy as np

from mlflow_mcq.clusters import (
    Label,
    MeanOverItems,
    correctness,
    item_codes,
    mean_over_items,
    quantiles,
)
from mlflow_mcq.errors import DataError

__all__ = ["Calibration", "Corrected", "bounded", "judged_accuracy", "rogan_gladen"]

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Corrected:
    """An accuracy with its interval, or the reason why there is none.

    Attributes:
        estimate: Fraction in [0, 1]; None where undefined.
        low: Lower end of the interval; None where there is no interval.
        high: Upper end. ``low <= estimate <= high`` where they exist.
        method: ``judged``, ``rogan-gladen`` or ``ppi++``.
        n_items: Items with at least one judged row.
        n_calibration: Rows that told how the judge errs; 0 for ``judged``.
        clipped: The formula left [0, 1] and the estimate is the nearer end.
        reason: Why a number is missing, or what to distrust; empty where all is well.
    """

    estimate: float | None
    low: float | None
    high: float | None
    method: str
    n_items: int
    n_calibration: int
    clipped: bool = False
    reason: str = ""


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


def judged_accuracy(
    judged: Iterable[Label], items: Sequence[Hashable], *, level: float = 0.95
) -> Corrected:
    """What the judge said, uncorrected, with an interval over items.

    The interval is that of `rogan_gladen` for a judge known never to err: Agresti and
    Coull's, at the effective number of independent rows.

    Args:
        judged: What the judge said, a row each; rows without a label are left out.
        items: Item id of each row.
        level: Nominal coverage.

    Returns:
        Undefined without judged rows; no interval with fewer than two items.

    Example:
        >>> judged_accuracy([True, True, False, False], ["a", "b", "c", "d"]).estimate
        0.5
    """
    p = _judged_mean(judged, items)
    z, t = quantiles(level, max(p.n_items - 1, 1))
    if reason := _no_rows(p):
        return Corrected(None, None, None, "judged", p.n_items, 0, reason=reason)
    if missing := _no_interval(p):
        return bounded(p.mean, None, "judged", (p.n_items, 0), missing)
    centre, variance = _smoothed(p, z)
    return bounded(p.mean, (centre, t * sqrt(variance)), "judged", (p.n_items, 0))


def rogan_gladen(
    judged: Iterable[Label],
    items: Sequence[Hashable],
    calibration: Calibration,
    *,
    level: float = 0.95,
) -> Corrected:
    """Accuracy corrected by the judge's sensitivity and specificity.

    ``(p + sp - 1) / (se + sp - 1)`` for the judged accuracy p, clipped to [0, 1] (Rogan &
    Gladen 1978).

    *Published interval* (Lee, Zeng, Jeong, Sohn & Lee, arXiv 2511.21140, adjusted
    interval, after Lang & Reiczigel 2014; checked against copies of the authors' code):
    p, sp and se are recomputed with z^2, 2 and 2 pseudo-rows, half of them right; the
    centre is the same ratio of these, moved by ``2 z^2 (theta Var(se) - (1 - theta)
    Var(sp))``; the standard error is that of the delta method over test and calibration
    rows.

    *Ours*, so that rows of one item may hang together: the number of test rows is the
    effective one, ``p (1 - p) / variance``, with the variance over items of
    `mlflow_mcq.clusters.mean_over_items` (the number of items where that variance is 0:
    all alike is no proof of certainty); the half-width uses Student's t with items - 1
    degrees of freedom, z only the pseudo-rows and the shift. With one row an item and
    many items, this is the published interval. It is widened to contain the estimate
    where smoothing moved it past that, and is all of [0, 1] where the calibration cannot
    tell the judge from chance (Fieller's set is unbounded there, the delta method is void).

    Calibration rows may be among the judged ones, but their errors are then on both sides
    and partly cancel, which the interval does not know: it is too wide (simulated coverage
    98 to 99.9 % at nominal 95 % where calibration rows are a quarter or more). Prefer PPI++.

    Args:
        judged: What the judge said, a row each: CORRECT counts, INCORRECT and OTHER do
            not; rows without a label (judge errors) are left out.
        items: Item id of each row.
        calibration: How often this judge is right.
        level: Nominal coverage.

    Returns:
        Higher is better. Undefined without judged rows, without calibration rows of both
        kinds, and where se + sp <= 1; no interval with fewer than two items.

    Raises:
        DataError: A label cannot be read, or ids are missing.
        SettingsError: ``level`` is not between 0 and 1.

    Example:
        >>> found = rogan_gladen(
        ...     [True, True, True, False], ["a", "b", "c", "d"], Calibration(90, 10, 80, 20)
        ... )
        >>> round(found.estimate, 4), found.clipped  # (0.75 + 0.8 - 1) / (0.9 + 0.8 - 1)
        (0.7857, False)
    """
    p = _judged_mean(judged, items)
    quantile = quantiles(level, max(p.n_items - 1, 1))
    counts = (p.n_items, calibration.n)
    se, sp = calibration.sensitivity, calibration.specificity
    reason = _no_rows(p) or _no_correction(calibration)
    if reason or se is None or sp is None:
        return Corrected(None, None, None, "rogan-gladen", *counts, reason=reason)
    false_alarms = 1 - sp  # in this form a judge that never errs returns p to the last bit
    estimate = (p.mean - false_alarms) / (se - false_alarms)
    if missing := _no_interval(p):
        return bounded(estimate, None, "rogan-gladen", counts, missing)
    ends = _adjusted_interval(p, calibration, quantile)
    if ends is None:
        doubt = f"{calibration.n} calibration rows cannot tell this judge from chance"
        return bounded(estimate, (0.5, 0.5), "rogan-gladen", counts, doubt)
    return bounded(estimate, ends, "rogan-gladen", counts)


def bounded(
    estimate: float,
    interval: tuple[float, float] | None,
    method: str,
    counts: tuple[int, int],
    reason: str = "",
) -> Corrected:
    """Put an estimate and its interval inside [0, 1], and say so.

    Args:
        estimate: Any number.
        interval: Centre and half-width; None for no interval.
        method: Name of the estimator.
        counts: Items and calibration rows.
        reason: Why the interval is missing, or what to distrust.
    """
    inside = min(max(estimate, 0.0), 1.0)
    clipped = abs(inside - estimate) > _ROUNDING
    if interval is None:
        return Corrected(inside, None, None, method, *counts, clipped, reason)
    centre, half = interval
    low, high = centre - half, centre + half
    if not reason and (low >= 1.0 or high <= 0.0):
        reason = "the whole interval lies outside [0, 1]: calibration rows are unlike these rows"
    low = min(max(low, 0.0), inside)
    high = max(min(high, 1.0), inside)
    return Corrected(inside, low, high, method, *counts, clipped, reason)


def _judged_mean(judged: Iterable[Label], items: Sequence[Hashable]) -> MeanOverItems:
    said = correctness(judged, "judged")
    codes = item_codes(items, len(said))
    known = ~np.isnan(said)
    return mean_over_items(said[known], codes[known])


def _smoothed(p: MeanOverItems, z: float) -> tuple[float, float]:
    """Mean and variance with z^2 pseudo-rows, half of them right (Agresti & Coull 1998)."""
    # Nothing varies: as many rows as there are items, since rows of one item may be copies.
    spread = p.mean * (1 - p.mean)
    seen = p.variance > _ROUNDING
    rows = (spread / p.variance if seen else float(p.n_items)) + z * z
    mean = p.mean + z * z * (0.5 - p.mean) / rows
    return mean, mean * (1 - mean) / rows


def _adjusted_interval(
    p: MeanOverItems, calibration: Calibration, quantile: tuple[float, float]
) -> tuple[float, float] | None:
    """Centre and half-width; None where the judge may be no better than chance."""
    z, t = quantile
    mean, v_mean = _smoothed(p, z)
    se, v_se = _plus_two(calibration.tp, calibration.fn)
    sp, v_sp = _plus_two(calibration.tn, calibration.fp)
    power = se + sp - 1
    if power <= z * sqrt(v_se + v_sp):
        return None
    theta = (mean + sp - 1) / power
    shift = 2 * z * z * (theta * v_se - (1 - theta) * v_sp)
    error = sqrt(v_mean + (1 - theta) ** 2 * v_sp + theta**2 * v_se) / power
    return theta + shift, t * error


def _plus_two(hits: int, misses: int) -> tuple[float, float]:
    """Rate and its variance with two pseudo-rows, one of them a hit."""
    n = hits + misses + 2
    rate = (hits + 1) / n
    return rate, rate * (1 - rate) / n


def _no_rows(p: MeanOverItems) -> str:
    return "" if p.n_rows else "undefined: 0 judged rows"


def _no_interval(p: MeanOverItems) -> str:
    return "" if p.n_items >= 2 else "no interval: fewer than 2 items"


def _no_correction(calibration: Calibration) -> str:
    se, sp = calibration.sensitivity, calibration.specificity
    if se is None:
        return "undefined: 0 calibration rows with a right answer"
    if sp is None:
        return "undefined: 0 calibration rows with an answer that is not right"
    # se + sp <= 1 in whole numbers: a rounded sum just above 1 would divide by dust.
    if int(calibration.tp) * int(calibration.tn) <= int(calibration.fn) * int(calibration.fp):
        return (
            f"undefined: the judge is no better than chance (sensitivity {se:.3f} + "
            f"specificity {sp:.3f} <= 1)"
        )
    return ""
