"""One short question to a model behind a server, before anything long."""

from __future__ import annotations

import logging
from dataclasses import replace

from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.engines.pace import CallError
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Message, Query

__all__ = ["ask_first"]

_log = logging.getLogger(__name__)
_QUESTION = "Which metal is liquid at room temperature?"
_SHORT = 16
_SENT = (
    "It was asked with the settings of the rows: max_new_tokens, temperature, and what was set of "
    "top_p, top_k, stop and thinking. Some models know no temperature but 1. "
)


def ask_first(chat: OpenAIChat, decoding: Decoding) -> None:
    """Ask a model one short question, with the settings of the rows.

    A server that serves nobody (nothing there, wrong key, wrong model, no quota), refuses a
    plain question under these settings, or is no such server at all, stops the evaluation.
    Any other fault may be over by the time the rows are asked, and is only said.

    Args:
        chat: The model. It is asked at most twice, and its own retries are cut to one.
        decoding: Of the rows.

    Raises:
        ModelError: It will answer no row; says what the server said.
    """
    fault = _fault(chat, decoding)
    if fault is None:
        return
    said = chat.told(fault)
    if fault.fault != "passing" or fault.answered:
        # Who is refused has found the server: another setting helps, and not another address.
        refused = fault.fault == "row" and not fault.answered
        check = "the settings that it names" if refused else chat.named_by
        raise ModelError(
            f"model {chat.model!r} at {chat.url}",
            f"does not answer, and nothing was generated yet: {said}",
            possible=f"{_SENT if refused else ''}Check {check}; preflight=False of remote_model "
            "skips this question.",
        )
    _log.warning(
        "the model %s failed a first question; the evaluation goes on, and rows without an answer "
        "are counted: %s", chat.model, said,
    )  # fmt: skip


def _fault(chat: OpenAIChat, decoding: Decoding) -> CallError | None:
    plain = f"{_QUESTION}\nAnswer:"
    query = Query((Message("user", _QUESTION),) if chat.speaks_chat else plain)
    # Models that think refuse a limit too small for their thoughts: the rows' own decides.
    limits = dict.fromkeys((min(_SHORT, decoding.max_new_tokens), decoding.max_new_tokens))
    fault = None
    for limit in limits:
        fault = chat.fault(query, replace(decoding, max_new_tokens=limit))
        if fault is None or fault.fault != "row":
            break
    return fault
