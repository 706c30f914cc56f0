"""What a finished run holds, read back exactly as it was stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from mlflow_mcq.errors import DataError

__all__ = ["stored_json", "stored_table"]

# pandas trusts the notes that it left in the file, so damage shows as almost anything.
_BROKEN = (ValueError, OSError, TypeError, AttributeError, LookupError, RecursionError)


def stored_table(run_id: str, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A Parquet table of a run.

    Args:
        run_id: The run.
        name: Of the table, without its ending.
        columns: The ones to read; those that the table lacks are left out. None reads all.

    Raises:
        DataError: The run holds no such table, or one that is damaged.
    """
    file = f"{name}.parquet"
    with TemporaryDirectory() as folder:
        path = _download(run_id, file, folder)
        try:
            return _parquet(path, columns)
        except (*_BROKEN, pa.ArrowException) as error:
            raise _broken(run_id, file, error) from error


def _parquet(path: str, columns: Sequence[str] | None) -> pd.DataFrame:
    if columns is None:
        return pd.read_parquet(path)
    import pyarrow.parquet as pq

    there = set(pq.read_schema(path).names)
    return pd.read_parquet(path, columns=[name for name in columns if name in there])


class _Missing(DataError):
    """A run holds no such file, which may be right; a damaged one never is."""


def stored_json(run_id: str, file: str, missing: Any = None) -> Any:
    """A JSON artifact of a run.

    Args:
        run_id: The run.
        file: Of the artifact.
        missing: What is returned where the run holds no such file; None raises.

    Raises:
        DataError: The run holds no such file, or one that is damaged.
    """
    with TemporaryDirectory() as folder:
        try:
            path = Path(_download(run_id, file, folder))
        except _Missing:
            if missing is None:
                raise
            return missing
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except _BROKEN as error:
            raise _broken(run_id, file, error) from error


def _broken(run_id: str, file: str, error: Exception) -> DataError:
    return DataError(
        f"run {run_id}",
        f"holds a {file} that is damaged or cut short ({type(error).__name__})",
        possible="Put a whole copy in its place, or evaluate again: rows that are still in the "
        "cache are not made anew.",
    )


def _download(run_id: str, file: str, folder: str) -> str:
    try:
        with _without_bar():
            return str(MlflowClient().download_artifacts(run_id, file, folder))
    except (MlflowException, OSError) as error:
        raise _Missing(
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
