"""Is a difference real? Tests that know that rows of one item hang together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from mlflow_mcq.clusters import Floats
from mlflow_mcq.errors import DataError
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.pairing import Pairs
from mlflow_mcq.statistics.patterns import REPLICATES, Number, bootstrapped, patterns_of
from mlflow_mcq.statistics.rows import CORRECT, INCORRECT, OTHER

__all__ = [
    "McNemar",
    "SignFlip",
    "Significance",
    "holm",
    "mcnemar",
    "mcnemar_of",
    "paired_bootstrap",
    "sign_flip",
    "significance",
]

_MOST_EXACT = 20_000
_FLIPS = 100_000


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test of paired right and wrong answers.

    Attributes:
        n_baseline: Items that only the baseline has right.
        n_treatment: Items that only the treatment has right.
        exact_p: Exact conditional p value; None exactly when ``reason`` is set.
        mid_p: Mid-p value: less conservative, and the one to prefer.
        reason: Why there is no test.
    """

    n_baseline: int
    n_treatment: int
    exact_p: float | None
    mid_p: float | None
    reason: str = ""


def mcnemar(n_baseline: int, n_treatment: int) -> McNemar:
    """Test two discordant counts against an even split.

    Exact: twice the binomial tail, at most 1. Mid-p: less the probability of the observed
    split (Fagerland, Lydersen and Laake 2013, BMC Med. Res. Meth. 13:91). Without discordant
    items both are 1: nothing speaks for a difference.

    Args:
        n_baseline: Items that only the baseline has right.
        n_treatment: Items that only the treatment has right.

    Raises:
        DataError: A count is negative.

    Example:
        >>> found = mcnemar(9, 1)
        >>> round(found.exact_p, 6), round(found.mid_p, 6)
        (0.021484, 0.011719)
    """
    if min(n_baseline, n_treatment) < 0:
        raise DataError("mcnemar", "counts are 0 or more", (n_baseline, n_treatment))
    n, fewer = n_baseline + n_treatment, min(n_baseline, n_treatment)
    tail = float(stats.binom.cdf(fewer, n, 0.5))
    exact = min(2 * tail, 1.0)
    mid = min(2 * tail - float(stats.binom.pmf(fewer, n, 0.5)), 1.0)
    return McNemar(n_baseline, n_treatment, exact, mid)


