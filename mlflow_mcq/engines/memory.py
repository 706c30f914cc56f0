"""Work that may not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["within_memory"]

T = TypeVar("T")


def within_memory(work: Callable[[], T]) -> T | None:
    """Do some work; None where memory does not suffice, so that less can be tried.

    Any other failure is raised: a halved batch would only hide it.

    Example:
        >>> within_memory(lambda: 2 + 2)
        4
    """
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    try:
        return work()
    except RuntimeError as error:
        shortage = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
        if not isinstance(error, shortage) and not should_reduce_batch_size(error):
            raise
    # Outside the handler: inside it the traceback still holds the tensors.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
