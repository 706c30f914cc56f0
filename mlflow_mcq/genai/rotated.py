"""Items as rows for `mlflow.genai.evaluate`: each in every orientation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import check_layout, read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.doors import Engine
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.application import engine_of_application
from mlflow_mcq.genai.row import row_of
from mlflow_mcq.orientations import DEFAULT_SCHEME
from mlflow_mcq.pipeline import generate, opened, requests_for
from mlflow_mcq.protocols import Protocol, prompt_family
from mlflow_mcq.records import Request
from mlflow_mcq.settings import OF_DATA, READERS, Settings, read_settings, refuse_useless
from mlflow_mcq.tracking import quiet

__all__ = ["answered_rows", "has_two_turns", "rotated"]

_OF_ROWS_ON_DISK = {"directory", "accept_changes", "processes"}
"""Nothing is kept here that could be gone on with: who names a place for it must hear so."""


def rotated(
    data: Any,
    orientations: str = DEFAULT_SCHEME,
    *,
    split: str | None = None,
    opening: Callable[..., Any] | ModelHandle | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Every item in every orientation, as rows that `mlflow.genai.evaluate` takes.

    Args:
        data: As in `mlflow_mcq.evaluate`.
        orientations: Scheme; see `mlflow_mcq.orientations`.
        split: Of a hub data set, or by a column ``split``.
        opening: Of a protocol with two turns (``options-last``): the application to be
            evaluated. It is asked the first turn now, once an item, and every row of the item
            goes on from its reply.
        settings: Anything in `mlflow_mcq.settings.Settings` that decides prompts: ``protocol``,
            ``labels``, ``few_shot``, ``repeats``, ``columns``, ``limit``, ...
            ``input_format="messages"`` gives chat messages.

    Returns:
        Dicts with ``inputs`` (``prompt``, or ``messages``: what the predict function is called
        with by name) and ``expectations`` (``gold``, ``options``, ``order`` and ``mcq``).

    Raises:
        DataError: The data cannot be read.
        SettingsError: A setting is not usable; the protocol has two turns and nobody is named
            to answer the first.
        ModelError: The first turn of an item has no answer.

    Example:
        >>> data = [{"question": "2+2?", "options": ["3", "4"], "answer": "B"}]
        >>> rows = rotated(data, "rotations")
        >>> [row["expectations"]["order"] for row in rows]
        [[0, 1], [1, 0]]
        >>> rows[1]["inputs"]["prompt"].splitlines()[2:4]
        ['A) 4', 'B) 3']
    """
    chat = isinstance(opening, ModelHandle) and opening.engine.speaks_chat
    given = {"orientations": orientations, **settings}
    requests, chosen = _requests(data, split, given, chat)
    if opening is not None or has_two_turns(chosen):
        requests = _opened(requests, chosen, opening)
    told = _told(chosen)
    return [row_of(request, place, told) for place, request in enumerate(requests)]


def answered_rows(
    engine: Engine, data: Any, split: str | None, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The same with ``outputs``: all answers made at once by an engine of ours.

    MLflow asks a predict function row by row, from threads; a model in memory wants batches.
    """
    requests, chosen = _requests(data, split, settings, engine.speaks_chat)
    told = _told(chosen)
    answers = generate(engine, requests, chosen)
    # Of two turns the prompt that was answered is the second, and holds the first.
    return [
        {
            **row_of(replace(request, prompt=answer.prompt), place, told),
            "outputs": answer.reply.text,
        }
        for place, (request, answer) in enumerate(zip(requests, answers, strict=True))
    ]


def has_two_turns(settings: Settings) -> bool:
    """Whether the model is asked before it sees the options, and again after."""
    family = prompt_family(settings.protocol, settings.style)
    return isinstance(family, Protocol) and family.then is not None


def _opened(
    requests: Sequence[Request],
    settings: Settings,
    opening: Callable[..., Any] | ModelHandle | None,
) -> list[Request]:
    if not has_two_turns(settings):
        raise SettingsError(
            "opening",
            "answers the first of two turns, and this protocol has one",
            settings.protocol,
        )
    if opening is None:
        raise SettingsError(
            "protocol",
            "has two turns, and each row of mlflow.genai.evaluate is the second: it holds the "
            "application's own reply to the first, which nobody has been asked for",
            settings.protocol,
            "Name the application: rotated(data, opening=predict_fn); genai_evaluate(data, "
            "predict_fn) does it by itself.",
        )
    if isinstance(opening, ModelHandle):
        return opened(opening.engine, requests, settings)
    with quiet():  # first turns are no rows: their traces would have no verdict
        return opened(engine_of_application(opening, requests[0].prompt), requests, settings)


def _requests(
    data: Any, split: str | None, settings: Mapping[str, Any], chat: bool = False
) -> tuple[list[Request], Settings]:
    chosen = read_settings(settings)
    check_layout(chosen.layout)
    refuse_useless(
        chosen,
        _OF_ROWS_ON_DISK,
        "says where and by how many processes rows are made, and here MLflow has them made",
        "Leave it out, or use mlflow_mcq.evaluate.",
    )
    reading = read_data(load_part(data, split, chosen), chosen)
    return requests_for(items_of(list(reading.rows)), chosen, chat=chosen.as_chat(chat)), chosen


def _told(settings: Settings) -> dict[str, Any]:
    """What decided the prompts, as far as it was set; examples and data stay where they are."""
    kept = settings.model_fields_set - READERS - OF_DATA - {"few_shot"}
    return settings.model_dump(mode="json", include=kept)
