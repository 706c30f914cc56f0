"""Tables with fixed schemas: one row a generation, one row a grade.

Nothing grows a column per grader: a grader is a value in a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

import pandas as pd

from mlflow_mcq.errors import DataError
from mlflow_mcq.records import (
    Conversation,
    Generation,
    Grade,
    Item,
    Orientation,
    Prompt,
    Reply,
    Verdict,
)
from mlflow_mcq.said import as_dicts

__all__ = [
    "first_rows",
    "generations_frame",
    "generations_from",
    "grades_frame",
    "grades_from",
    "reading_frame",
    "row_id",
    "storable",
]

_Row = TypeVar("_Row", Generation, Grade)

_GENERATION_COLUMNS = (
    "row_id", "item_id", "protocol", "orientation", "orientation_name", "repeat", "order",
    "question", "options", "gold", "gold_slot", "gold_letter", "labels", "prompt", "generation",
    "token_ids", "n_tokens", "n_prompt_tokens", "finish_reason", "error", "engine",
    "golds", "gold_policy", "probe", "human_label",
)  # fmt: skip
_GRADE_COLUMNS = (
    "row_id", "item_id", "protocol", "orientation", "repeat", "grader", "verdict", "choice",
    "slot", "shown_letter", "gold", "gold_slot", "n_options", "reason", "judge_reply", "judge",
    "from_prefilter", "error", "golds", "choices",
)  # fmt: skip
_Got = TypeVar("_Got")
_LATER = {"golds", "gold_policy", "choices", "probe", "human_label"}
"""Columns that older tables lack: there each item has one gold, and an answer one choice."""


def row_id(generation: Generation) -> str:
    """Short name of a row: item, orientation, and the repeat where it is not the first.

    Example:
        ``q17/o2`` or ``q17/o2/r1``.
    """
    item_id, _, orientation, repeat = generation.key
    return f"{item_id}/o{orientation}" + (f"/r{repeat}" if repeat else "")


def generations_frame(generations: Iterable[Generation]) -> pd.DataFrame:
    """One row a generation.

    ``order``, ``options``, ``labels``, ``token_ids`` and ``golds`` are lists. ``options`` are
    in the order of the data, ``order[slot]`` says which one was shown where; ``prompt`` is
    the exact text that reached the model. ``golds`` holds every right option, ``gold`` and
    ``gold_slot`` one of them; ``gold_letter`` names them all.
    """
    return _frame((_generation_row(generation) for generation in generations), _GENERATION_COLUMNS)


def grades_frame(grades: Iterable[Grade]) -> pd.DataFrame:
    """One row a grade. ``verdict`` is empty exactly where ``error`` says why.

    ``choices`` lists every option that was named, ``golds`` every right one; ``choice`` and
    ``slot`` are empty where several were named, and ``shown_letter`` names them all.
    """
    frame = _frame((_grade_row(grade) for grade in grades), _GRADE_COLUMNS)
    return frame.astype({"choice": "Int64", "slot": "Int64"})


def reading_frame(grades: Iterable[Grade], generations: pd.DataFrame) -> pd.DataFrame:
    """Grades beside what was read, for a person: the columns that MLflow compares first.

    The artifact page groups by the first column and compares the second, so these are
    the row and its verdict.
    """
    frame = grades_frame(grades)
    beside = generations[["row_id", "question", "options", "order", "generation"]]
    merged = frame.merge(beside, on="row_id", how="left", validate="many_to_one")
    merged["options_shown"] = [
        [options[option] for option in order]
        for options, order in zip(merged["options"], merged["order"], strict=True)
    ]
    first = ["row_id", "verdict", "generation", "grader", "shown_letter", "reason", "error"]
    first += ["judge_reply", "question", "options_shown"]
    rest = [name for name in frame.columns if name not in first]
    return merged[first + rest]


def first_rows(rows: Iterable[_Row], n: int, telling: Container[str]) -> list[_Row]:
    """The rows that a browser can bear: the telling ones first, then the others in order.

    Chosen before a table is made of them: of a million rows it shows a thousand.

    Args:
        rows: Generations or grades.
        n: Most of them.
        telling: Row ids, as `row_id` has them.
    """
    marked: list[_Row] = []
    others: list[_Row] = []
    for row in rows:
        one = row if isinstance(row, Generation) else row.generation
        found = marked if row_id(one) in telling else others
        if len(found) < n:
            found.append(row)
    return (marked + others)[:n]


def generations_from(frame: pd.DataFrame) -> tuple[Generation, ...]:
    """The generations that a table holds: the inverse of `generations_frame`.

    The prompt's content is the exact text that was sent; nothing is rendered again.

    Raises:
        DataError: A column is missing: the table is of another kind or version. Or a row
            holds what no row of ours does.
    """
    _check_columns(frame, _GENERATION_COLUMNS, "mcq_generations")
    return tuple(
        _read(_generation_from, "mcq_generations", row) for row in frame.to_dict("records")
    )


def grades_from(frame: pd.DataFrame, generations: Iterable[Generation]) -> tuple[Grade, ...]:
    """The grades that a table holds, each beside its generation.

    Raises:
        DataError: A column is missing, a grade belongs to no generation, or a row holds what
            no row of ours does.
    """
    _check_columns(frame, _GRADE_COLUMNS, "mcq_grades")
    known = {row_id(generation): generation for generation in generations}
    strangers = sorted(set(map(str, frame["row_id"])) - set(known))
    if strangers:
        raise DataError("mcq_grades", "holds grades of rows that were never generated", strangers)
    rows = frame.to_dict("records")
    return tuple(_read(_grade_from, "mcq_grades", row, known[row["row_id"]]) for row in rows)


def _check_columns(frame: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    missing = [c for c in columns if c not in frame.columns and c not in _LATER]
    if missing:
        raise DataError(f"table {name}", "lacks columns", missing)


def _read(read: Callable[..., _Got], table: str, row: Mapping[Any, Any], *beside: Any) -> _Got:
    try:
        return read(row, *beside)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"table {table}, row {row['row_id']}",
            f"cannot be read ({type(error).__name__}: {error})",
            possible="The table was changed after it was stored; evaluate again.",
        ) from error


def _generation_from(row: Mapping[Any, Any]) -> Generation:
    item = Item(
        str(row["item_id"]),
        row["question"],
        tuple(map(str, row["options"])),
        int(row["gold"]),
        also_right=tuple(int(g) for g in row.get("golds", ()) if g != row["gold"]),
        policy=row.get("gold_policy", "any"),
        meta={"probe": row["probe"]} if row.get("probe") else {},
    )
    order = tuple(int(option) for option in row["order"])
    orientation = Orientation(int(row["orientation"]), row["orientation_name"], order)
    labels = tuple(map(str, row["labels"]))
    prompt = Prompt(item, orientation, row["protocol"], row["prompt"], labels)
    reply = Reply(
        None if row["error"] else row["generation"],
        row["error"] or None,
        finish_reason=row["finish_reason"],
        token_ids=tuple(int(token) for token in row["token_ids"]),
        n_prompt_tokens=int(row["n_prompt_tokens"]),
        n_tokens=int(row["n_tokens"]),
        sent=row["prompt"],
    )
    label = row.get("human_label")
    human = Verdict(label) if label else None
    return Generation(prompt, int(row["repeat"]), reply, row["engine"], human)


def _grade_from(row: Mapping[Any, Any], generation: Generation) -> Grade:
    choices = tuple(int(choice) for choice in row.get("choices", ()))
    return Grade(
        generation,
        row["grader"],
        Verdict(row["verdict"]) if isinstance(row["verdict"], str) else None,
        None if pd.isna(row["choice"]) else int(row["choice"]),
        row["reason"],
        row["error"],
        row["judge_reply"],
        row["judge"],
        choices if len(choices) > 1 else (),
    )


def _generation_row(generation: Generation) -> dict[str, Any]:
    prompt, reply = generation.prompt, generation.reply
    return {
        "row_id": row_id(generation),
        **_key(generation),
        "orientation_name": prompt.orientation.name,
        "order": list(prompt.orientation.order),
        "question": prompt.item.question,
        "options": list(prompt.item.options),
        "gold": prompt.item.gold,
        "gold_slot": prompt.gold_slot,
        "gold_letter": _letters(prompt, prompt.gold_slots),
        "labels": list(prompt.labels),
        "prompt": reply.sent or _as_sent(prompt.content),
        "generation": generation.text,
        "token_ids": list(reply.token_ids),
        "n_tokens": reply.n_tokens,
        "n_prompt_tokens": reply.n_prompt_tokens,
        "finish_reason": reply.finish_reason,
        "error": reply.error or "",
        "engine": generation.engine,
        "golds": list(prompt.item.golds),
        "gold_policy": prompt.item.policy,
        "probe": prompt.item.meta.get("probe", ""),
        "human_label": generation.human_label.value if generation.human_label else "",
    }


def _grade_row(grade: Grade) -> dict[str, Any]:
    prompt = grade.generation.prompt
    slots = sorted(prompt.orientation.slot_of(choice) for choice in grade.choices)
    return {
        "row_id": row_id(grade.generation),
        **_key(grade.generation),
        "grader": grade.grader,
        "verdict": grade.verdict.value if grade.verdict else None,
        "choice": grade.choice,
        "slot": grade.slot,
        "shown_letter": _letters(prompt, slots),
        "gold": prompt.item.gold,
        "gold_slot": prompt.gold_slot,
        "n_options": len(prompt.item.options),
        "reason": grade.reason,
        "judge_reply": grade.evidence,
        "judge": grade.judge,
        "from_prefilter": grade.grader == "judge" and not grade.judge and not grade.error,
        "error": grade.error,
        "golds": list(prompt.item.golds),
        "choices": list(grade.choices),
    }


def _letters(prompt: Prompt, slots: Iterable[int]) -> str | None:
    return ", ".join(prompt.labels[slot] for slot in slots if prompt.labels) or None


def _key(generation: Generation) -> dict[str, Any]:
    names = ("item_id", "protocol", "orientation", "repeat")
    return dict(zip(names, generation.key, strict=True))


def _as_sent(content: Conversation) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(as_dicts(content), ensure_ascii=False)


def _frame(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    # By column: a million dicts of twenty cells would take more memory than what they hold.
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, column in cells.items():
            column.append(row[name])
    return pd.DataFrame({name: _storable_column(cells.pop(name)) for name in columns})


def _storable_column(cells: list[Any]) -> list[Any]:
    kinds = set(map(type, cells))
    if kinds <= {str, type(None)} and all(map(str.isascii, filter(None, cells))):
        return cells  # nearly always, and at no call of our own for each of a million cells
    return [storable(cell) for cell in cells] if kinds & {str, list} else cells


def storable(value: Any) -> Any:
    """A text that UTF-8 can hold: a lone surrogate is written as its escape.

    Byte-level tokenizers emit halves of characters; one of them in a million rows would
    fail the file after all the work is done.
    """
    if isinstance(value, str):
        # Asking costs nothing, and nearly every cell is plain.
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list) and value and not isinstance(value[0], int):
        return [storable(one) for one in value]
    return value
