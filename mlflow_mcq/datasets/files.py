"""Data files: JSONL, JSON, CSV and Parquet, read without changing a cell.

pandas would read the option texts "None" and "NA" as missing and "1e5" as a number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from mlflow_mcq.errors import DataError

__all__ = ["load_frame"]


def load_frame(path: str | Path) -> pd.DataFrame:
    """Read a data file by its ending.

    Raises:
        DataError: The file is missing, of another kind, or not what its ending says.
    """
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
    return pd.read_json(path, lines=True, dtype=False, convert_dates=False, convert_axes=False)


def _json(path: Path) -> pd.DataFrame:
    return pd.read_json(path, dtype=False, convert_dates=False, convert_axes=False)


def _csv(path: Path) -> pd.DataFrame:
    # Only an empty cell is missing; everything else stays the text it is.
    return pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": pd.read_parquet,
}
