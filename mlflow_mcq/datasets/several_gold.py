"""Several right options in one row: what an answer cell lists, and what that comes to.

An answer that holds two letters can be right for either of them or for both together.
Which one is meant stands in no data set's columns, so it is never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mlflow_mcq.datasets.answers import AnswerKey, Counting, read_answer
from mlflow_mcq.errors import DataError
from mlflow_mcq.records import Item

__all__ = ["SeveralGold", "read_answers", "under_policy"]

SeveralGold = Literal["refuse", "any", "all"]

_BETWEEN = ",;/|&+"


def read_answers(
    value: object,
    key: AnswerKey,
    mode: str = "auto",
    who: str = "row",
    counting: Counting | None = None,
) -> tuple[int, ...]:
    """Read an answer cell that may list several right options.

    A list (or array) of what `mlflow_mcq.datasets.answers.read_answer` reads, the same as
    JSON text (``"[0, 2]"``), or, where ``mode`` is ``letter``, letters in one text (``"A,C"``,
    ``"A C"``, ``"AC"``). A text that is an option, or a label, is that one and no list.

    Args:
        value: The cell.
        key: What it may refer to.
        mode: As for `read_answer`; it holds for every member of a list.
        who: Names the row in an error.
        counting: As for `read_answer`.

    Returns:
        Indices in ascending order, at least one.

    Raises:
        DataError: A member cannot be read, an option is listed twice, nothing is listed, or
            the list may as well be a mask of zeros and ones.

    Example:
        >>> key = AnswerKey(["4", "5", "2"], ["A", "B", "C"])
        >>> read_answers(["A", "C"], key), read_answers('["A", "C"]', key)
        ((0, 2), (0, 2))
        >>> read_answers("AC", key, "letter")
        (0, 2)
    """
    members = _members(value, key, mode)
    if members is None:
        return (_read_one(value, key, mode, who, counting),)
    if not members:
        raise DataError(who, "the answer is missing", value)
    _refuse_mask(members, key, mode, who)
    golds = [read_answer(member, key, mode, who, counting) for member in members]
    if len(set(golds)) < len(golds):
        raise DataError(
            who,
            "the answer names one option twice",
            value,
            f"List each right option once; a mask of zeros and ones is not read. Options "
            f"{list(key.options)}.",
        )
    return tuple(sorted(golds))


def under_policy(item: Item, policy: SeveralGold, who: str) -> Item:
    """The item as the setting ``several_gold`` has it.

    Raises:
        DataError: Several options are right, and nothing says what that means.

    Example:
        >>> under_policy(Item("q", "?", ("x", "y"), 1), "all", "row 0").takes_all
        True
    """
    if policy == "all":
        return replace(item, policy="all")
    if item.also_right and policy != "any":
        raise DataError(
            who,
            "several options are right, and what counts as a right answer is not said",
            list(item.golds),
            'Set several_gold: "any" (an answer is right if it names one of them) or "all" (it '
            "must name every one of them and no other).",
        )
    return item


def _read_one(value: object, key: AnswerKey, mode: str, who: str, counting: Counting | None) -> int:
    try:
        return read_answer(value, key, mode, who, counting)
    except DataError:
        if mode == "auto" and isinstance(value, str) and _letters_in(value, key.labels):
            raise DataError(
                who,
                "the answer may be several letters in one text",
                value,
                "Set columns.answer_as to letter, or make it a list.",
            ) from None
        raise


def _members(value: object, key: AnswerKey, mode: str) -> list[object] | None:
    """What a cell lists; None where it is no list."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if not isinstance(value, str) or any(value.strip() == text.strip() for text in key.options):
        return None  # the interval [0, 1] is an option before it is a list
    text = value.strip()
    if text[:1] == "[" and text[-1:] == "]":
        try:
            return list(json.loads(text))
        except (ValueError, RecursionError):
            return None
    return _letters_in(text, key.labels) if mode == "letter" else None


def _letters_in(text: str, labels: Sequence[str]) -> list[object] | None:
    names = {label.upper() for label in labels}
    if text.upper() in names:
        return None
    parts = text.translate({ord(mark): " " for mark in _BETWEEN}).split()
    glued = list(text) if len(parts) == 1 else parts
    return list(glued) if all(part.upper() in names for part in glued) else None


def _refuse_mask(members: list[object], key: AnswerKey, mode: str, who: str) -> None:
    numbers = all(isinstance(m, (int, float)) and not isinstance(m, bool) for m in members)
    if mode == "auto" and numbers and len(members) == len(key.options) and set(members) <= {0, 1}:
        raise DataError(
            who,
            "the answer may list options or be a mask of zeros and ones",
            members,
            "Set columns.answer_as to index if it lists options; for a mask, write the indices "
            "of the ones.",
        )
