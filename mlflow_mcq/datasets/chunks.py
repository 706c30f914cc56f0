"""Data files part by part, for those that do not fit into memory; cells as in `files`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_mcq.datasets.files import as_data_error, csv_options, frame_of, json_line, parquet_rows

__all__ = ["CHUNKED", "frame_chunks", "n_rows_at_most", "picked_rows"]

_ROWS = 2_000
_CHARACTERS = 4_000_000
"""A part ends here too: rows may be long."""


def frame_chunks(path: Path, n_rows: int = _ROWS) -> Iterator[pd.DataFrame]:
    """The rows in order, so many at a time; the index counts them from 0.

    Raises:
        DataError: The file is not what its ending says.
    """
    with as_data_error(path):
        yield from CHUNKED[path.suffix.lower()](path, n_rows)


def picked_rows(path: Path, places: npt.NDArray[np.intp]) -> pd.DataFrame:
    """The rows at these places, ascending; the index says where they stand.

    Raises:
        DataError: The file is not what its ending says.
    """
    wanted = pd.Index(places)
    if path.suffix.lower() == ".jsonl":
        with as_data_error(path):
            keep = set(places.tolist())
            rows = [json_line(*line) for n, line in enumerate(_lines(path)) if n in keep]
            return frame_of(rows).set_index(wanted)
    parts = (chunk[chunk.index.isin(wanted)] for chunk in frame_chunks(path))
    return pd.concat([part for part in parts if len(part)])


def n_rows_at_most(path: Path) -> int:
    """A number of rows that the file cannot exceed."""
    return path.stat().st_size // 2 + 1  # a character and the end of its line


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, line


def _jsonl(path: Path, n_rows: int) -> Iterator[pd.DataFrame]:
    rows: list[Any] = []
    n_characters = n_before = 0
    for number, line in _lines(path):
        rows.append(json_line(number, line))
        n_characters += len(line)
        if len(rows) >= n_rows or n_characters > _CHARACTERS:
            yield _counted(frame_of(rows), n_before)
            n_before, n_characters, rows = n_before + len(rows), 0, []
    if rows:
        yield _counted(frame_of(rows), n_before)


def _csv(path: Path, n_rows: int) -> Iterator[pd.DataFrame]:
    with pd.read_csv(path, chunksize=n_rows, **csv_options(path)) as parts:
        while True:
            # Not around the whole loop: filters of warnings are everybody's.
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                try:
                    part = next(parts)
                except StopIteration:
                    return
                except pd.errors.ParserWarning as error:
                    raise ValueError("a row has more fields than the header") from error
            yield part.rename(columns=str)


def _parquet(path: Path, n_rows: int) -> Iterator[pd.DataFrame]:
    n_before = 0
    for part in parquet_rows(path, n_rows):
        yield _counted(part, n_before)
        n_before += len(part)


def _counted(frame: pd.DataFrame, start: int) -> pd.DataFrame:
    frame.index = pd.RangeIndex(start, start + len(frame))
    return frame


CHUNKED: dict[str, Callable[[Path, int], Iterator[pd.DataFrame]]] = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}
"""Readers by ending; a JSON file is one text that must be read whole."""
