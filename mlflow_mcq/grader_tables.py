"""Tables that only one kind of grader has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from mlflow_mcq.doors import Grader
from mlflow_mcq.graders.analogy import AnalogyGrader, fewest_tokens, unwinnable
from mlflow_mcq.graders.exam import ExamMark, ExamReport
from mlflow_mcq.logprob import label_logprobs
from mlflow_mcq.records import Item
from mlflow_mcq.reliability import wilson
from mlflow_mcq.scores import LabelScores
from mlflow_mcq.table import storable

__all__ = ["exam_tables", "grader_tables", "label_scores_frame", "unwinnable_frame"]

_SCORE_COLUMNS = (
    "item_id", "protocol", "orientation", "slot", "letter", "option", "is_gold", "token",
    "logprob_raw", "logprob", "rank", "tied", "bounded", "error",
)  # fmt: skip
_KIND_COLUMNS = ("kind", "n", "n_errors", "n_right", "sensitivity", "low", "high")


def grader_tables(grader: Grader, items: Sequence[Item]) -> dict[str, pd.DataFrame]:
    """The tables of a grader's own, by name; nothing for one that has none.

    Args:
        grader: Who read.
        items: All that were shown.
    """
    if isinstance(grader, AnalogyGrader) and grader.tokenizer is not None:
        return {"mcq_unwinnable": unwinnable_frame(items, grader)}
    return {}


def unwinnable_frame(items: Sequence[Item], grader: AnalogyGrader) -> pd.DataFrame:
    """One row an item whose golds are all longer than the window; empty where all fit.

    Returns:
        ``item_id``, ``gold`` (index; of several, the shortest), ``gold_text``, ``n_tokens``
        (the fewest in which a reply can spell it) and ``window``.

    Raises:
        ValueError: The grader knows no tokenizer.
    """
    tokenizer, window = grader.tokenizer, grader.settings.window
    if tokenizer is None:
        raise ValueError("tokens cannot be counted without a tokenizer")
    rows = []
    for item in unwinnable(items, tokenizer, window):
        sizes = {gold: fewest_tokens(item.options[gold], tokenizer) for gold in item.golds}
        gold = min(sizes, key=lambda gold: sizes[gold])
        rows.append(
            {
                "item_id": storable(item.id),
                "gold": gold,
                "gold_text": storable(item.options[gold]),
                "n_tokens": sizes[gold],
                "window": window,
            }
        )
    return pd.DataFrame(rows, columns=["item_id", "gold", "gold_text", "n_tokens", "window"])


def exam_tables(exam: ExamReport | None, called: str = "judge") -> dict[str, pd.DataFrame]:
    """The exam of a judge, reply by reply and kind by kind; nothing where it sat none.

    Both names have what the judge is ``called`` in place of ``judge``.

    * ``mcq_judge_exam``: one row a reply, the misread ones first, then those that could not be
      read: ``id``, ``kind``, ``label``, ``verdict`` (of the judge; empty where ``error``
      says why), ``right``, the slots behind both, the reply itself and what was asked.
    * ``mcq_judge_exam_by_kind``: ``kind``, ``n``, ``n_errors``, ``n_right``, and
      ``sensitivity`` = right / replies of the kind that were read, in [0, 1], with its 95 %
      Wilson interval; empty where none was read. The weakest kind first.
    """
    if exam is None:
        return {}
    marks = sorted(exam.marks, key=lambda mark: (mark.right, bool(mark.reading.error)))
    rows = pd.DataFrame([_exam_row(mark) for mark in marks])
    kinds = pd.DataFrame([_kind_row(*one) for one in exam.by_kind], columns=[*_KIND_COLUMNS])
    kinds = kinds.sort_values(["sensitivity", "kind"], na_position="first", ignore_index=True)
    return {
        f"mcq_{called}_exam": rows.astype({"slot": "Int64", "slot_read": "Int64"}),
        f"mcq_{called}_exam_by_kind": kinds,
    }


def _exam_row(mark: ExamMark) -> dict[str, object]:
    reply, seen = mark.reply, mark.reading
    return {
        "id": reply.id,
        "kind": reply.kind,
        "label": reply.verdict.value,
        "verdict": seen.verdict.value if seen.verdict else None,
        "right": mark.right,
        "slot": reply.slot,
        "slot_read": seen.slot,
        "reply": reply.reply,
        "question": reply.question,
        "options_shown": list(reply.options),
        "gold_slot": reply.gold_slot,
        "labels": reply.labels,
        "language": reply.language,
        "error": seen.error,
    }


def _kind_row(kind: str, n: int, n_errors: int, n_right: int) -> dict[str, object]:
    share = wilson(n_right, n - n_errors)
    numbers = (kind, n, n_errors, n_right, share.value, share.low, share.high)
    return dict(zip(_KIND_COLUMNS, numbers, strict=True))


def label_scores_frame(scores: Iterable[LabelScores]) -> pd.DataFrame:
    """One row a label of each scored prompt, and one a prompt without scores.

    Returns:
        The prompt's key (``item_id``, ``protocol``, ``orientation``); ``slot`` (0 is the top),
        ``letter``, ``option`` (index in the data), ``is_gold``; ``token`` as scored;
        ``logprob_raw`` (natural logarithm, over the whole vocabulary) and ``logprob``
        (normalised over the labels); ``rank`` among the labels (1 is the likeliest; equal
        ones share the better rank) and whether it is ``tied`` for the first; ``bounded``:
        the number is an upper bound. Where ``error`` is set all but the key is empty.
    """
    rows = [row for score in scores for row in _score_rows(score)]
    frame = pd.DataFrame(rows, columns=[*_SCORE_COLUMNS])
    whole = dict.fromkeys(("slot", "option", "rank"), "Int64")
    return frame.astype(
        {**whole, **dict.fromkeys(("is_gold", "tied", "bounded"), "boolean")}
    ).astype(dict.fromkeys(("logprob_raw", "logprob"), "float64"))


def _score_rows(score: LabelScores) -> list[dict[str, object]]:
    names = ("item_id", "protocol", "orientation")
    key = {name: storable(part) for name, part in zip(names, score.key, strict=True)}
    if score.error:
        return [key | {"error": score.error}]
    prompt, normalised = score.prompt, label_logprobs(score)
    best = score.best
    return [
        key
        | {
            "slot": slot,
            "letter": prompt.labels[slot],
            "option": prompt.orientation.order[slot],
            "is_gold": prompt.orientation.order[slot] in prompt.item.golds,
            "token": storable(score.token_texts[slot]),
            "logprob_raw": score.logprobs[slot],
            "logprob": float(normalised[slot]),
            "rank": 1
            if slot in best
            else 1 + sum(v > score.logprobs[slot] for v in score.logprobs),
            "tied": score.tied and slot in best,
            "bounded": slot in score.bounded,
            "error": "",
        }
        for slot in range(len(prompt.labels))
    ]
