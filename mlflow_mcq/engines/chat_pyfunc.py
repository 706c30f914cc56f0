"""Chat models and agents of MLflow: one conversation at a time, under their own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["chat_predict"]

# What a ChatModel or ChatAgent, and a ResponsesAgent, call the conversation.
_CONVERSATIONS = ("messages", "input")


def chat_predict(model: Any) -> Callable[[Any], list[Any]] | None:
    """A predict over a table of conversations, for a pyfunc that takes one at a time.

    Args:
        model: What MLflow loaded. It is known by its signature, whose one required input
            is a list of messages: MLflow does not unwrap these models.

    Returns:
        Takes a DataFrame whose first column holds message lists, returns one reply each;
        None where the model is no chat model, which takes tables itself.
    """
    name = _conversation(model)
    if name is None:
        return None

    def predict(frame: Any) -> list[Any]:
        return [model.predict({name: list(cell)}) for cell in frame.iloc[:, 0]]

    return predict


def _conversation(model: Any) -> str | None:
    metadata = getattr(model, "metadata", None)
    schema = metadata.get_input_schema() if metadata is not None else None
    if schema is None or not schema.has_input_names():
        return None
    required = schema.required_input_names()
    kind = type(schema.input_dict()[required[0]].type).__name__ if len(required) == 1 else ""
    return required[0] if kind == "Array" and required[0] in _CONVERSATIONS else None
