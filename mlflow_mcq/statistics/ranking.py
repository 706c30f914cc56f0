"""The order of many arms, and whether two readings agree on it."""

from __future__ import annotations

from collections.abc import Mapping

from scipy import stats

from mlflow_mcq.statistics.intervals import Measured, undefined

__all__ = ["rank_agreement"]


def rank_agreement(one: Mapping[str, float], other: Mapping[str, float]) -> Measured:
    """Kendall's tau-b between two rankings of the same arms.

    By judge and by regex, say, or in two orientations. In [-1, 1]; 1 is the same order, 0 no
    relation. Kendall (1945), Biometrika 33:239; ties are allowed for. *Hides* how close the
    arms are: two arms that differ by noise count as much as two that differ by ten points.

    Args:
        one: A number by arm.
        other: Another number by arm; only arms in both count.

    Returns:
        Undefined with fewer than two shared arms, or where all are tied in either. There is
        no interval: arms are not a sample of arms.

    Example:
        >>> tau = rank_agreement({"a": 0.1, "b": 0.5, "c": 0.9}, {"a": 0.2, "b": 0.8, "c": 0.7})
        >>> round(tau.value, 4)
        0.3333
    """
    shared = [arm for arm in one if arm in other]
    if len(shared) < 2:
        return undefined(f"{len(shared)} arms in both; a ranking needs 2")
    mine, theirs = [one[arm] for arm in shared], [other[arm] for arm in shared]
    if len(set(mine)) == 1 or len(set(theirs)) == 1:
        return undefined("all arms are tied")
    return Measured(float(stats.kendalltau(mine, theirs).statistic), n_items=len(shared))
