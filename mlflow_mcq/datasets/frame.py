"""Items from a table: a DataFrame, whatever its index and the shape of its options.

Options stand in a list column, in JSON text, in a ``{text, label}`` dict, or in
columns of their own: A, B, C, ..., or the ones that were named. Rows are named by
their position, since an index may be anything and may repeat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mlflow_mcq.datasets.answers import AnswerKey, Counting
from mlflow_mcq.datasets.cells import is_missing
from mlflow_mcq.datasets.faults import Faults
from mlflow_mcq.datasets.several_gold import SeveralGold, read_answers, under_policy
from mlflow_mcq.datasets.way_out import near_column, nested, split_column, split_options
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import MOST_SLOTS, letters_for
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Columns

__all__ = ["Row", "answer_column", "as_frame", "items_of", "read_rows"]

_USUAL = {
    "question": ("question", "stem", "query"),
    "options": ("options", "choices"),
    "answer": ("answer", "gold", "target", "label", "answerKey"),
    "id": ("id", "item_id", "question_id"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the data, read.

    Attributes:
        item: The item it holds.
        cells: The row as it came.
        who: Its name in errors.
        position: Its place in the data, from 0.
    """

    item: Item
    cells: Mapping[str, Any]
    who: str
    position: int = 0


def as_frame(data: object) -> pd.DataFrame:
    """A DataFrame from what MLflow hands over: a frame, or an array of dicts.

    MLflow turns a list of dicts into an object array with one dict a row.

    Raises:
        DataError: Anything else.
    """
    if isinstance(data, pd.DataFrame):
        return data
    rows = np.asarray(data, dtype=object).reshape(-1).tolist() if data is not None else []
    if rows and all(isinstance(row, Mapping) for row in rows):
        return pd.DataFrame([dict(row) for row in rows])
    raise DataError(
        "data",
        "must be a DataFrame, a list of dicts or an MLflow dataset with named columns",
        type(data).__name__,
    )


def read_rows(
    frame: pd.DataFrame,
    columns: Columns,
    targets: Sequence[object] | None = None,
    several_gold: SeveralGold = "refuse",
    places: Sequence[int] | None = None,
    faults: Faults | None = None,
) -> list[Row]:
    """Read every row, in order.

    Args:
        frame: The data.
        columns: Where things stand; None entries are looked for.
        targets: MLflow's own answers by position; they win over a column.
        several_gold: What a row with several right options comes to.
        places: Where the rows stood in the data they were taken from; None counts them.
        faults: Takes the errors of rows that cannot be read, and knows how the answers of
            earlier parts were counted; None raises the first error.

    Raises:
        DataError: A column is missing, or a row cannot be read; the message names it.

    Example:
        >>> frame = pd.DataFrame({"question": ["2+2?"], "options": [["3", "4"]], "answer": ["B"]})
        >>> read_rows(frame, Columns())[0].item.gold
        1
    """
    if not len(frame):
        raise DataError("data", "holds no rows")
    where = _Where.find(frame, columns, targets is None)
    rows = []
    counting = Counting() if faults is None else faults.counting
    places = range(len(frame)) if places is None else places
    if targets is None:
        targets = frame.iloc[:, [str(name) for name in frame.columns].index(where.answer)].tolist()
    if where.answer_as == "auto":
        counting.look_at(targets)
    for position, cells, answer in zip(places, _cells(frame), targets, strict=True):
        try:
            row = _read_row(cells, where, answer, position, counting)
            rows.append(replace(row, item=under_policy(row.item, several_gold, row.who)))
        except DataError as error:
            # A column that counts from zero and from one is no fault of one row: left out
            # row by row, whichever stood first would decide how the rest is read.
            if faults is None or counting.whole_column:
                raise
            faults.note(position, error)
    return rows


def items_of(rows: Sequence[Row]) -> tuple[Item, ...]:
    """The items, one a row.

    Raises:
        DataError: Two rows carry the same id, so their results could not be told apart.
    """
    first: dict[str, str] = {}
    for row in rows:
        if row.item.id in first:
            raise DataError(
                row.who,
                f"carries the same id as {first[row.item.id]}",
                row.item.id,
                "Ids must be unique; without an id column rows are numbered.",
            )
        first[row.item.id] = row.who
    return tuple(row.item for row in rows)


