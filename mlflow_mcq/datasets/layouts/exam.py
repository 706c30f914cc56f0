"""Layouts of examination sets: MMLU and its family, medicine, and regional exams."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from mlflow_mcq.datasets.cells import is_missing
from mlflow_mcq.datasets.layouts.layout import (
    Cells,
    Fields,
    Layout,
    agreeing,
    as_list,
    doubt,
    filled,
    gold_at,
    gold_letter,
    gold_text,
    is_whole,
    text_of,
)
from mlflow_mcq.orientations import letters_for

__all__ = ["LAYOUTS"]

_LETTERS = letters_for(26)


def _indexed(options: str, answer: str, id_column: str = "id") -> Callable[[Cells], Fields]:
    """Question, a list of options, and the gold's index from zero."""

    def read(cells: Cells) -> Fields:
        texts = as_list(cells[options], options)
        gold = gold_at(cells[answer], len(texts), answer)
        return Fields(text_of(cells, "question"), texts, gold, id=cells.get(id_column))

    return read


def _numbered(
    names: Sequence[str], answer: str, id_column: str = "id", first: int = 0
) -> Callable[[Cells], Fields]:
    """Question, a column an option, and the gold's number."""

    def read(cells: Cells) -> Fields:
        there = filled(cells, names)
        gold = gold_at(cells[answer], len(there), answer, first)
        options = [cells[name] for name in there]
        return Fields(text_of(cells, "question"), options, gold, id=cells.get(id_column))

    return read


def _lettered(question: str, answer: str) -> Callable[[Cells], Fields]:
    """Question, columns A, B, C, ..., and a letter."""

    def read(cells: Cells) -> Fields:
        there = filled(cells, _LETTERS)
        gold = gold_letter(cells[answer], there, answer)
        options = [cells[name] for name in there]
        return Fields(text_of(cells, question), options, gold, tuple(there), cells.get("id"))

    return read


def _headerless(cells: Cells) -> Fields:
    names = sorted((name for name in cells if name.isdecimal()), key=int)
    there = filled(cells, names[1:-1])
    gold = gold_letter(cells[names[-1]], _LETTERS[: len(there)], names[-1])
    return Fields(text_of(cells, names[0]), [cells[name] for name in there], gold)


def _mmlu_pro(cells: Cells) -> Fields:
    texts = as_list(cells["options"], "options")
    labels = _LETTERS[: len(texts)]
    gold = agreeing(
        gold_letter(cells["answer"], labels, "answer"),
        gold_at(cells["answer_index"], len(texts), "answer_index"),
        "answer and answer_index",
    )
    return Fields(text_of(cells, "question"), texts, gold, labels, cells.get("question_id"))


def _medqa(cells: Cells) -> Fields:
    held = cells["options"]
    if isinstance(held, Mapping):
        # Parquet keeps one struct for all rows: a letter that this row lacks is a gap.
        pairs = [(str(k), v) for k, v in held.items() if not is_missing(v)]
    else:
        parts = as_list(held, "options")
        if not all(isinstance(p, Mapping) and {"key", "value"} <= set(p) for p in parts):
            raise doubt("options", "must hold a text by letter", held)
        pairs = [(str(p["key"]), p["value"]) for p in parts]
    pairs.sort(key=lambda pair: pair[0])
    labels, texts = tuple(k for k, _ in pairs), [v for _, v in pairs]
    gold = gold_letter(cells["answer_idx"], labels, "answer_idx")
    if str(texts[gold]).strip() != str(cells["answer"]).strip():
        agreeing(gold, gold_text(cells["answer"], texts, "answer"), "answer_idx and answer")
    question = text_of(cells, "question")
    context = cells.get("context")
    if not is_missing(context):
        said = [context] if isinstance(context, str) else as_list(context, "context")
        question = " ".join(map(str, said)) + "\n\n" + question
    return Fields(question, texts, gold, labels, cells.get("id"))


def _counted(name: str) -> Callable[[Cells], Hashable]:
    """Marks what stands where a count from zero is expected."""

    def mark(row: Cells) -> Hashable:
        value = row[name]
        if is_missing(value):
            return "nothing"
        if not is_whole(value):
            return "other"
        return "zero" if value == 0 else "whole"

    return mark


