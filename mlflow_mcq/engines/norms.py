"""The root-mean-square norms of a model in one call each.

transformers writes such a norm as six operations, and on a processor each of them carries
all hidden states through the cache once more: of a decoding step they take a twentieth.
Only norms that are seen to give the same numbers are replaced, and hooks on them run as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import torch

from mlflow_mcq.engines.compiled import is_compiled
from mlflow_mcq.engines.lending import has_own_forward, lent_forward

__all__ = ["lent_norms", "plain_norms", "rms"]

_EPSILONS = ("variance_epsilon", "eps", "epsilon")
"""What models call the number that keeps a norm from dividing by zero."""


def rms(norm: Any, hidden: torch.Tensor) -> torch.Tensor:
    """``hidden / sqrt(mean(hidden ** 2) + epsilon) * weight``, over the last dimension.

    Args:
        norm: Has a ``weight`` (N,) and an epsilon.
        hidden: (..., N).

    Returns:
        (..., N).

    Source:
        Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Example:
        >>> class Norm:
        ...     weight, eps = torch.tensor([1.0, 2.0]), 0.0
        >>> rms(Norm, torch.tensor([[3.0, 3.0]])).tolist()
        [[1.0, 2.0]]
    """
    return torch.nn.functional.rms_norm(hidden, norm.weight.shape, norm.weight, _epsilon(norm))


def plain_norms(model: Any) -> list[Any]:
    """The norms of a model for which `rms` gives what they give themselves.

    Norms of half precision round at another place, and some models add one to the weight:
    those stay as they are, as do all that are compiled or not on a processor.
    """
    return [module for module in model.modules() if _is_plain(module)]


@contextmanager
def lent_norms(norms: Sequence[Any]) -> Iterator[None]:
    """Let norms run in one call; their own way comes back at the end."""
    with lent_forward(norms, rms):
        yield


def _epsilon(norm: Any) -> float | None:
    found = (getattr(norm, name, None) for name in _EPSILONS)
    return next((value for value in found if isinstance(value, float)), None)


def _is_plain(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    if not type(module).__name__.endswith("RMSNorm") or not has_own_forward(module):
        return False
    if is_compiled(module):
        return False
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1 or _epsilon(module) is None:
        return False
    if weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    if len(signature(module.forward).parameters) != 1:  # a gated norm takes two
        return False
    # One line of common size, and one so small that the epsilon is seen.
    line = torch.linspace(-1, 2, len(weight))
    hidden = torch.stack([line, line * 1e-3])
    with torch.no_grad():
        return torch.allclose(module.forward(hidden), rms(module, hidden), rtol=1e-5, atol=1e-6)
