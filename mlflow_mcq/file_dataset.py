"""What MLflow puts on record of a file from which rows were drawn: the file, not the rows."""

from __future__ import annotations

from typing import Any

import mlflow.data
import pandas as pd
from mlflow.data.dataset_source import DatasetSource
from mlflow.data.pandas_dataset import PandasDataset

from mlflow_mcq.datasets.part import Part, part_of

__all__ = ["FilePart", "as_dataset"]


class FilePart(PandasDataset):  # type: ignore[misc]
    """MLflow's data set over the rows drawn, with the digest and the size of their file."""

    def __init__(
        self,
        df: pd.DataFrame,
        part: Part,
        source: DatasetSource,
        targets: str | None = None,
        name: str | None = None,
    ) -> None:
        self._part = part
        super().__init__(df, source, targets, name, part.digest)

    @property
    def profile(self) -> dict[str, int]:
        """Rows and cells of the file."""
        n_rows = self._part.n_rows
        return {"num_rows": n_rows, "num_elements": n_rows * self.df.shape[1]}


def as_dataset(
    frame: pd.DataFrame,
    *,
    source: str | None = None,
    name: str | None = None,
    targets: str | None = None,
) -> Any:
    """A table as MLflow's data set, on record as what it was drawn from.

    Args:
        frame: The table.
        source: Its address; None is the place in the code.
        name: Its name; None is MLflow's.
        targets: Column with the answers.
    """
    whole = mlflow.data.from_pandas(frame, source=source, name=name, targets=targets)
    part = part_of(frame)
    if part is None:
        return whole
    return FilePart(frame, part, whole.source, targets, name)
