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
  an interval that lies outside [0, 1], is a sign of it. Rows that no judge has read
  (``exact``) are right as they are and are not corrected.
* **PPI++** (`mlflow_mcq.ppi.ppi_mean`): needs human labels of a *random* sample of these
  very rows, and nothing else: the judge may err in any way. Believe this one where it
  exists, from some 30 labelled items on. Labels of hand-picked rows (those on which
  graders disagree, say) make it wrong, and nothing in the numbers will show it.

Where the two corrections are far apart, the judge errs here in another way than on its
exam: label more rows, and believe PPI++.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import numpy.typing as npt

from mlflow_mcq.calibration import INFALLIBLE, Calibration, Rates
from mlflow_mcq.clusters import (
    Codes,
    Floats,
    Label,
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

    More than a `mlflow_mcq.statistics.intervals.Measured`: how a judge's errors were taken out,
    from how many rows, and whether that left [0, 1]. A reason may stand beside a number.

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
    rows = _Rows.of(judged, items, None)
    quantile = quantiles(level, max(rows.n_items - 1, 1))
    counts = (rows.n_items, 0)
    if reason := _no_rows(rows):
        return Corrected(None, None, None, "judged", *counts, reason=reason)
    estimate = float(rows.said.mean())
    if missing := _no_interval(rows):
        return bounded(estimate, None, "judged", counts, missing)
    return bounded(estimate, _interval(rows, INFALLIBLE, quantile), "judged", counts)


def rogan_gladen(
    judged: Iterable[Label],
    items: Sequence[Hashable],
    calibration: Calibration,
    *,
    exact: Sequence[bool] | npt.NDArray[np.bool_] | None = None,
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
    where smoothing moved it past that.

    *Ours as well*, so that some rows may need no judge: an ``exact`` row enters as the 0
    or 1 that it is, a judged one as its pseudo-outcome ``(c + sp - 1) / (se + sp - 1)``,
    and the mean is over all of them. For a share w of judged rows with corrected accuracy
    theta, the calibration adds ``w^2 (theta^2 Var(se) + (1 - theta)^2 Var(sp)) / (se + sp
    - 1)^2``; the pseudo-rows are a share w of judged ones and the rest exact. Correcting
    the exact rows too would take away errors that nobody made. What is clipped to [0, 1]
    is the accuracy of the judged rows: no more than all of them can be right.

    *Assumed*: on the judged rows the judge errs as often as in the calibration, among
    right answers and among the others (so the others must be mixed alike: wrong answers
    and refusals may be unlike hard to see); and exact rows hold no error at all.

    Where the calibration cannot tell the judge from chance (Fieller's set is unbounded
    there, the delta method is void), the interval reaches from "no judged row is right"
    to "every one is": all of [0, 1] where every row is judged.

    Calibration rows may be among the judged ones, but their errors are then on both sides
    and partly cancel, which the interval does not know: it is too wide (simulated coverage
    98 to 99.9 % at nominal 95 % where calibration rows are a quarter or more). Prefer PPI++.

    Args:
        judged: What was said of each row: CORRECT counts, INCORRECT and OTHER do not;
            rows without a label (judge errors) are left out.
        items: Item id of each row.
        calibration: How often this judge is right.
        exact: Whether a row was read without the judge and is known to be read rightly;
            None where the judge has read all of them.
        level: Nominal coverage.

    Returns:
        Higher is better. Undefined without labelled rows and, where the judge has read
        any, without calibration rows of both kinds and where se + sp <= 1; no interval
        with fewer than two items.

    Raises:
        DataError: A label cannot be read, or columns differ in length.
        SettingsError: ``level`` is not between 0 and 1.

    Example:
        >>> said, known = [True, True, True, False], Calibration(90, 10, 80, 20)
        >>> found = rogan_gladen(said, ["a", "b", "c", "d"], known)
        >>> round(found.estimate, 4), found.clipped  # (0.75 + 0.8 - 1) / (0.9 + 0.8 - 1)
        (0.7857, False)
        >>> half = rogan_gladen(said, list("abcd"), known, exact=[True, False, True, False])
        >>> round(half.estimate, 4)  # (1 + 1) / 4 + (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1) * 2 / 4
        0.7143
    """
    rows = _Rows.of(judged, items, exact)
    quantile = quantiles(level, max(rows.n_items - 1, 1))
    counts = (rows.n_items, calibration.n)
    reason = _no_rows(rows) or (calibration.useless if rows.share else "")
    if reason:
        return Corrected(None, None, None, "rogan-gladen", *counts, reason=reason)
    estimate, clipped = _estimate(rows, calibration)
    doubt = _no_interval(rows)
    ends = None if doubt else _interval(rows, calibration.smoothed, quantile)
    if ends is None and not doubt:
        doubt = f"{calibration.n} calibration rows cannot tell this judge from chance"
        ends = _worst_case(rows, quantile)
    found = bounded(estimate, ends, "rogan-gladen", counts, doubt)
    return replace(found, clipped=clipped)


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


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows with a label.

    Attributes:
        said: Correct or not, as 1 or 0, by the judge or for certain.
        judged: Which of them the judge has read.
        codes: Item of each.
        n_items: Items.
    """

    said: Floats
    judged: npt.NDArray[np.bool_]
    codes: Codes
    n_items: int

    @classmethod
    def of(
        cls,
        labels: Iterable[Label],
        items: Sequence[Hashable],
        exact: Sequence[bool] | npt.NDArray[np.bool_] | None,
    ) -> _Rows:
        """Leave out the rows without a label."""
        said = correctness(labels, "judged")
        codes = item_codes(items, len(said))
        sure = np.zeros(len(said), bool) if exact is None else np.asarray(exact, dtype=bool)
        if len(sure) != len(said):
            raise DataError("exact", f"one a row is needed, for {len(said)} rows", len(sure))
        known = ~np.isnan(said)
        return cls(said[known], ~sure[known], codes[known], len(np.unique(codes[known])))

    @property
    def share(self) -> float:
        """Share of rows that the judge has read; 0 without rows."""
        return float(self.judged.mean()) if len(self.said) else 0.0

    def means(self, values: Floats) -> tuple[float, float]:
        """Mean of the judged rows and of the exact ones; 0 where there are none."""
        parts = (values[self.judged], values[~self.judged])
        judged, exact = (float(part.mean()) if len(part) else 0.0 for part in parts)
        return judged, exact


def _estimate(rows: _Rows, calibration: Calibration) -> tuple[float, bool]:
    """The mean of all rows, and whether that of the judged ones had to be clipped."""
    judged, exact = rows.means(rows.said)
    se, sp = calibration.sensitivity, calibration.specificity
    if not rows.share or se is None or sp is None:
        return exact, False
    false_alarms = 1 - sp  # in this form a judge that never errs returns p to the last bit
    theta = (judged - false_alarms) / (se - false_alarms)
    inside = min(max(theta, 0.0), 1.0)
    return exact + rows.share * (inside - exact), abs(inside - theta) > _ROUNDING


def _interval(
    rows: _Rows, judge: Rates, quantile: tuple[float, float]
) -> tuple[float, float] | None:
    """Centre and half-width; None where the judge may be no better than chance."""
    z, t = quantile
    w = rows.share
    if not w:
        judge = INFALLIBLE  # there is nothing to correct
    elif judge.power <= z * sqrt(judge.v_se + judge.v_sp):
        return None
    values = np.where(rows.judged, judge.outcome(rows.said), rows.said)
    over_items = mean_over_items(values, rows.codes)
    spread = float(values.var())
    # Nothing varies: as many rows as there are items, since rows of one item may be copies.
    seen = over_items.variance > _ROUNDING
    n = (spread / over_items.variance if seen else float(rows.n_items)) + z * z
    pull = z * z / n
    # Pseudo-rows (Agresti & Coull 1998), half of them right, judged as often as the others.
    ends = judge.outcome(np.array([0.0, 1.0]))
    judged, exact = rows.means(values)
    theta = judged + pull * (float(ends.mean()) - judged)
    mean = w * theta + (1 - w) * (exact + pull * (0.5 - exact))
    square = spread + over_items.mean**2
    square += pull * (w * float((ends**2).mean()) + (1 - w) * 0.5 - square)
    doubt = w * w * ((1 - theta) ** 2 * judge.v_sp + theta**2 * judge.v_se) / judge.power**2
    shift = w * 2 * z * z * (theta * judge.v_se - (1 - theta) * judge.v_sp)
    return mean + shift, t * sqrt(max(square - mean**2, 0.0) / n + doubt)


def _worst_case(rows: _Rows, quantile: tuple[float, float]) -> tuple[float, float]:
    """From "no judged row is right" to "every one is", as centre and half-width."""
    reach = []
    for value, side in ((0.0, -1), (1.0, 1)):
        assumed = replace(rows, said=np.where(rows.judged, value, rows.said))
        centre, half = _interval(assumed, INFALLIBLE, quantile) or (0.5, 0.5)
        reach.append(min(max(centre + side * half, 0.0), 1.0))
    low, high = reach
    return (low + high) / 2, (high - low) / 2


def _no_rows(rows: _Rows) -> str:
    return "" if len(rows.said) else "undefined: 0 judged rows"


def _no_interval(rows: _Rows) -> str:
    return "" if rows.n_items >= 2 else "no interval: fewer than 2 items"
