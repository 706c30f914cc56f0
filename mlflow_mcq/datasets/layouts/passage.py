"""Layouts of questions about a passage, which stands above the question."""

from __future__ import annotations

from mlflow_mcq.datasets.layouts.layout import (
    Cells,
    Fields,
    Layout,
    as_list,
    doubt,
    gold_at,
    gold_letter,
    text_of,
)
from mlflow_mcq.orientations import letters_for

__all__ = ["LAYOUTS"]

_BELEBELE = tuple(f"mc_answer{i}" for i in range(1, 5))


def _below(cells: Cells, passage: str, question: str) -> str:
    return f"{text_of(cells, passage)}\n\n{text_of(cells, question)}"


def _belebele(cells: Cells) -> Fields:
    texts = [text_of(cells, name) for name in _BELEBELE]
    gold = gold_at(cells["correct_answer_num"], 4, "correct_answer_num", first=1)
    return Fields(_below(cells, "flores_passage", "question"), texts, gold)


def _boolq(cells: Cells) -> Fields:
    name = "answer" if "answer" in cells else "label"
    value = cells[name]
    # CSV and JSON written by hand hold the word; SuperGLUE holds 1 for yes.
    known = {"true": 0, "false": 1} if name == "answer" else {"1": 0, "0": 1, "true": 0, "false": 1}
    if str(value).strip().lower() not in known:
        raise doubt(name, "must be true or false", value)
    gold = known[str(value).strip().lower()]
    return Fields(_below(cells, "passage", "question"), ("Yes", "No"), gold)


def _logiqa(cells: Cells) -> Fields:
    texts = as_list(cells["options"], "options")
    question = "question" if "question" in cells else "query"
    if "label" in cells:
        gold = gold_letter(cells["label"], letters_for(len(texts)), "label")
    else:
        gold = gold_at(cells["correct_option"], len(texts), "correct_option")
    return Fields(_below(cells, "context", question), texts, gold)


def _logiqa2(cells: Cells) -> Fields:
    texts = as_list(cells["options"], "options")
    gold = gold_at(cells["answer"], len(texts), "answer")
    return Fields(_below(cells, "text", "question"), texts, gold, id=cells.get("id"))


LAYOUTS = (
    Layout(
        "belebele",
        "Belebele",
        frozenset({"flores_passage", "question", "correct_answer_num", *_BELEBELE}),
        _belebele,
    ),
    Layout(
        "boolq",
        "BoolQ",
        frozenset({"passage", "question", "answer"}),
        _boolq,
        lacks=frozenset({"options", "choices", "A", "label"}),
        fits=lambda head, marks: all(
            str(row["answer"]).lower() in ("true", "false") for row in head
        ),
    ),
    Layout(
        "boolq-superglue",
        "BoolQ, as in SuperGLUE",
        frozenset({"passage", "question", "label"}),
        _boolq,
        lacks=frozenset({"options", "choices", "A", "answer"}),
    ),
    Layout(
        "logiqa",
        "LogiQA",
        frozenset({"context", "question", "options", "label"}),
        _logiqa,
        lacks=frozenset({"answer", "answerKey"}),
    ),
    Layout(
        "logiqa-query",
        "LogiQA (query, correct_option)",
        frozenset({"context", "query", "options", "correct_option"}),
        _logiqa,
    ),
    Layout(
        "logiqa2",
        "LogiQA 2.0",
        frozenset({"text", "question", "options", "answer"}),
        _logiqa2,
        lacks=frozenset({"answer_index", "answer_idx"}),
        also=frozenset({"id"}),
    ),
)
