"""Tables with fixed schemas: one row a generation, one row a grade.

Nothing grows a column per grader: a grader is a value in a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from mlflow_mcq.records import Conversation, Generation, Grade

__all__ = ["generations_frame", "grades_frame", "reading_frame", "row_id"]

_GENERATION_COLUMNS = (
    "row_id", "item_id", "protocol", "orientation", "orientation_name", "repeat", "order",
    "question", "options", "gold", "gold_slot", "gold_letter", "labels", "prompt", "generation",
    "token_ids", "n_tokens", "n_prompt_tokens", "finish_reason", "error", "engine",
)  # fmt: skip
_GRADE_COLUMNS = (
    "row_id", "item_id", "protocol", "orientation", "repeat", "grader", "verdict", "choice",
    "slot", "shown_letter", "gold", "gold_slot", "n_options", "reason", "judge_reply", "judge",
    "from_prefilter", "error",
)  # fmt: skip


def row_id(generation: Generation) -> str:
    """Short name of a row: item, orientation, and the repeat where it is not the first.

    Example:
        ``q17/o2`` or ``q17/o2/r1``.
    """
    item_id, _, orientation, repeat = generation.key
    return f"{item_id}/o{orientation}" + (f"/r{repeat}" if repeat else "")


def generations_frame(generations: Iterable[Generation]) -> pd.DataFrame:
    """One row a generation; ``order``, ``options``, ``labels`` and ``token_ids`` are lists.

    ``options`` are in the order of the data, ``order[slot]`` says which one was shown
    where; ``prompt`` is the exact text that reached the model.
    """
    return _frame((_generation_row(generation) for generation in generations), _GENERATION_COLUMNS)


def grades_frame(grades: Iterable[Grade]) -> pd.DataFrame:
    """One row a grade. ``verdict`` is empty exactly where ``error`` says why."""
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
        "gold_letter": prompt.labels[prompt.gold_slot] if prompt.labels else None,
        "labels": list(prompt.labels),
        "prompt": reply.sent or _as_sent(prompt.content),
        "generation": generation.text,
        "token_ids": list(reply.token_ids),
        "n_tokens": reply.n_tokens,
        "n_prompt_tokens": reply.n_prompt_tokens,
        "finish_reason": reply.finish_reason,
        "error": reply.error or "",
        "engine": generation.engine,
    }


def _grade_row(grade: Grade) -> dict[str, Any]:
    prompt = grade.generation.prompt
    letter = prompt.labels[grade.slot] if prompt.labels and grade.slot is not None else None
    return {
        "row_id": row_id(grade.generation),
        **_key(grade.generation),
        "grader": grade.grader,
        "verdict": grade.verdict.value if grade.verdict else None,
        "choice": grade.choice,
        "slot": grade.slot,
        "shown_letter": letter,
        "gold": prompt.item.gold,
        "gold_slot": prompt.gold_slot,
        "n_options": len(prompt.item.options),
        "reason": grade.reason,
        "judge_reply": grade.evidence,
        "judge": grade.judge,
        "from_prefilter": grade.grader == "judge" and not grade.judge and not grade.error,
        "error": grade.error,
    }


def _key(generation: Generation) -> dict[str, Any]:
    names = ("item_id", "protocol", "orientation", "repeat")
    return dict(zip(names, generation.key, strict=True))


def _as_sent(content: Conversation) -> str:
    if isinstance(content, str):
        return content
    messages = [{"role": m.role, "content": m.content} for m in content]
    return json.dumps(messages, ensure_ascii=False)


def _frame(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    storable = ({k: _storable(v) for k, v in row.items()} for row in rows)
    return pd.DataFrame(list(storable), columns=list(columns))


def _storable(value: Any) -> Any:
    """A text that UTF-8 can hold: a lone surrogate is written as its escape.

    Byte-level tokenizers emit halves of characters; one of them in a million rows would
    fail the file after all the work is done.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_storable(one) for one in value]
    return value
