"""Data files: JSONL, JSON, CSV and Parquet, read without changing a cell.

pandas would read the option texts "None" and "NA" as missing and "1e5" as a number.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.built import built_frame, built_name
from mlflow_mcq.errors import DataError

__all__ = ["load_frame"]


def load_frame(path: str | Path | Mapping[str, Any]) -> pd.DataFrame:
    """Read a data file by its ending, or make a built set (see `mlflow_mcq.datasets.built`).

    Raises:
        SettingsError: The arguments of a built set are not usable.
        DataError: The file is missing, of another kind, or not what its ending says.
    """
    if isinstance(path, Mapping) or built_name(path) is not None:
        return built_frame(path)
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"data file {path.name!r}",
            "has an unknown ending",
            path.suffix,
            f"Known: {', '.join(_READERS)}.",
        )
    if not path.is_file():
        raise DataError("data file", "does not exist", str(path))
    try:
        return reader(path)
    except (ValueError, OSError) as error:
        raise DataError(f"data file {path.name!r}", f"cannot be read ({error})") from error


def _jsonl(path: Path) -> pd.DataFrame:
    # pandas' own reader rounds long numbers and drops broken surrogates.
    with path.open(encoding="utf-8") as lines:
        return _of_rows([json.loads(line) for line in lines if line.strip()])


def _json(path: Path) -> pd.DataFrame:
    held = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(held, dict):  # a column each, as pandas writes it
        return pd.DataFrame({name: pd.Series(column) for name, column in held.items()})
    return _of_rows(held)


def _of_rows(rows: object) -> pd.DataFrame:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("each row must be an object with named fields")
    # As objects: a column of ints with one gap would become floats.
    return pd.DataFrame(rows, dtype=object)


def _csv(path: Path) -> pd.DataFrame:
    # Only an empty cell is missing; everything else stays the text it is.
    with warnings.catch_warnings():
        # One field more than the header: pandas would shift every column by one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path, dtype=str, keep_default_na=False, na_values=[""], index_col=False
            )
        except pd.errors.ParserWarning as error:
            raise ValueError("a row has more fields than the header") from error


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": pd.read_parquet,
}
