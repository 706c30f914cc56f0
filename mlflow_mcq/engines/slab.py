"""Keys and values of many rows: a slab of slots in which a column is a position.

A token at position p stands in column ``p - n_shared``, whatever the length of its row:
no row is padded on the left, so a row may enter or leave at any step, and the keys of a
stem are copied from slot to slot as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from mlflow_mcq.engines.shared_attention import Page

__all__ = ["Held", "Slab", "token_bytes"]

_ROUND, _ROUND_ELSEWHERE = {"cpu": 8}, 32
"""Widths are multiples of this, so that few shapes are ever seen; a processor does not mind
many, and pays for each column."""

Held = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of a beginning, layer by layer: (1, heads, length, size) each."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]  # transformers ships no types
    """The slots of one layer; made at the first token, whose shape and kind they take."""

    is_sliding = False

    def __init__(self, slab: Slab) -> None:
        super().__init__()
        self._slab = slab

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = (self._empty(states) for states in (key_states, value_states))
        self.is_initialized = True

    def _empty(self, states: torch.Tensor) -> torch.Tensor:
        # Zeros: columns that are masked are multiplied by zero, and garbage may be NaN.
        shape = (self._slab.n_slots, states.shape[1], self._slab.n_columns, states.shape[3])
        return states.new_zeros(shape)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        page = self._slab.page
        self.keys[page.slot, :, page.column] = key_states[0].transpose(0, 1)
        self.values[page.slot, :, page.column] = value_states[0].transpose(0, 1)
        keys, values = self.keys[:, :, : page.width], self.values[:, :, : page.width]
        if isinstance(page.slots, slice):
            return keys[page.slots], values[page.slots]
        # An index in brackets takes four times as long on a processor.
        return keys.index_select(0, page.slots), values.index_select(0, page.slots)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._slab.page.width, 0

    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1

    get_max_cache_shape = get_max_length


class Slab:
    """The slots of all layers, and the beginning that they share.

    Args:
        n_layers: Layers of the model.
        n_slots: Rows that fit.
        n_columns: Tokens that each may have beyond the shared beginning.
        shared: Keys and values of the beginning, layer by layer.
        device: Of the model.

    Attributes:
        cache: What the model takes for its cache.
        page: The forward pass under way.
        n_shared: Length of the shared beginning.
    """

    def __init__(
        self, n_layers: int, n_slots: int, n_columns: int, shared: Held | None, device: Any
    ) -> None:
        self.n_slots, self.n_columns = n_slots, n_columns
        self.n_shared = shared[0][0].shape[2] if shared else 0
        self.shared, self.device = shared, device
        self._round = _ROUND.get(torch.device(device).type, _ROUND_ELSEWHERE)
        self.cache = Cache(layers=[_Layer(self) for _ in range(n_layers)])
        self.page: Page

    def open(
        self,
        slots: Sequence[int] | slice,
        lengths: Sequence[int],
        begins: Sequence[int],
        kind: Any,
        ends_at: int | None = None,
    ) -> Page:
        """Lay out one forward pass.

        Args:
            slots: Of the rows; a slice reads the slab in place, without a copy.
            lengths: Tokens of each row in this pass, at least one.
            begins: Position of the first of them.
            kind: The dtype of the model's attention.
            ends_at: The layer after whose keys the pass ends; None where it goes on to logits.

        Returns:
            The page, which is also `page` until the next.
        """
        n, first = torch.tensor(lengths), torch.tensor(begins)
        row = torch.repeat_interleave(torch.arange(len(n)), n)
        start = n.cumsum(0) - n
        place = torch.arange(len(row)) - start[row]
        column = first[row] + place - self.n_shared
        longest, most = int(n.max()), int(column.max()) + 1
        token = (start[:, None] + torch.arange(longest)).clamp(max=len(row) - 1)
        width = min(self.n_columns, -(-most // self._round) * self._round)
        # A token sees the columns up to its own; what stands beyond is another row's past.
        own = (first - self.n_shared)[:, None] + torch.arange(longest)
        hidden = torch.arange(width) > own[..., None]
        mask = torch.zeros(hidden.shape, dtype=kind).masked_fill_(hidden, float("-inf"))
        numbers = torch.arange(self.n_slots)[slots] if isinstance(slots, slice) else slots
        slot = torch.as_tensor(numbers)[row]
        where = slots if isinstance(slots, slice) else torch.tensor(slots, device=self.device)
        row, place, column, token, slot, mask = (
            x.to(self.device) for x in (row, place, column, token, slot, mask)
        )
        self.page = Page(
            row=row, place=place, column=column, token=token, slot=slot, slots=where,
            longest=longest, width=width, mask=mask[:, None, None], shared=self.shared,
            ends_at=ends_at,
        )  # fmt: skip
        return self.page

    def copy(self, sources: Sequence[int], targets: Sequence[int], n_columns: int) -> None:
        """Copy the first columns of some slots into others; the two must not overlap."""
        if not targets or n_columns < 1:
            return
        source, target = (torch.tensor(s, device=self.device) for s in (sources, targets))
        for layer in self.cache.layers:
            if layer.is_initialized:
                for states in (layer.keys, layer.values):
                    first = states[:, :, :n_columns]
                    first.index_copy_(0, target, first.index_select(0, source))

    def hold(self, n_columns: int) -> Held:
        """The first columns of slot 0 behind the beginning, to be shared by other slabs."""
        own = [
            (layer.keys[:1, :, :n_columns], layer.values[:1, :, :n_columns])
            for layer in self.cache.layers
        ]
        if not self.shared:
            return [(keys.contiguous(), values.contiguous()) for keys, values in own]
        return [
            (torch.cat([keys, more], 2), torch.cat([values, others], 2))
            for (keys, values), (more, others) in zip(self.shared, own, strict=True)
        ]


def token_bytes(config: Any, size: int) -> int:
    """Memory that the keys and values of one token take in all layers.

    An estimate: a model that stores something else is measured by running out of memory.

    Args:
        config: Of the model's text part.
        size: Bytes of one number.
    """
    heads = config.num_attention_heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    wide = getattr(config, "head_dim", None) or config.hidden_size // heads
    return int(2 * config.num_hidden_layers * kept * wide * size)
