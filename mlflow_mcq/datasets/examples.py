"""Few-shot examples: items of a train file, or of rows given in the settings."""

from __future__ import annotations

import pandas as pd

from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.datasets.frame import items_of, read_rows
from mlflow_mcq.datasets.several_gold import SeveralGold
from mlflow_mcq.errors import DataError, McqError
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Columns

__all__ = ["load_examples"]


def load_examples(
    settings: FewShotSettings, columns: Columns, several_gold: SeveralGold = "refuse"
) -> tuple[Item, ...]:
    """Read the pool of examples.

    Args:
        settings: Where they are.
        columns: Where things stand, as in the data itself; a column of answers that the
            examples do not have is looked for by its usual names.
        several_gold: What a row with several right options comes to, as in the data.

    Raises:
        DataError: The file or a row cannot be read; the message says that it is an example.

    Example:
        >>> row = {"question": "Liquid metal?", "options": ["iron", "mercury"], "answer": "B"}
        >>> load_examples(FewShotSettings(rows=[row], k=1), Columns())[0].gold
        1
    """
    try:
        if settings.path is not None:
            frame = load_frame(settings.path)
        else:
            frame = pd.DataFrame([dict(row) for row in settings.rows], dtype=object)
        # The data's id, order and generation columns say nothing about examples.
        there = set(map(str, frame.columns))
        named = {
            name: getattr(columns, name)
            for name in ("question", "options", "answer", "id")
            if getattr(columns, name) in there
        }
        where = Columns(answer_as=columns.answer_as, **named)
        return items_of(read_rows(frame, where, several_gold=several_gold))
    except McqError as error:
        raise DataError(f"few_shot: {error.args[0]}", *error.args[1:]) from error
