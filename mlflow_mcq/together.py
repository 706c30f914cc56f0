"""`mlflow_mcq.evaluate` on every rank of a training script: one evaluation, one run."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from mlflow.models.evaluation.base import EvaluationResult

from mlflow_mcq.agreement import Parts, SameCall, digest_of, parts_of_settings
from mlflow_mcq.board import Board, open_board
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.described import forward_hooks
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.spread import OVER, SpreadEngine, help_out, refuse_sharded
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.ranks import Ranks, launched_ranks, present_ranks
from mlflow_mcq.settings import Settings

__all__ = ["call_name", "call_parts", "evaluate_together", "ranks_of_call"]

_log = logging.getLogger(__name__)
Make = Callable[[], Any]
Whole = Callable[[Any], EvaluationResult]


def ranks_of_call(settings: Settings) -> Ranks:
    """The processes that are connected; says where some were started and are not.

    Raises:
        SettingsError: Each of several is to start further ones.
    """
    found = present_ranks()
    if found.size > 1 and settings.processes != 1:
        raise SettingsError(
            "processes",
            f"starts processes, and {found.size} are connected already",
            settings.processes,
            "Leave it out, and call evaluate on every rank: all of them generate.",
        )
    if found.size < launched_ranks():
        _log.warning(
            "a launcher started %d processes, and they are not connected: each that calls "
            "evaluate logs a run of its own. Connect them first: accelerate.PartialState()",
            launched_ranks(),
        )
    return found


def call_parts(
    data: Any, split: str | None, settings: Settings, evaluators: Sequence[str]
) -> Parts:
    """What is evaluated, part by part: the same on all ranks that mean the same."""
    if isinstance(data, pd.DataFrame):
        rows = _cells(data)
    else:
        plain = isinstance(data, (str, list, dict, tuple))
        rows = json.dumps(data, default=str) if plain else type(data).__name__
    counted = isinstance(data, (pd.DataFrame, list, tuple))
    return {
        "data": (f"{len(data)} rows, " if counted else "") + digest_of(rows),
        "split": str(split),
        "evaluators": ", ".join(evaluators),
        **parts_of_settings(settings.model_dump(mode="json")),
    }


def _cells(data: pd.DataFrame) -> str:
    """All cells as text, the same on all ranks."""
    try:
        return data.to_json(orient="split", default_handler=str) or ""
    except (ValueError, OverflowError):  # bytes that are no text, such as a picture's
        held = [data.columns.tolist(), data.index.tolist(), data.to_numpy(dtype=object).tolist()]
        return json.dumps(held, default=str)


def call_name(parts: Parts) -> str:
    """Twelve hex digits over what is evaluated."""
    return digest_of(*(f"{name}: {value}" for name, value in parts.items()))


def evaluate_together(make: Make, parts: Parts, whole: Whole, ranks: Ranks) -> EvaluationResult:
    """Let all ranks that come here generate; the main one grades and logs.

    Args:
        make: Gives the model. A `ModelHandle` with weights in memory is shared out; any other
            model is asked by the main rank alone.
        parts: Of the call; see `call_parts`.
        whole: The evaluation, for the main rank, given the model to use.
        ranks: All of them.

    Returns:
        The same result on every rank.

    Raises:
        ModelError: The model is spread over the ranks, ranks were called for different things
            or have different weights, or another rank failed.
        Exception: What the evaluation raised on the main rank, on all of them.
    """
    board, same = open_board(call_name(parts)), SameCall(ranks, parts)
    if ranks.is_main:
        return _lead(make, whole, board, (ranks.size, same))
    try:
        same.check()  # before weights are loaded for nothing
        found = _follow(_shared(make()), board, ranks, same)
    finally:
        same.leave()
    if isinstance(found, BaseException):
        raise found
    result: EvaluationResult = found
    return result


def _follow(engine: ChatEngine | None, board: Board, ranks: Ranks, same: SameCall) -> object:
    """Take a share of the rows, and what the main rank has at the end."""
    try:
        theirs = board.attend(same.check)
        if theirs is not None:
            same.compare_model(theirs, _named(engine))
        return help_out(engine, board, ranks.index)
    finally:
        board.leave()


def _lead(make: Make, whole: Whole, board: Board, others: tuple[int, SameCall]) -> EvaluationResult:
    """Evaluate, and whatever becomes of it, tell the others."""
    told: object = ModelError("process 0", "ended before it had a result")
    spread, greeted = None, False
    n_ranks, same = others
    try:
        same.check()
        model = make()
        engine = _shared(model)
        board.announce(_named(engine))
        greeted = True
        if engine is not None:
            spread = SpreadEngine(engine, board, n_ranks, check=same.check)
            model = copy.copy(model)  # the caller's own goes on with its own engine
            model.engine = spread
        result = whole(model)
        told = result
        return result
    except Exception as error:
        told = error
        raise
    finally:
        if not greeted:
            board.announce(None)
        board.put(OVER, True)
        board.put(f"step/{0 if spread is None else spread.n_jobs}", ("result", _portable(told)))
        same.leave()
        same.see_off()
        board.see_off()


def _shared(model: Any) -> ChatEngine | None:
    if not isinstance(model, ModelHandle) or not isinstance(model.chat, LocalChat):
        return None
    refuse_sharded(model.chat.model)
    return model.engine


def _named(engine: ChatEngine | None) -> str:
    """Weights and hooks: a rank that is not steered as the others are makes other rows."""
    if engine is None or not isinstance(engine.chat, LocalChat):
        return "asked by the main process alone"
    hooks = forward_hooks(engine.chat.model)
    return f"{engine.fingerprint}, hooks {hooks}"


def _portable(told: object) -> object:
    """A result or an error as other processes can have it."""
    try:
        pickle.loads(pickle.dumps(told))
    except Exception:  # noqa: BLE001  anybody's class, with anything in it
        return ModelError("process 0", f"ended with {type(told).__name__}: {told}")
    return told
