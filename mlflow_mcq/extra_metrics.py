"""Metrics for people who keep MLflow's default evaluator and have a column of answers.

``mlflow.models.evaluate(data=..., predictions="prediction", targets="answer",
extra_metrics=[extra_metrics.accuracy(options="options")])``. Our own evaluators take no
``extra_metrics``: there a row is one orientation of an item, and has a verdict already.

============================  ========================================================
``mcq_accuracy``              CORRECT / read rows; OTHER counts as not correct
``mcq_accuracy_decided``      CORRECT / (CORRECT + INCORRECT)
``mcq_other_rate``            OTHER / read rows
``mcq_unread_rate``           rows that the grader could not read / all rows: the strict
                              rule abstains, a judge failed; they are in nothing else
============================  ========================================================

All are fractions in [0, 1]; one without rows behind it is not logged.

The default grader is a regex, which looks for letters: "The answer is mercury" is OTHER to it.
``strict`` reads that, but leaves every row of prose and every refusal out of the accuracy, so it
would flatter a model that talks; only a judge reads all of them.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from mlflow.metrics import MetricValue
from mlflow.models import make_metric

from mlflow_mcq.datasets.frame import read_rows
from mlflow_mcq.doors import Grader
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.graders import judge_settings, regex_name
from mlflow_mcq.graders.plain import PlainGrade, grade
from mlflow_mcq.records import Item, Verdict
from mlflow_mcq.settings import Columns

__all__ = ["accuracy", "accuracy_decided", "all_metrics", "other_rate", "unread_rate"]

GraderName = str | Mapping[str, Any]
"""``strict``, the name of a regex, or the settings of a judge."""

_TAKEN = ("predictions", "targets", "metrics")
_MOST_REMEMBERED = 200_000


def accuracy(
    options: str | Sequence[str],
    grader: GraderName = "regex_bounded",
    *,
    question: str | None = None,
    order: str | None = None,
    name: str = "mcq_accuracy",
) -> Any:
    """Right answers among those that were read.

    Args:
        options: Column of the options (lists, or JSON text), or the columns A, B, C, ...
        grader: ``strict``; a regex, ``bounded`` or ``regex_bounded``; or a judge,
            ``{"model": ..., "base_url": ..., "api_key_env": ...}``, which reads each row once
            however many metrics there are.
        question: Column of the question; a judge must have it.
        order: Column of lists whose entry s is the option (from 0) shown in slot s, where
            options were not shown as they stand.
        name: Of the metric. Two of one kind need two names, or MLflow keeps the last.

    Raises:
        SettingsError: The grader is not known, a column cannot be a parameter of a metric,
            or a judge has no question.
    """
    return _metric(name, _correct, (options, question, order), grader)


def accuracy_decided(
    options: str | Sequence[str],
    grader: GraderName = "regex_bounded",
    *,
    question: str | None = None,
    order: str | None = None,
    name: str = "mcq_accuracy_decided",
) -> Any:
    """Right answers among the answers with a verdict other than OTHER. As `accuracy`."""
    return _metric(name, _correct_decided, (options, question, order), grader)


def other_rate(
    options: str | Sequence[str],
    grader: GraderName = "regex_bounded",
    *,
    question: str | None = None,
    order: str | None = None,
    name: str = "mcq_other_rate",
) -> Any:
    """Answers that name no single option, among those that were read. As `accuracy`."""
    return _metric(name, _other, (options, question, order), grader, greater=False)


def unread_rate(
    options: str | Sequence[str],
    grader: GraderName = "regex_bounded",
    *,
    question: str | None = None,
    order: str | None = None,
    name: str = "mcq_unread_rate",
) -> Any:
    """Rows that the grader could not read, among all. As `accuracy`."""
    return _metric(name, _unread, (options, question, order), grader, greater=False)


def all_metrics(
    options: str | Sequence[str], grader: GraderName = "regex_bounded", **more: Any
) -> Any:
    """The four of them, under their usual names.

    Args:
        options: As for `accuracy`.
        grader: As for `accuracy`: a regex unless you name another.
        more: ``question`` and ``order``, as for `accuracy`.

    Example:
        >>> [one.name for one in all_metrics("options")]
        ['mcq_accuracy', 'mcq_accuracy_decided', 'mcq_other_rate', 'mcq_unread_rate']
    """
    makers = (accuracy, accuracy_decided, other_rate, unread_rate)
    return [make(options, grader, **more) for make in makers]


_Score = Callable[[PlainGrade], float | None]
_Columns = tuple[str | Sequence[str], str | None, str | None]


def _correct(one: PlainGrade) -> float | None:
    return None if one.verdict is None else float(one.verdict is Verdict.CORRECT)


def _correct_decided(one: PlainGrade) -> float | None:
    return None if one.verdict is Verdict.OTHER else _correct(one)


def _other(one: PlainGrade) -> float | None:
    return None if one.verdict is None else float(one.verdict is Verdict.OTHER)


def _unread(one: PlainGrade) -> float | None:
    return float(one.verdict is None)


def _metric(
    name: str, score: _Score, columns: _Columns, grader: GraderName, greater: bool = True
) -> Any:
    options, question, order = columns
    names = [options] if isinstance(options, str) else list(options)
    used = [*names, *(one for one in (question, order) if one is not None)]
    _check_columns(used)
    reading = _reading(grader, question)

    def eval_fn(predictions: Any, targets: Any, *cells: Any) -> MetricValue:
        held = dict(zip(used, cells, strict=True))
        shown = held[options] if isinstance(options, str) else _joined([held[n] for n in names])
        asked = None if question is None else held[question]
        orders = None if order is None else held[order]
        grades = reading.read(list(predictions), _items(shown, targets, asked), orders)
        scores = [score(one) for one in grades]
        known = [one for one in scores if one is not None]
        mean = {name: sum(known) / len(known)} if known else {}
        return MetricValue(scores, [one.error or one.reason for one in grades], mean)

    # MLflow reads off the signature which columns a metric wants.
    parameters = [
        inspect.Parameter(one, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for one in ("predictions", "targets", *used)
    ]
    eval_fn.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return make_metric(eval_fn=eval_fn, greater_is_better=greater, name=name)


def _check_columns(names: Sequence[str]) -> None:
    for name in names:
        if not name.isidentifier() or name in _TAKEN or list(names).count(name) > 1:
            raise SettingsError(
                "columns",
                "MLflow hands columns to a metric by name, so each must be a name of its own "
                f"that Python could use, and none of {', '.join(_TAKEN)}",
                name,
                "Rename the column.",
            )


def _joined(columns: Sequence[Any]) -> list[list[Any]]:
    return [[cell for cell in row if not pd.isna(cell)] for row in zip(*columns, strict=True)]


def _items(options: Any, targets: Any, questions: Any) -> list[Item]:
    asked = [f"row {n}" for n in range(len(options))] if questions is None else list(questions)
    table = {"question": asked, "options": list(options), "answer": list(targets)}
    return [row.item for row in read_rows(pd.DataFrame(table, dtype=object), Columns())]


class _Reading:
    """One grader, and what it has read: four metrics of one judge must not cost four calls."""

    def __init__(self, grader: str | Grader) -> None:
        self._grader = grader
        self._known: dict[tuple[Any, ...], PlainGrade] = {}

    def read(self, texts: Sequence[Any], items: Sequence[Item], orders: Any) -> list[PlainGrade]:
        """One grade for each text, in order."""
        turned = [None] * len(items) if orders is None else [tuple(one) for one in orders]
        keys = [
            (text if isinstance(text, str) else None, item.question, item.options, item.gold, order)
            for text, item, order in zip(texts, items, turned, strict=True)
        ]
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        fresh = list(dict.fromkeys(key for key in keys if key not in self._known))
        if fresh:
            self._known.update(zip(fresh, self._grades(fresh), strict=True))
        return [self._known[key] for key in keys]

    def _grades(self, keys: Sequence[tuple[Any, ...]]) -> list[PlainGrade]:
        return grade(
            [text for text, *_ in keys],
            [options for _, _, options, _, _ in keys],
            [gold for *_, gold, _ in keys],
            grader=self._grader,
            question=[question for _, question, *_ in keys],
            orders=[order or tuple(range(len(options))) for _, _, options, _, order in keys],
        )


def _reading(grader: GraderName, question: str | None) -> _Reading:
    if isinstance(grader, str):
        return _by_name("strict" if grader == "strict" else regex_name(grader))
    if question is None:
        raise SettingsError("question", "a judge must know what was asked: name its column")
    told = judge_settings(grader).model_dump(mode="json", exclude_unset=True)
    return _by_judge(json.dumps(told, sort_keys=True))


@functools.cache
def _by_name(name: str) -> _Reading:
    return _Reading(name)


@functools.lru_cache(maxsize=8)
def _by_judge(settings: str) -> _Reading:
    from mlflow_mcq.judges import judge_of

    return _Reading(judge_of(judge_settings(json.loads(settings))))
