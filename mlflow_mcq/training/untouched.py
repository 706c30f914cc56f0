"""A model in training that is measured, and given back as it was."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["untouched"]

_CHECKPOINTING = "gradient_checkpointing"
_CACHE = "use_cache"


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Measure inside, and find afterwards every state that training depends on as before.

    Put back are the random states of Python, numpy, torch and each CUDA device, the training
    flag of every module (dropout that was frozen stays frozen), gradient checkpointing and
    ``use_cache``, which trainers switch off and generation needs. Inside no gradients are kept.

    Args:
        model: A torch module.
    """
    import torch

    modules = list(model.modules())
    flags = [module.training for module in modules]
    checkpointing = [m for m in modules if getattr(m, _CHECKPOINTING, False) is True]
    configs = [config for config in _configs(model) if getattr(config, _CACHE, None) is False]
    states = random.getstate(), np.random.get_state(), torch.get_rng_state(), _cuda_states()
    try:
        for module in checkpointing:
            setattr(module, _CHECKPOINTING, False)
        for config in configs:
            setattr(config, _CACHE, True)
        with torch.no_grad():
            yield
    finally:
        for config in configs:
            setattr(config, _CACHE, False)
        for module in checkpointing:
            setattr(module, _CHECKPOINTING, True)
        for module, flag in zip(modules, flags, strict=True):
            module.training = flag
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if states[3]:
            torch.cuda.set_rng_state_all(states[3])


def _configs(model: Any) -> list[Any]:
    """The configurations that say whether keys and values are kept, each once."""
    found: dict[int, Any] = {}
    for module in model.modules():
        config = module.__dict__.get("config")
        text = config.get_text_config() if hasattr(config, "get_text_config") else None
        found |= {id(one): one for one in (config, text) if one is not None}
    return list(found.values())


def _cuda_states() -> list[Any]:
    import torch

    # Asking would start CUDA in a process that does not use it.
    running = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_rng_state_all() if running else []
