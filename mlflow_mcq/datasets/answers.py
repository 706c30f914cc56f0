"""Answers: from what a data set writes to the index of an option.

The same cell can often be read in two ways ("1" is the second option or the first;
"B" may be a letter or an option text). A guess here re-labels a whole data set
without a trace, so a cell that two readings disagree about is refused.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlflow_mcq.datasets.cells import is_missing
from mlflow_mcq.datasets.way_out import nested
from mlflow_mcq.errors import DataError

__all__ = ["AnswerKey", "Counting", "read_answer"]

_MARKS = "()[]{}<>.:;,*\"'` "
_LONG_ENOUGH = 4  # of shorter texts any may be near to any
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


@dataclass
class Counting:
    """How the digits of one column have been read so far: from zero or from one.

    A column counts in one way. Rows that fit only one of them settle it, and a row that
    fits only the other is a contradiction.

    Attributes:
        seen: Row by reading, ``index`` (from 0) or ``number`` (from 1).
        unclear: A row fits both, and nothing but the user can say which is meant.
        told: Whether the whole column counts from zero, where an earlier pass has found out.
        first: Likewise, as far as the first part of it said.
        all_whole: Every answer so far is a whole number.
        has_zero: One of them is the text 0.
        by_zero: The refusal of a row that fits both, and was read as an index since the column
            holds a 0.
        apart: A row of digits that are no index: a label or an option text.
    """

    seen: dict[str, str] = field(default_factory=dict)
    unclear: bool = False
    told: bool | None = None
    first: bool | None = None
    all_whole: bool = True
    has_zero: bool = False
    by_zero: DataError | None = None
    apart: bool = False

    @property
    def from_zero(self) -> bool:
        """Whether the column counts from zero: whole numbers throughout, and a 0 among them."""
        return self.all_whole and self.has_zero if self.told is None else self.told

    @property
    def settled(self) -> bool:
        """Whether all parts were read as the whole column says."""
        return self.first is None or self.first == self.from_zero

    def look_at(self, answers: Iterable[object]) -> None:
        """See what the next part of a column says of how it counts."""
        for value in answers if self.all_whole else ():
            if isinstance(value, str) or not is_missing(value):
                text = "" if isinstance(value, (bool, np.bool_)) else str(value).strip()
                self.all_whole = self.all_whole and _is_number(text)
                self.has_zero = self.has_zero or (text == "0" and isinstance(value, str))
        self.first = self.from_zero if self.first is None else self.first

    def note_by_zero(self, names: set[str], refusal: DataError | None) -> None:
        """Take note of digits in a column that counts from zero.

        Args:
            names: The readings that fit the row.
            refusal: What would be said of it without the 0, which fits both ways to count.

        Raises:
            DataError: Some rows are indices only if the column is, and others are none.
        """
        self.apart = self.apart or "index" not in names
        self.by_zero = self.by_zero or refusal
        if self.apart and self.by_zero is not None:
            self.unclear = True
            raise self.by_zero

    @property
    def whole_column(self) -> bool:
        """Whether what is wrong is the column's fault and no single row's.

        Rows left out one by one would leave those whose gold happens to stand first or last.
        """
        return self.unclear or len(self.seen) > 1

    def note(self, names: set[str], value: object, who: str) -> None:
        """Take note of the readings that fit a row.

        Raises:
            DataError: This row counts from one and an earlier one from zero, or the reverse.
        """
        counts = names & {"index", "number"}
        if len(counts) != 1 or names - counts:
            return
        (name,) = counts
        self.seen.setdefault(name, who)
        other = self.seen.get("number" if name == "index" else "index")
        if other is not None:
            raise DataError(
                who,
                f"the answer is read as counting from {'zero' if name == 'index' else 'one'}, "
                f"that of {other} as counting from {'one' if name == 'index' else 'zero'}",
                value,
                f"Set columns.answer_as to {_MODES}.",
            )


def read_answer(
    value: object,
    key: AnswerKey,
    mode: str = "auto",
    who: str = "row",
    counting: Counting | None = None,
) -> int:
    """Read one answer cell.

    Args:
        value: A letter, an index or an option text.
        key: What it may refer to.
        mode: ``auto`` tries every reading and wants them to agree; ``letter``,
            ``index`` (from 0), ``number`` (from 1) and ``text`` try one only.
        who: Names the row in an error.
        counting: What is known of the column; None looks at this cell alone.

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
    if mode == "auto" and isinstance(value, str) and counting is not None and counting.from_zero:
        found = _without_numbers(found, value, key, who, counting)
    options = sorted({index for _, index in found})
    if len(options) == 1:
        if counting is not None and mode == "auto":
            counting.note({name for name, _ in found}, value, who)
        return options[0]
    if not options:
        raise _no_option(value, key, mode, who, counting)
    if counting is not None and {name for name, _ in found} == {"index", "number"}:
        counting.unclear = True
    raise _in_doubt(found, value, key, who)


