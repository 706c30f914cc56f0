"""What is said to a language model, how its answer is drawn, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DOWN", "Conversation", "Decoding", "Message", "Query", "Reply", "as_dicts"]

DOWN = "down"
"""Finish reason of a call that no server will serve: wrong key or model, or nothing there."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    Attributes:
        role: ``system``, ``user`` or ``assistant``.
        content: Its text, exactly.
    """

    role: str
    content: str


Conversation = str | tuple[Message, ...]
"""What a model is given: plain text, or chat messages."""


def as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as servers, chat templates and tables take them.

    Example:
        >>> as_dicts([Message("user", "Which?")])
        [{'role': 'user', 'content': 'Which?'}]
    """
    return [{"role": message.role, "content": message.content} for message in messages]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How an answer is drawn from a model.

    Attributes:
        max_new_tokens: Upper bound on generated tokens.
        temperature: 0 is greedy.
        top_p: Nucleus; 1 keeps all.
        top_k: Keep the k most likely tokens; 0 keeps all.
        seed: Base of the per-row seeds.
        stop: Texts that end an answer.
        thinking: Switch of the chat template for reasoning models; None leaves it alone.
    """

    max_new_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop: tuple[str, ...] = ()
    thinking: bool | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One conversation put to a chat model, with the seed of its sample."""

    content: Conversation
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model gave back: a text, or the reason why there is none.

    Attributes:
        text: The generated text, raw; None exactly when ``error`` is set.
        error: Why the call failed, without secrets.
        finish_reason: ``eos``; ``stop`` at a text that ends answers; ``length`` at the limit of
            tokens; ``prompt_too_long`` where nothing was asked; ``missing`` where no answer is
            stored; `DOWN`; or a server's own word.
        token_ids: Generated ids, where the model is here.
        n_prompt_tokens: Tokens read.
        n_tokens: Tokens generated.
        sent: The exact text that reached the model (after its chat template).
    """

    text: str | None
    error: str | None = None
    finish_reason: str = ""
    token_ids: tuple[int, ...] = ()
    n_prompt_tokens: int = 0
    n_tokens: int = 0
    sent: str = ""

    @property
    def cut(self) -> bool:
        """Whether it ended at the limit of tokens: the model may have had more to say."""
        return self.finish_reason == "length"

    @property
    def too_long(self) -> bool:
        """Whether the prompt did not fit, so that the model was never asked."""
        return self.finish_reason == "prompt_too_long"
