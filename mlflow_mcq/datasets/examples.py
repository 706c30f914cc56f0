"""Few-shot examples: items of a train file, a split, or of rows given in the settings."""

from __future__ import annotations

import pandas as pd

from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.errors import DataError, McqError
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Columns, Settings

__all__ = ["load_examples"]


def load_examples(few_shot: FewShotSettings, settings: Settings) -> tuple[Item, ...]:
    """Read the pool of examples, as the data itself is read.

    Args:
        few_shot: Where they are.
        settings: How the data is read. A column that the examples do not have is looked for
            by its usual names, and a limit or shard of the data is not theirs.

    Raises:
        DataError: The source or a row cannot be read; the message says that it is an
            example.

    Example:
        >>> row = {"question": "Liquid metal?", "options": ["iron", "mercury"], "answer": "B"}
        >>> load_examples(FewShotSettings(rows=[row], k=1), Settings())[0].gold
        1
    """
    try:
        if few_shot.path is not None:
            frame = load_data(few_shot.path, few_shot.split)
        else:
            frame = pd.DataFrame([dict(row) for row in few_shot.rows], dtype=object)
        changed = {
            "columns": _columns(settings.columns, frame),
            "layout": settings.layout if few_shot.path is not None else None,
            "limit": None,
            "shard": None,
        }
        return items_of(read_data(frame, settings.model_copy(update=changed)).rows)
    except McqError as error:
        raise DataError(f"few_shot: {error.args[0]}", *error.args[1:]) from error


def _columns(columns: Columns, frame: pd.DataFrame) -> Columns:
    """The columns that the examples have; order and generation say nothing about them."""
    there = set(map(str, frame.columns))
    named = {
        name: column
        for name in ("question", "options", "answer", "id")
        if (column := getattr(columns, name))
        and there.issuperset(column if isinstance(column, tuple) else (column,))
    }
    return Columns(answer_as=columns.answer_as, **named)
