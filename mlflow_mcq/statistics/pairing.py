"""The rows that two arms share.

Rows are the same if item, order shown and repeat are: never their position in a table
(arms that ran on several machines, or were sorted, would be compared across items) and
never the index of the orientation (two seeds of shuffles give different orders under one
index).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.errors import DataError
from mlflow_mcq.statistics.rows import NONE, Rows, rows_of, whole

__all__ = ["Pairs", "Unpaired", "align", "with_order"]


_COLUMNS = (
    "item_id", "protocol", "orientation", "verdict", "choice", "slot", "gold_slot", "n_options",
    "golds", "choices",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unpaired:
    """What two arms do not share.

    Attributes:
        n_items_baseline: Items that only the baseline has.
        n_items_treatment: Items that only the treatment has.
        n_rows_baseline: Rows of shared items in an order or repeat that only it has.
        n_rows_treatment: The same for the treatment.
        n_changed: Rows that both have, but with another gold or number of options.
        n_ungraded: Rows that both have, but at least one without a verdict.
    """

    n_items_baseline: int
    n_items_treatment: int
    n_rows_baseline: int
    n_rows_treatment: int
    n_changed: int
    n_ungraded: int


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows that both arms have and that are graded in both, in one order.

    Attributes:
        baseline: Rows of the baseline; items are numbered as in ``item_ids``.
        treatment: The same rows of the treatment.
        item_ids: Ids of the shared items, as texts; the place is the item's number.
        as_is: Rows that show the options in the order of the data.
        places: Row numbers in the two tables, for looking at rows: 2 x pairs.
        unpaired: What was left out.
    """

    baseline: Rows
    treatment: Rows
    item_ids: tuple[str, ...]
    as_is: npt.NDArray[np.bool_]
    places: Codes
    unpaired: Unpaired

    @property
    def n_pairs(self) -> int:
        """Rows."""
        return len(self.baseline.item)

    @property
    def n_items(self) -> int:
        """Items with at least one pair."""
        return int((self.baseline.per_item() > 0).sum())

    @property
    def one_row_an_item(self) -> bool:
        """Whether the pairs are independent of each other."""
        return bool(self.baseline.per_item().max(initial=0.0) <= 1.0)

    def keep(self, which: npt.NDArray[np.bool_]) -> Pairs:
        """Some of the pairs; items keep their numbers."""
        return Pairs(
            self.baseline.keep(which),
            self.treatment.keep(which),
            self.item_ids,
            self.as_is[which],
            self.places[:, which],
            self.unpaired,
        )

    def per_item(self, values: npt.NDArray[np.generic]) -> Floats:
        """Sum of a column over the pairs of each item."""
        return self.baseline.per_item(values)


def with_order(grades: pd.DataFrame, generations: pd.DataFrame) -> pd.DataFrame:
    """Grades with the order in which the options were shown, from the generations.

    Args:
        grades: Table ``mcq_grades`` of a run, one grader or all.
        generations: Table ``mcq_generations`` of the same run.

    Raises:
        DataError: A grade has no generation, or a row id occurs twice.
    """
    if generations["row_id"].duplicated().any():
        twice = generations.loc[generations["row_id"].duplicated(), "row_id"].iloc[0]
        raise DataError("mcq_generations", "holds a row twice", twice)
    orders = grades["row_id"].map(generations.set_index("row_id")["order"])
    if orders.isna().any():
        lost = grades.loc[orders.isna(), "row_id"].iloc[0]
        raise DataError("mcq_grades", "holds a grade of no generation of this run", lost)
    return grades.assign(order=orders)