@dataclass(frozen=True, slots=True)
class _Where:
    """The columns in which things stand, decided once for the whole table."""

    question: str
    options: str | None
    spread: tuple[str, ...]
    lettered: bool
    answer: str
    id: str | None
    answer_as: str

    @classmethod
    def find(cls, frame: pd.DataFrame, columns: Columns, needs_answer: bool) -> _Where:
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError("data", "has several columns of one name", twice)
        question = _column(names, "question", columns.question)
        several = columns.options if isinstance(columns.options, tuple) else ()
        named = None if isinstance(columns.options, tuple) else columns.options
        options = None if several else _column(names, "options", named)
        spread = tuple(str(_column(names, "options", name)) for name in several)
        spread = spread or (() if options else _letter_columns(names))
        answer = answer_column(names, columns) if needs_answer else ""
        if question is None or (options is None and not spread) or answer is None:
            there = {"question": question, "options": options or spread, "answer": answer}
            raise _not_found(
                [noun for noun, column in there.items() if column in (None, ())], names
            )
        found = _column(names, "id", columns.id)
        return cls(question, options, spread, not several, answer, found, columns.answer_as)


def answer_column(names: Sequence[str], columns: Columns) -> str | None:
    """The column of the answers, named or usual; None where there is none.

    Raises:
        DataError: The named one is not there, or several are usual.
    """
    return _column(names, "answer", columns.answer)


def _column(names: Sequence[str], noun: str, named: str | None) -> str | None:
    if named is not None:
        if named not in names:
            hint = near_column(named, names)
            raise DataError(f"columns.{noun}", "is not a column of the data", named, hint)
        return named
    usual = [name for name in _USUAL[noun] if name in names]
    if noun == "answer" and len(usual) > 1:
        raise DataError(
            "data",
            "has more than one column that may be the answer",
            usual,
            "Say which with targets=... or columns.answer.",
        )
    return usual[0] if usual else None


def _not_found(missing: Sequence[str], names: Sequence[str]) -> DataError:
    example = {"question": '"..."', "options": '"..."', "answer": '"..."'}
    alike = _numbered(names)
    if alike:
        example["options"] = "[" + ", ".join(f'"{name}"' for name in alike) + "]"
    shown = ", ".join(f'"{noun}": {example[noun]}' for noun in missing)
    # In quotes, since such names hold spaces.
    given = {**dict.fromkeys(missing, "..."), **({"options": ",".join(alike)} if alike else {})}
    typed = " ".join(f'--column {noun}="{given[noun]}"' for noun in missing)
    targets = ' (MLflow\'s own targets="..." names the answer, too)' if "answer" in missing else ""
    return DataError(
        "data",
        "needs a question, options (a list column, or columns A, B, C, ...) and an answer, and no "
        f"column is known as {' or '.join(missing)}",
        list(names),
        f"Name what is missing: columns = {{{shown}}}{targets}, or {typed} on the command line"
        f"{split_column(names) or '.'}",
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """Columns that look like options, one each: opt1, opt2, ... or option_a, option_b, ..."""
    for first in names:
        match = re.fullmatch(r"(.+?)(1|[aA])", first)
        if match is None:
            continue
        stem, start = match.groups()
        alike = []
        for place in range(26):
            name = stem + (str(place + 1) if start == "1" else chr(ord(start) + place))
            if name not in names:
                break
            alike.append(name)
        if len(alike) > 1:
            return alike
    return []


def _letter_columns(names: Sequence[str]) -> tuple[str, ...]:
    known = set(names)
    # "NO" is a column of its own wherever not all of A to Z are options.
    n_slots = MOST_SLOTS if known.issuperset(letters_for(26)) else 26
    letters = [name for name in letters_for(n_slots) if name in known]
    # A gap (A, B, D) would shift every later option: refused by the row reader.
    return tuple(letters) if letters[:2] == ["A", "B"] else ()


def _cells(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, place].tolist() for place in range(len(names))]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _read_row(
    cells: dict[str, Any], where: _Where, answer: object, position: int, counting: Counting
) -> Row:
    found = cells[where.id] if where.id else None
    if where.id and is_missing(found):
        raise DataError(f"row {position}", f"the id in column {where.id!r} is missing")
    item_id = _plain(found) if where.id else str(position)
    who = f"row {position}" + (f" (id {item_id!r})" if where.id else "")
    question = cells[where.question]
    if not isinstance(question, str) or not question.strip():
        rule = f"the question in column {where.question!r} must be a text"
        raise DataError(who, rule, question, nested(question, where.question))
    if where.options:
        options, labels = _read_options(cells[where.options], who)
    else:
        options, labels = _read_spread(cells, where.spread, where.lettered, who)
    if not where.lettered and isinstance(answer, str) and answer.strip() in where.spread:
        labels = where.spread[: len(options)]  # the answer says "opt2"
    labels = labels or letters_for(len(options))
    if len(options) < 2:
        raise DataError(who, "an item needs at least two options", options)
    key = AnswerKey(options, labels)
    gold, *more = read_answers(answer, key, where.answer_as, who, counting)
    used = {where.question, where.options, where.answer, where.id, *where.spread}
    meta = {k: _plain(v) for k, v in cells.items() if k not in used and not is_missing(v)}
    try:
        item = Item(item_id, question, tuple(options), gold, meta, (*more,))
        return Row(item, cells, who, position)
    except DataError as error:
        raise DataError(who, *error.args[1:]) from None


