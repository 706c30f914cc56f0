"""A model that MLflow has stored, as a chat: ``models:/name/version``, ``runs:/id/model``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_pyfunc import chat_predict
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.pyfunc import answer_text
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Conversation, Decoding, Query, Reply
from mlflow_mcq.said import as_dicts

__all__ = ["PyfuncChat", "logged_chat", "pipeline_chat"]


def logged_chat(uri: str, batch_size: int = 8) -> Chat:
    """Load a logged model.

    One that was logged with `mlflow.transformers` is run by our engine; any other is asked
    row by row, and decodes as it likes.

    Raises:
        ModelError: MLflow cannot load it, or a pipeline holds no language model.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        model = mlflow.pyfunc.load_model(uri)
    except (MlflowException, OSError) as error:
        raise ModelError(f"model {uri!r}", f"cannot be loaded: {error}") from error
    # A logged model never changes, an alias does: what was loaded is what counts.
    origin = str(getattr(model, "model_id", None) or model.metadata.model_uuid)
    if "transformers" not in (model.metadata.flavors or {}):
        return PyfuncChat(model, origin)
    return pipeline_chat(model.get_raw_model(), f"model {uri!r}", batch_size, origin)


def pipeline_chat(pipeline: Any, who: str, batch_size: int, origin: str) -> LocalChat:
    """The language model inside a transformers pipeline that MLflow has logged.

    Args:
        pipeline: What `mlflow.transformers` stores.
        who: Names it in errors.
        batch_size: Rows at a time.
        origin: Name of the logged model, which never changes; empty where it is not known.

    Raises:
        ModelError: It holds no language model.
    """
    model, tokenizer = getattr(pipeline, "model", None), getattr(pipeline, "tokenizer", None)
    if tokenizer is None or not callable(getattr(model, "generate", None)):
        raise ModelError(
            who,
            "the logged transformers model must be a text-generation model with its tokenizer",
            type(pipeline).__name__,
        )
    chat = LocalChat(model, tokenizer, batch_size=batch_size)
    chat.origin = origin
    return chat


class PyfuncChat:
    """Any pyfunc that answers texts or conversations.

    Args:
        model: What MLflow loaded.
        name: Of the stored model.

    Attributes:
        fingerprint: Twelve hex digits over its name.
        deterministic: False: how it decodes is its own affair.
        speaks_chat: Its signature takes messages.
    """

    deterministic: bool = False

    def __init__(self, model: Any, name: str) -> None:
        chat = chat_predict(model)
        self.speaks_chat: bool = chat is not None
        self.fingerprint: str = hashlib.sha256(f"pyfunc\x1f{name}".encode()).hexdigest()[:12]
        self._predict: Callable[[Any], Any] = chat or model.predict

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Yield replies in order; a row on which the model raises has that as its error."""
        for place, query in enumerate(queries):
            yield place, self._answer(query.content)

    def _answer(self, content: Conversation) -> Reply:
        import pandas as pd

        cell: Any = content if isinstance(content, str) else as_dicts(content)
        frame = pd.DataFrame({"prompt": pd.Series([cell], dtype=object)})
        try:
            text = _text(self._predict(frame))
        except Exception as error:  # noqa: BLE001  one bad row must not lose the others
            return Reply(None, f"{type(error).__name__}: {error}")
        return Reply(text) if text is not None else Reply(None, "the model returned no text")


def _text(got: Any) -> str | None:
    """The one answer in whatever a predict of one row returns."""
    import pandas as pd

    if isinstance(got, pd.DataFrame):
        got = got.iloc[:, 0]
    first = got if isinstance(got, (str, Mapping)) else next(iter(got), None)
    return first if isinstance(first, str) else answer_text(first)
