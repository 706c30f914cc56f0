"""A layout: how one published data set writes its items, recognised by its columns.

A reader returns `Fields` or raises `doubt(...)`; it never guesses. The gold it returns is
an option index, so "1" is read the way its data set means it and in no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlflow_mcq.datasets.cells import is_missing
from mlflow_mcq.errors import DataError

__all__ = [
    "HEAD",
    "Cells",
    "Fields",
    "Layout",
    "agreeing",
    "as_list",
    "doubt",
    "filled",
    "gold_at",
    "gold_letter",
    "gold_text",
    "is_whole",
    "text_of",
]

Cells = Mapping[str, Any]
"""One row: cells by column."""
HEAD = 50
"""So many rows from the start are looked at whole; of the others only their marks are kept."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What a layout finds in a row.

    Attributes:
        question: The text of the question.
        options: Option texts, in the order of the data.
        gold: Option index; a list of them where the row marks several.
        labels: The data's own labels by option; empty where it has none.
        id: Name of the row; None numbers it.
        meta: More to keep beside the columns that the layout does not use.
    """

    question: str
    options: Sequence[object]
    gold: int | list[int]
    labels: tuple[str, ...] = ()
    id: object = None
    meta: Mapping[str, object] = field(default_factory=dict)


def _any_rows(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Layout:
    """One native layout.

    Attributes:
        name: What ``layout: ...`` calls it.
        title: What people call it.
        needs: Columns that must be there.
        read: Reads one row.
        lacks: Columns that must not be there; they belong to a sister layout.
        also: Columns that the reader uses where they are there.
        fits: Looks at the first `HEAD` rows and the marks of all, where names alone would
            mistake one layout for another.
        mark: What one row says to that, as one of few words: a file that does not fit into
            memory is read row by row, and only the different marks are kept. None looks at
            the first rows alone.
        note: What a reader of the numbers must know about this data.
    """

    name: str
    title: str
    needs: frozenset[str]
    read: Callable[[Cells], Fields]
    lacks: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    fits: Callable[[Sequence[Cells], Set[Hashable]], bool] = _any_rows
    mark: Callable[[Cells], Hashable] | None = None
    note: str = ""

    @property
    def uses(self) -> frozenset[str]:
        """Columns that the reader consumes; all others become meta."""
        return self.needs | self.also

    def matches(self, columns: Collection[str], rows: Sequence[Cells]) -> bool:
        """Whether data with these columns and rows is written in this layout."""
        return self.may_be(columns) and self.fits_rows(rows[:HEAD], self.marks_of(rows))

    def marks_of(self, rows: Sequence[Cells]) -> set[Hashable]:
        """The different marks of some rows."""
        return set() if self.mark is None else {self.mark(self.whole(row)) for row in rows}

    def fits_rows(self, head: Sequence[Cells], marks: Set[Hashable]) -> bool:
        """Whether the first rows and the marks of all are of this layout."""
        return self.fits([self.whole(row) for row in head], marks)

    def whole(self, row: Cells) -> Cells:
        """The row with all columns that are needed: JSON lines may lack what others have."""
        if self.needs <= row.keys():
            return row
        return {**dict.fromkeys(self.needs), **row}

    def may_be(self, columns: Collection[str]) -> bool:
        """Whether the names of the columns allow it."""
        there = set(columns)
        return self.needs <= there and not self.lacks & there


def doubt(name: str, rule: str, got: object = ..., possible: str = "") -> DataError:
    """The error of one field; the caller puts file and row before it."""
    return DataError(f"field {name!r}", rule, got, possible)


def is_whole(value: object) -> bool:
    """A whole number that is no bool; 2.0 counts, since one gap makes floats of a column."""
    if isinstance(value, (float, np.floating)):
        return float(value).is_integer()
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def text_of(cells: Cells, name: str) -> str:
    """A text that says something.

    Raises:
        DataError: It is missing, empty or no text.
    """
    value = cells.get(name)
    if not isinstance(value, str) or not value.strip():
        raise doubt(name, "must be a text that is not empty", value)
    return value


def as_list(value: object, name: str) -> list[Any]:
    """A list, however the file format hands it over.

    Raises:
        DataError: It is none.
    """
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    raise doubt(name, "must be a list", value)


def filled(cells: Cells, names: Iterable[str]) -> list[str]:
    """The option columns that a row fills, from the first on.

    Raises:
        DataError: A gap: every later option would slip into another's place.
    """
    names = [name for name in names if name in cells]
    there = [n for n in names if not is_missing(cells[n]) and str(cells[n]).strip()]
    if there != names[: len(there)]:
        raise doubt(
            "/".join(names), "options must be filled from the first on without a gap", there
        )
    return there


def _text_of_number(value: Any) -> str:
    return str(int(value))  # not by way of a float: JSON lines may hold 400 digits


_HIDDEN = "This split hides its answers; use one that has them (validation, say)."


def gold_at(value: object, n_options: int, name: str, first: int = 0) -> int:
    """The option at a number that counts from ``first``.

    Raises:
        DataError: No number, outside, or the mark of a hidden answer (-1 or nothing).

    Example:
        >>> gold_at("3", 4, "label", first=1)
        2
    """
    _refuse_hidden(value, name)
    text = _text_of_number(value) if is_whole(value) else str(value).strip()
    expected = f"a whole number from {first} to {first + n_options - 1}"
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not re.fullmatch(r"[0-9]{1,5}", text):
        raise doubt(name, f"must be {expected}", value)
    if not first <= int(text) < first + n_options:
        raise doubt(name, f"is outside the options: must be {expected}", value)
    return int(text) - first


def gold_letter(value: object, labels: Sequence[str], name: str) -> int:
    """The option that carries a label, in its own case or in capitals.

    Raises:
        DataError: No option carries it, or two do.
    """
    _refuse_hidden(value, name)
    text = _text_of_number(value) if is_whole(value) else str(value).strip()
    found = [i for i, label in enumerate(labels) if label == text]
    found = found or [i for i, label in enumerate(labels) if label == text.upper()]
    if len(found) != 1:
        raise doubt(name, f"must be one of the labels {list(labels)}", value)
    return found[0]


def gold_text(value: object, options: Sequence[object], name: str) -> int:
    """The option that says this.

    Raises:
        DataError: None says it, or two do.
    """
    _refuse_hidden(value, name)
    found = [i for i, o in enumerate(options) if str(o).strip() == str(value).strip()]
    if len(found) != 1:
        raise doubt(name, f"must be the text of exactly one option, is that of {len(found)}", value)
    return found[0]


def agreeing(gold: int, other: int, names: str) -> int:
    """One gold that two columns name.

    Raises:
        DataError: They name different options, and nobody can know which is right.
    """
    if gold != other:
        raise doubt(names, "name different options", [gold, other], "Counted from zero.")
    return gold


def _refuse_hidden(value: object, name: str) -> None:
    hidden = is_missing(value) or (isinstance(value, str) and not value.strip())
    if hidden or str(value) in ("-1", "-1.0"):
        shown = None if is_missing(value) else value
        raise doubt(name, "holds no answer", shown, _HIDDEN)
