"""Work that may not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["free_memory", "is_shortage", "within_memory"]

T = TypeVar("T")


def within_memory(work: Callable[[], T]) -> T | None:
    """Do some work; None where memory does not suffice, so that less can be tried.

    Any other failure is raised: a halved batch would only hide it.

    Example:
        >>> within_memory(lambda: 2 + 2)
        4
    """
    import torch

    try:
        return work()
    except RuntimeError as error:
        if not is_shortage(error):
            raise
    # Outside the handler: inside it the traceback still holds the tensors.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def is_shortage(error: Exception) -> bool:
    """Whether an exception says that memory did not suffice."""
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    shortage = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
    return isinstance(error, shortage) or bool(should_reduce_batch_size(error))


def free_memory(device: Any) -> int:
    """Bytes that are free on a torch device."""
    import psutil
    import torch

    if device.type == "cuda":
        # What torch has reserved and does not use is free for us, but not for the driver.
        spare = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + spare)
    return int(psutil.virtual_memory().available)
