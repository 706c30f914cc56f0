"""Attention of packed rows over a beginning held once and over their own keys.

Each row attends to two sets of keys: those of the shared beginning, which stand in memory
once, and its own. The two results are merged by their log-sum-exp, which gives exactly
what one softmax over both would have given:

    out = (e^a out_1 + e^b out_2) / (e^a + e^b),   a, b the log-sum-exp of either part

(the same identity as in FlashAttention and in cascade inference). The function enters a
model through transformers' `AttentionInterface`, so that the model's own code, its hooks
and adapters run as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

__all__ = ["NAME", "AllKept", "Page", "Unsupported", "attend", "lent_attention", "merged"]

NAME = "mlflow_mcq_shared_prefix"
"""Under this name transformers finds the function; models keep the name of their own."""

_NOT_OURS = ("sliding_window", "softcap", "s_aux", "sinks")
"""What some models ask of their attention and this one does not do."""


class Unsupported(RuntimeError):
    """A model asks its attention for something that this one would leave out."""


class AllKept(Exception):
    """All keys and values of a pass are in the slab: what the model does next nobody reads."""


@dataclass(frozen=True, slots=True)
class Order:
    """How queries of packed tokens are laid out by row, and back; H = K x n_same heads.

    Attributes:
        into_rows: (R x K x n_same x q,) of the (T x H) queries, which one stands there.
        out_of_rows: (T x H,) of the (R x n_same x q x K) results, which one is its own.
        mask: (R, 1, n_same x q, width), as in the page.
    """

    into_rows: torch.Tensor
    out_of_rows: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True, slots=True)
class Page:
    """Where the tokens of one forward pass belong; T tokens of R rows, packed.

    Attributes:
        row: (T,) number of the row of each token.
        place: (T,) place of the token among the tokens of its row in this pass.
        column: (T,) column of the slab where its keys go: its position, less the length
            of the shared beginning.
        token: (R, q) which of the T tokens stands at each place of a row; any where none does.
        slot: (T,) slot of the row of each token.
        slots: The slots of the R rows: a slice or an index tensor.
        longest: Most tokens of one row in this pass, q.
        width: Columns that are read.
        mask: (R, 1, 1, q, width), 0 where a token may look and -inf where not.
        shared: Keys and values of the beginning for each layer, (1, heads, length, size)
            each; None where nothing is held.
        ends_at: The layer whose keys are the last that this pass is made for; None where
            its logits are wanted.
        orders: What `order` has worked out, by numbers of heads.
    """

    row: torch.Tensor
    place: torch.Tensor
    column: torch.Tensor
    token: torch.Tensor
    slot: torch.Tensor
    slots: Any
    longest: int
    width: int
    mask: torch.Tensor
    shared: list[tuple[torch.Tensor, torch.Tensor]] | None = None
    ends_at: int | None = None
    orders: dict[tuple[int, int], Order] = field(default_factory=dict)

    def order(self, n_kv: int, n_same: int) -> Order:
        """How tokens are laid out by row for a number of heads; worked out once for all layers."""
        found = self.orders.get((n_kv, n_same))
        if found is None:
            found = self.orders[n_kv, n_same] = self._order(n_kv, n_same)
        return found

    def _order(self, n_kv: int, n_same: int) -> Order:
        kv, same = (torch.arange(n, device=self.token.device) for n in (n_kv, n_same))
        head = kv[:, None] * n_same + same
        into = self.token[:, None, None] * (n_kv * n_same) + head[:, :, None]
        # Attention gives (R, heads of keys, n_same x q, D), and writes it as (R, n_same x q, ...).
        line = self.row[:, None, None] * n_same + same
        out = (line * self.longest + self.place[:, None, None]) * n_kv + kv[:, None]
        mask = self.mask.expand(-1, -1, n_same, -1, -1).flatten(2, 3)
        return Order(into.flatten(), out.flatten(), mask)


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function, as transformers calls it.

    Args:
        module: The attention layer; its ``layer_idx`` finds the shared keys.
        query: (1, H, T, D), the packed tokens.
        key: (R, K, width, D), the rows' own keys, from the slab; H is a multiple of K.
        value: As ``key``; D may differ.
        attention_mask: Not used: what may be seen stands in the page.
        options: ``page`` and ``scaling``; the rest must not change the result.

    Returns:
        (1, T, H, D), and no weights.

    Raises:
        Unsupported: The model wants a window, a soft cap or sinks, or hands on no page.
        AllKept: The page ends at this layer.
    """
    page: Page | None = options.get("page")
    wanted = [name for name in _NOT_OURS if options.get(name) is not None]
    if page is None or wanted:
        raise Unsupported(f"attention with {', '.join(wanted) or 'no page'}")
    if page.ends_at is not None and page.ends_at == module.layer_idx:
        raise AllKept
    scale = options.get("scaling")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    # Heads that share keys become further queries of one head: keys are never repeated.
    n_tokens, n_kv = query.shape[2], key.shape[1]
    n_same = query.shape[1] // n_kv
    out, weight = _own(page, query, key, value, scale)
    if page.shared is not None:
        held_key, held_value = page.shared[module.layer_idx]
        packed = query.reshape(1, n_kv, n_same * n_tokens, -1)
        held, held_weight = _attention(packed, held_key, held_value, None, scale)
        held = torch.unflatten(held[0], 1, (n_same, n_tokens)).permute(2, 0, 1, 3)
        held_weight = torch.unflatten(held_weight[0], 1, (n_same, n_tokens)).permute(2, 0, 1)
        out = merged(out, weight, held, held_weight)
    return out.reshape(1, n_tokens, n_kv * n_same, -1), None


