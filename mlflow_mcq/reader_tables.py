"""Tables that only one kind of grader has."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mlflow_mcq.doors import Grader
from mlflow_mcq.graders.analogy import AnalogyGrader, fewest_tokens, unwinnable
from mlflow_mcq.records import Item

__all__ = ["reader_tables", "unwinnable_frame"]


def reader_tables(grader: Grader, items: Sequence[Item]) -> dict[str, pd.DataFrame]:
    """The tables of a grader's own, by name; nothing for one that has none.

    Args:
        grader: Who read.
        items: All that were shown.
    """
    if isinstance(grader, AnalogyGrader) and grader.tokenizer is not None:
        return {"mcq_unwinnable": unwinnable_frame(items, grader)}
    return {}


def unwinnable_frame(items: Sequence[Item], grader: AnalogyGrader) -> pd.DataFrame:
    """One row an item whose gold is longer than the window; empty where all fit.

    Returns:
        ``item_id``, ``gold`` (index), ``gold_text``, ``n_tokens`` (the fewest in which a
        reply can spell it) and ``window``.

    Raises:
        ValueError: The grader knows no tokenizer.
    """
    tokenizer, window = grader.tokenizer, grader.settings.window
    if tokenizer is None:
        raise ValueError("tokens cannot be counted without a tokenizer")
    rows = [
        {
            "item_id": item.id,
            "gold": item.gold,
            "gold_text": item.options[item.gold],
            "n_tokens": fewest_tokens(item.options[item.gold], tokenizer),
            "window": window,
        }
        for item in unwinnable(items, tokenizer, window)
    ]
    return pd.DataFrame(rows, columns=["item_id", "gold", "gold_text", "n_tokens", "window"])
