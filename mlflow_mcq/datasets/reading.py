"""Reading data: which layout it is in, the rows it holds, and those it does not.

The layout is detected by columns and cells, said, and logged. It is only taken where it
is the only one that fits; anything else goes to the reader of plain columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.one_pass import OnePass
from mlflow_mcq.datasets.part import part_of
from mlflow_mcq.datasets.sampling import Places
from mlflow_mcq.datasets.shape import PLAIN, HowRead, check_layout
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Settings

__all__ = ["PLAIN", "BadRow", "Drawn", "Reading", "check_layout", "drawn_from", "read_data"]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read.

    Attributes:
        row: Its place in the data, from 0.
        error: What was wrong, with row and field.
    """

    row: int
    error: DataError


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read.

    Attributes:
        rows: The rows to be measured.
        layout: Name of the layout.
        said: One line for people.
        bad: Rows left out, since they could not be read.
        n_read: Rows that could be read, before a limit or a shard was taken.
    """

    rows: tuple[Row, ...]
    layout: str
    said: str
    bad: tuple[BadRow, ...]
    n_read: int


def read_data(
    frame: pd.DataFrame,
    settings: Settings,
    targets: Sequence[object] | None = None,
    targets_name: str | None = None,
) -> Reading:
    """Read a table in its own layout, then take the part of it that is asked for.

    Args:
        frame: The data; ``frame.attrs["source"]``, where there is one, names it in errors.
            Where it was drawn from a file (`mlflow_mcq.datasets.streaming.load_part`), what
            is said is said of the file.
        settings: ``columns``, ``layout``, ``on_bad_rows``, ``limit``, ``shard``, ``seed``.
        targets: MLflow's own answers by position.
        targets_name: The column they came from; a layout that answers by another column
            is not taken then.

    Raises:
        DataError: A row cannot be read and ``on_bad_rows`` is ``error``; no row can.
        SettingsError: ``layout`` is unknown.

    Example:
        >>> frame = pd.DataFrame({"goal": ["Cool a room"], "sol1": ["Shut the door"],
        ...     "sol2": ["Open a window"], "label": [1]})
        >>> read_data(frame, Settings()).said
        'read as: PIQA, 1 item, 2 options, gold is option 2 in all'
    """
    if not len(frame):
        raise DataError("data", "holds no rows")
    check_layout(settings.layout)
    asked = HowRead(settings, targets is not None, targets_name)
    part = part_of(frame)
    if part is not None:
        bad = tuple(BadRow(place, error) for place, error in part.bad)
        rows = part.rows(frame, asked, targets)
        return Reading(tuple(rows), part.shape.layout, part.said, bad, part.n_read)
    one = OnePass(asked)
    rows = one.take(frame, targets)
    one.settled()  # always: all of the table was in the first part
    drawn = drawn_from(one, asked, str(frame.attrs.get("source", "")))
    taken = tuple(rows[int(count)] for count in drawn.counts)
    return Reading(taken, one.shape.layout, drawn.said, drawn.bad, len(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What comes of a pass over a whole table.

    Attributes:
        counts: Which of the rows that could be read are measured.
        said: As in `Reading`.
        bad: Likewise.
    """

    counts: Places
    said: str
    bad: tuple[BadRow, ...]


def drawn_from(one: OnePass, asked: HowRead, source: str) -> Drawn:
    """Draw from the rows that went by.

    Args:
        one: The pass over all of them.
        asked: How they were read, and how many are wanted.
        source: Names the data in errors; may be empty.

    Raises:
        DataError: As for `read_data`.
    """
    settings, keys, shape = asked.settings, one.tally.keys, one.shape
    hint = shape.hint if shape.native is None else ""
    if one.error is not None:
        raise _located(one.error, source, hint) from None
    faults = one.faults
    if faults.n and (settings.on_bad_rows == "error" or not len(keys)):
        first = faults.rows[min(faults.rows)]
        raise _located(first, source, hint or _skip_hint(faults.n, len(keys)))
    if not len(keys):
        raise DataError("data", "holds no rows")
    bad = tuple(BadRow(row, _located(faults.rows[row], source)) for row in sorted(faults.rows))
    try:
        said = one.tally.said(shape.native, shape.inside, len(bad), bool(shape.from_zero))
    except DataError as error:
        raise _located(error, source) from None
    counts = keys.taken(settings.limit, settings.shard)
    if not len(counts):
        raise DataError("shard", "holds no items", settings.shard, "Use fewer shards.")
    if len(counts) < len(keys):
        said += f"; {keys.n_ids_of(counts):,} of them are measured"
    return Drawn(counts, said, bad)


def _located(error: DataError, source: str, hint: str = "") -> DataError:
    who, rule, got, possible = error.args
    where = f"{source}, {who}" if source else who
    return DataError(where, rule, got, f"{possible} {hint}".strip())


def _skip_hint(n_bad: int, n_good: int) -> str:
    if n_good == 0:
        return "No row can be read."
    return f"{n_bad} of {n_bad + n_good} rows cannot be read; on_bad_rows: skip leaves them out."
