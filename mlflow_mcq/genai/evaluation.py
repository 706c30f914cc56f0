"""`mlflow.genai.evaluate` over rotated items, with no row lost, folded at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mlflow

from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.genai.application import as_function, check_called_by_name
from mlflow_mcq.genai.folded import folded
from mlflow_mcq.genai.graders import judge_settings
from mlflow_mcq.genai.rotated import answered_rows, has_two_turns, rotated
from mlflow_mcq.genai.scorer import McqScorer, scorer_of
from mlflow_mcq.settings import read_settings
from mlflow_mcq.tracking import refuse_used

__all__ = ["bounded_workers", "genai_evaluate"]

_WORKERS = "MLFLOW_GENAI_EVAL_MAX_WORKERS"
_BEARABLE = "4"


def genai_evaluate(
    data: Any,
    predict_fn: Callable[..., Any] | ModelHandle | None = None,
    scorers: Sequence[Any] | None = None,
    *,
    judge: Mapping[str, Any] | None = None,
    split: str | None = None,
    **settings: Any,
) -> Any:
    """Evaluate an application with `mlflow.genai.evaluate`, on every orientation of each item.

    Args:
        data: As in `mlflow_mcq.evaluate`, or rows of `mlflow_mcq.rotated`.
        predict_fn: Called with ``prompt`` (or ``messages``, with
            ``input_format="messages"``) for each row; or `local_model` or `remote_model`,
            which answer all rows at once. None where rows hold ``outputs``.
        scorers: Of `mlflow_mcq.scorers`, and any of MLflow's beside them. None is the judge.
        judge: Who judges: ``{"model": ..., "base_url": ..., "api_key_env": ...}``.
        split: Of a hub data set, or by a column ``split``.
        settings: As in `mlflow_mcq.rotated`.

    Returns:
        MLflow's result, with the numbers of `mlflow_mcq.folded` among its ``metrics``.

    Raises:
        McqError: The arguments cannot be used, the judge serves nobody, or rows were lost.
    """
    used = _scorers(scorers, judge)
    run = mlflow.active_run()
    if run is not None:
        refuse_used(run.info.run_id)
    for one in used:
        if isinstance(one, McqScorer):
            one.prepare()  # a wrong key must not cost hours of answers
    if isinstance(predict_fn, ModelHandle):
        rows = answered_rows(predict_fn.engine, data, split, settings)
        predict_fn = None
    else:
        rows = _rows(data, split, settings, predict_fn)
        if predict_fn is not None and rows:
            check_called_by_name(predict_fn, list(rows[0].get("inputs", ())))
            predict_fn = as_function(predict_fn)
    with bounded_workers():
        result = mlflow.genai.evaluate(data=rows, scorers=used, predict_fn=predict_fn)
    result.metrics.update(folded(result, len(rows), scorers=used).metrics)
    return result


@contextmanager
def bounded_workers() -> Iterator[None]:
    """Keep MLflow's threads to four where its store is SQLite; a number set by hand is kept.

    By default it starts up to forty for answers and as many for scorers, and a SQLite store
    has fifteen connections: the thread that waits for one longer than half a minute loses
    its row, with a warning and no error.
    """
    bare = str(mlflow.get_tracking_uri()).startswith("sqlite:")
    if not bare or _WORKERS in os.environ:
        yield
        return
    os.environ[_WORKERS] = _BEARABLE
    try:
        yield
    finally:
        os.environ.pop(_WORKERS, None)


def _scorers(scorers: Sequence[Any] | None, judge: Mapping[str, Any] | None) -> list[Any]:
    given = list(scorers or ())
    if judge is not None:
        told = judge_settings(judge).model_dump(mode="json", exclude_unset=True)
        given.insert(0, scorer_of("judge", told, "judge"))
    if not given:
        parsers = 'give scorers=[mlflow_mcq.scorers.regex("bounded")]'
        raise JudgeNotConfigured(without=parsers)
    if not any(isinstance(one, McqScorer) for one in given):
        raise SettingsError(
            "scorers",
            "must hold one of mlflow_mcq.scorers, or nothing reads the answers as choices",
            [getattr(one, "name", type(one).__name__) for one in given],
        )
    return given


def _are_rows(data: Any) -> bool:
    return bool(isinstance(data, list) and data and all("expectations" in row for row in data))


def _rows(
    data: Any,
    split: str | None,
    settings: Mapping[str, Any],
    predict_fn: Callable[..., Any] | None,
) -> list[Any]:
    if not _are_rows(data):
        first = predict_fn if has_two_turns(read_settings(settings)) else None
        return rotated(data, split=split, opening=first, **settings)
    if settings or split is not None:
        raise SettingsError(
            "data", "is rows already, and settings would change nothing in them", list(settings)
        )
    return list(data)
