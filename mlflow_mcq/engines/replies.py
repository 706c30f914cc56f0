"""What a server sent back: a reply, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlflow_mcq.records import Reply

__all__ = ["read_completion", "redacted", "shape_fault", "told"]

_LONGEST = 300


def shape_fault(got: Any) -> str:
    """Why a JSON value is no completion; empty where it is one.

    Example:
        >>> shape_fault({"choices": []})
        'the server sent a completion without any choice'
        >>> shape_fault({"choices": [{"text": "B"}]})
        ''
    """
    choices = got.get("choices") if isinstance(got, dict) else None
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        shown = got if isinstance(got, str) else type(got).__name__
        return f"the server sent no completion: {shown}"
    return "" if choices else "the server sent a completion without any choice"


def read_completion(got: Mapping[str, Any], *, plain: bool) -> Reply:
    """Read a completion that has a choice.

    Args:
        got: As the server sent it; anything may stand in it.
        plain: From the plain completions endpoint, not from the chat endpoint.
    """
    choice = got["choices"][0]
    # Only the content is the answer; a reasoning field of the server is not.
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    text = choice.get("text") if plain else content
    if text is not None and not isinstance(text, str):
        return Reply(None, f"the content of the server's reply is {type(text).__name__}, no text")
    usage = got.get("usage")
    reason = str(choice.get("finish_reason") or "")
    return Reply(
        # Null content is a reply: filters and cut-off reasoning send it, and the finish
        # reason says which.
        text=text or "",
        finish_reason="eos" if reason == "stop" else reason,
        n_prompt_tokens=_count(usage, "prompt_tokens"),
        n_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) else 0


def told(error: BaseException) -> str:
    """An exception in one line: its class, what it says, the cause."""
    cause = error.__cause__
    return f"{type(error).__name__}: {error}" + (
        f" ({type(cause).__name__}: {cause})" if cause else ""
    )


def redacted(text: str, secrets: Sequence[str]) -> str:
    """One line of at most 300 characters without any secret.

    Secrets go first and the cut comes after: half a key at the cut would not be found.

    Example:
        >>> redacted("Wrong key sk-123,\\n go away", ["sk-123"])
        'Wrong key ***, go away'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
