"""Curves in training code: a small rotated evaluation of the model in memory, every n steps.

`McqCallback` is for the Trainer of transformers (and of TRL), `McqLightningCallback` for
Lightning, and `Probe` for a loop of your own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow_mcq.training.huggingface import McqCallback
    from mlflow_mcq.training.lightning import McqLightningCallback
    from mlflow_mcq.training.probe import Probe

__all__ = ["McqCallback", "McqLightningCallback", "Probe"]

_ROOMS = {"McqCallback": "huggingface", "McqLightningCallback": "lightning", "Probe": "probe"}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
