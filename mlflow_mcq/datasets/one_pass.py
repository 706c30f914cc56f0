"""One pass over a table, part by part: rows are read and counted, and none is kept here.

What only the whole table can say (`Shape`) is taken from the first part or from an earlier
pass, and checked by the time the last part is in: a table that turns out otherwise is gone
over again. Files of one kind of row need one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.faults import Faults
from mlflow_mcq.datasets.frame import Row, answer_column, read_rows
from mlflow_mcq.datasets.labels import without_labels
from mlflow_mcq.datasets.layouts import Fields, Layout
from mlflow_mcq.datasets.layouts.layout import HEAD
from mlflow_mcq.datasets.shape import HowRead, Shape, choose, is_log, may_be
from mlflow_mcq.datasets.tally import Tally
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Columns

__all__ = ["OnePass"]

_CANONICAL = Columns(question="question", options="options", answer="answer", answer_as="index")
_OURS = ("question", "options", "answer", "id")
_Cells = dict[str, Any]


class OnePass:
    """Rows of a table in order.

    Args:
        asked: How they are to be read.
        believed: The shape of the table; None goes by the first part.
        n_at_most: Rows that will come at most; None where nobody knows.

    Attributes:
        shape: Of the table, as far as it was seen.
        faults: Rows that cannot be read.
        tally: Counts.
        error: What is wrong with the table and no single row.
        stale: Rows were read that another shape would have had read otherwise.
    """

    def __init__(
        self, asked: HowRead, believed: Shape | None = None, n_at_most: int | None = None
    ) -> None:
        self._asked = asked
        self._fresh = believed is None
        self.shape = Shape() if believed is None else believed
        self.faults = Faults(asked.settings.on_bad_rows == "skip")
        # Of rows that were drawn the 0 that settled how the column counts may not be one.
        self.faults.counting.told = self.shape.from_zero
        self.tally = Tally(asked, n_at_most)
        self.error: DataError | None = None
        self.stale = False
        self._n = 0
        self._head: list[_Cells] = []
        self._marks: dict[str, set[Hashable]] = {}
        self._all_docs = True
        self._filter: object = None
        self._made: dict[str, None] = {}
        self._read_without_ids = False

    def take(
        self,
        frame: pd.DataFrame,
        targets: Sequence[object] | None = None,
        places: Sequence[int] | None = None,
    ) -> list[Row]:
        """Read the next rows; bad ones are left out.

        Args:
            frame: The rows.
            targets: MLflow's own answers by position.
            places: Where the rows stand in the data; None counts them.
        """
        if targets is not None:
            self.tally.add_answers(targets)
        frame = self._whole(_with_targets(frame, targets, self._asked.targets_name))
        records, local = self._records(frame)
        places = range(self._n, self._n + len(frame)) if places is None else places
        places = [places[i] for i in local]
        self._n += len(frame)
        self._survey(records)
        given = None if targets is None else [targets[i] for i in local]
        if self.error is not None:
            self._look_on(records, given)
        if self.error is not None or self.stale or not records:
            return []
        try:
            rows = self._rows(frame, records, places, given)
        except DataError as error:
            self.error = error
            return []
        clean, _ = without_labels(rows)
        if rows:
            stripped = [new is not old for new, old in zip(clean, rows, strict=True)]
            self.tally.add(clean, stripped, self.shape.native is None)
        return clean

    def settled(self) -> bool:
        """Whether the shape that was believed is that of the whole table, now that all is in.

        Where it is not, a further pass goes by what was found.

        Raises:
            DataError: The layout that is named needs a column that is not there.
        """
        shape = self.shape
        inside = is_log(shape.columns) and self._all_docs
        if inside is not shape.inside:
            self.shape = Shape(shape.columns, inside, () if inside else shape.columns)
            return False
        layout, hint = choose(self._asked, shape.names, self._head, self._marks)
        other = layout != shape.layout
        has_id = shape.has_id and not other and not self.stale
        made = () if other or self.stale else tuple(self._made)
        self.shape = replace(shape, layout=layout, hint=hint, has_id=has_id, made=made)
        counting = self.faults.counting
        if not other and not self.stale:
            self.shape = replace(self.shape, from_zero=counting.from_zero)
        if self._read_without_ids and shape.has_id and not other and not self.stale:
            self.shape = replace(self.shape, has_id=True, made=())
            return False
        return not other and not self.stale and counting.settled

    def _whole(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with all columns of the table."""
        names = tuple(map(str, frame.columns))
        known = self.shape.columns
        if self._fresh:
            self.shape = replace(self.shape, columns=tuple(dict.fromkeys(names)))
            return frame
        if names == known:
            return frame
        more = tuple(name for name in names if name not in set(known))
        if more:
            # Rows before were read without a column that they should have had, empty.
            self.stale = True
            self.shape = replace(self.shape, columns=known + more)
        return frame.reindex(columns=list(self.shape.columns))

    def _records(self, frame: pd.DataFrame) -> tuple[list[_Cells], Sequence[int]]:
        """The rows and their counts within this part.

        The log of lm-eval holds every document once a filter; the first filter is taken.
        """
        names = [str(name) for name in frame.columns]
        columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
        cells = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
        docs = "doc" in names and all(isinstance(row["doc"], Mapping) for row in cells)
        self._all_docs = self._all_docs and docs
        if self._fresh:
            self.shape = replace(self.shape, inside=is_log(names) and docs)
        if not self.shape.inside:
            return cells, range(len(cells))
        local: Sequence[int] = range(len(cells)) if docs else ()
        if "filter" in names and cells:
            self._filter = cells[0]["filter"] if self._n == 0 else self._filter
            local = [i for i in local if cells[i]["filter"] == self._filter]
        return [{"id": cells[i]["doc_id"], **cells[i]["doc"]} for i in local], local

    def _survey(self, records: Sequence[_Cells]) -> None:
        """See what these rows say of the whole table."""
        self._add_names(records)
        able = may_be(self._asked, self.shape.names)
        self._head += records[: HEAD - len(self._head)]
        for layout in able:
            self._marks.setdefault(layout.name, set()).update(layout.marks_of(records))
        if self._fresh and self._asked.settings.layout is not None:
            self.shape = replace(self.shape, layout=self._asked.settings.layout)
        elif self._fresh:
            layout_name, hint = choose(self._asked, self.shape.names, self._head, self._marks)
            self.shape = replace(self.shape, layout=layout_name, hint=hint)
        self._fresh = False

    def _look_on(self, records: Sequence[_Cells], targets: Sequence[object] | None) -> None:
        """See how answers count behind a row that fits both ways: a 0 may stand there."""
        if self.stale or self.shape.native is not None or not self.faults.counting.unclear:
            return
        if targets is None:
            name = str(answer_column(self.shape.names, self._asked.settings.columns))
            targets = [cells.get(name) for cells in records]
        self.faults.counting.look_at(targets)

    def _add_names(self, records: Sequence[_Cells]) -> None:
        names = self.shape.columns
        if self.shape.inside:
            found = dict.fromkeys(name for cells in records for name in cells)
            names = tuple(dict.fromkeys((*self.shape.names, *found)))
            self.stale = self.stale or (not self._fresh and names != self.shape.names)
        self.shape = replace(self.shape, names=names)

    def _rows(
        self,
        frame: pd.DataFrame,
        records: Sequence[_Cells],
        places: Sequence[int],
        targets: Sequence[object] | None,
    ) -> list[Row]:
        layout, settings = self.shape.native, self._asked.settings
        if layout is not None:
            return self._native_rows(layout, records, places)
        if self.shape.inside:
            frame = pd.DataFrame(records, dtype=object).reindex(columns=list(self.shape.names))
        return read_rows(
            frame, settings.columns, targets, settings.several_gold, places, self.faults
        )

    def _native_rows(
        self, layout: Layout, records: Sequence[_Cells], places: Sequence[int]
    ) -> list[Row]:
        fields = self._fields(layout, records, places)
        made = [self._own(one, layout, records[count]) for count, one in fields.items()]
        if not made:
            return []
        table = pd.DataFrame(made, dtype=object)
        has_id = self.shape.has_id or "id" in table.columns
        if has_id and "id" not in table.columns:
            table["id"] = None
        self._read_without_ids = self._read_without_ids or not has_id
        self._made |= dict.fromkeys(map(str, table.columns))
        known = self.shape.made
        table = table.reindex(columns=list(known)) if known else table
        self.shape = replace(self.shape, has_id=has_id)
        columns = _CANONICAL.model_copy(update={"id": "id" if has_id else None})
        stood = [places[count] for count in fields]
        several = self._asked.settings.several_gold
        return read_rows(table, columns, None, several, stood, self.faults)

    def _fields(
        self, layout: Layout, records: Sequence[_Cells], places: Sequence[int]
    ) -> dict[int, Fields]:
        """What the layout reads, by count."""
        found = {}
        for count, cells in enumerate(records):
            try:
                found[count] = layout.read(layout.whole(cells))
                self.tally.add_labels(found[count].labels)
            except DataError as error:
                shown = f" (id {cells['id']!r})" if "id" in cells else ""
                who = f"row {places[count]}{shown}, {error.args[0]}"
                self.faults.note(places[count], DataError(who, *error.args[1:]))
        return found

    def _own(self, one: Fields, layout: Layout, cells: _Cells) -> _Cells:
        """A row with our columns."""
        id_column = self._asked.settings.columns.id
        if id_column is not None and id_column not in cells:
            raise DataError("columns.id", "is not a column of the data", id_column)
        own: _Cells = {
            "question": one.question,
            "options": list(one.options),
            "answer": one.gold,
        }
        found = cells[id_column] if id_column is not None else one.id
        own |= {} if found is None else {"id": found}
        rest = {k: v for k, v in cells.items() if k not in layout.uses and k != id_column}
        # A column that happens to bear one of our names is kept, under another.
        rest = {f"{k} (data)" if k in _OURS else k: v for k, v in rest.items()}
        return {**own, **one.meta, **rest}


def _with_targets(
    frame: pd.DataFrame, targets: Sequence[object] | None, name: str | None
) -> pd.DataFrame:
    # MLflow takes the column of the targets out: without it no layout can be recognised.
    if targets is None or name is None or name in frame.columns:
        return frame
    whole = frame.copy(deep=False)
    whole[name] = pd.Series(list(targets), index=whole.index, dtype=object)
    return whole
