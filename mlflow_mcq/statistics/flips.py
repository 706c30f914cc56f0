"""Pairs of orientations of one item: do both name the same option?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.statistics.intervals import Measured, ratio, undefined
from mlflow_mcq.statistics.rows import NONE, Rows

__all__ = ["flip_rates", "pair_consistency"]


def pair_consistency(rows: Rows) -> Measured:
    """Pairs of rows of one item in different orientations that name the same option / pairs.

    The consistency rate of Nalbandyan et al., SCORE, arXiv 2503.00137. By *option*, not by
    letter: a model that always says A agrees with itself in no pair. A pair with an OTHER
    in it does not agree. *Hides* whether the option agreed upon is right, and what agreement
    a guesser has (1 / number of options).

    Args:
        rows: Graded rows.

    Returns:
        A fraction in [0, 1] with a clustered interval; undefined without pairs, and where
        wrong answers name no option.
    """
    if rows.nameless:
        return Measured(None, reason=rows.nameless)
    # Pairs in different orientations = all pairs - pairs within one orientation. Twice each.
    everything = _squares(rows, rows.group) - _squares(rows, _key(rows.group, rows.orientation))
    named = rows.keep(rows.choice != NONE)
    option = _key(named.group, named.choice)
    same = _squares(named, option) - _squares(named, _key(option, named.orientation))
    return ratio(same, everything, "pairs of graded orientations").measured()


def _key(one: Codes, other: Codes) -> Codes:
    return one * (int(other.max()) + 1 if len(other) else 1) + other


def _squares(rows: Rows, key: Codes) -> Floats:
    """Sum by item of (rows with a key) squared: as a sum over rows of the rows like it."""
    if not len(key):
        return np.zeros(rows.n_items)
    if key.max() < 8 * len(key):  # counting beats sorting while the table is not much larger
        return rows.per_item(np.bincount(key)[key])
    _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    return rows.per_item(counts[place])


def flip_rates(rows: Rows) -> pd.DataFrame:
    """For each two orientations: how often the option changes.

    ``flip_rate`` = items named in both with different options / items named in both.
    *Hides* refusals (``named_in_both`` is their other side) and, for stochastic decoding,
    that an answer may change without any change of order: compare repeats.
    First repeat of each orientation only.

    Args:
        rows: Graded rows.

    Returns:
        One row a pair: ``orientation``, ``orientation_2``, ``flip_rate``, ``low``, ``high``,
        ``named_in_both`` (a fraction of the items graded in both), ``n_items``.
    """
    seen, place = np.unique(rows.orientation, return_inverse=True)
    table = np.full((len(rows.group_item), len(seen)), NONE - 1, dtype=np.intp)  # not graded
    # Backwards, so that the first row of a cell is the one that stays.
    table[rows.group[::-1], place[::-1]] = rows.choice[::-1]
    found = [
        {"orientation": int(seen[i]), "orientation_2": int(seen[j])}
        | _flips(rows, table[:, i], table[:, j])
        for i, j in combinations(range(len(seen)), 2)
    ]
    columns = ["flip_rate", "low", "high", "named_in_both", "n_items"]
    return pd.DataFrame(found, columns=["orientation", "orientation_2", *columns])


def _flips(
    rows: Rows, one: npt.NDArray[np.intp], other: npt.NDArray[np.intp]
) -> dict[str, float | int | None]:
    graded = (one >= NONE) & (other >= NONE)
    named = (one > NONE) & (other > NONE)
    flipped = ratio(rows.items_of_groups(named & (one != other)), rows.items_of_groups(named))
    share = flipped.measured() if not rows.nameless else undefined(rows.nameless)
    n_graded = int(graded.sum())
    return {
        "flip_rate": share.value,
        "low": share.low,
        "high": share.high,
        "named_in_both": int(named.sum()) / n_graded if n_graded else None,
        "n_items": share.n_items,
    }