def _own(
    page: Page, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(T, K, n_same, D) values over each row's own keys, and (T, K, n_same) their weights."""
    (_, n_heads, n_tokens, _), n_kv = query.shape, key.shape[1]
    n_same = n_heads // n_kv
    order = page.order(n_kv, n_same)
    rows, mask = query[0].transpose(0, 1).flatten(0, 1), order.mask.to(query.dtype)
    if page.longest == 1:  # it stands by row as it is
        return _attention(rows.view(n_tokens, n_kv, n_same, -1), key, value, mask, scale)
    rows = rows.index_select(0, order.into_rows).view(len(key), n_kv, n_same * page.longest, -1)
    out, weight = _attention(rows, key, value, mask, scale)
    out = out.transpose(1, 2).flatten(0, 2).index_select(0, order.out_of_rows)
    weight = weight.transpose(1, 2).flatten()[order.out_of_rows]
    shape = (n_tokens, n_kv, n_same)
    return out.view(*shape, -1), weight.view(shape)


def merged(
    one: torch.Tensor, one_weight: torch.Tensor, other: torch.Tensor, other_weight: torch.Tensor
) -> torch.Tensor:
    """Join two attentions of one query over disjoint keys.

    Args:
        one: (..., D), softmax-weighted values over the first keys.
        one_weight: (...), log-sum-exp of the scores over the first keys.
        other: As ``one``, over the other keys.
        other_weight: As ``one_weight``, over the other keys.

    Returns:
        (..., D), what one softmax over all keys gives.

    Example:
        >>> half = torch.zeros(1)
        >>> merged(torch.tensor([[1.0]]), half, torch.tensor([[3.0]]), half).item()
        2.0
    """
    # A sigmoid of the difference in place of two exponentials: neither can overflow.
    share = torch.sigmoid(other_weight.float() - one_weight.float())[..., None]
    return torch.lerp(one, other, share.to(one.dtype))


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, K, q, D) softmax-weighted values, and (B, K, q) the log-sum-exp of the scores."""
    kernel = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    if kernel is not None and query.device.type == "cpu" and key.shape[3] == value.shape[3]:
        out, weight = kernel(query, key, value, 0.0, False, attn_mask=mask, scale=scale)
        # Older releases give (B, q, K).
        shape = out.shape[:3]
        return out, weight if weight.shape == shape else weight.transpose(1, 2)
    scores = torch.matmul(query, key.transpose(2, 3)).float() * scale
    if mask is not None:
        scores += mask
    weight = scores.logsumexp(-1)
    return torch.matmul((scores - weight[..., None]).exp().to(value.dtype), value), weight


@contextmanager
def lent_attention(model: Any) -> Iterator[None]:
    """Put this attention into a model, and give the model its own back."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, attend)
    own = model.config._attn_implementation
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(own)
