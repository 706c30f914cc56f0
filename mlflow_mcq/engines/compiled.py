"""Models that `torch.compile` has marked, and what is said where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlflow_mcq.errors import ModelError

__all__ = ["explained", "is_compiled"]

_COMPILERS = ("torch._dynamo.", "torch._inductor.")


def is_compiled(model: Any) -> bool:
    """Whether the forward pass of a model is compiled when it is first called.

    `torch.compile(model)` wraps it, `model.compile()` marks it.
    """
    marked = getattr(model, "_compiled_call_impl", None) is not None
    return marked or hasattr(model, "_orig_mod")


@contextmanager
def explained(model: Any) -> Iterator[None]:
    """Say what to do where the compiler fails: its own error ends in a stranger's traceback.

    Rows are not made without it instead: that it was compiled stands in the run.

    Raises:
        ModelError: It failed, with its own words as the cause.
    """
    try:
        yield
    except Exception as error:
        if not is_compiled(model) or not f"{type(error).__module__}.".startswith(_COMPILERS):
            raise
        # What comes after a blank line is advice to those who debug the compiler.
        first = " ".join(str(error).strip().partition("\n\n")[0].split())
        raise ModelError(
            "model.compile",
            f"torch.compile failed with {type(error).__name__}: {first}",
            possible="It needs a C++ compiler on a CPU and triton on a GPU; a file that was left "
            "half written in torch's cache stops it too (TORCHINDUCTOR_CACHE_DIR names another "
            "folder). Or leave compile out.",
        ) from error
