"""Answers: from what a data set writes to the index of an option.

The same cell can often be read in two ways ("1" is the second option or the first;
"B" may be a letter or an option text). A guess here re-labels a whole data set
without a trace, so a cell that two readings disagree about is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mlflow_mcq.errors import DataError

__all__ = ["AnswerKey", "read_answer"]

_MODES = "letter, index (from 0), number (from 1) or text"


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What an answer cell may refer to.

    Attributes:
        options: Option texts, in the order of the data.
        labels: The data's own labels by option, or A, B, C, ...
    """

    options: Sequence[str]
    labels: Sequence[str]


def read_answer(value: object, key: AnswerKey, mode: str = "auto", who: str = "row") -> int:
    """Read one answer cell.

    Args:
        value: A letter, an index or an option text.
        key: What it may refer to.
        mode: ``auto`` tries every reading and wants them to agree; ``letter``,
            ``index`` (from 0), ``number`` (from 1) and ``text`` try one only.
        who: Names the row in an error.

    Raises:
        DataError: Nothing fits, or two readings name different options.

    Example:
        >>> key = AnswerKey(["iron", "mercury"], ["A", "B"])
        >>> read_answer("B", key), read_answer(1, key), read_answer("mercury", key)
        (1, 1, 1)
    """
    text = _as_text(value, who)
    modes = _READINGS if mode == "auto" else {mode: _READINGS[mode]}
    if mode == "auto" and not isinstance(value, str):
        # A number is never "the n-th, from one": pandas and hubs count from zero.
        modes = {name: read for name, read in modes.items() if name != "number"}
    found = {(name, index) for name, read in modes.items() for index in read(text, key)}
    options = sorted({index for _, index in found})
    if len(options) == 1:
        return options[0]
    if not options:
        raise DataError(
            who,
            "the answer names none of the options",
            value,
            f"Labels {list(key.labels)}, options {list(key.options)}; columns.answer_as = {mode}.",
        )
    readings = ", ".join(f"{name} -> option {index}" for name, index in sorted(found))
    raise DataError(
        who,
        f"the answer can be read in more than one way ({readings})",
        value,
        f"Set columns.answer_as to {_MODES}, or make the option texts differ.",
    )


def _as_text(value: object, who: str) -> str:
    if isinstance(value, (bool, np.bool_)):
        raise DataError(who, "the answer must be a letter, an index or a text", value)
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        raise DataError(who, "the answer is missing", value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))  # pandas turns a column of ints with one gap into floats
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return str(value).strip()
    raise DataError(who, "the answer must be a letter, an index or a text", value)


def _letters(text: str, key: AnswerKey) -> Iterable[int]:
    exact = [i for i, label in enumerate(key.labels) if label == text]
    return exact or [i for i, label in enumerate(key.labels) if label == text.upper()]


def _indices(text: str, key: AnswerKey) -> Iterable[int]:
    return [int(text)] if _is_number(text) and int(text) < len(key.options) else []


def _numbers(text: str, key: AnswerKey) -> Iterable[int]:
    return [int(text) - 1] if _is_number(text) and 0 < int(text) <= len(key.options) else []


def _texts(text: str, key: AnswerKey) -> Iterable[int]:
    return [i for i, option in enumerate(key.options) if option.strip() == text]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


_READINGS: dict[str, Callable[[str, AnswerKey], Iterable[int]]] = {
    "letter": _letters,
    "index": _indices,
    "number": _numbers,
    "text": _texts,
}
