"""What a finished run holds, read back exactly as it was stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from mlflow_mcq.errors import DataError

__all__ = ["stored_json", "stored_table"]


def stored_table(run_id: str, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A Parquet table of a run.

    Args:
        run_id: The run.
        name: Of the table, without its ending.
        columns: The ones to read; those that the table lacks are left out. None reads all.

    Raises:
        DataError: The run holds no such table.
    """
    with TemporaryDirectory() as folder:
        path = _download(run_id, f"{name}.parquet", folder)
        if columns is None:
            return pd.read_parquet(path)
        import pyarrow.parquet as pq

        there = set(pq.read_schema(path).names)
        return pd.read_parquet(path, columns=[name for name in columns if name in there])


def stored_json(run_id: str, file: str) -> Any:
    """A JSON artifact of a run.

    Raises:
        DataError: The run holds no such file.
    """
    with TemporaryDirectory() as folder:
        return json.loads(Path(_download(run_id, file, folder)).read_text(encoding="utf-8"))


def _download(run_id: str, file: str, folder: str) -> str:
    try:
        with _without_bar():
            return str(MlflowClient().download_artifacts(run_id, file, folder))
    except (MlflowException, OSError) as error:
        raise DataError(
            f"run {run_id}", f"holds no {file}", possible="Name a run of one of our evaluators."
        ) from error


@contextmanager
def _without_bar() -> Iterator[None]:
    """MLflow draws a progress bar for each file, and one for all: a screen of noise."""
    from mlflow.environment_variables import MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR as BAR

    given = BAR.get_raw()
    BAR.set(False)
    try:
        yield
    finally:
        if given is None:
            BAR.unset()
        else:
            BAR.set(given)
