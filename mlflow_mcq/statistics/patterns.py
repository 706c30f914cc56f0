"""Items collapsed to patterns, and the bootstrap over them.

Items with the same counts are interchangeable. Drawing n items with replacement is
drawing how often each *pattern* comes, which is one multinomial draw: the same
distribution as drawing item numbers, at a cost that depends on the patterns and not on
the rows. 250,000 items of four rows have a few dozen patterns of verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.reliability import LEVEL
from mlflow_mcq.statistics.intervals import FEWEST_ITEMS, Measured, undefined

__all__ = ["REPLICATES", "Number", "Patterns", "bootstrap", "bootstrapped", "patterns_of"]

REPLICATES = 10_000
"""Draws of the bootstrap: the end of an interval then moves by a few hundredths of it."""

_MOST_PATTERNS = 2_000
_DRAWS_AT_ONCE = 2_000_000

Statistic = Callable[[Floats], Floats]
"""From sums over items (draws x columns) to numbers (draws, or draws x numbers)."""


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct rows of a table of counts by item.

    Attributes:
        counts: Patterns x columns.
        n_items: How many items have each pattern.
    """

    counts: Floats
    n_items: npt.NDArray[np.int64]

    @property
    def totals(self) -> Floats:
        """Sums over all items: one row of columns."""
        return np.asarray(self.n_items @ self.counts, dtype=np.float64)


def patterns_of(columns: Sequence[npt.NDArray[np.generic]]) -> Patterns:
    """Collapse items that have the same numbers in every column.

    Args:
        columns: One number an item, in each.

    Example:
        >>> found = patterns_of([np.array([1, 0, 1]), np.array([2, 2, 2])])
        >>> found.counts.tolist(), found.n_items.tolist()
        ([[0.0, 2.0], [1.0, 2.0]], [1, 2])
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    n_codes = 1
    for column in columns:
        levels, digit = _levels(np.asarray(column))
        if n_codes * levels >= 2**62:
            code, n_codes = _packed(code)
        code = code * levels + digit
        n_codes *= levels
    _, place, counts = np.unique(code, return_index=True, return_counts=True)
    table = np.stack([np.asarray(column, dtype=np.float64)[place] for column in columns], axis=1)
    return Patterns(table, counts.astype(np.int64))


def _levels(column: npt.NDArray[np.generic]) -> tuple[int, Codes]:
    low, high = (column.min(), column.max()) if len(column) else (0, 0)
    whole = np.array_equal(column, np.floor(column))
    if whole and float(high) - float(low) < 2**20:
        return int(high) - int(low) + 1, (column - low).astype(np.intp)
    seen, digit = np.unique(column, return_inverse=True)
    return len(seen), digit.astype(np.intp)


def _packed(code: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    # Numbers that would overflow are replaced by their rank: there are at most as many as items.
    seen, packed = np.unique(code, return_inverse=True)
    return packed.astype(np.int64), len(seen)


def bootstrap(
    patterns: Patterns, statistic: Statistic, replicates: int = REPLICATES, seed: int = 0
) -> Floats:
    """Numbers of samples of as many items, drawn with replacement.

    Beyond 2,000 patterns (which takes more than as many items) the sums are drawn from
    the normal distribution that they tend to, with the same mean and covariance:
    otherwise the cost would grow with the items.

    Args:
        patterns: The items.
        statistic: What to compute from sums over items.
        replicates: How many samples.
        seed: Of the draws; the same seed gives the same numbers.

    Returns:
        What the statistic returns for each sample, stacked.

    Example:
        >>> coin = patterns_of([np.array([0, 1] * 50), np.ones(100)])
        >>> draws = bootstrap(coin, lambda sums: sums[:, 0] / sums[:, 1], replicates=2000)
        >>> bool(abs(draws.std() - 0.05) < 0.003)
        True
    """
    draw = np.random.default_rng(seed)
    n_items = int(patterns.n_items.sum())
    share = patterns.n_items / n_items
    if len(share) > _MOST_PATTERNS:
        mean = share @ patterns.counts
        off = (patterns.counts - mean) * np.sqrt(share)[:, None]
        sums = draw.multivariate_normal(
            n_items * mean, n_items * (off.T @ off), replicates, check_valid="ignore", method="eigh"
        )
        return statistic(sums)
    step = max(_DRAWS_AT_ONCE // len(share), 1)
    done = []
    for start in range(0, replicates, step):
        times = draw.multinomial(n_items, share, size=min(step, replicates - start))
        done.append(statistic(times @ patterns.counts))
    return np.concatenate(done)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is no simple ratio, as the bootstrap needs it.

    Attributes:
        of: From sums (draws x columns) to one number a draw; NaN where it is undefined.
        low: Least possible value.
        high: Greatest possible value.
        noise: For a number that is above ``low`` by noise alone: how large it would be if
            the sums differed from the observed ones (second argument) and nothing else
            were there.
    """

    of: Statistic
    low: float
    high: float
    noise: Callable[[Floats, Floats], Floats] | None = None


def bootstrapped(
    patterns: Patterns,
    numbers: Mapping[str, Number],
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[str, Measured]:
    """Numbers with intervals from the bootstrap, all from the same draws.

    The reverse percentile (basic) interval, ``[2 v - q(97.5 %), 2 v - q(2.5 %)]`` (Davison
    and Hinkley, Bootstrap Methods, 1997, 5.2): numbers such as a largest gap or a sum of
    absolute shifts are too large by noise, and those of a sample of the sample more so;
    turning the quantiles round takes that away, the plain percentiles would add it. Cut to
    the possible values and widened to hold the number itself.

    Close to nothing, where such a number has a corner, that is not enough (it would miss 0
    in one of seven samples without any bias). So a number that is no larger than 95 % of
    what noise alone makes has ``low`` as its lower end.

    Args:
        patterns: The items.
        numbers: By name.
        replicates: How many samples.
        seed: Of the draws.

    Returns:
        By name. Undefined where the number is; no interval with fewer than two items.
    """
    seen, n_items = patterns.totals[None, :], int(patterns.n_items.sum())
    if not n_items:
        return dict.fromkeys(numbers, undefined("0 rows"))

    def all_of(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            columns = [one.of(sums) for one in numbers.values()]
            columns += [one.noise(sums, seen) for one in numbers.values() if one.noise]
            return np.stack(columns, axis=1)

    values = all_of(seen)[0]
    if n_items < FEWEST_ITEMS:
        why = f"no interval: {n_items} item; at least {FEWEST_ITEMS} are needed"
        return {
            name: Measured(float(value), n_items=n_items, reason=why)
            for name, value in zip(numbers, values, strict=False)
        }
    draws = bootstrap(patterns, all_of, replicates, seed)
    noises = iter(draws[:, len(numbers) :].T)
    return {
        name: _turned(one, float(value), drawn, next(noises) if one.noise else None, n_items)
        for (name, one), value, drawn in zip(numbers.items(), values, draws.T, strict=False)
    }


def _turned(
    one: Number, value: float, draws: Floats, noise: Floats | None, n_items: int
) -> Measured:
    if np.isnan(value):
        return undefined("0 rows", n_items)
    draws = draws[~np.isnan(draws)]
    below, above = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low = min(max(2 * value - float(above), one.low), value)
    high = max(min(2 * value - float(below), one.high), value)
    if noise is not None and value <= float(np.nanquantile(noise, LEVEL)):
        low = one.low
    return Measured(value, low, high, float(draws.std(ddof=1)), n_items)
