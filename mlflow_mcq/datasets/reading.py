"""Reading data: which layout it is in, the rows it holds, and those it does not.

The layout is detected by columns and cells, said, and logged. It is only taken where it
is the only one that fits; anything else goes to the reader of plain columns.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mlflow_mcq.datasets.frame import Row, answer_column, read_rows
from mlflow_mcq.datasets.labels import without_labels
from mlflow_mcq.datasets.layouts import LAYOUTS, Fields, Layout
from mlflow_mcq.datasets.sampling import draw, share
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.settings import Columns, Settings

__all__ = ["PLAIN", "BadRow", "Reading", "check_layout", "read_data"]

PLAIN = "plain"
"""Name of the reader of columns question, options and answer."""

_CANONICAL = Columns(question="question", options="options", answer="answer", answer_as="index")


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


def check_layout(name: str | None) -> None:
    """Refuse a layout that nobody knows, with the nearest one.

    Raises:
        SettingsError: There is no such layout.
    """
    if name is None or name == PLAIN or name in LAYOUTS:
        return
    near = difflib.get_close_matches(name, [*LAYOUTS, PLAIN], n=1, cutoff=0.5)
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    raise SettingsError(
        "layout", "is not a layout", name, f"{hint}Known: {PLAIN}, {', '.join(LAYOUTS)}."
    )


def read_data(
    frame: pd.DataFrame,
    settings: Settings,
    targets: Sequence[object] | None = None,
    targets_name: str | None = None,
) -> Reading:
    """Read a table in its own layout, then take the part of it that is asked for.

    Args:
        frame: The data; ``frame.attrs["source"]``, where there is one, names it in errors.
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
    frame = _with_targets(frame, targets, targets_name)
    records, places, inside = _documents(frame)
    layout, hint = _choose(records, settings, targets, targets_name)
    source = str(frame.attrs.get("source", ""))
    bad: dict[int, DataError] = {}
    try:
        if layout is None:
            plain = frame if not inside else pd.DataFrame(records, dtype=object)
            given = None if targets is None else [targets[place] for place in places]
            several = settings.several_gold
            rows = read_rows(plain, settings.columns, given, several, places, bad)
            labels: list[tuple[str, ...]] = []
        else:
            fields = _fields(layout, records, places, bad)
            rows = _rows_of(fields, layout, records, places, settings, bad)
            labels = [one.labels for one in fields.values()]
    except DataError as error:
        raise _located(error, source, hint) from None
    refused = tuple(BadRow(row, _located(bad[row], source)) for row in sorted(bad))
    if refused and (settings.on_bad_rows == "error" or not rows):
        raise _located(bad[min(bad)], source, hint or _skip_hint(len(bad), len(rows)))
    rows, n_stripped = without_labels(rows)
    said = _said(layout, inside, rows, labels, len(refused), n_stripped)
    if layout is None:
        said += _counting_doubt(rows, targets, settings.columns, source)
    taken = share(draw(rows, settings.limit, settings.seed), settings.shard)
    if not taken:
        raise DataError("shard", "holds no items", settings.shard, "Use fewer shards.")
    if len(taken) < len(rows):
        said += f"; {len({row.item.id for row in taken}):,} of them are measured"
    name = PLAIN if layout is None else layout.name
    return Reading(tuple(taken), name, said, refused, len(rows))


def _with_targets(
    frame: pd.DataFrame, targets: Sequence[object] | None, name: str | None
) -> pd.DataFrame:
    # MLflow takes the column of the targets out: without it no layout can be recognised.
    if targets is None or name is None or name in frame.columns:
        return frame
    whole = frame.copy(deep=False)
    whole[name] = pd.Series(list(targets), index=whole.index, dtype=object)
    return whole


def _documents(frame: pd.DataFrame) -> tuple[list[dict[str, Any]], list[int], bool]:
    """The rows, their places, and whether they stood inside the log of lm-eval.

    That log holds every document once a filter; the first filter is taken.
    """
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    cells = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    places = list(range(len(cells)))
    inside = {"doc", "doc_id"} <= set(names) and bool({"resps", "filtered_resps"} & set(names))
    if not inside or not all(isinstance(row["doc"], Mapping) for row in cells):
        return cells, places, False
    if "filter" in names:
        places = [i for i in places if cells[i]["filter"] == cells[0]["filter"]]
    return [{"id": cells[i]["doc_id"], **cells[i]["doc"]} for i in places], places, True


def _choose(
    records: Sequence[Mapping[str, Any]],
    settings: Settings,
    targets: Sequence[object] | None,
    targets_name: str | None,
) -> tuple[Layout | None, str]:
    """The layout, None for plain columns, and what to say if those do not fit."""
    check_layout(settings.layout)
    columns = {name for row in records for name in row}
    if settings.layout is not None:
        return _named(settings.layout, columns), ""
    named = settings.columns
    if named.question or named.options or named.answer or named.answer_as != "auto":
        return None, ""
    able = [
        layout
        for layout in LAYOUTS.values()
        if targets is None or (targets_name is not None and targets_name in layout.uses)
    ]
    found = [layout for layout in able if layout.matches(columns, records)]
    if len(found) == 1:
        return found[0], ""
    near = found or [x for x in able if x.needs <= columns and not x.lacks & columns]
    names = ", ".join(layout.name for layout in near)
    return None, f"It may be {names}: say which with layout." if names else ""


def _named(name: str, columns: set[str]) -> Layout | None:
    if name == PLAIN:
        return None
    layout = LAYOUTS[name]
    missing = sorted(layout.needs - columns)
    if missing:
        raise DataError(
            "layout", f"{name} needs columns {missing} that the data lacks", sorted(columns)
        )
    return layout


