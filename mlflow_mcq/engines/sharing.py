"""Weights that are loaded once for several arms.

Only inside `weights_shared`: two models that a user loads by one name are two models, and
what is hung on one of them must not show in the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.engines.local import LocalChat, load_local

__all__ = ["keep_only", "loaded", "weights_shared"]


class _Held(threading.local):
    """Chats by weights and batch size; None outside `weights_shared`."""

    chats: dict[tuple[str, int], LocalChat] | None = None


_HELD = _Held()


@contextmanager
def weights_shared() -> Iterator[None]:
    """Load weights of one name once in this thread, for arms and judges alike, until the end."""
    before = _HELD.chats
    _HELD.chats = {} if before is None else before
    try:
        yield
    finally:
        _HELD.chats = before


def loaded(name: str, batch_size: int) -> LocalChat:
    """A model by its folder, hub or demo name, from memory where it is shared.

    Chats of one name with other batch sizes share the weights.

    Raises:
        ModelError: It cannot be loaded.
    """
    folder = resolve_weights(name)
    held = _HELD.chats
    if held is None:
        return load_local(folder, batch_size=batch_size)
    if (folder, batch_size) not in held:
        twin = next((chat for (known, _), chat in held.items() if known == folder), None)
        if twin is None:
            chat = load_local(folder, batch_size=batch_size)
        else:
            chat = LocalChat(twin.model, twin.tokenizer, batch_size)
            chat.origin = twin.origin
        held[folder, batch_size] = chat
    return held[folder, batch_size]


def keep_only(names: Iterable[str]) -> None:
    """Let go of shared weights that none of these names means: a sweep over models is long."""
    held = _HELD.chats or {}
    wanted = set(map(resolve_weights, names)) if held else set()
    for key in [key for key in held if key[0] not in wanted]:
        del held[key]