def _read_options(cell: object, who: str) -> tuple[list[str], tuple[str, ...]]:
    if isinstance(cell, str):
        try:
            cell = json.loads(cell, object_pairs_hook=_without_twins)
        except ValueError as error:
            rule = f"options in a text column must be JSON ({error})"
            raise DataError(who, rule, cell, split_options(str(cell))) from None
    labels: tuple[str, ...] = ()
    if isinstance(cell, Mapping):
        parts = cell if {"text", "label"} <= set(cell) else None
        # C, A, B, or c, a, b
        letters = [letter.lower() for letter in letters_for(len(cell))]
        if parts is None and {*cell} in ({*letters_for(len(cell))}, {*letters}):
            cell = dict(sorted(cell.items(), key=lambda pair: letters.index(pair[0].lower())))
        labels = tuple(map(str, parts["label"] if parts else cell.keys()))
        cell = list(parts["text"] if parts else cell.values())
    if not isinstance(cell, (list, tuple, np.ndarray)):
        raise DataError(who, "options must be a list of texts", cell)
    texts = list(cell)
    for slot, text in enumerate(texts):
        if is_missing(text) or not isinstance(text, _PLAIN):
            rule = f"option {slot} must be a text or a number"
            raise DataError(who, rule, text, _OF_DICTS if isinstance(text, Mapping) else "")
    if labels and len(labels) != len(texts):
        raise DataError(who, f"{len(labels)} labels for {len(texts)} options", list(labels))
    return [_plain(text) for text in texts], labels


def _read_spread(
    cells: Mapping[str, Any], columns: Sequence[str], lettered: bool, who: str
) -> tuple[list[str], tuple[str, ...]]:
    there = [
        name for name in columns if not is_missing(cells[name]) and _plain(cells[name]).strip()
    ]
    # Columns A, B, D lack one; of named ones all are there, and the last may be empty.
    expected = list(letters_for(len(there)) if lettered else columns[: len(there)])
    if there != expected:
        raise DataError(
            who,
            f"option columns must be filled from {columns[0]} on without a gap",
            there,
            f"Expected {expected}.",
        )
    return [_plain(cells[name]) for name in there], tuple(there) if lettered else ()


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one label twice")
    return found


_OF_DICTS = 'Take the texts out first: data[column] = [[o["text"] for o in row] for row in ...].'
_PLAIN = (str, int, float, np.integer, np.floating, np.bool_)


def _plain(value: object) -> str:
    # An int column with a gap becomes floats: 3 must not be shown as "3.0".
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
