"""Another forward for some modules of a model, and their own back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

__all__ = ["has_own_forward", "lent_forward"]


def has_own_forward(module: Any) -> bool:
    """Whether a module runs the forward of its class: nobody has replaced it."""
    return "forward" not in module.__dict__


@contextmanager
def lent_forward(modules: Sequence[Any], forward: Callable[..., Any]) -> Iterator[None]:
    """Let modules run another forward, which is given the module first.

    Hooks on a module run as ever. One whose forward somebody has replaced is left alone.
    """
    lent = [module for module in modules if has_own_forward(module)]
    try:
        for module in lent:
            module.forward = partial(forward, module)
        yield
    finally:
        for module in lent:
            module.__dict__.pop("forward", None)
