"""An application as MLflow calls it: once a row, by name, from several threads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mlflow_mcq.engines.pyfunc import CallableEngine
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.row import called_with
from mlflow_mcq.records import Prompt

__all__ = ["as_function", "check_called_by_name", "engine_of_application"]

_TOGETHER, _THREADS = 64, 4
"""Prompts handed over at a time, and how many of them are asked at once."""


def engine_of_application(application: Callable[..., Any], like: Prompt) -> CallableEngine:
    """The application as an engine, to be asked what is no row of MLflow.

    Args:
        application: Takes ``prompt`` or ``messages``.
        like: One of the prompts, which are all texts or all messages.

    Raises:
        SettingsError: It cannot be called so.
    """
    (name,) = called_with(like)
    check_called_by_name(application, [name])

    def predict(frame: Any) -> list[Any]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return [*pool.map(lambda cell: application(**{name: cell}), frame[name])]

    chat = not isinstance(like.content, str)
    return CallableEngine(predict, name, _TOGETHER, messages=chat, fingerprint="predict_fn")


def as_function(application: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls it: MLflow loses every row of a callable that is an object."""
    if inspect.isroutine(application):
        return application

    def predict_fn(**inputs: Any) -> Any:
        return application(**inputs)

    return predict_fn


def check_called_by_name(predict_fn: Callable[..., Any], names: Sequence[str]) -> None:
    """Check that an application can be called with these names.

    Raises:
        SettingsError: It cannot.
    """
    # MLflow's own words for this ask for other data, which is what cannot be changed here.
    try:
        signature = inspect.signature(predict_fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        called = ", ".join(f"{name}=..." for name in names)
        raise SettingsError(
            "predict_fn",
            f"is called once a row, by name, as predict_fn({called})",
            str(signature),
            f"Name its argument {' and '.join(names)}.",
        ) from error