def _fields(
    layout: Layout,
    records: Sequence[Mapping[str, Any]],
    places: Sequence[int],
    bad: dict[int, DataError],
) -> dict[int, Fields]:
    """What the layout reads, by count; rows it cannot read go to ``bad``."""
    found = {}
    for count, cells in enumerate(records):
        try:
            # A row of JSON lines may lack a field that others have.
            found[count] = layout.read(
                {**cells, **{name: None for name in layout.needs if name not in cells}}
            )
        except DataError as error:
            shown = f" (id {cells['id']!r})" if "id" in cells else ""
            who = f"row {places[count]}{shown}, {error.args[0]}"
            bad[places[count]] = DataError(who, *error.args[1:])
    return found


def _rows_of(
    fields: Mapping[int, Fields],
    layout: Layout,
    records: Sequence[Mapping[str, Any]],
    places: Sequence[int],
    settings: Settings,
    bad: dict[int, DataError],
) -> list[Row]:
    id_column = settings.columns.id
    rows: list[dict[str, Any]] = []
    for count, one in fields.items():
        cells = records[count]
        own: dict[str, Any] = {
            "question": one.question,
            "options": list(one.options),
            "answer": one.gold,
        }
        if id_column is not None and id_column not in cells:
            raise DataError("columns.id", "is not a column of the data", id_column)
        found = cells[id_column] if id_column is not None else one.id
        own |= {} if found is None else {"id": found}
        rest = {k: v for k, v in cells.items() if k not in layout.uses and k != id_column}
        # A column that happens to bear one of our names is kept, under another.
        rest = {f"{k} (data)" if k in _OURS else k: v for k, v in rest.items()}
        rows.append({**own, **one.meta, **rest})
    if not rows:
        return []
    table = pd.DataFrame(rows, dtype=object)
    columns = _CANONICAL.model_copy(update={"id": "id" if "id" in table.columns else None})
    stood = [places[count] for count in fields]
    return read_rows(table, columns, None, settings.several_gold, stood, bad)


_OURS = ("question", "options", "answer", "id")


def _located(error: DataError, source: str, hint: str = "") -> DataError:
    who, rule, got, possible = error.args
    where = f"{source}, {who}" if source else who
    return DataError(where, rule, got, f"{possible} {hint}".strip())


def _skip_hint(n_bad: int, n_good: int) -> str:
    if n_good == 0:
        return "No row can be read."
    return f"{n_bad} of {n_bad + n_good} rows cannot be read; on_bad_rows: skip leaves them out."


_ENOUGH_NUMBERS = 4


_UNLIKELY = 1e-3
"""Chance that no gold is the first option, below which nobody reads on without asking."""


def _counting_doubt(
    rows: Sequence[Row], targets: Sequence[object] | None, columns: Columns, source: str
) -> str:
    """What to say of numbers that are read as counting from zero, though none of them is 0.

    Each row fits both ways to count; a whole column that counts from one would be read one
    option too far, and only the missing 0 shows it. Golds that are spread evenly over n options
    leave out the first with a chance of the product of ``1 - 1/n`` over items. (They leave out
    the last as rarely, which is what they would have done if the column counts from one: such a
    column does not say what it means, and a guess would be wrong for all of it or for none.)

    Raises:
        DataError: That chance is too small for an accident.
    """
    if columns.answer_as != "auto":
        return ""
    name = answer_column(list(rows[0].cells), columns) if targets is None else None
    given = list(targets) if targets is not None else [row.cells[str(name)] for row in rows]
    numeric = [v for v in given if isinstance(v, (int, float, np.integer, np.floating))]
    numbers = {int(v) for v in numeric if v == v}
    items = {row.item.id: row.item for row in rows}
    golds = {item.gold for item in items.values()}
    if len(rows) < _ENOUGH_NUMBERS or 0 in golds or numbers != golds:
        return ""
    chance = math.prod(1 - 1 / len(item.options) for item in items.values())
    if chance < _UNLIKELY:
        error = DataError(
            str(name or "targets"),
            f"the answers of all {len(items):,} items fit a count from 0 and a count from 1: none "
            "is 0, and none is the number of options; read in the wrong way every gold would be "
            "one option off",
            sorted(numbers),
            "Set columns.answer_as to number if 1 is the first option, or to index if 0 is.",
        )
        raise _located(error, source)
    return (
        "; answers are read as counting from 0, and none is 0: if yours count from 1, "
        "set columns.answer_as to number"
    )


def _said(
    layout: Layout | None,
    inside: bool,
    rows: Sequence[Row],
    labels: Sequence[tuple[str, ...]],
    n_bad: int,
    n_stripped: int,
) -> str:
    items = list({row.item.id: row.item for row in rows}.values())
    title = "plain columns" if layout is None else layout.title
    counts = sorted({len(item.options) for item in items})
    parts = [
        title + (" (inside a log of lm-eval)" if inside else ""),
        f"{len(items):,} item" + ("s" if len(items) != 1 else ""),
        (f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else f"{counts[0]}") + " options",
    ]
    odd = Counter(one for one in labels if one and one != letters_for(len(one)))
    if odd:
        ends = sorted({label for one in odd for label in one}, key=lambda x: (len(x), x))
        parts.append(f"labels {ends[0]}-{ends[-1]} in {sum(odd.values()):,}")
    if len({item.golds for item in items}) == 1 and not items[0].also_right:
        parts.append(f"gold is option {items[0].gold + 1} in all")
    if n_stripped:
        parts.append(f"labels inside the option texts taken off in {n_stripped:,}")
    if n_bad:
        parts.append(f"{n_bad:,} rows left out")
    note = f" ({layout.note})" if layout is not None and layout.note else ""
    return "read as: " + ", ".join(parts) + note
