"""Data files: JSONL, JSON, CSV and Parquet, read without changing a cell.

pandas would read the option texts "None" and "NA" as missing and "1e5" as a number.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mlflow_mcq.datasets.way_out import from_file
from mlflow_mcq.errors import DataError
from mlflow_mcq.given_path import existing_file, refuse_address

__all__ = [
    "as_data_error",
    "csv_options",
    "frame_of",
    "json_line",
    "load_frame",
    "parquet_rows",
]


def load_frame(path: str | Path) -> pd.DataFrame:
    """Read a data file by its ending.

    Raises:
        DataError: The file is missing, an address, of another kind, or not what its ending says.
    """
    refuse_address(path, "data file")
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"data file {path.name!r}",
            "has an unknown ending",
            path.suffix,
            f"Known: {', '.join(_READERS)}. Anything else (a sheet, a database) goes through "
            "pandas: pass the DataFrame. Word pairs are data: {analogy: {pairs: ...}}.",
        )
    existing_file(path, "data file")
    with as_data_error(path):
        return reader(path)


@contextmanager
def as_data_error(path: Path) -> Iterator[None]:
    """Whatever a library says of a broken file, as our own error.

    Raises:
        DataError: The file is broken.
    """
    try:
        yield
    except _BROKEN as error:
        name, hint = f"data file {path.name!r}", from_file(error)
        raise DataError(name, f"cannot be read ({error})", possible=hint) from error


def _jsonl(path: Path) -> pd.DataFrame:
    # pandas' own reader rounds long numbers and drops broken surrogates.
    with path.open(encoding="utf-8-sig") as lines:
        return frame_of([json_line(n, line) for n, line in enumerate(lines, 1) if line.strip()])


def json_line(number: int, line: str) -> Any:
    """What a line holds.

    Raises:
        ValueError: It is no JSON; the message names the line, counted from 1.
    """
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number} is no JSON: {error}") from None


def _json(path: Path) -> pd.DataFrame:
    held = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(held, dict):
        # BIG-Bench and SQuAD-like files keep their rows under a name, beside a remark.
        inside = [held[name] for name in _ROWS if isinstance(held.get(name), list)]
        if len(inside) == 1 and all(isinstance(row, dict) for row in inside[0]):
            return frame_of(inside[0])
        # A column each, as pandas writes it.
        return pd.DataFrame({name: pd.Series(column) for name, column in held.items()})
    return frame_of(held)


def frame_of(rows: object) -> pd.DataFrame:
    """A table of rows whose cells stay the objects they are.

    Raises:
        ValueError: A row is no mapping.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("each row must be an object with named fields")
    # As objects: a column of ints with one gap would become floats.
    return pd.DataFrame(rows, dtype=object)


_ROWS = ("examples", "data", "rows", "questions")


def _has_header(path: Path) -> bool:
    """Whether the first line names columns; MMLU's files begin with an item.

    An item ends in a letter, has an option for that letter, and names nothing.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        first = next(csv.reader(lines), [])
    cells = [cell.strip() for cell in first]
    letters = [chr(ord("A") + i) for i in range(min(len(cells) - 2, 26))]
    known = {"question", "answer", "options", "choices", "input", "target", "id", "label"}
    named = {cell.lower() for cell in cells} & known or ("A" in cells and "B" in cells)
    return len(cells) < 4 or bool(named) or cells[-1] not in letters


def csv_options(path: Path) -> dict[str, Any]:
    """How pandas must read a CSV file: only an empty cell is missing, all others stay texts."""
    return {
        "header": "infer" if _has_header(path) else None,
        "dtype": str,
        "keep_default_na": False,
        "na_values": [""],
        "index_col": False,
        "encoding": "utf-8-sig",
    }


def _csv(path: Path) -> pd.DataFrame:
    with warnings.catch_warnings():
        # One field more than the header: pandas would shift every column by one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame: pd.DataFrame = pd.read_csv(path, **csv_options(path)).rename(columns=str)
            return frame
        except pd.errors.ParserWarning as error:
            raise ValueError("a row has more fields than the header") from error


def _parquet(path: Path) -> pd.DataFrame:
    return pd.concat(list(parquet_rows(path)), ignore_index=True)


def parquet_rows(path: Path, n_rows: int = 10_000) -> Iterator[pd.DataFrame]:
    """The rows of a Parquet file, so many at a time, at least one table of them.

    Cells are Python's own objects: pandas makes floats of a column of ints with one gap, so
    that a cell would depend on the rows that are read with it.

    Raises:
        ValueError: Its notes are damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            if len(set(names)) < len(names):
                raise ValueError("several columns have one name")
            index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
            kept = [name for name in names if name not in index]
            if not file.metadata.num_rows:
                yield pd.DataFrame([], columns=kept, dtype=object)
            for batch in file.iter_batches(n_rows, columns=kept):
                yield pd.DataFrame(batch.to_pylist(), columns=kept, dtype=object)
    except (TypeError, AttributeError, LookupError, OverflowError) as error:
        # pandas notes what it made of the file; these notes are believed by whoever reads it.
        raise ValueError(f"its notes are damaged: {type(error).__name__}") from error


_BROKEN = (
    ValueError,
    OSError,
    RecursionError,  # a million brackets
    csv.Error,
    pa.ArrowException,
)
_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
