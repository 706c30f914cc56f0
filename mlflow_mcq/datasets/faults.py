"""Rows that cannot be read, collected while a table is read part by part."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlflow_mcq.datasets.answers import Counting
from mlflow_mcq.errors import DataError

__all__ = ["Faults"]


@dataclass(slots=True)
class Faults:
    """What went wrong so far, and how the column of answers counts so far.

    Attributes:
        keeps_all: All errors are wanted; otherwise the first alone is kept, since a file may
            hold more bad rows than memory holds errors.
        n: How many rows are bad.
        rows: Errors by the place of the row in the data, from 0.
        counting: How the digits of the answers were read so far.

    Example:
        >>> faults = Faults(keeps_all=False)
        >>> for place in (7, 3, 5):
        ...     faults.note(place, DataError(f"row {place}", "is bad"))
        >>> faults.n, list(faults.rows)
        (3, [3])
    """

    keeps_all: bool = True
    n: int = 0
    rows: dict[int, DataError] = field(default_factory=dict)
    counting: Counting = field(default_factory=Counting)

    def note(self, place: int, error: DataError) -> None:
        """Take note of a bad row."""
        self.n += 1
        if not self.keeps_all and self.rows:
            if place > min(self.rows):
                return
            self.rows.clear()
        self.rows[place] = error
