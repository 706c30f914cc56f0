"""Weights that are loaded once for several arms.

Only inside `weights_shared`: two models that a user loads by one name are two models, and
what is hung on one of them must not show in the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.engines.loading import Base
from mlflow_mcq.engines.pool import PooledChat, WorkerPool
from mlflow_mcq.engines.vllm_chat import VllmChat
from mlflow_mcq.local_settings import LocalSettings

__all__ = ["keep_only", "loaded", "pooled", "weights_shared"]

Named = str | LocalSettings


@dataclass(slots=True)
class _Shared:
    """Weights by how they are loaded, and chats over them by that, adapter and batch size."""

    bases: dict[str, Base] = field(default_factory=dict)
    chats: dict[tuple[str, str | None, int], Chat] = field(default_factory=dict)
    pools: dict[tuple[str, int], WorkerPool] = field(default_factory=dict)


class _Held(threading.local):
    """What is shared in this thread; None outside `weights_shared`."""

    shared: _Shared | None = None


_HELD = _Held()


@contextmanager
def weights_shared() -> Iterator[None]:
    """Load weights of one name once in this thread, for arms and judges alike, until the end."""
    before = _HELD.shared
    shared = _HELD.shared = _Shared() if before is None else before
    try:
        yield
    finally:
        _HELD.shared = before
        for pool in shared.pools.values() if before is None else ():
            pool.close()


def loaded(name: Named, batch_size: int) -> Chat:
    """A model by its folder, hub or demo name, or as settings say; from memory where shared.

    Chats over one base with other batch sizes or adapters share the weights.

    Raises:
        ModelError: It cannot be loaded.
    """
    settings = _settings(name)
    held = _HELD.shared
    if settings.engine == "vllm":
        return _vllm(settings, held)
    if held is None:
        return Base(settings).chat(settings.adapter, batch_size)
    base, adapter = _base_key(settings), settings.adapter
    if base not in held.bases:
        held.bases[base] = Base(settings)
    key = (base, adapter, batch_size)
    if key not in held.chats:
        held.chats[key] = held.bases[base].chat(adapter, batch_size)
    return held.chats[key]


def _vllm(settings: LocalSettings, held: _Shared | None) -> Chat:
    if held is None:
        return VllmChat(settings)
    key = (_base_key(settings), settings.adapter, 0)
    if key not in held.chats:
        # It takes nearly all memory of its GPU: two of them would not fit.
        for other in [other for other, chat in held.chats.items() if isinstance(chat, VllmChat)]:
            del held.chats[other]
        held.chats[key] = VllmChat(settings)
    return held.chats[key]


def pooled(name: Named, batch_size: int, processes: int) -> PooledChat:
    """The same in resident workers, which stay for later arms over the same base.

    Raises:
        McqError: There are fewer GPUs than processes, or the model cannot be loaded.
    """
    settings = _settings(name)
    held = _HELD.shared
    if held is None:
        return PooledChat(WorkerPool(processes), settings, batch_size)
    place = (_base_key(settings), processes)
    if place not in held.pools:
        held.pools[place] = WorkerPool(processes)
    return PooledChat(held.pools[place], settings, batch_size)


def keep_only(names: Iterable[Named]) -> None:
    """Let go of shared weights that none of these means: a sweep over models is long."""
    held = _HELD.shared
    if held is None or not (held.bases or held.chats or held.pools):
        return
    wanted = {_base_key(_settings(name)) for name in names}
    for base in [base for base in held.bases if base not in wanted]:
        del held.bases[base]
    for key in [key for key in held.chats if key[0] not in wanted]:
        del held.chats[key]
    for place in [place for place in held.pools if place[0] not in wanted]:
        held.pools.pop(place).close()


def _settings(name: Named) -> LocalSettings:
    return LocalSettings(path=name) if isinstance(name, str) else name


def _base_key(settings: LocalSettings) -> str:
    folder = resolve_weights(settings.path)
    return settings.base.model_copy(update={"path": folder}).key
