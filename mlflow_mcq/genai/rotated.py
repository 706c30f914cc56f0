"""Items as rows for `mlflow.genai.evaluate`: each in every orientation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import check_layout, read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.doors import Engine
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.row import row_of
from mlflow_mcq.orientations import DEFAULT_SCHEME
from mlflow_mcq.pipeline import generate, requests_for
from mlflow_mcq.protocols import Protocol, prompt_family
from mlflow_mcq.settings import READERS, Settings, read_settings

__all__ = ["answered_rows", "rotated"]

_DATA = {"columns", "several_gold", "layout", "on_bad_rows", "limit", "shard"}


def rotated(
    data: Any, orientations: str = DEFAULT_SCHEME, *, split: str | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """Every item in every orientation, as rows that `mlflow.genai.evaluate` takes.

    Args:
        data: As in `mlflow_mcq.evaluate`.
        orientations: Scheme; see `mlflow_mcq.orientations`.
        split: Of a hub data set, or by a column ``split``.
        settings: Anything in `mlflow_mcq.settings.Settings` that decides prompts: ``protocol``,
            ``labels``, ``few_shot``, ``repeats``, ``columns``, ``limit``, ...
            ``input_format="messages"`` gives chat messages.

    Returns:
        Dicts with ``inputs`` (``prompt``, or ``messages``: what the predict function is called
        with by name) and ``expectations`` (``gold``, ``options``, ``order`` and ``mcq``).

    Raises:
        DataError: The data cannot be read.
        SettingsError: A setting is not usable, or the protocol has two turns.

    Example:
        >>> data = [{"question": "2+2?", "options": ["3", "4"], "answer": "B"}]
        >>> rows = rotated(data, "rotations")
        >>> [row["expectations"]["order"] for row in rows]
        [[0, 1], [1, 0]]
        >>> rows[1]["inputs"]["prompt"].splitlines()[2:4]
        ['A) 4', 'B) 3']
    """
    requests, chosen = _requests(data, split, {"orientations": orientations, **settings})
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
    return [
        {**row_of(request, place, told), "outputs": answer.reply.text}
        for place, (request, answer) in enumerate(zip(requests, answers, strict=True))
    ]


def _requests(
    data: Any, split: str | None, settings: Mapping[str, Any], chat: bool = False
) -> tuple[list[Any], Settings]:
    chosen = read_settings(settings)
    check_layout(chosen.layout)
    family = prompt_family(chosen.protocol, chosen.style)
    if isinstance(family, Protocol) and family.then is not None:
        raise SettingsError(
            "protocol",
            "has two turns, and a row of mlflow.genai.evaluate is one",
            chosen.protocol,
            "Use mlflow_mcq.evaluate.",
        )
    chat = {"text": False, "messages": True, None: chat}[chosen.input_format]
    reading = read_data(load_part(data, split, chosen), chosen)
    return requests_for(items_of(list(reading.rows)), chosen, chat=chat), chosen


def _told(settings: Settings) -> dict[str, Any]:
    """What decided the prompts, as far as it was set; examples and data stay where they are."""
    kept = settings.model_fields_set - READERS - _DATA - {"few_shot"}
    return settings.model_dump(mode="json", include=kept)
