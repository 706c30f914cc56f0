"""TruthfulQA, single choice (MC1), in the four shapes it is passed around in.

The right answer stands first in every item: shown as they stand, a model that always
says A has them all right.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlflow_mcq.datasets.layouts.layout import Cells, Fields, Layout, as_list, doubt, text_of

__all__ = ["LAYOUTS"]


def _targets(cells: Cells) -> Fields:
    held = cells["mc1_targets"]
    if isinstance(held, Mapping) and {"choices", "labels"} <= set(held):
        texts = as_list(held["choices"], "mc1_targets.choices")
        marks = as_list(held["labels"], "mc1_targets.labels")
    elif isinstance(held, Mapping):  # the release: a mark by text
        texts, marks = list(held), list(held.values())
    else:
        raise doubt("mc1_targets", "must hold choices and labels", held)
    right = [i for i, mark in enumerate(marks) if mark == 1]
    if len(texts) != len(marks) or len(right) != 1:
        raise doubt("mc1_targets", "must mark exactly one choice with 1", marks)
    return Fields(text_of(cells, "question"), texts, right[0], id=cells.get("id"))


def _official(cells: Cells) -> Fields:
    # Answers are lists in one cell; a ";" too many leaves an empty piece, which is no option.
    pieces = text_of(cells, "Incorrect Answers").split(";")
    wrong = [piece.strip() for piece in pieces if piece.strip()]
    return Fields(text_of(cells, "Question"), [text_of(cells, "Best Answer"), *wrong], 0)


def _generation(cells: Cells) -> Fields:
    wrong = as_list(cells["incorrect_answers"], "incorrect_answers")
    return Fields(text_of(cells, "question"), [text_of(cells, "best_answer"), *wrong], 0)


LAYOUTS = (
    Layout(
        "truthfulqa",
        "TruthfulQA MC1",
        frozenset({"question", "mc1_targets"}),
        _targets,
        also=frozenset({"id", "mc2_targets"}),
    ),
    Layout(
        "truthfulqa-csv",
        "TruthfulQA MC1, from the official CSV",
        frozenset({"Question", "Best Answer", "Incorrect Answers"}),
        _official,
        also=frozenset({"Correct Answers", "Best Incorrect Answer"}),
        note="options are the best answer and all incorrect ones",
    ),
    Layout(
        "truthfulqa-generation",
        "TruthfulQA MC1, from its generation part",
        frozenset({"question", "best_answer", "incorrect_answers"}),
        _generation,
        lacks=frozenset({"mc1_targets"}),
        also=frozenset({"correct_answers"}),
        note="options are the best answer and all incorrect ones",
    ),
)
