"""Layouts of the Allen Institute and its relatives: labelled choices and an ``answerKey``.

Labels are taken from the row, never assumed: some ARC items are labelled 1 to 4, and
an answer "1" there is the first option and not the second.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

from mlflow_mcq.datasets.layouts.layout import (
    Cells,
    Fields,
    Layout,
    as_list,
    doubt,
    gold_letter,
    text_of,
)

__all__ = ["LAYOUTS"]


def _choices(value: object, name: str) -> tuple[list[Any], tuple[str, ...]]:
    """Texts and labels, from ``{text: [], label: []}`` or ``[{text, label}, ...]``."""
    if isinstance(value, Mapping):
        if not {"text", "label"} <= set(value):
            raise doubt(name, "must hold text and label", list(value))
        texts, labels = as_list(value["text"], name), as_list(value["label"], name)
    else:
        parts = as_list(value, name)
        if not all(isinstance(p, Mapping) and {"text", "label"} <= set(p) for p in parts):
            raise doubt(name, "every choice must hold text and label", parts)
        texts, labels = [p["text"] for p in parts], [p["label"] for p in parts]
    if len(texts) != len(labels):
        raise doubt(name, f"has {len(labels)} labels for {len(texts)} options", labels)
    return texts, tuple(str(label).strip() for label in labels)


def _flat(stem: str) -> Any:
    def read(cells: Cells) -> Fields:
        texts, labels = _choices(cells["choices"], "choices")
        gold = gold_letter(cells["answerKey"], labels, "answerKey")
        return Fields(text_of(cells, stem), texts, gold, labels, cells.get("id"))

    return read


def _nested(cells: Cells) -> Fields:
    inner = cells["question"]
    if not isinstance(inner, Mapping):
        raise doubt("question", "must hold stem and choices", inner)
    texts, labels = _choices(inner.get("choices"), "question.choices")
    gold = gold_letter(cells["answerKey"], labels, "answerKey")
    info = cells.get("info")
    meta = {str(k): v for k, v in info.items()} if isinstance(info, Mapping) else {}
    if "question_concept" in inner:
        meta["question_concept"] = inner["question_concept"]
    return Fields(text_of(inner, "stem"), texts, gold, labels, cells.get("id"), meta)


def _flat_choices(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    return all(isinstance(r["choices"], Mapping) and "label" in r["choices"] for r in head)


def _stems(head: Sequence[Cells], concept: bool) -> bool:
    inner = [row["question"] for row in head]
    return all(
        isinstance(one, Mapping) and "stem" in one and ("question_concept" in one) is concept
        for one in inner
    )


_FLAT = frozenset({"choices", "answerKey"})
_NESTED = frozenset({"question", "answerKey"})
_ID = frozenset({"id"})

LAYOUTS = (
    Layout(
        "arc",
        "ARC",
        _FLAT | {"question"},
        _flat("question"),
        lacks=frozenset({"question_concept", "question_stem"}),
        also=_ID,
        fits=_flat_choices,
    ),
    Layout(
        "commonsense_qa",
        "CommonsenseQA",
        _FLAT | {"question", "question_concept"},
        _flat("question"),
        also=_ID,
        fits=_flat_choices,
    ),
    Layout(
        "openbookqa",
        "OpenBookQA",
        _FLAT | {"question_stem"},
        _flat("question_stem"),
        also=_ID,
        fits=_flat_choices,
    ),
    Layout(
        "arc-nested",
        "ARC or OpenBookQA, as AI2 publishes them",
        _NESTED,
        _nested,
        lacks=frozenset({"info", "choices"}),
        also=_ID,
        fits=lambda head, marks: _stems(head, concept=False),
    ),
    Layout(
        "commonsense_qa-nested",
        "CommonsenseQA, as published",
        _NESTED,
        _nested,
        lacks=frozenset({"info", "choices"}),
        also=_ID,
        fits=lambda head, marks: _stems(head, concept=True),
    ),
    Layout(
        "exams",
        "EXAMS",
        _NESTED | {"info"},
        _nested,
        also=_ID,
        fits=lambda head, marks: _stems(head, concept=False),
    ),
)
