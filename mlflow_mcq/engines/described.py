"""What is to be said of a model that is here: how it was loaded, and what hangs on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.weights import active_adapters

__all__ = ["described", "forward_hooks"]

_NAMED_HOOKS = 5


def forward_hooks(model: Any) -> list[str]:
    """The forward hooks that hang on a model, as ``module (function)``.

    Steering and ablation are hooks. They are run on every road, change answers, and stand in
    no weight: two arms may differ in nothing else.

    Example:
        >>> import torch
        >>> layer = torch.nn.Linear(1, 1)
        >>> def push(module, args, out): return out + 1
        >>> _ = layer.register_forward_hook(push)
        >>> forward_hooks(torch.nn.Sequential(layer))
        ['0 (push)']
    """
    found = []
    for name, module in model.named_modules():
        for kind in ("_forward_pre_hooks", "_forward_hooks"):
            for hook in vars(module).get(kind, {}).values():
                found.append(f"{name or 'model'} ({_name(hook)})")
    return found


def described(chat: object) -> dict[str, object]:
    """Params of a run, by name: what is set of how the model was loaded, its dtype and hooks.

    Args:
        chat: Of the evaluated model; one that is not here has nothing to say.
    """
    told = getattr(chat, "described", None)
    if isinstance(told, Mapping):  # by those who have it
        return dict(told)
    if not isinstance(chat, LocalChat):
        return {}
    found: dict[str, object] = {"mcq.model_dtype": str(chat.model.dtype).removeprefix("torch.")}
    if chat.settings is not None:
        told = chat.settings.model_dump(exclude={"path", "dtype"}, exclude_defaults=True)
        found |= {f"mcq.model_{name}": value for name, value in told.items()}
        commit = getattr(chat.model.config, "_commit_hash", None)
        found |= {"mcq.model_commit": commit} if commit else {}
    elif adapters := active_adapters(chat.model):
        found["mcq.model_adapter"] = adapters
    if hooks := forward_hooks(chat.model):
        more = len(hooks) - _NAMED_HOOKS
        named = ", ".join(hooks[:_NAMED_HOOKS]) + (f", and {more} more" if more > 0 else "")
        found["mcq.model_hooks"] = f"{len(hooks)}: {named}"
    return found


def _name(hook: Any) -> str:
    inner = getattr(hook, "func", hook)  # as functools.partial holds it
    return str(getattr(inner, "__name__", type(inner).__name__))