def mcnemar_of(pairs: Pairs) -> McNemar:
    """McNemar's test on pairs of one row an item; with several rows it has no meaning.

    OTHER counts as not correct, as in ``accuracy_shift``.
    """
    right = pairs.treatment.verdict == CORRECT
    before = pairs.baseline.verdict == CORRECT
    lost, won = int((before & ~right).sum()), int((right & ~before).sum())
    if not pairs.one_row_an_item:
        why = "undefined: items have several rows, which are not independent; see sign_flip"
        return McNemar(lost, won, None, None, why)
    return mcnemar(lost, won)


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A permutation test of a paired difference.

    Attributes:
        p_value: Two-sided.
        exact: Computed over all sign flips, not a sample of them.
        n_differing: Items on which the arms differ; the others say nothing.
    """

    p_value: float
    exact: bool
    n_differing: int


def sign_flip(pairs: Pairs, flips: int = _FLIPS, seed: int = 0) -> SignFlip:
    """Test the accuracy of two arms by swapping them item by item.

    If the arms do not differ, each item is as likely the other way round. All rows of an
    item are swapped together, so its orientations may hang together in any way. The sums
    are whole numbers and items with the same difference are interchangeable: the exact
    distribution over all 2 ** G swaps is a convolution of binomials, and is used up to
    20,000 differing rows. Beyond, ``flips`` random swaps are drawn, and the p value is
    ``(1 + as extreme) / (1 + flips)``, which is never 0 (Phipson and Smyth 2010, Stat. Appl.
    Genet. Mol. Biol. 9:39).

    Args:
        pairs: Rows of two arms; OTHER counts as not correct.
        flips: Random swaps, where not all are counted.
        seed: Of the swaps.

    Returns:
        A p value of 1 where no item differs.
    """
    right = (pairs.treatment.verdict == CORRECT).astype(np.int64)
    sums = pairs.per_item(right - (pairs.baseline.verdict == CORRECT)).astype(np.int64)
    sizes, times = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    seen, most = abs(int(sums.sum())), int(sizes @ times)
    n_differing = int(times.sum())
    if most <= _MOST_EXACT:
        return SignFlip(_exact(sizes, times, seen), True, n_differing)
    draw = np.random.default_rng(seed)
    drawn = np.zeros(flips, dtype=np.int64)
    for size, n in zip(sizes, times, strict=True):
        drawn += size * (2 * draw.binomial(n, 0.5, flips) - n)
    p_value = (1 + int((np.abs(drawn) >= seen).sum())) / (1 + flips)
    return SignFlip(p_value, False, n_differing)


def _exact(sizes: npt.NDArray[np.int64], times: npt.NDArray[np.int64], seen: int) -> float:
    chance = np.ones(1)
    for size, n in zip(sizes, times, strict=True):
        # Place size * k holds the chance of k items the one way and n - k the other.
        steps = np.zeros(int(size * n) + 1)
        steps[:: int(size)] = stats.binom.pmf(np.arange(n + 1), n, 0.5)
        chance = np.convolve(chance, steps)
    most = len(chance) - 1
    extreme = np.abs(2 * np.arange(most + 1) - most) >= seen
    return min(float(chance[extreme].sum()), 1.0)


@dataclass(frozen=True, slots=True)
class Significance:
    """Whether a difference in accuracy may be chance.

    Attributes:
        p_value: Two-sided, of this one difference.
        test: Which test says so, in words.
    """

    p_value: float
    test: str


def significance(pairs: Pairs) -> Significance:
    """Test the accuracy of two arms as their rows allow; wherever arms are compared, by this.

    McNemar's mid-p where there is one row an item, and sign flips by item where there are
    several, which hang together.

    Args:
        pairs: Rows of two arms, at least one; OTHER counts as not correct.
    """
    mcnemar = mcnemar_of(pairs)
    if mcnemar.mid_p is not None:
        return Significance(mcnemar.mid_p, "McNemar, mid-p")
    flipped = sign_flip(pairs)
    how = "exact" if flipped.exact else "sampled"
    return Significance(flipped.p_value, f"sign flips by item, {how}")


def paired_bootstrap(
    pairs: Pairs, replicates: int = REPLICATES, seed: int = 0
) -> dict[str, Measured]:
    """The differences of `mlflow_mcq.statistics.paired.shifts`, with bootstrap intervals.

    Items are drawn with replacement, each with all its rows of both arms. Beside the t
    intervals it is a check: where the two disagree, there are too few items for either.

    Args:
        pairs: Rows of two arms.
        replicates: Draws.
        seed: Of the draws.

    Returns:
        ``accuracy_shift``, ``accuracy_decided_shift`` and ``other_rate_shift``.
    """
    columns = [
        pairs.per_item(rows.verdict == verdict)
        for rows in (pairs.baseline, pairs.treatment)
        for verdict in (CORRECT, INCORRECT, OTHER)
    ]
    there = np.sum(columns, axis=0) > 0
    patterns = patterns_of([column[there] for column in columns])

    def accuracy(sums: Floats) -> Floats:
        return np.asarray((sums[:, 3] - sums[:, 0]) / sums[:, :3].sum(axis=1))

    def decided(sums: Floats) -> Floats:
        before, after = (sums[:, k] / (sums[:, k] + sums[:, k + 1]) for k in (0, 3))
        return np.asarray(after - before)

    def other(sums: Floats) -> Floats:
        return np.asarray((sums[:, 5] - sums[:, 2]) / sums[:, :3].sum(axis=1))

    named = {
        "accuracy_shift": accuracy, "accuracy_decided_shift": decided, "other_rate_shift": other,
    }  # fmt: skip
    bounded = {name: Number(statistic, -1.0, 1.0) for name, statistic in named.items()}
    return bootstrapped(patterns, bounded, replicates, seed)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust the p values of several arms against one baseline.

    Holm (1979), Scand. J. Stat. 6:65: the chance of *any* false alarm among all of them
    stays below the level, whatever their dependence.

    Args:
        p_values: By arm.

    Returns:
        Adjusted p values by arm, in [0, 1]; never below the raw ones.

    Raises:
        DataError: A p value is not in [0, 1].

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    wrong = {arm: p for arm, p in p_values.items() if not 0.0 <= p <= 1.0}
    if wrong:
        raise DataError("holm", "p values lie in [0, 1]", wrong)
    adjusted, least = {}, 0.0
    for rank, arm in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        least = max(least, min((len(p_values) - rank) * p_values[arm], 1.0))
        adjusted[arm] = least
    return {arm: adjusted[arm] for arm in p_values}
