"""The beginning that all prompts share, read once.

A judge's rules and examples, or a few-shot prefix, are the same for every row: their
keys and values are computed once and handed to each batch, so that only what differs is
read. Greedy answers stay the same token for token on models whose cache is a plain list
of keys and values; anything else (sliding windows, recurrent states) takes the plain
road, since there a shared beginning gives wrong answers without an error.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

__all__ = ["SharedPrefix", "shared_length"]

_WORTH_IT = 48
"""Fewer shared tokens than this are read again faster than they are copied."""


def shared_length(rows: Sequence[Sequence[int]]) -> int:
    """How many first tokens all rows share, so that each keeps at least one of its own.

    Example:
        >>> shared_length([[1, 2, 3], [1, 2, 4, 5]]), shared_length([[1, 2], [1, 2]])
        (2, 1)
    """
    if len(rows) < 2:
        return 0
    # What the first and the last row in sorted order share, all rows between them share.
    low, high = min(map(list, rows)), max(map(list, rows))
    pairs = enumerate(zip(low, high, strict=False))
    common = next((place for place, (one, other) in pairs if one != other), len(low))
    return min(common, min(map(len, rows)) - 1)


class SharedPrefix:
    """Keys and values of a shared beginning.

    Attributes:
        ids: Its token ids; empty where nothing is shared or the model does not allow it.
    """

    def __init__(self, model: Any, rows: Sequence[Sequence[int]]) -> None:
        length = shared_length(rows)
        self.ids: list[int] = []
        self._cache: Any = None
        if length >= _WORTH_IT and _plain_attention(model):
            self._read(model, list(rows[0][:length]))

    def _read(self, model: Any, ids: list[int]) -> None:
        import torch

        device = next(model.parameters()).device
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids], device=device), use_cache=True)
        cache = getattr(out, "past_key_values", None) or getattr(out, "cache", None)
        if _plain_cache(cache, len(ids)):
            self.ids, self._cache = ids, cache

    def arguments(self, model: Any, n_rows: int) -> dict[str, Any]:
        """What `generate` takes to continue from here, for a batch of n rows."""
        if not self.ids:
            return {}
        cache = copy.deepcopy(self._cache)
        cache.batch_repeat_interleave(n_rows)
        return {_cache_name(model): cache}


def _cache_name(model: Any) -> str:
    # transformers 5.24 begins to call it "cache".
    names = inspect.signature(model.forward).parameters
    return "past_key_values" if "past_key_values" in names else "cache"


def _plain_attention(model: Any) -> bool:
    config = getattr(model, "config", None)
    config = getattr(config, "get_text_config", lambda: config)()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    window = getattr(config, "sliding_window", None)
    used = window is not None and getattr(config, "use_sliding_window", True)
    return kinds == {"full_attention"} and not used


def _plain_cache(cache: Any, length: int) -> bool:
    layers = getattr(cache, "layers", None)
    return (
        type(cache).__name__ == "DynamicCache"
        and bool(layers)
        and all(type(layer).__name__ == "DynamicLayer" for layer in layers or [])
        and hasattr(cache, "batch_repeat_interleave")
        and cache.get_seq_length() == length
    )
