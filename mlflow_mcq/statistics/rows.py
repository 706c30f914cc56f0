"""One grader's table as whole-number columns.

A million rows of texts take minutes to group by name and a tenth of a second to group by
number, so names are turned into numbers once, here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.errors import DataError

__all__ = [
    "CORRECT",
    "INCORRECT",
    "NONE",
    "OTHER",
    "SEVERAL",
    "Rows",
    "row_numbers",
    "rows_of",
    "whole",
]

INCORRECT, CORRECT, OTHER = 0, 1, 2
NONE = -1
"""What is not there: no verdict (a judge error), no choice, no slot, no single gold."""

SEVERAL = 1_000
"""From here on a choice is a set of options, numbered as it occurs; no item has as many."""

_COLUMNS = ("item", "orientation", "verdict", "choice", "slot", "gold_slot", "n_options")
_VERDICTS = ("INCORRECT", "CORRECT", "OTHER")


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as columns of whole numbers, `NONE` where a thing is not there.

    Attributes:
        item: Item of each row, 0 to ``n_items`` - 1: the cluster.
        group: Item and protocol of each row: rows that should agree with each other.
        group_item: Item of each group.
        orientation: Orientation index.
        verdict: ``INCORRECT``, ``CORRECT``, ``OTHER`` or ``NONE``.
        choice: Option that was read; from `SEVERAL` on the number of a set of options.
        slot: Slot of the choice.
        gold_slot: Slot of the gold option; ``NONE`` where there is no single one.
        n_options: Slots shown.
        n_items: Items, those without rows included.
    """

    item: Codes
    group: Codes
    group_item: Codes
    orientation: Codes
    verdict: Codes
    choice: Codes
    slot: Codes
    gold_slot: Codes
    n_options: Codes
    n_items: int

    def keep(self, which: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows; items and groups keep their numbers."""
        place = np.flatnonzero(which)  # taking by number is three times as fast as by mask
        kept = {name: getattr(self, name).take(place) for name in _COLUMNS}
        group = kept["item"] if self.group is self.item else self.group.take(place)
        return replace(self, group=group, **kept)

    @property
    def graded(self) -> Rows:
        """The rows with a verdict: the others are judge errors and in no denominator."""
        there = self.verdict != NONE
        return self if there.all() else self.keep(there)

    def per_item(self, values: npt.NDArray[np.generic] | None = None) -> Floats:
        """Sum of a column over the rows of each item; without a column, the rows."""
        weights = None if values is None else np.asarray(values, dtype=np.float64)
        return np.bincount(self.item, weights, self.n_items).astype(np.float64)

    def items_of_groups(self, values: npt.NDArray[np.generic]) -> Floats:
        """Sum over the groups of each item of a number that each group has."""
        weights = np.asarray(values, dtype=np.float64)
        return np.bincount(self.group_item, weights, self.n_items).astype(np.float64)

    @property
    def nameless(self) -> str:
        """Why picks are unknown, or nothing: right answers alone would hide every bias."""
        decided = (self.verdict == INCORRECT) | (self.verdict == CORRECT)
        n = int((decided & (self.choice == NONE)).sum())
        return f"undefined: {n} answers without the option they name" if n else ""

    @property
    def n_items_several_gold(self) -> int:
        """Items of these rows that have no single right option."""
        return len(np.unique(self.item[self.gold_slot == NONE]))


def rows_of(grades: pd.DataFrame) -> Rows:
    """Read one grader's table.

    Args:
        grades: Rows of `mlflow_mcq.table.grades_frame`, of one grader.

    Raises:
        DataError: Rows of several graders, a missing item id, or an unknown verdict.
    """
    if "grader" in grades and len(graders := grades["grader"].unique()) > 1:
        raise DataError(
            "grades", "one grader at a time", list(graders), 'Select grades[grades["grader"] == ..]'
        )
    item = _items(grades["item_id"])
    n_items = int(item.max()) + 1 if len(item) else 0
    protocol = pd.factorize(grades["protocol"])[0]
    key = item * (int(protocol.max()) + 1 if len(protocol) else 1) + protocol
    group, seen = (item, None) if not protocol.any() else pd.factorize(key)
    group_item = np.arange(n_items) if seen is None else item[row_numbers(group, len(seen))]
    return Rows(
        item=item,
        group=np.asarray(group, dtype=np.intp),
        group_item=group_item,
        orientation=whole(grades["orientation"]),
        verdict=_verdicts(grades["verdict"]),
        choice=_choices(grades),
        slot=whole(grades["slot"]),
        gold_slot=_gold_slots(grades),
        n_options=whole(grades["n_options"]),
        n_items=n_items,
    )


def _items(column: pd.Series) -> Codes:
    codes = np.asarray(pd.factorize(column)[0], dtype=np.intp)
    if (codes < 0).any():
        raise DataError("items", "an item id is missing", f"row {int(codes.argmin())}")
    return codes


def row_numbers(codes: npt.NDArray[np.intp], n_codes: int) -> Codes:
    """A row of each code; which one does not matter."""
    places = np.zeros(n_codes, dtype=np.intp)
    places[codes] = np.arange(len(codes))
    return places


def whole(column: pd.Series) -> Codes:
    """Whole numbers, `NONE` where a cell is empty."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        return column.to_numpy(dtype=np.intp)
    numbers = column.astype("Int64").fillna(NONE)
    return np.asarray(numbers.to_numpy(dtype=np.int64), dtype=np.intp)


def _choices(grades: pd.DataFrame) -> Codes:
    choice = whole(grades["choice"])
    if "choices" not in grades:
        return choice
    many = _lengths(grades["choices"]) > 1
    if many.any():
        sets = [",".join(map(str, one)) for one in grades["choices"][many]]
        choice = choice.copy()
        choice[many] = SEVERAL + pd.factorize(np.array(sets, dtype=object))[0]
    return choice


def _gold_slots(grades: pd.DataFrame) -> Codes:
    slot = whole(grades["gold_slot"])
    return np.where(_lengths(grades["golds"]) > 1, NONE, slot) if "golds" in grades else slot


def _lengths(column: pd.Series) -> Codes:
    return np.fromiter(map(len, column), dtype=np.intp, count=len(column))


def _verdicts(column: pd.Series) -> Codes:
    codes, names = pd.factorize(column)
    places = {name: place for place, name in enumerate(_VERDICTS)}
    unknown = [name for name in names if name not in places]
    if unknown:
        raise DataError("verdict", f"is one of {', '.join(_VERDICTS)} or empty", unknown[0])
    # The last place is where factorize puts what is empty (-1).
    lookup = np.array([*(places[name] for name in names), NONE], dtype=np.intp)
    return lookup[codes]
