"""The beginning that all prompts share, read once.

A judge's rules and examples, or a few-shot prefix, are the same for every row: their
keys and values are computed once and handed to each batch, so that only what differs is
read. Greedy answers stay the same token for token on models whose cache is a plain list
of keys and values; anything else (sliding windows, recurrent states) takes the plain
road, since there a shared beginning gives wrong answers without an error.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from mlflow_mcq.engines.gate import sees_all_before
from mlflow_mcq.engines.prefix_tree import common
from mlflow_mcq.engines.weights import cache_name

__all__ = ["SharedPrefix", "families", "shared_length"]

_MOST_BRANCHES = 4
"""Where more beginnings than this part, the rows' own text has begun."""

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
    of_all = common(min(map(list, rows)), max(map(list, rows)))
    return min(of_all, min(map(len, rows)) - 1)


def families(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Group rows that share most of their length, by place.

    A judge shows one set of examples for lettered pages and another for dashed ones: all
    together they share little, each kind by itself nearly everything.

    Returns:
        Every place once; rows that share nothing long stay in one group.

    Example:
        >>> a, b = [7] * 60, [8] * 60
        >>> families([a + [1], b + [1], a + [2], b + [2]])
        [[0, 2], [1, 3]]
    """
    return _split(list(range(len(rows))), rows)


def _split(places: list[int], rows: Sequence[Sequence[int]]) -> list[list[int]]:
    members = [rows[place] for place in places]
    n_shared = shared_length(members)
    if len(places) < 2 or 2 * n_shared >= min(map(len, members)):
        return [places]
    branches: dict[int, list[int]] = {}
    for place in places:
        branches.setdefault(rows[place][n_shared], []).append(place)
    worth = any(shared_length([rows[p] for p in b]) >= _WORTH_IT for b in branches.values())
    if not worth or not 1 < len(branches) <= _MOST_BRANCHES:
        return [places]
    return [group for branch in branches.values() for group in _split(branch, rows)]


class SharedPrefix:
    """Keys and values of a shared beginning.

    Attributes:
        ids: Its token ids; empty where nothing is shared or the model does not allow it.
    """

    def __init__(self, model: Any, rows: Sequence[Sequence[int]]) -> None:
        length = shared_length(rows)
        self.ids: list[int] = []
        self._cache: Any = None
        if length >= _WORTH_IT and sees_all_before(model):
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
        return {cache_name(model): cache}


def _plain_cache(cache: Any, length: int) -> bool:
    layers = getattr(cache, "layers", None)
    return (
        type(cache).__name__ == "DynamicCache"
        and bool(layers)
        and all(type(layer).__name__ == "DynamicLayer" for layer in layers or [])
        and hasattr(cache, "batch_repeat_interleave")
        and cache.get_seq_length() == length
    )
