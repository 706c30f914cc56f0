"""Layouts of stories, goals and analogies to be completed.

The question is the text of the data and nothing else: what to do with it is a protocol's
business. Only COPA has no question that could be asked, so one is put there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlflow_mcq.datasets.layouts.layout import (
    Cells,
    Fields,
    Layout,
    as_list,
    doubt,
    gold_at,
    text_of,
)
from mlflow_mcq.datasets.pairs import pair_text

__all__ = ["LAYOUTS"]

_COPA = {
    "cause": "What was the cause of this?",
    "effect": "What happened as a result?",
}


def _in_columns(
    question: str, options: Sequence[str], answer: str, first: int = 0, id_column: str = "id"
) -> Callable[[Cells], Fields]:
    def read(cells: Cells) -> Fields:
        gold = gold_at(cells.get(answer), len(options), answer, first)
        texts = [text_of(cells, name) for name in options]
        return Fields(text_of(cells, question), texts, gold, id=cells.get(id_column))

    return read


def _hellaswag(cells: Cells) -> Fields:
    texts = as_list(cells["endings"], "endings")
    gold = gold_at(cells["label"], len(texts), "label")
    return Fields(text_of(cells, "ctx"), texts, gold)


def _xcopa(cells: Cells) -> Fields:
    asked = _COPA.get(str(cells["question"]))
    if asked is None:
        raise doubt("question", "must be cause or effect", cells["question"])
    gold = gold_at(cells["label"], 2, "label")
    texts = [text_of(cells, "choice1"), text_of(cells, "choice2")]
    return Fields(
        f"{text_of(cells, 'premise')}\n\n{asked}", texts, gold, meta={"asks_for": cells["question"]}
    )


def _social_iqa(cells: Cells) -> Fields:
    names = ("answerA", "answerB", "answerC")
    question = f"{text_of(cells, 'context')}\n\n{text_of(cells, 'question')}"
    gold = gold_at(cells["label"], 3, "label", first=1)
    return Fields(question, [text_of(cells, name) for name in names], gold)


def _pair(value: object, name: str) -> str:
    words = as_list(value, name)
    if len(words) != 2 or not all(isinstance(w, str) and w.strip() for w in words):
        raise doubt(name, "must be a pair of words", words)
    return pair_text((words[0], words[1]))


def _analogy(cells: Cells) -> Fields:
    texts = [_pair(one, "choice") for one in as_list(cells["choice"], "choice")]
    gold = gold_at(cells["answer"], len(texts), "answer")
    return Fields(_pair(cells["stem"], "stem"), texts, gold, id=cells.get("id"))


def _story_analogy(cells: Cells) -> Fields:
    texts = as_list(cells["choices"], "choices")
    gold = gold_at(cells["answer"], len(texts), "answer")
    return Fields(text_of(cells, "source"), texts, gold, id=cells.get("id"))


LAYOUTS = (
    Layout("hellaswag", "HellaSwag", frozenset({"ctx", "endings", "label"}), _hellaswag),
    Layout(
        "winogrande",
        "WinoGrande",
        frozenset({"sentence", "option1", "option2", "answer"}),
        _in_columns("sentence", ("option1", "option2"), "answer", first=1, id_column="qID"),
        also=frozenset({"qID"}),
    ),
    Layout(
        "piqa",
        "PIQA",
        frozenset({"goal", "sol1", "sol2"}),
        _in_columns("goal", ("sol1", "sol2"), "label"),
        also=frozenset({"label", "id"}),
    ),
    Layout(
        "social_iqa",
        "Social IQa",
        frozenset({"context", "question", "answerA", "answerB", "answerC", "label"}),
        _social_iqa,
    ),
    Layout(
        "xcopa",
        "XCOPA or COPA",
        frozenset({"premise", "choice1", "choice2", "question", "label"}),
        _xcopa,
        note="cause or effect is asked for in English, whatever language the item is in",
    ),
    Layout(
        "analogy",
        "word-pair analogies (SAT style)",
        frozenset({"stem", "choice", "answer"}),
        _analogy,
        lacks=frozenset({"question"}),
        also=frozenset({"id"}),
    ),
    Layout(
        "storyanalogy",
        "StoryAnalogy",
        frozenset({"source", "choices", "answer"}),
        _story_analogy,
        lacks=frozenset({"question"}),
        also=frozenset({"id"}),
    ),
)