def _is_mmlu(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    lists = all(isinstance(row["choices"], (list, tuple, np.ndarray)) for row in head)
    if not lists or "other" in marks or marks <= {"nothing"}:
        return False
    # Without the column of the hub anybody may have written it, counting from one: only a
    # zero proves the counting. Without that the plain reader refuses what is in doubt.
    return all("subject" in row for row in head) or "zero" in marks


def _letter(answer: str) -> Callable[[Cells], Hashable]:
    """Marks letters of columns, and whether they can be nothing else."""

    def mark(row: Cells) -> Hashable:
        if is_missing(row[answer]):
            return "nothing"
        text = str(row[answer]).strip()
        # A letter beyond the options is a bad row, not another layout.
        if text.upper() not in _LETTERS:
            return "other"
        said = any(str(row[name]).strip() == text for name in _LETTERS if name in row)
        return "letter and option" if said else "letter alone"

    return mark


def _letters_that_are_no_options(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    return "letter alone" in marks and "other" not in marks


def _last_letter(row: Cells) -> Hashable:
    names = list(row)
    last = row[names[-1]]
    return isinstance(last, str) and last.strip() in _LETTERS[: len(names) - 2]


def _is_headerless(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    """Columns named by number, and a letter at the end of every row."""
    names = list(head[0]) if head else []
    if len(names) < 4 or names != [str(i) for i in range(len(names))]:
        return False
    return marks == {True}


def _cop(row: Cells) -> Hashable:
    """0 to 4 where the answer is one of these; None for anything else."""
    text = str(row["cop"]).strip()
    if is_missing(row["cop"]) or not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{0,4})?", text):
        return None
    return int(float(text)) if float(text) < 5 else None


_OPTIONS_ABCD = tuple(f"option_{letter}" for letter in "abcde")
_OPS = ("opa", "opb", "opc", "opd")
_CHOICES5 = tuple(f"choice{i}" for i in range(5))
_LETTER_SET: frozenset[Any] = frozenset(_LETTERS)
_ID = frozenset({"id"})

LAYOUTS = (
    Layout(
        "mmlu",
        "MMLU",
        frozenset({"question", "choices", "answer"}),
        _indexed("choices", "answer"),
        lacks=frozenset({"answerKey", "options", "source", "input"}),
        also=_ID,
        fits=_is_mmlu,
        mark=_counted("answer"),
    ),
    Layout(
        "mmlu-headerless",
        "MMLU, CSV without a header",
        frozenset({"0", "1", "2", "3"}),
        _headerless,
        also=frozenset(map(str, range(4, 28))),
        fits=_is_headerless,
        mark=_last_letter,
    ),
    Layout(
        "mmlu_pro",
        "MMLU-Pro",
        frozenset({"question", "options", "answer", "answer_index"}),
        _mmlu_pro,
        also=frozenset({"question_id"}),
    ),
    Layout(
        "lettered",
        "lettered columns (TMMLU+, C-Eval, Twinkle)",
        frozenset({"question", "A", "B", "answer"}),
        _lettered("question", "answer"),
        lacks=frozenset({"options", "choices", "Question"}),
        also=_LETTER_SET | _ID,
        fits=_letters_that_are_no_options,
        mark=_letter("answer"),
    ),
    Layout(
        "cmmlu",
        "CMMLU",
        frozenset({"Question", "A", "B", "Answer"}),
        _lettered("Question", "Answer"),
        lacks=frozenset({"question", "answer", "options", "choices"}),
        also=_LETTER_SET | _ID,
        fits=_letters_that_are_no_options,
        mark=_letter("Answer"),
    ),
    Layout(
        "include",
        "INCLUDE",
        frozenset({"question", "option_a", "option_b", "answer"}),
        _numbered(_OPTIONS_ABCD, "answer"),
        also=frozenset(_OPTIONS_ABCD) | _ID,
        fits=lambda head, marks: "other" not in marks,
        mark=_counted("answer"),
    ),
    Layout(
        "jcommonsenseqa",
        "JCommonsenseQA",
        frozenset({"question", "label", *_CHOICES5}),
        _numbered(_CHOICES5, "label", "q_id"),
        also=frozenset({"q_id"}),
    ),
    Layout(
        "medqa",
        "MedQA",
        frozenset({"question", "options", "answer", "answer_idx"}),
        _medqa,
        lacks=frozenset({"answer_index"}),
        also=frozenset({"context", "id"}),
    ),
    Layout(
        "medmcqa",
        "MedMCQA",
        frozenset({"question", "cop", *_OPS}),
        _numbered(_OPS, "cop"),
        also=_ID,
        # The release counts from one, the hub from zero: a 4 or a 0 says which.
        fits=lambda head, marks: 0 in marks or not marks & {1, 2, 3, 4},
        mark=_cop,
    ),
    Layout(
        "medmcqa-original",
        "MedMCQA, as released (cop counts from one)",
        frozenset({"question", "cop", *_OPS}),
        _numbered(_OPS, "cop", first=1),
        also=_ID,
        fits=lambda head, marks: 4 in marks and 0 not in marks,
        mark=_cop,
    ),
)
