"""PEFT adapters over weights that are loaded once.

An adapter changes the base in place, so who asks switches it on, or all of them off, before
each step: two arms, or an arm and its judge, may take turns on the same weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.weights import take_weight
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Query, Reply

__all__ = ["Adapters", "SharedChat"]

_UNKNOWN = ""
"""No path of an adapter."""

# Where an adapter was trained and lies does not change its answers.
_NOT_IDENTITY = ("base_model_name_or_path", "revision", "inference_mode", "peft_version")


class Adapters:
    """The adapters over one model, of which one or none is on.

    Args:
        model: The base, of transformers; changed in place at the first adapter.
    """

    def __init__(self, model: Any) -> None:
        self._base = model
        self._peft: Any = None
        self._names: dict[str, str] = {}
        self._on: str | None = _UNKNOWN

    def model(self, path: str | None) -> Any:
        """The model to ask with an adapter, which is loaded at its first use; None: the base.

        Raises:
            ModelError: The package peft is not there, or the adapter does not fit.
        """
        if path is None:
            return self._base
        if path not in self._names:
            self._on = _UNKNOWN  # whichever PEFT leaves on: the next switch is never left out
            try:
                self._load(path, f"a{len(self._names)}")
            except ModelError:
                raise
            except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
                raise _unfit(path, f"{type(error).__name__}: {error}".split("\n")[0]) from error
        return self._peft

    def switch(self, path: str | None) -> None:
        """Have this adapter on and no other; None switches all off."""
        if self._peft is None or path == self._on:
            return
        # Virtual tokens stand in PEFT's own forward pass and leave the base as it is.
        tuner = self._peft.base_model
        tunes = hasattr(tuner, "disable_adapter_layers")
        if path is not None:
            if tunes:
                tuner.enable_adapter_layers()
            self._peft.set_adapter(self._names[path])
        elif tunes:
            tuner.disable_adapter_layers()
        self._on = path

    def fingerprint(self, path: str) -> str:
        """Twelve hex digits over an adapter's kind and 64 values of each of its weights."""
        from peft import get_peft_model_state_dict

        name = self._names[path]
        config = {
            key: sorted(value) if isinstance(value, set) else value
            for key, value in self._peft.peft_config[name].to_dict().items()
            if key not in _NOT_IDENTITY
        }
        digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
        weights = get_peft_model_state_dict(self._peft, adapter_name=name)
        for part, weight in sorted(weights.items()):
            take_weight(digest, part, weight)
        return digest.hexdigest()[:12]

    def _load(self, path: str, name: str) -> None:
        try:
            from peft import PeftConfig, PeftModelForCausalLM
        except ImportError:
            raise ModelError(
                "model.adapter", "needs the package peft", path,
                'Run: pip install "mlflow-mcq[peft]"',
            ) from None  # fmt: skip
        if self._peft is None:
            config = PeftConfig.from_pretrained(path)
            config.inference_mode = True
            self._peft = PeftModelForCausalLM(self._base, config, name)
        # All at once: a name that is taken must not stand for half an adapter.
        device = str(next(self._base.parameters()).device)
        found = self._peft.load_adapter(path, name, torch_device=device)
        if found.missing_keys:
            # PEFT leaves such weights as they were drawn, with a warning: noise, or nothing.
            raise _unfit(path, f"its file lacks {len(found.missing_keys)} weights")
        self._names[path] = name
        self._peft.eval()


class SharedChat(LocalChat):
    """A chat over weights that others may use with another adapter.

    Args:
        adapters: Over the weights.
        adapter: The one that this chat speaks with; None is the base alone.
        tokenizer: Of the base.
        batch_size: As in `LocalChat`.
        fingerprint: Of the base, taken before any adapter changed it.
    """

    def __init__(
        self,
        adapters: Adapters,
        adapter: str | None,
        tokenizer: Any,
        batch_size: int,
        fingerprint: str | None = None,
    ) -> None:
        super().__init__(adapters.model(adapter), tokenizer, batch_size)
        self._adapters, self._adapter = adapters, adapter
        if fingerprint is not None:
            self.fingerprint = fingerprint
        if adapter is not None:
            both = f"{self.fingerprint} {adapters.fingerprint(adapter)}"
            self.fingerprint = hashlib.sha256(both.encode()).hexdigest()[:12]

    def ready(self) -> None:
        """Have the weights as this chat knows them."""
        self._adapters.switch(self._adapter)

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """As `LocalChat.ask`, with this chat's own adapter at each step.

        Raises:
            ModelError: Likewise.
        """
        replies = super().ask(queries, decoding)
        while True:
            self.ready()
            try:
                answer = next(replies)
            except StopIteration:
                return
            yield answer


def _unfit(path: str, why: str) -> ModelError:
    return ModelError(
        "model.adapter", f"cannot be loaded over these weights ({why})", path,
        "Give a folder written by PEFT's save_pretrained for this base.",
    )  # fmt: skip
