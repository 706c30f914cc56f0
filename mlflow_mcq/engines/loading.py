"""Weights read from disk or the hub, once for all arms that differ in adapter only."""

from __future__ import annotations

from typing import Any

from mlflow_mcq.engines.adapters import Adapters, SharedChat
from mlflow_mcq.engines.compiled import compile_parts
from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.engines.local import load_weights
from mlflow_mcq.engines.weights import weights_origin
from mlflow_mcq.errors import ModelError
from mlflow_mcq.local_settings import LocalSettings

__all__ = ["Base"]


class Base:
    """Weights in memory, with the adapters that were asked for over them.

    Args:
        settings: What is loaded and how; the adapter in them is left for `chat`.

    Attributes:
        settings: Those of the base.

    Raises:
        ModelError: Nothing is there, it is no causal language model, or a package that these
            settings need is not installed.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings.base
        self._folder = resolve_weights(settings.path)
        self._model, self._tokenizer = _loaded(self._folder, self.settings)
        self._adapters = Adapters(self._model)
        # Now: an adapter changes what stands in the model.
        self._fingerprint = SharedChat(self._adapters, None, self._tokenizer, 1).fingerprint

    def chat(self, adapter: str | None, batch_size: int) -> SharedChat:
        """The model as one arm sees it.

        Args:
            adapter: Folder or hub name of a PEFT adapter; None is the base alone.
            batch_size: Rows at a time where the fast road is closed.

        Raises:
            ModelError: The adapter cannot be loaded over these weights.
        """
        chat = SharedChat(self._adapters, adapter, self._tokenizer, batch_size, self._fingerprint)
        chat.settings = self.settings.model_copy(update={"adapter": adapter})
        chat.origin = weights_origin(
            self._folder, self._model, adapter=adapter or "", changes=self.settings.changes
        )
        return chat


def _loaded(folder: str, settings: LocalSettings) -> tuple[Any, Any]:
    from accelerate import PartialState

    device = PartialState().device
    plain = "float32" if device.type == "cpu" else "auto"
    placed: dict[str, Any] = {}
    if settings.device_map is not None:
        placed["device_map"] = settings.device_map
    if settings.attn_implementation is not None:
        placed["attn_implementation"] = settings.attn_implementation
    if settings.quantization is not None:
        placed["quantization_config"] = _quantization(settings.quantization)
        placed.setdefault("device_map", {"": str(device)})
    both: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
    if settings.revision is not None:
        both["revision"] = settings.revision
    model, tokenizer = load_weights(folder, settings.dtype or plain, placed, **both)
    if "device_map" not in placed:
        model = model.to(device)
    if settings.compile:
        compile_parts(model)
    return model, tokenizer


def _quantization(kind: str) -> Any:
    import importlib.util

    import torch
    from transformers import BitsAndBytesConfig

    if importlib.util.find_spec("bitsandbytes") is None:
        raise ModelError(
            "model.quantization", "needs the package bitsandbytes", kind,
            "Run: pip install bitsandbytes",
        )  # fmt: skip
    if kind == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
