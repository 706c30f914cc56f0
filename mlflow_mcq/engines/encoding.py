"""From a conversation to the tokens that a model here reads."""

from __future__ import annotations

from typing import Any

from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Conversation, Message
from mlflow_mcq.said import as_dicts

__all__ = ["encode"]


def encode(
    tokenizer: Any, content: Conversation, thinking: bool | None = None
) -> tuple[str, list[int], str]:
    """The text sent, its token ids, and what went wrong.

    Args:
        tokenizer: Of transformers; left as it is.
        content: Plain text, or chat messages for the tokenizer's own template.
        thinking: Switch of the chat template for reasoning models; None leaves it alone.

    Raises:
        ModelError: Chat messages for a tokenizer that has no chat template.
    """
    if isinstance(content, str):
        # The tokenizer adds its own BOS here: a base model without it is another model.
        sent, special = content, True
    else:
        try:
            # The template writes BOS itself: the tokenizer must not add a second one.
            sent, special = _rendered(tokenizer, content, thinking), False
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001  a template is anybody's program
            return "", [], f"chat template: {type(error).__name__}: {error}"
    ids = list(tokenizer(sent, add_special_tokens=special)["input_ids"])
    return sent, ids, "" if ids else "the prompt has no tokens"


def _rendered(tokenizer: Any, messages: tuple[Message, ...], thinking: bool | None) -> str:
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(
            "tokenizer",
            "has no chat template, so chat messages cannot be put into text",
            getattr(tokenizer, "name_or_path", "") or ...,
            "Send plain text, or set tokenizer.chat_template.",
        )
    switch = {} if thinking is None else {"enable_thinking": thinking}

    def render(messages: tuple[Message, ...]) -> str:
        return str(
            tokenizer.apply_chat_template(
                as_dicts(messages), tokenize=False, add_generation_prompt=True, **switch
            )
        )

    if len(messages) < 2 or messages[0].role != "system":
        return render(messages)
    try:
        sent = render(messages)
    except Exception:  # noqa: BLE001  templates refuse a system role in their own ways
        return render(_without_system(messages))
    # Some templates drop a system message without a word.
    return sent if messages[0].content.strip() in sent else render(_without_system(messages))


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    system, first, *rest = messages
    return (Message(first.role, f"{system.content}\n\n{first.content}"), *rest)
