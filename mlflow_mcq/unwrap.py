"""Which engine answers for a model that MLflow hands over."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.human_label import label_column
from mlflow_mcq.datasets.stored import StoredAnswer, read_stored
from mlflow_mcq.doors import Engine
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.chat_pyfunc import chat_predict
from mlflow_mcq.engines.described import forward_hooks
from mlflow_mcq.engines.endpoint import at_gateway
from mlflow_mcq.engines.handle import (
    ModelHandle,
    endpoint_model,
    how_many,
    in_processes,
    not_shared,
)
from mlflow_mcq.engines.kept import KeptEngine
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.logged import pipeline_chat
from mlflow_mcq.engines.pyfunc import CallableEngine, is_raw_transformers
from mlflow_mcq.engines.stored import StoredEngine
from mlflow_mcq.errors import DataError, ModelError, SettingsError, StoreError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.pipeline import data_digest
from mlflow_mcq.records import Request
from mlflow_mcq.settings import OF_DATA, READERS, Settings, read_settings, refuse_useless
from mlflow_mcq.store.evaluation import flat
from mlflow_mcq.store.journal import Journal, folder_of, open_directory, open_journal

# The seed stays out: it draws samples of rows to check, too.
_MAKING = set(Settings.model_fields) - READERS - OF_DATA - {"seed"}

__all__ = [
    "engine_of", "journal_of", "kept", "logged_model_id", "rows_folder", "rows_name",
    "speaks_chat", "stored_answers",
]  # fmt: skip


def engine_of(model: Any, settings: Settings, output_column: str | None = None) -> Engine:
    """The engine for a model as MLflow wraps it.

    A transformers model logged with `mlflow.transformers` is unwrapped: its pyfunc echoes
    the prompt, samples by default and pads as it likes.

    Args:
        model: `PyFuncModel`, or the wrapper that MLflow puts around a function.
        settings: Batch size and input of a function.
        output_column: MLflow's ``predictions``: the column of the answers, where a function
            returns several.

    Raises:
        ModelError: It is a transformers object that MLflow mistook for a function, or a
            pipeline that holds no causal language model.
    """
    function = _function_inside(model)
    if isinstance(function, ModelHandle):
        return in_processes(function.engine, settings)
    if how_many(settings.processes) > 1:
        raise not_shared(logged_model_id(model) or type(function or model).__name__)
    if function is not None and is_raw_transformers(function):
        raise ModelError(
            "model",
            "a raw transformers object is not a function of prompts",
            type(function).__name__,
            "Pass mlflow_mcq.local_model(model, tokenizer); for a pipeline, "
            "mlflow_mcq.local_model(pipe.model, pipe.tokenizer).",
        )
    if _is_logged_transformers(model):
        origin, n_rows = logged_model_id(model) or "", settings.batch_size
        return ChatEngine(pipeline_chat(model.get_raw_model(), "model", n_rows, origin))
    endpoint = _endpoint_inside(model)
    if endpoint and at_gateway():  # MLflow's own wrapper asks row after row
        return endpoint_model(endpoint).engine
    chat = chat_predict(model)
    name = logged_model_id(model) or getattr(function, "__qualname__", type(model).__name__)
    return CallableEngine(
        chat or model.predict,
        input_column=settings.input_column,
        batch_size=settings.batch_size,
        messages=chat is not None or settings.input_format == "messages",
        fingerprint=str(name),
        output_column=output_column,
    )


def kept(
    engine: Engine, requests: Sequence[Request], settings: Settings
) -> tuple[Engine, Journal | None]:
    """The engine with its answers kept on disk while the run is under way, where that is safe.

    It is safe where the name of the model says what it is: weights read from disk, a server,
    stored answers. A function, or a model that its owner has in memory, is never taken up
    again: it may have changed since.

    Returns:
        The engine to use, and the folder to close at the end; none where nothing is kept.

    Raises:
        StoreError: The same evaluation is under way already, the folder cannot be used, or
            it was begun with other settings.
        SettingsError: A directory is named for rows that may not be kept.
    """
    journal = journal_of(engine, requests, settings)
    if journal is None or not isinstance(engine, ChatEngine):
        return engine, journal
    return KeptEngine(engine, journal.rows), journal


def journal_of(engine: Engine, requests: Sequence[Request], settings: Settings) -> Journal | None:
    """Where the rows of an evaluation are kept, opened; None where they are not.

    Raises:
        StoreError: As of `mlflow_mcq.store.journal.open_journal` and ``open_directory``.
        SettingsError: A directory is named for rows that may not be kept.
    """
    name = rows_name(engine, requests, settings)
    if settings.directory is None:
        return None if name is None else open_journal(settings.cache, name)
    if settings.cache != "run":
        raise SettingsError(
            "directory",
            "holds the rows of one evaluation, and cache names another place for them",
            settings.cache,
            "Leave one of the two out.",
        )
    if name is None:
        raise SettingsError(
            "directory",
            "keeps rows of models that are known by name, and this one (a function, or weights "
            "that are in memory already) may change without changing it",
            possible="Leave it out, or give the model as a path, a name or a server.",
        )
    parts = _parts(engine, requests, settings)
    defaults = flat(read_settings(None).measured)
    return open_directory(settings.directory, parts, settings.accept_changes, defaults)


def rows_folder(settings: Settings, name: str) -> Path | None:
    """The folder of these rows, for processes that only write there; None where there is none."""
    if settings.directory is not None:
        return home_path(settings.directory, "directory", StoreError)
    return folder_of(settings.cache, name)


def _parts(engine: Engine, requests: Sequence[Request], settings: Settings) -> dict[str, str]:
    """What `rows_name` is over, by name, in words that a person can compare."""
    items = {request.prompt.item.id: request.prompt.item for request in requests}
    chat = getattr(engine, "chat", None)
    name = getattr(chat, "model", None)
    set_here = settings.model_dump(exclude=set(READERS), exclude_defaults=True)
    parts = {"model": name if isinstance(name, str) else str(getattr(chat, "origin", ""))}
    parts |= {"model's fingerprint": engine.fingerprint}
    parts |= {"data": f"{len(items):,} items ({data_digest(items.values())})"}
    if isinstance(engine, StoredEngine):
        parts["answers"] = engine.digest[:12]
    return parts | flat(set_here)


def rows_name(engine: Engine, requests: Sequence[Request], settings: Settings) -> str | None:
    """Sixteen hex digits over all that decides the rows; None where none may be kept."""
    stored = isinstance(engine, StoredEngine)
    if not stored and not _named_for_good(engine):
        return None
    items = {request.prompt.item.id: request.prompt.item for request in requests}
    texts = engine.digest if isinstance(engine, StoredEngine) else ""
    origin = str(getattr(getattr(engine, "chat", None), "origin", ""))
    parts = (engine.fingerprint, origin, texts, settings.fingerprint, data_digest(items.values()))
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def _named_for_good(engine: Engine) -> bool:
    if not isinstance(engine, ChatEngine):
        return False
    chat = engine.chat
    # Hooks that somebody hung on loaded weights stand in no name either.
    return not isinstance(chat, LocalChat) or (bool(chat.origin) and not forward_hooks(chat.model))


def speaks_chat(engine: Engine, settings: Settings) -> bool:
    """Whether prompts are rendered as chat messages."""
    return settings.as_chat(engine.speaks_chat)


def stored_answers(
    rows: list[Row], predictions: Any, settings: Settings
) -> tuple[Engine, list[StoredAnswer]]:
    """The engine that gives back the answers that the data already holds.

    Args:
        rows: The rows read.
        predictions: MLflow's own predictions by position; they win over a column.
        settings: Names the columns.

    Raises:
        DataError: There is no column with answers.
        SettingsError: A setting says how to generate what is only read.
    """
    column, order = settings.columns.generation, settings.columns.order
    cells = rows[0].cells
    if predictions is None:
        column = column or next((c for c in ("generation", "prediction") if c in cells), None)
        if column is None or column not in cells:
            raise DataError(
                "data",
                "without a model there must be a column with answers",
                list(cells),
                'Name it with predictions="..." or columns.generation, or pass a model (the key '
                "model in a recipe).",
            )
        predictions = [row.cells[column] for row in rows]
    # Only now: who forgot the answers has not said anything about them.
    refuse_useless(
        settings,
        _MAKING,
        "says how answers are made, and these are made already",
        "Leave it out, or pass a model.",
    )
    if order is None and "order" in cells:
        order = "order"
    if order is not None and order not in cells:
        raise DataError("columns.order", "is not a column of the data", order, f"Has {list(cells)}")
    answers = read_stored(rows, list(predictions), order, label_column(cells, settings.columns))
    texts, labels = {}, {}
    for answer in answers:
        item_id, _, orientation, repeat = answer.request.key
        texts[item_id, orientation, repeat] = answer.text
        labels[item_id, orientation, repeat] = answer.human_label
    return StoredEngine(texts, human_labels=labels), answers


def logged_model_id(model: Any) -> str | None:
    """The logged model behind a pyfunc; MLflow passes it on for some URIs only."""
    found = getattr(model, "model_id", None)
    return found if isinstance(found, str) else None


def _function_inside(model: Any) -> Any:
    """The user's function inside MLflow's wrapper, or None.

    MLflow keeps it nowhere but in the closure of the `predict` it defines around it.
    If that ever changes, the model is simply used through `predict`.
    """
    predict = getattr(type(getattr(model, "python_model", None)), "predict", None)
    predict = getattr(predict, "__wrapped__", predict)
    names = getattr(getattr(predict, "__code__", None), "co_freevars", ())
    cells = getattr(predict, "__closure__", None) or ()
    inside = {name: cell.cell_contents for name, cell in zip(names, cells, strict=False)}
    return inside.get("fn")


def _endpoint_inside(model: Any) -> str:
    """The gateway's endpoint that MLflow wraps as a model; empty for any other model.

    One that is to be called with parameters of its own stays with MLflow, which adds them.
    """
    inner: Any = getattr(model, "python_model", None)
    if type(inner).__name__ != "ModelFromDeploymentEndpoint" or inner.params:
        return ""
    return f"endpoints:/{inner.endpoint}"


def _is_logged_transformers(model: Any) -> bool:
    flavors = getattr(getattr(model, "metadata", None), "flavors", None) or {}
    return "transformers" in flavors