def align(baseline: pd.DataFrame, treatment: pd.DataFrame) -> Pairs:
    """Pair the rows of two arms by item, order shown and repeat.

    Args:
        baseline: Grades of one grader with their ``order``, from `with_order`.
        treatment: The same of the other arm; any order of rows.

    Returns:
        The pairs that are graded in both; there may be none.

    Raises:
        DataError: A column is missing, or an arm holds a row twice.
    """
    for who, frame in (("baseline", baseline), ("treatment", treatment)):
        if "order" not in frame:
            raise DataError(
                who, "rows are paired by the order shown", list(frame), "Call with_order first."
            )
        if "grader" in frame and len(graders := frame["grader"].unique()) > 1:
            raise DataError(who, "one grader at a time is compared", list(graders))
    keys = _keys(baseline, treatment)
    for who, key, frame in (
        ("baseline", keys.rows[0], baseline),
        ("treatment", keys.rows[1], treatment),
    ):
        if not pd.Index(key).is_unique:
            twice = frame["item_id"].iloc[int(pd.Index(key).duplicated().argmax())]
            raise DataError(who, "an item is shown twice in one order and repeat", twice)
    _, one, other = np.intersect1d(*keys.rows, assume_unique=True, return_indices=True)
    return _pairs((baseline, treatment), keys, (one, other))


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """Both arms' rows by number: items, and items in an order and repeat."""

    items: tuple[Codes, Codes]
    rows: tuple[Codes, Codes]
    item_ids: npt.NDArray[np.object_]
    as_is: npt.NDArray[np.bool_]


def _keys(baseline: pd.DataFrame, treatment: pd.DataFrame) -> _Keys:
    both, n = (baseline, treatment), len(baseline)
    codes, ids = pd.factorize(pd.concat([_texts(f["item_id"]) for f in both], ignore_index=True))
    item = np.asarray(codes, dtype=np.intp)
    order, as_is = _orders(chain(baseline["order"], treatment["order"]))
    repeat = np.concatenate([whole(f["repeat"]) for f in both])
    key = item * (order.max(initial=0) + 1) + order
    key = key * (repeat.max(initial=0) + 1) + repeat
    names = np.asarray(ids, dtype=object)
    return _Keys((item[:n], item[n:]), (key[:n], key[n:]), names, as_is[:n])


def _texts(column: pd.Series) -> pd.Series:
    # An arm read back from JSON has the number 7 where the other has "7".
    return column if isinstance(column.dtype, pd.StringDtype) else column.map(str)


def _orders(orders: Iterable[Iterable[int]]) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """A number for each distinct order, and whether it is that of the data."""
    shown = [order if type(order) is tuple else tuple(map(int, order)) for order in orders]
    codes, known = pd.factorize(np.fromiter(shown, dtype=object, count=len(shown)))
    natural = np.array([order == tuple(range(len(order))) for order in known], dtype=np.bool_)
    numbers = np.asarray(codes, dtype=np.intp)
    return numbers, natural[numbers] if len(numbers) else np.zeros(0, dtype=np.bool_)


def _pairs(
    frames: tuple[pd.DataFrame, pd.DataFrame], keys: _Keys, places: tuple[Codes, Codes]
) -> Pairs:
    one, other = (
        rows_of(frame[[name for name in _COLUMNS if name in frame]].iloc[place])
        for frame, place in zip(frames, places, strict=True)
    )
    changed = (one.gold_slot != other.gold_slot) | (one.n_options != other.n_options)
    graded = (one.verdict != NONE) & (other.verdict != NONE)
    has = np.zeros((2, len(keys.item_ids)), dtype=np.bool_)
    for mine, items in zip(has, keys.items, strict=True):
        mine[items] = True
    n_shared = [int(has[1 - arm][items].sum()) for arm, items in enumerate(keys.items)]
    unpaired = Unpaired(
        int((has[0] & ~has[1]).sum()),
        int((has[1] & ~has[0]).sum()),
        n_shared[0] - len(places[0]),
        n_shared[1] - len(places[1]),
        int(changed.sum()),
        int((~graded & ~changed).sum()),
    )
    number, kept = pd.factorize(keys.items[0][places[0]])
    one, other = (_renumbered(rows, number, len(kept)) for rows in (one, other))
    names = tuple(keys.item_ids[kept])
    pairs = Pairs(one, other, names, keys.as_is[places[0]], np.stack(places), unpaired)
    return pairs.keep(graded & ~changed)


def _renumbered(rows: Rows, number: Codes, n_items: int) -> Rows:
    """The same items under the same numbers in both arms; groups are items here."""
    return Rows(
        number, number, np.arange(n_items), rows.orientation, rows.verdict, rows.choice,
        rows.slot, rows.gold_slot, rows.n_options, n_items,
    )  # fmt: skip
