"""Rows grouped by item: what is known about a mean when rows of one item hang together.

Orientations and repeats of one item are not independent rows: an item that is known is
known in every order. Counting them as independent makes an interval too narrow by about
the square root of the rows per item, so every variance here is one over items.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Verdict

__all__ = [
    "Codes",
    "Floats",
    "Label",
    "MeanOverItems",
    "correctness",
    "item_codes",
    "item_sums",
    "mean_over_items",
    "quantiles",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

Label = Verdict | str | bool | np.bool_ | float | None
"""A verdict, its name, a bool, or nothing (None, NaN, a blank cell)."""

# OTHER is not correct: it earns nothing, as in the metric `accuracy`.
_WORTH = {"CORRECT": 1.0, "INCORRECT": 0.0, "OTHER": 0.0, "": np.nan}


@dataclass(frozen=True, slots=True)
class MeanOverItems:
    """A mean over rows with its variance over items.

    Attributes:
        mean: Sum of all rows / number of rows.
        variance: Cluster-robust variance of ``mean``; NaN with fewer than two items.
        n_items: Items with at least one row.
        n_rows: Rows.
    """

    mean: float
    variance: float
    n_items: int
    n_rows: int


def correctness(labels: Iterable[Label], who: str) -> Floats:
    """What each label is worth: 1 for CORRECT or True, 0 for INCORRECT, OTHER or False.

    Numbers are refused: in a column of multiple-choice data a 1 may well be the index of
    an option, and read as "correct" it would score every row that a person labelled B.

    Args:
        labels: One label a row; names in any case.
        who: Name of the column, for errors.

    Returns:
        One number a row; NaN where there is no label.

    Raises:
        DataError: A label is none of these.

    Example:
        >>> correctness(["CORRECT", "other", True, None], "human_label").tolist()
        [1.0, 0.0, 1.0, nan]
    """
    if isinstance(labels, np.ndarray) and labels.dtype == np.bool_:
        return labels.astype(np.float64)
    return np.array([_worth(one, who, row) for row, one in enumerate(labels)], dtype=np.float64)


def _worth(label: object, who: str, row: int) -> float:
    # By falling frequency: this runs once a row, and most rows have no human label.
    if label is None:
        return np.nan
    if label is True or label is False or isinstance(label, np.bool_):
        return float(label)
    if isinstance(label, str) and (word := label.strip().upper()) in _WORTH:
        return _WORTH[word]
    if label is pd.NA or label is pd.NaT or (isinstance(label, float) and np.isnan(label)):
        return np.nan
    raise DataError(
        f"{who}, row {row}",
        "a label says whether the answer is right",
        label,
        "Write CORRECT, INCORRECT, OTHER, True or False, or leave it empty.",
    )


def item_codes(items: Sequence[Hashable] | npt.NDArray[np.generic], n_rows: int) -> Codes:
    """Number the items 0, 1, ... in the order in which they appear.

    Args:
        items: Item id of each row.
        n_rows: Rows expected.

    Raises:
        DataError: Another number of ids than rows, or an id is missing.
    """
    ids = items if isinstance(items, np.ndarray) else pd.Series(list(items), dtype="object").array
    if len(ids) != n_rows:
        raise DataError("items", f"one item id a row is needed, for {n_rows} rows", len(ids))
    codes: Codes = np.asarray(pd.factorize(ids)[0], dtype=np.intp)
    if len(codes) and codes.min() < 0:
        raise DataError("items", "an item id is missing", f"row {int(codes.argmin())}")
    return codes


def item_sums(values: Floats, codes: Codes, n_codes: int) -> Floats:
    """Sum of the rows of each item; 0 for an item without rows here."""
    return np.bincount(codes, weights=values, minlength=n_codes).astype(np.float64)


def mean_over_items(values: Floats, codes: Codes) -> MeanOverItems:
    """Mean over rows, with the cluster-robust variance over items.

    ``variance = G / (G - 1) * sum_g (sum of (row - mean) in item g)^2 / N^2`` for G items
    and N rows. With equally many rows an item this is the textbook variance of the mean
    of the G item means. Repeating every row changes neither number.

    Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640, the clustered standard
    error, with the usual factor G / (G - 1) against the optimism of few clusters.

    Args:
        values: One number a row, none of them NaN.
        codes: Item of each row, from `item_codes`.

    Returns:
        The mean; NaN without rows. The variance; NaN with fewer than two items.
    """
    n_rows = len(values)
    present, codes = np.unique(codes, return_inverse=True)
    n_items = len(present)
    if not n_rows:
        return MeanOverItems(np.nan, np.nan, 0, 0)
    mean = float(values.mean())
    if n_items < 2:
        return MeanOverItems(mean, np.nan, n_items, n_rows)
    off = item_sums(values - mean, codes, n_items) / n_rows
    return MeanOverItems(mean, float(off @ off) * n_items / (n_items - 1), n_items, n_rows)


def quantiles(level: float, degrees: int) -> tuple[float, float]:
    """Two-sided quantiles of the normal and of Student's t with these degrees of freedom.

    Raises:
        SettingsError: ``level`` is not between 0 and 1.

    Example:
        >>> z, t = quantiles(0.95, degrees=10)
        >>> round(z, 3), round(t, 3)
        (1.96, 2.228)
    """
    if not 0.0 < level < 1.0:
        raise SettingsError("level", "must lie between 0 and 1", level, "Use level=0.95.")
    upper = 0.5 + level / 2
    return float(special.ndtri(upper)), float(special.stdtrit(degrees, upper))
