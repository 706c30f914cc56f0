"""Large files: only the rows that are measured are held, and they are those of the whole file.

The file is gone over once, part by part, and some 24 bytes are kept of each row: enough to
draw by (`Keys`) and to say what the whole file is (`Tally`). Then the rows drawn are read.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlflow_mcq.datasets.built import built_name
from mlflow_mcq.datasets.chunks import CHUNKED, frame_chunks, n_rows_at_most, picked_rows
from mlflow_mcq.datasets.hub import SCHEME
from mlflow_mcq.datasets.one_pass import OnePass
from mlflow_mcq.datasets.part import Part
from mlflow_mcq.datasets.reading import drawn_from
from mlflow_mcq.datasets.sampling import Places
from mlflow_mcq.datasets.shape import HowRead, Shape, check_layout
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.datasets.table_digest import TableDigest
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.settings import Settings

__all__ = ["draw_key", "load_part"]


def draw_key(data: Any, settings: Settings) -> str:
    """What decides which rows `load_part` gives; empty where it gives all of them."""
    return HowRead(settings).key if _streams(data, settings) else ""


def _streams(data: Any, settings: Settings) -> bool:
    return (
        (settings.limit is not None or settings.shard is not None)
        and isinstance(data, (str, Path))
        and not str(data).startswith(SCHEME)
        and built_name(data) is None
        and Path(data).suffix.lower() in CHUNKED
        and os.path.isfile(data)  # Path's own raises where a name is too long
    )


def load_part(
    data: Any, split: str | None, settings: Settings, targets: str | None = None
) -> pd.DataFrame:
    """What `mlflow_mcq.datasets.sources.load_data` gives, or the rows of it that are measured.

    From a file of JSON lines, CSV or Parquet, where ``limit`` or ``shard`` is set, only the
    rows drawn are given: the same ones, under the same names, as if all had been read.
    `mlflow_mcq.datasets.reading.read_data` knows such a table and draws no second time.

    Args:
        data: As for `load_data`.
        split: Likewise.
        settings: How it will be read.
        targets: Column that MLflow will hold apart.

    Raises:
        DataError: The data cannot be read, or the file changed meanwhile.
        SettingsError: There is no such layout, or no such column of targets.
    """
    if not _streams(data, settings):
        return load_data(data, split)
    check_layout(settings.layout)
    path = Path(data)
    with _left_alone(path):
        return _drawn(path, split, HowRead(settings, targets is not None, targets))


@contextmanager
def _left_alone(path: Path) -> Iterator[None]:
    """Refuse what comes of a file that is written to meanwhile.

    It is gone over more than once: the rows read last would be others than those drawn.

    Raises:
        DataError: The file is no longer the one that it was.
    """
    before = _stamp(path)
    try:
        yield
    finally:
        if _stamp(path) != before:
            raise DataError(
                f"data file {path.name!r}",
                "changed while it was read",
                possible="Wait until nobody writes to it, or give a copy of it.",
            )


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes where a file is written to or replaced; empty where it is gone.

    Not its inode: some mounted stores number theirs anew while nothing changes.
    """
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns


def _drawn(path: Path, split: str | None, asked: HowRead) -> pd.DataFrame:
    targets = asked.targets_name
    went = _Pass(path, split, asked)
    while went.digest.n_rows and not went.one.settled():
        went = _Pass(path, split, asked, went.one.shape)
    if not went.digest.n_rows:
        return load_data(path, split)  # a file without rows is small, and refused by its reader
    if targets is not None and targets not in went.digest.columns:
        raise SettingsError("targets", "is not a column of the data", targets)
    return went.drawn()


class _Pass:
    """A file that was gone over."""

    def __init__(
        self, path: Path, split: str | None, asked: HowRead, believed: Shape | None = None
    ) -> None:
        self._path, self._asked = path, asked
        self.one = OnePass(asked, believed, n_rows_at_most(path))
        self.digest = TableDigest()
        # By row that can be read: where it stands in the file, and where in its split.
        self._stands, self._places = _Ascending(), _Ascending()
        for frame in _of_split(path, split):
            start = self.digest.n_rows
            self.digest.add(frame)
            for row in self.one.take(*_apart(frame, asked)):
                self._stands.append(frame.index[row.position - start])
                self._places.append(row.position)

    def drawn(self) -> pd.DataFrame:
        """The rows that are measured.

        Raises:
            DataError: As for `read_data`.
        """
        drawn = drawn_from(self.one, self._asked, self._path.name)
        frame = picked_rows(self._path, self._stands.of(drawn.counts)).reindex(
            columns=list(self.digest.columns)
        )
        frame.attrs["source"] = self._path.name
        part = Part(
            self._asked.key,
            self.one.shape,
            drawn.said,
            tuple((bad.row, bad.error) for bad in drawn.bad),
            len(self.one.tally.keys),
            tuple(self._places.of(drawn.counts).tolist()),
            self.digest.n_rows,
            self.digest.digest(),
        )
        return part.hang_on(frame)


class _Ascending:
    """Ascending numbers by their count; where they run on by ones, none is held.

    Example:
        >>> numbers = _Ascending()
        >>> for number in (0, 1, 2, 7, 8):
        ...     numbers.append(number)
        >>> numbers.of(np.array([1, 3, 4])).tolist()
        [1, 7, 8]
    """

    def __init__(self) -> None:
        self._n, self._ahead = 0, 0
        self._starts, self._shifts = array("q", [0]), array("q", [0])

    def append(self, number: int) -> None:
        if number - self._n != self._ahead:
            self._ahead = number - self._n
            self._starts.append(self._n)
            self._shifts.append(self._ahead)
        self._n += 1

    def of(self, counts: Places) -> Places:
        runs = np.searchsorted(np.asarray(self._starts), counts, side="right") - 1
        ahead: Places = np.asarray(self._shifts)[runs]
        return counts + ahead


def _apart(frame: pd.DataFrame, asked: HowRead) -> tuple[pd.DataFrame, list[object] | None]:
    """The rows without the column that MLflow holds apart, and that column."""
    if not asked.has_targets:
        return frame, None
    name = asked.targets_name
    there = name in frame.columns
    targets: list[object] = frame[name].tolist() if there else [np.nan] * len(frame)
    return frame.drop(columns=[name] if there else []), targets


def _of_split(path: Path, split: str | None) -> Iterator[pd.DataFrame]:
    """The rows of a split, part by part."""
    known: set[str] = set()
    columns: dict[Hashable, None] = {}
    n_rows = n_chosen = n_given = 0
    for frame in frame_chunks(path):
        n_rows += len(frame)
        if split is None:
            yield frame
            continue
        columns |= dict.fromkeys(frame.columns)
        names = frame.get("split", pd.Series(np.nan, frame.index, dtype=object)).astype(str)
        known = set(sorted(known | set(map(str, names.unique())))[:10])
        chosen = frame[names == split]
        n_chosen += len(chosen)
        # A column that rows of other splits alone have is one of the file all the same.
        if len(chosen) or (n_chosen and len(columns) > n_given):
            n_given = len(columns)
            yield chosen.reindex(columns=list(columns))
    if split is None or not n_rows or n_chosen:
        return
    if "split" not in columns:
        raise DataError(path.name, "has no splits: there is no column of that name", split)
    raise DataError(path.name, "has no such split", split, f"Has {', '.join(sorted(known))}.")