def _without_numbers(
    found: set[tuple[str, int]], value: str, key: AnswerKey, who: str, counting: Counting
) -> set[tuple[str, int]]:
    """The readings of a text in a column that counts from zero.

    The cells of a CSV file are all texts; a 0 among them says what it says among numbers.
    """
    left = {(name, index) for name, index in found if name != "number"}
    names = {name for name, _ in left}
    if left:
        settled = names == {"index"} and len(found) > 1
        counting.note_by_zero(names, _in_doubt(found, value, key, who) if settled else None)
    return left


def _in_doubt(found: set[tuple[str, int]], value: object, key: AnswerKey, who: str) -> DataError:
    # The text says at a glance which reading is right, without counting from anything.
    readings = ", ".join(f"{name} -> {str(key.options[i])[:40]!r}" for name, i in sorted(found))
    return DataError(
        who,
        f"the answer can be read in more than one way ({readings})",
        value,
        f"Set columns.answer_as to {_MODES}, or make the option texts differ.",
    )


def _no_option(
    value: object, key: AnswerKey, mode: str, who: str, counting: Counting | None
) -> DataError:
    hint = f"Labels {list(key.labels)}, options {list(key.options)}; columns.answer_as = {mode}."
    if mode == "auto" and list(_numbers(_as_text(value, who), key)):
        # Just one too many for an index: the column counts from one, and every other row of
        # it would be read one option too far.
        if counting is not None:
            counting.note({"number"}, value, who)
        hint += " Numbers count from zero; columns.answer_as: number counts from one."
    hint = f"{_near(value, key)}{hint}"
    return DataError(who, "the answer names none of the options", value, hint)


def _near(value: object, key: AnswerKey) -> str:
    """What an answer may have meant; it is asked and never taken, since it may mean another."""
    folded = str(value).strip().casefold()
    core = folded.strip(_MARKS)
    names = [*key.options, *key.labels] if core else []
    # Of two that differ in their capitals alone neither is nearer.
    meant = {name for name in names if name.strip().casefold() in (folded, core)}
    if not meant and len(core) >= _LONG_ENOUGH:
        meant = {*difflib.get_close_matches(str(value).strip(), key.options, n=1, cutoff=0.8)}
    return f'Did you mean "{meant.pop().strip()[:40]}"? ' if len(meant) == 1 else ""


def _as_text(value: object, who: str) -> str:
    if isinstance(value, (bool, np.bool_)):
        raise DataError(who, "the answer must be a letter, an index or a text", value)
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        raise DataError(who, "the answer is missing", value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))  # pandas turns a column of ints with one gap into floats
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return str(value).strip()
    raise DataError(who, "the answer must be a letter, an index or a text", value, nested(value))


def _letters(text: str, key: AnswerKey) -> Iterable[int]:
    exact = [i for i, label in enumerate(key.labels) if label == text]
    return exact or [i for i, label in enumerate(key.labels) if label.upper() == text.upper()]


def _indices(text: str, key: AnswerKey) -> Iterable[int]:
    return [int(text)] if _is_number(text) and int(text) < len(key.options) else []


def _numbers(text: str, key: AnswerKey) -> Iterable[int]:
    return [int(text) - 1] if _is_number(text) and 0 < int(text) <= len(key.options) else []


def _texts(text: str, key: AnswerKey) -> Iterable[int]:
    """Options that say the same, also as a number: 2 is "2.0" as much as it is an index."""
    number = _as_number(text)
    return [
        i
        for i, option in enumerate(key.options)
        if option.strip() == text or (number is not None and _as_number(option) == number)
    ]


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


_READINGS: dict[str, Callable[[str, AnswerKey], Iterable[int]]] = {
    "letter": _letters,
    "index": _indices,
    "number": _numbers,
    "text": _texts,
}
