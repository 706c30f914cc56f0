"""Imported answers: what every importer finds, and the table they become."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.orientations import letters_for

__all__ = ["Imported", "check_policy", "gather", "gold_of"]


@dataclass(frozen=True, slots=True)
class Imported:
    """One answer of another harness.

    Attributes:
        id: Of the item.
        question: Its text.
        options: In the order of the data.
        gold: Index into ``options``.
        order: ``order[slot]`` is the option shown there.
        generation: Raw; None where the file holds none.
        more: Further columns.
    """

    id: str
    question: str
    options: tuple[str, ...]
    gold: int
    order: tuple[int, ...]
    generation: str | None
    more: Mapping[str, Any] = field(default_factory=dict)


def check_policy(on_bad_rows: str) -> None:
    """Check a policy before a large file is read.

    Raises:
        SettingsError: It is neither ``error`` nor ``skip``.
    """
    if on_bad_rows not in ("error", "skip"):
        raise SettingsError("on_bad_rows", "must be error or skip", on_bad_rows)


def gather(
    records: Iterable[tuple[str, Any]],
    read: Callable[[Any, str], Sequence[Imported]],
    path: Path,
    on_bad_rows: str,
) -> pd.DataFrame:
    """Read records into the table of stored answers.

    Args:
        records: Each with its name in errors.
        read: From a record to its answers; none where they were met before.
        path: The file, for errors.
        on_bad_rows: ``error`` stops at the first row that cannot be read; ``skip`` leaves
            such rows out, warns, and lists the reasons in ``frame.attrs["skipped"]``.

    Raises:
        DataError: A row cannot be read, or none can.
    """
    answers: list[Imported] = []
    skipped: list[str] = []
    for who, record in records:
        try:
            answers += read(record, who)
        except DataError as error:
            if on_bad_rows == "error":
                raise
            skipped.append(str(error))
    if not answers:
        first = f"; first reason: {skipped[0]}" if skipped else ""
        raise DataError(f"file {path.name!r}", f"holds no answer that can be read{first}")
    if skipped:
        many = f"{len(skipped)} row{'s' * (len(skipped) != 1)}"
        warnings.warn(f"{path.name}: {many} left out; first reason: {skipped[0]}", stacklevel=3)
    frame = pd.DataFrame(_rows(answers))
    frame.attrs["skipped"] = tuple(skipped)
    return frame


def _rows(answers: Iterable[Imported]) -> Iterable[dict[str, Any]]:
    seen: dict[tuple[str, tuple[int, ...]], int] = {}
    for answer in answers:
        repeat = seen.get((answer.id, answer.order), 0)
        seen[answer.id, answer.order] = repeat + 1
        yield {
            "id": answer.id,
            "question": answer.question,
            "options": list(answer.options),
            "answer": letters_for(len(answer.options))[answer.gold],
            "order": list(answer.order),
            "generation": answer.generation,
            "repeat": repeat,
            **answer.more,
        }


def gold_of(target: object, options: Sequence[str], who: str, *, texts: bool = True) -> int:
    """The place of the option that a target names by letter, ``B`` or ``(B)``, or by its text.

    Args:
        target: As the harness stored it.
        options: In the order that letters count.
        who: Names the row in errors.
        texts: Whether the harness may mean an option's text; False reads letters only.

    Raises:
        DataError: It names none, or two by two readings, or is a number: some harnesses count
            from zero and others from one, and the file does not say.

    Example:
        >>> metals = ["iron", "mercury"]
        >>> gold_of("(B)", metals, "row"), gold_of("iron", metals, "row")
        (1, 0)
    """
    text = target.strip() if isinstance(target, str) else ""
    letter = text[1:-1] if text[:1] == "(" and text[-1:] == ")" else text
    names = letters_for(len(options))
    found = {i for i, name in enumerate(names) if name == letter.upper()}
    found |= {i for i, option in enumerate(options) if texts and option.strip() == text}
    if len(found) != 1:
        raise DataError(
            who,
            "the target must name one option, by its letter or by its text",
            target,
            f"Options: {list(options)}.",
        )
    return found.pop()
