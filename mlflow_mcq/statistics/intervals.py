"""Numbers over items with what is known of their error.

Every number here is a ratio of two sums over items, or a difference of such ratios. Its
error is that of a sum of one term an item (the delta method), so rows of one item are
never counted as independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from mlflow_mcq.clusters import Floats, quantiles
from mlflow_mcq.reliability import LEVEL, paired_interval, wilson

__all__ = ["FEWEST_ITEMS", "Linear", "Measured", "difference", "ratio", "undefined"]

FEWEST_ITEMS = 2
"""With fewer items there is no spread between items, hence no interval."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its 95 % interval over items.

    Not `mlflow_mcq.reliability.Estimate`, which is over single rows of an exam, nor
    `mlflow_mcq.corrected.Corrected`, which says how a judge's errors were taken out.

    Attributes:
        value: The number; None where undefined.
        low: Lower end of the interval; None where there is none.
        high: Upper end.
        se: Standard error over items; None where there is none.
        n_items: Items behind it.
        reason: Why the number or its interval is missing; empty where both are there.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    n_items: int = 0
    reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 is not in it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def p_value(self) -> float | None:
        """Two-sided t test of 0 over items; None without a standard error above 0."""
        if self.value is None or not self.se or self.n_items < FEWEST_ITEMS:
            return None
        return float(2 * stats.t.sf(abs(self.value) / self.se, self.n_items - 1))

    def numbers(self, name: str) -> dict[str, float]:
        """``name``, ``name_low`` and ``name_high``: what of it exists."""
        ends = {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}
        return {key: float(end) for key, end in ends.items() if end is not None}

    def reasons(self, name: str) -> dict[str, str]:
        """Why ``name``, or else its interval, does not exist; nothing where both do."""
        if not self.reason:
            return {}
        return {name if self.value is None else f"{name}_low": self.reason}


def undefined(reason: str, n_items: int = 0) -> Measured:
    """A number that does not exist."""
    return Measured(None, n_items=n_items, reason=f"undefined: {reason}")


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A number and how far each item pulls at it.

    Attributes:
        value: The number; NaN without rows.
        off: One term an item; the variance is ``G / (G - 1) * sum(off ** 2)``.
        there: Items that have rows here; G is their number.
        single: Every item has one row at most: the rows are independent.
        low: Least possible value.
        of_what: What the rows are, for reasons.
    """

    value: float
    off: Floats
    there: npt.NDArray[np.bool_]
    single: bool = False
    low: float = 0.0
    of_what: str = "rows"

    @property
    def n_items(self) -> int:
        """Items with rows."""
        return int(self.there.sum())

    @property
    def se(self) -> float:
        """Cluster-robust standard error; NaN with fewer than two items.

        Miller, "Adding Error Bars to Evals", arXiv 2411.00640, section 2.2, with the usual
        factor G / (G - 1) against the optimism of few clusters.
        """
        n = self.n_items
        return math.sqrt(float(np.square(self.off).sum()) * n / (n - 1)) if n > 1 else math.nan

    def __sub__(self, other: Linear) -> Linear:
        """The difference on the same items: what they have in common cancels."""
        return Linear(
            self.value - other.value,
            self.off - other.off,
            self.there | other.there,
            low=min(self.low - 1.0, -1.0),
            of_what=self.of_what,
        )

    def measured(self) -> Measured:
        """The number with its interval.

        Student's t with G - 1 degrees of freedom, cut to the possible values. Two cases
        need another interval, since this one would be a point: a share over one row an item
        has Wilson's, and so does a share of 0 or 1, counted in items; a difference that is
        the same in every item has Agresti and Min's (2005, Stat. Med. 24:729), counted in
        items: five items on which two arms agree do not prove them equal.
        """
        n = self.n_items
        if not n or math.isnan(self.value):
            return undefined(f"0 {self.of_what}")
        if n < FEWEST_ITEMS:
            why = f"no interval: {n} item; the spread between items needs at least {FEWEST_ITEMS}"
            return Measured(self.value, n_items=n, reason=why)
        se = self.se
        if self.low == 0.0 and (self.single or self.value in (0.0, 1.0)):
            share = wilson(round(self.value * n), n)
            return Measured(self.value, share.low, share.high, se, n)
        if se < 1e-12 and self.low < 0.0:
            return self._of_equal_items(se)
        reach = quantiles(LEVEL, n - 1)[1] * se
        low, high = max(self.value - reach, self.low), min(self.value + reach, 1.0)
        return Measured(self.value, low, high, se, n)

    def _of_equal_items(self, se: float) -> Measured:
        n, up, down = self.n_items, max(self.value, 0.0), max(-self.value, 0.0)
        reach = quantiles(LEVEL, n - 1)[1]
        low, high = paired_interval(n * up, n * down, n, reach, self.low)
        return Measured(self.value, low, high, se, n)


def ratio(part: Floats, all_of: Floats, of_what: str = "rows") -> Linear:
    """A share of rows, its rows grouped by item.

    ``sum(part) / sum(all_of)``; the term of item g is ``(part_g - share * all_of_g) /
    sum(all_of)``. With equally many rows an item this is the mean of the item means and
    its textbook error; with a denominator that varies it is the ratio estimator of survey
    sampling (Cochran, Sampling Techniques, 1977, 6.3).

    Args:
        part: Rows that count, by item; at most ``all_of``.
        all_of: Rows, by item.
        of_what: What the rows are, for the reason where there are none.

    Example:
        >>> share = ratio(np.array([4.0, 0.0]), np.array([4.0, 4.0]))
        >>> share.value, share.se
        (0.5, 0.5)
    """
    there = all_of > 0
    total = float(all_of.sum())
    if not total:
        return Linear(math.nan, np.zeros_like(all_of), there, of_what=of_what)
    value = float(part.sum()) / total
    off = (part - value * all_of) / total
    return Linear(value, off, there, single=bool(all_of.max() == 1.0), of_what=of_what)


def difference(more: Linear, less: Linear) -> Measured:
    """``more - less`` with its interval; undefined where either is."""
    for one in (more, less):
        if not one.n_items:
            return undefined(f"0 {one.of_what}")
    return (more - less).measured()
