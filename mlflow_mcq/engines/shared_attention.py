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
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["NAME", "Page", "Unsupported", "attend", "lent_attention", "merged"]

NAME = "mlflow_mcq_shared_prefix"
"""Under this name transformers finds the function; models keep the name of their own."""

_NOT_OURS = ("sliding_window", "softcap", "s_aux", "sinks")
"""What some models ask of their attention and this one does not do."""


class Unsupported(RuntimeError):
    """A model asks its attention for something that this one would leave out."""


@dataclass(frozen=True, slots=True)
class Page:
    """Where the tokens of one forward pass belong; T tokens of R rows, packed.

    Attributes:
        row: (T,) number of the row of each token.
        place: (T,) place of the token among the tokens of its row in this pass.
        column: (T,) column of the slab where its keys go: its position, less the length
            of the shared beginning.
        slots: The slots of the R rows: a slice or an index tensor.
        longest: Most tokens of one row in this pass, q.
        width: Columns that are read.
        mask: (R, 1, 1, q, width), 0 where a token may look and -inf where not.
        shared: Keys and values of the beginning for each layer, (1, heads, length, size)
            each; None where nothing is held.
    """

    row: torch.Tensor
    place: torch.Tensor
    column: torch.Tensor
    slots: Any
    longest: int
    width: int
    mask: torch.Tensor
    shared: list[tuple[torch.Tensor, torch.Tensor]] | None = None


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
    """
    page: Page | None = options.get("page")
    wanted = [name for name in _NOT_OURS if options.get(name) is not None]
    if page is None or wanted:
        raise Unsupported(f"attention with {', '.join(wanted) or 'no page'}")
    scale = options.get("scaling")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    # Heads that share keys become further queries of one head: keys are never repeated.
    n_tokens, n_kv = query.shape[2], key.shape[1]
    n_same = query.shape[1] // n_kv
    rows = _by_row(query[0].transpose(0, 1), page)
    rows = torch.unflatten(rows, 2, (n_kv, n_same)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    mask = page.mask.expand(-1, -1, n_same, -1, -1).flatten(2, 3).to(query.dtype)
    out, weight = _attention(rows, key, value, mask, scale)
    out = _packed(torch.unflatten(out, 2, (n_same, -1)).permute(0, 3, 1, 2, 4), page)
    if page.shared is not None:
        weight = _packed(torch.unflatten(weight, 2, (n_same, -1)).permute(0, 3, 1, 2), page)
        held_key, held_value = page.shared[module.layer_idx]
        packed = query.reshape(1, n_kv, n_same * n_tokens, -1)
        held, held_weight = _attention(packed, held_key, held_value, None, scale)
        held = torch.unflatten(held[0], 1, (n_same, n_tokens)).permute(2, 0, 1, 3)
        held_weight = torch.unflatten(held_weight[0], 1, (n_same, n_tokens)).permute(2, 0, 1)
        out = merged(out, weight, held, held_weight)
    return out.flatten(1, 2)[None].contiguous(), None


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
    return one + (other - one) * share.to(one.dtype)


def _by_row(packed: torch.Tensor, page: Page) -> torch.Tensor:
    """(T, H, D) to (R, q, H, D); what no token fills is zero and is never read back."""
    if page.longest == 1:
        return packed[:, None]
    rows = packed.new_zeros(page.mask.shape[0], page.longest, *packed.shape[1:])
    rows[page.row, page.place] = packed
    return rows


def _packed(rows: torch.Tensor, page: Page) -> torch.Tensor:
    """(R, q, ...) to (T, ...), the inverse of `_by_row`."""
    return rows[:, 0] if page.longest == 1 else rows[page.row, page.place]


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
