"""The part of a file that was drawn from it: a table of few rows that knows what it is part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.one_pass import OnePass
from mlflow_mcq.datasets.shape import HowRead, Shape
from mlflow_mcq.errors import DataError

__all__ = ["Part", "part_of"]

_NAME = "mcq.part"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What is known of the file from which rows were drawn.

    Attributes:
        key: How it was read, and the draw: see `mlflow_mcq.datasets.shape.HowRead.key`.
        shape: Of the whole file.
        said: One line for people, on the whole file.
        bad: Places and errors of the rows that cannot be read.
        n_read: Rows that can.
        places: Where the rows that were drawn stood in the file.
        n_rows: Rows of the file.
        digest: That MLflow would give to the whole file.
    """

    key: str
    shape: Shape
    said: str
    bad: tuple[tuple[int, DataError], ...]
    n_read: int
    places: tuple[int, ...]
    n_rows: int
    digest: str

    def __deepcopy__(self, memo: Any) -> Part:
        return self  # pandas copies what hangs on a table with every step

    def hang_on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Let a table of the rows that were drawn know it."""
        frame.attrs[_NAME] = self
        return frame

    def rows(
        self, frame: pd.DataFrame, asked: HowRead, targets: Sequence[object] | None
    ) -> list[Row]:
        """The rows that were drawn, read as they are within the whole file.

        Raises:
            DataError: They were drawn under other settings, or are no longer the same.
        """
        if asked.key != self.key or len(frame) != len(self.places):
            raise DataError(
                "data",
                "was drawn from a file under other settings, or was changed since",
                possible="Give the path of the file again.",
            )
        rows = OnePass(asked, self.shape).take(frame, targets, self.places)
        # Whatever stands beside the table (MLflow's predictions) stands there by its own rows.
        return [replace(row, position=place) for place, row in enumerate(rows)]


def part_of(frame: Any) -> Part | None:
    """What a table is part of; None where it is a whole."""
    found = getattr(frame, "attrs", {}).get(_NAME)
    return found if isinstance(found, Part) else None
