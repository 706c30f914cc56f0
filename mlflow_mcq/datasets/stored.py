"""Stored answers: rows that already hold a generation, to be read without a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.human_label import read_human_label
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import Item, Orientation, Prompt, Request, Verdict

__all__ = ["PROTOCOL", "StoredAnswer", "read_stored"]

PROTOCOL = "stored"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One stored generation with the prompt it answered.

    Attributes:
        request: Item, orientation and repeat; the original wording is not known.
        text: The answer; None where the data has none.
        human_label: What a person says it is worth; None where nobody did.
    """

    request: Request
    text: str | None
    human_label: Verdict | None = None


def read_stored(
    rows: Sequence[Row],
    texts: Sequence[object],
    order_column: str | None,
    label_column: str | None = None,
) -> list[StoredAnswer]:
    """Pair rows with their stored answers.

    Rows of one id are the orientations and repeats of one item. The order shown is
    taken from the data, never drawn again: a second draw scores old answers against
    a new key.

    Args:
        rows: The rows read.
        texts: Answers by position.
        order_column: Column with lists of option indices by slot; None means that the
            options were shown in the order of the data.
        label_column: Column with human labels.

    Raises:
        DataError: An answer is not a text, an order is no permutation, a human label
            cannot be read, or two rows of one id hold different items.

    Example:
        >>> item = Item("q", "Liquid metal?", ("iron", "mercury"), 1)
        >>> row = Row(item, {"order": [1, 0]}, "row 0")
        >>> read_stored([row], ["A"], "order")[0].request.prompt.gold_slot
        0
    """
    items: dict[str, Item] = {}
    plans: dict[str, list[tuple[int, ...]]] = {}
    repeats: dict[tuple[str, tuple[int, ...]], int] = {}
    answers = []
    for row, text in zip(rows, texts, strict=True):
        item = items.setdefault(row.item.id, row.item)
        if (item.question, item.options, item.golds) != (
            row.item.question,
            row.item.options,
            row.item.golds,
        ):
            raise DataError(
                row.who,
                "carries the id of another item",
                row.item.id,
                "Rows of one id must agree in question, options and answer.",
            )
        order = _read_order(row, order_column)
        plan = plans.setdefault(item.id, [])
        if order not in plan:
            plan.append(order)
        repeat = repeats.get((item.id, order), 0)
        repeats[item.id, order] = repeat + 1
        name = (
            "as-is" if order == tuple(range(len(order))) else "order " + "-".join(map(str, order))
        )
        orientation = Orientation(plan.index(order), name, order)
        prompt = Prompt(item, orientation, PROTOCOL, "", letters_for(len(order)))
        label = read_human_label(row.cells[label_column], row.who) if label_column else None
        answers.append(StoredAnswer(Request(prompt, repeat), _read_text(text, row.who), label))
    return answers


def _read_order(row: Row, column: str | None) -> tuple[int, ...]:
    n_options = len(row.item.options)
    if column is None:
        return tuple(range(n_options))
    cell = row.cells[column]
    try:
        order = json.loads(cell) if isinstance(cell, str) else list(cell)
        order = [int(option) if option == int(option) else -1 for option in order]
    except (TypeError, ValueError):
        order = []
    if sorted(order) != list(range(n_options)):
        raise DataError(
            row.who,
            f"column {column!r} must list the options 0 to {n_options - 1} once each, by slot",
            cell,
        )
    return tuple(order)


def _read_text(text: object, who: str) -> str | None:
    if text is None or (isinstance(text, float) and np.isnan(text)):
        return None
    if not isinstance(text, str):
        raise DataError(who, "a stored answer must be a text", text)
    return text
