"""Models and parts of models that `torch.compile` has marked, and what is said where it fails.

Compiled as one, a model would be compiled anew for each layout of rows, and its rows could
not take the fast road. Norms and feed-forward networks see tokens one by one, whatever row
they belong to: these are compiled, once for all layers, and attention stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlflow_mcq.errors import ModelError

__all__ = ["compile_parts", "explained", "is_compiled"]

_FORMS = 64
"""Most graphs of one part before torch runs it uncompiled: it tells one row from many, one
token from many, and each adapter from the others; its own limit of 8 is two adapters."""

_COMPILERS = ("torch._dynamo.", "torch._inductor.")


def compile_parts(model: Any) -> None:
    """Mark the parts of each layer that are no attention; they are compiled when first called.

    Args:
        model: Of transformers, loaded; its weights and hooks stay as they are.

    Raises:
        ModelError: The model has no such parts.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> model = LlamaForCausalLM(
        ...     LlamaConfig(
        ...         vocab_size=9,
        ...         hidden_size=8,
        ...         intermediate_size=8,
        ...         num_hidden_layers=1,
        ...         num_attention_heads=1,
        ...     )
        ... )
        >>> compile_parts(model)
        >>> sorted({type(part).__name__ for part in model.modules() if part._compiled_call_impl})
        ['LlamaMLP', 'LlamaRMSNorm']
    """
    import torch

    parts = [part for layer in _layers(model) for part in layer.children() if _is_apart(part)]
    if not parts:
        raise ModelError(
            "model.compile", "needs layers with norms or feed-forward networks",
            type(model).__name__, "Leave compile out.",
        )  # fmt: skip
    settings = torch._dynamo.config
    # Else a hook (steering) that is hung into a part after its first call would never run.
    settings.skip_nnmodule_hook_guards = False
    # Each adapter over the weights has code of its own.
    settings.cache_size_limit = max(settings.cache_size_limit, _FORMS)
    for part in parts:
        part.compile(dynamic=True)


def _layers(model: Any) -> list[Any]:
    """The layers of a model: its lists of as many modules as the config tells."""
    import torch

    config = model.config.get_text_config()
    return [
        layer
        for found in model.modules()
        if isinstance(found, torch.nn.ModuleList) and len(found) == config.num_hidden_layers
        for layer in found
    ]


def _is_apart(part: Any) -> bool:
    """Whether no token sees another in a part, and there is something to gain."""
    import torch

    # What keeps something for each layer carries the number of its own.
    mixes = any(hasattr(inner, "layer_idx") for inner in part.modules())
    one_call = isinstance(part, (torch.nn.Linear, torch.nn.Dropout, torch.nn.Identity))
    return not mixes and not one_call


def is_compiled(model: Any) -> bool:
    """Whether the whole forward pass of a model or module is compiled when it is first called.

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
        theirs = f"{type(error).__module__}.".startswith(_COMPILERS)
        if not theirs or not any(map(is_compiled, model.modules())):
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
