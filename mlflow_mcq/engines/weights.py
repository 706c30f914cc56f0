"""Weights: what names a model, how long a text it can read, and what it is called with."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

__all__ = [
    "active_adapters",
    "cache_name",
    "forward_names",
    "hook_numbers",
    "longest_text",
    "take_weight",
    "text_config",
    "weights_fingerprint",
    "weights_origin",
]

_SAMPLES = 64
# Where a checkpoint lies and which version wrote it do not change its answers: the same
# judge on two machines must have one name.
_NOT_IDENTITY = ("_name_or_path", "transformers_version")


def text_config(model: Any) -> Any:
    """The part of a model's configuration that is of text; None where it has none at all.

    A model that also sees pictures keeps it one step down.
    """
    config: Any = getattr(model, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def longest_text(model: Any) -> int | None:
    """Most tokens, prompt and answer together, that a model has positions for."""
    limit = getattr(text_config(model), "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def weights_fingerprint(model: Any, chat_template: object = None) -> str:
    """Twelve hex digits over what changes a model's answers.

    Architecture, configuration, dtype, chat template, and for each parameter its shape
    and 64 values spread over it: enough to tell a fine-tuned arm from its base without
    reading gigabytes.
    """
    digest = hashlib.sha256()
    config = {k: v for k, v in model.config.to_dict().items() if k not in _NOT_IDENTITY}
    head = [type(model).__name__, config, str(getattr(model, "dtype", "")), chat_template]
    head += [adapters] if (adapters := active_adapters(model)) else []
    digest.update(json.dumps(head, sort_keys=True, default=str).encode())
    for name, weight in model.named_parameters():
        take_weight(digest, name, weight)
    return digest.hexdigest()[:12]


def take_weight(digest: Any, name: str, weight: Any) -> None:
    """Enter the name, the shape and 64 values of a weight into a hash."""
    digest.update(f"{name}{tuple(weight.shape)}".encode())
    if weight.device.type != "meta":
        flat = weight.detach().reshape(-1)
        sample = flat[:: max(1, flat.numel() // _SAMPLES)][:_SAMPLES]
        digest.update(sample.float().cpu().numpy().tobytes())


def active_adapters(model: Any) -> str:
    """The adapters of a PEFT model that are on; empty for any other model.

    Which one is on changes answers and no weight.
    """
    # Read off the layers: which attributes of the model tell it depends on who put them in.
    layers = [vars(module) for module in model.modules() if "_active_adapter" in vars(module)]
    if any(layer.get("_disable_adapters") for layer in layers):
        return "all adapters off"
    active = [layer["_active_adapter"] for layer in layers] or [vars(model).get("active_adapter")]
    names = {name for one in active if one for name in ([one] if isinstance(one, str) else one)}
    return ", ".join(sorted(names))


def forward_names(model: Any) -> set[str]:
    """Names that a model's forward pass takes, seen through what is wrapped around it."""
    inner = getattr(model, "_orig_mod", model)  # as torch.compile wraps it
    inner = inner.get_base_model() if hasattr(inner, "get_base_model") else inner
    return set(inspect.signature(inner.forward).parameters)


def hook_numbers(model: Any) -> tuple[int, ...]:
    """The hooks that hang on a model, by torch's own numbers for them."""
    return tuple(
        number
        for module in model.modules()
        for hooks in (module._forward_pre_hooks, module._forward_hooks)
        for number in hooks
    )


def cache_name(model: Any) -> str:
    """What a model calls its cache; transformers 5.24 begins to say ``cache``."""
    return "past_key_values" if "past_key_values" in forward_names(model) else "cache"


def weights_origin(path_or_name: str, model: Any, *, adapter: str = "", changes: str = "") -> str:
    """Twelve hex digits over where weights were read and in which state they were.

    A folder counts with the size and time of each file, a hub name with its commit: the
    fingerprint looks at some values of each weight, and rows kept on disk must not
    outlive any change.

    Args:
        path_or_name: Of the weights.
        model: They themselves.
        adapter: Folder or hub name of the adapter over them.
        changes: How else they were loaded, where that may change rows.
    """
    state = _state(path_or_name) or [path_or_name, getattr(model.config, "_commit_hash", None)]
    state += [_state(adapter) or adapter] if adapter else []
    state += [changes] if changes else []
    return hashlib.sha256(json.dumps(state, default=str).encode()).hexdigest()[:12]


def _state(path: str) -> list[object]:
    """A folder's files with size and time; nothing where it is none."""
    folder = Path(path)
    if not path or not folder.is_dir():
        return []
    files = sorted(path for path in folder.iterdir() if path.is_file())
    found: list[object] = [str(folder.resolve())]
    return found + [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
