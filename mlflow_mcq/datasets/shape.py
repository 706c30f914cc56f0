"""What only a whole table can say: its columns, its layout, whether its rows carry ids."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from mlflow_mcq.datasets.layouts import LAYOUTS, Layout
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.settings import Settings

__all__ = ["PLAIN", "HowRead", "Shape", "check_layout", "choose", "is_log", "may_be"]

PLAIN = "plain"
"""Name of the reader of columns question, options and answer."""


@dataclass(frozen=True, slots=True)
class HowRead:
    """How a table is to be read.

    Attributes:
        settings: ``columns``, ``layout``, ``on_bad_rows``, ``several_gold``, and the draw.
        has_targets: MLflow holds the answers beside the table.
        targets_name: The column they came from; a layout that answers by another column
            is not taken then.
    """

    settings: Settings
    has_targets: bool = False
    targets_name: str | None = None

    @property
    def key(self) -> str:
        """What decides which rows come out, and how."""
        names = {"columns", "layout", "on_bad_rows", "several_gold", "limit", "shard", "seed"}
        told = self.settings.model_dump_json(include=names)
        return f"{told} {self.targets_name if self.has_targets else None!r}"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is true of a table as a whole.

    Attributes:
        columns: Of the table, in order; rows of JSON lines need not have all of them.
        inside: The rows stand inside the log of lm-eval.
        names: Columns of the rows themselves: others than the table's where they stand inside.
        layout: Name of the native layout; `PLAIN` for plain columns.
        hint: What to say if plain columns do not fit.
        has_id: Some row of the layout carries an id, so that all of them must.
        made: Columns of the rows that a layout makes; empty as long as they are not known.
        from_zero: Answers are whole numbers throughout and a 0 is among them; None as long as
            that is not known.
    """

    columns: tuple[str, ...] = ()
    inside: bool = False
    names: tuple[str, ...] = ()
    layout: str = PLAIN
    hint: str = ""
    has_id: bool = False
    made: tuple[str, ...] = ()
    from_zero: bool | None = None

    @property
    def native(self) -> Layout | None:
        """The layout, None for plain columns."""
        return None if self.layout == PLAIN else LAYOUTS[self.layout]


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


def is_log(columns: Collection[str]) -> bool:
    """Whether a table with these columns may be the log of lm-eval."""
    there = set(columns)
    return {"doc", "doc_id"} <= there and bool({"resps", "filtered_resps"} & there)


def may_be(asked: HowRead, names: Collection[str]) -> list[Layout]:
    """Layouts that are looked for, as far as the columns say; none where one is named."""
    settings, named = asked.settings, asked.settings.columns
    told = named.question or named.options or named.answer or named.answer_as != "auto"
    if settings.layout is not None or told:
        return []
    return [
        layout
        for layout in LAYOUTS.values()
        if not asked.has_targets or asked.targets_name in layout.uses
        if layout.may_be(names)
    ]


def choose(
    asked: HowRead,
    names: Sequence[str],
    head: Sequence[Mapping[str, Any]],
    marks: Mapping[str, Set[Hashable]],
) -> tuple[str, str]:
    """The layout, and what to say if it is plain columns and those do not fit.

    Args:
        asked: Names the layout, or leaves it open.
        names: Columns of the rows.
        head: The first rows.
        marks: By layout, the different marks of all rows.

    Raises:
        DataError: The layout that is named needs a column that is not there.
    """
    named = asked.settings.layout
    if named is not None:
        missing = sorted(LAYOUTS[named].needs - set(names)) if named != PLAIN else []
        if missing:
            rule = f"{named} needs columns {missing} that the data lacks"
            raise DataError("layout", rule, sorted(names))
        return named, ""
    able = may_be(asked, names)
    found = [layout for layout in able if layout.fits_rows(head, marks.get(layout.name, set()))]
    if len(found) == 1:
        return found[0].name, ""
    near = ", ".join(layout.name for layout in found or able)
    return PLAIN, f"It may be {near}: say which with layout." if near else ""
