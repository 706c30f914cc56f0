"""What a server sent back: a reply, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlflow_mcq.records import Reply

__all__ = ["read_completion", "redacted", "told"]

_LONGEST = 300


def read_completion(got: Any, *, plain: bool, secrets: Sequence[str] = ()) -> Reply:
    """Read a completion of the SDK, which lets any JSON (and any text) through.

    Args:
        got: What the SDK returned.
        plain: From the plain completions endpoint, not from the chat endpoint.
        secrets: Texts that must not appear in an error.
    """
    choices = getattr(got, "choices", None)
    if not isinstance(choices, list):
        shown = got if isinstance(got, str) else type(got).__name__
        return Reply(None, redacted(f"the server sent no completion: {shown}", secrets))
    if not choices:
        return Reply(None, "the server sent a completion without any choice")
    choice = choices[0]
    # Only the content is the answer; a reasoning field of the server is not.
    message = getattr(choice, "message", None)
    text = getattr(choice, "text", None) if plain else getattr(message, "content", None)
    if text is not None and not isinstance(text, str):
        return Reply(None, f"the content of the server's reply is {type(text).__name__}, no text")
    usage = getattr(got, "usage", None)
    reason = str(getattr(choice, "finish_reason", None) or "")
    return Reply(
        # Null content is a reply: filters and cut-off reasoning send it, and the finish
        # reason says which.
        text=text or "",
        finish_reason="eos" if reason == "stop" else reason,
        n_prompt_tokens=_count(usage, "prompt_tokens"),
        n_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


def told(error: BaseException) -> str:
    """An exception in one line: its class, the status, what the server said, the cause."""
    status = getattr(error, "status_code", None)
    head = type(error).__name__ + (f" {status}" if status else "")
    body = getattr(error, "body", None)
    said = body if isinstance(body, str) and body.strip() else str(error)
    cause = error.__cause__
    return f"{head}: {said}" + (f" ({type(cause).__name__}: {cause})" if cause else "")


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
