"""Which weights are loaded here, and how: one object for `local_model`, recipes and judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.faults import first_fault
from mlflow_mcq.nearest import known_names

__all__ = ["LocalSettings", "read_local"]

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

_NOT_ROWS = frozenset({"path", "device_map"})
"""What a model is called and where its parts stand; neither changes a row."""


class LocalSettings(BaseModel):
    """Weights on disk or at the hub, and how they are loaded.

    Attributes:
        path: A folder, a hub name, or ``demo:smollm2``.
        dtype: Of the weights; None is float32 on a CPU (half precision is slow there and
            moves near ties) and what the checkpoint says elsewhere. ``auto`` is always the
            latter.
        device_map: As in transformers: ``auto``, a device, or devices by part. It keeps one
            GPU busy at a time. None puts everything on this process's own device.
        attn_implementation: ``eager``, ``sdpa``, ``flash_attention_2`` or another that
            transformers knows; None leaves the choice to it.
        adapter: Folder or hub name of a PEFT adapter (LoRA and others) over the weights;
            needs the package peft.
        quantization: ``8bit`` or ``4bit`` (NF4, computing in bfloat16), by bitsandbytes.
        compile: Compile the norms and feed-forward networks of the layers with
            `torch.compile`, at the first call.
        revision: Branch, tag or commit at the hub; not of the adapter.
        trust_remote_code: Run the code that comes with the checkpoint. Never unless you say so.
        engine: ``transformers``, or ``vllm`` for an in-process vLLM; needs the package vllm.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    dtype: Dtype | None = None
    device_map: str | dict[str, int | str] | None = None
    attn_implementation: str | None = Field(default=None, min_length=1)
    adapter: str | None = Field(default=None, min_length=1)
    quantization: Literal["8bit", "4bit"] | None = None
    compile: bool = Field(default=False, strict=True)
    revision: str | None = Field(default=None, min_length=1)
    trust_remote_code: bool = Field(default=False, strict=True)
    engine: Literal["transformers", "vllm"] = "transformers"

    @field_validator("dtype", mode="before")
    @classmethod
    def _torch_names(cls, dtype: Any) -> Any:
        # People write torch.bfloat16; torch itself is not imported for its names.
        kind = type(dtype)
        named = kind.__module__ == "torch" and kind.__name__ == "dtype"
        return str(dtype).removeprefix("torch.") if named else dtype

    @model_validator(mode="after")
    def _of_this_engine(self) -> LocalSettings:
        """Refuse what vLLM decides for itself, or cannot do."""
        if self.engine == "vllm":
            theirs = ("device_map", "attn_implementation", "compile")
            useless = [name for name in theirs if getattr(self, name)]
            useless += ["quantization"] if self.quantization == "8bit" else []
            if useless:
                raise ValueError(f'engine "vllm" does not take {", ".join(useless)} as set')
        return self

    @property
    def base(self) -> LocalSettings:
        """The same without the adapter: what several arms may share."""
        return self.model_copy(update={"adapter": None})

    @property
    def key(self) -> str:
        """All of it as text."""
        return self.model_dump_json()

    @property
    def changes(self) -> str:
        """What is set that may change rows, as text; empty where nothing is.

        Example:
            >>> LocalSettings(path="a").changes, LocalSettings(path="a", dtype="float16").changes
            ('', '{"dtype": "float16"}')
        """
        told = self.model_dump(exclude=set(_NOT_ROWS), exclude_defaults=True)
        return json.dumps(told, sort_keys=True) if told else ""

    @property
    def shown(self) -> str:
        """What people call it.

        Example:
            >>> LocalSettings(path="my/base", adapter="out/lora").shown
            'my/base + out/lora'
        """
        return f"{self.path} + {self.adapter}" if self.adapter else self.path


def read_local(given: Mapping[str, Any] | LocalSettings) -> LocalSettings:
    """Check how weights are to be loaded.

    Raises:
        SettingsError: An unknown name, with the nearest legal one, or an illegal value.

    Example:
        >>> read_local({"path": "my/base", "adaptor": "out/lora"})
        Traceback (most recent call last):
        ...
        mlflow_mcq.errors.SettingsError: model.adaptor: is not a setting of a model that is \
loaded here. Did you mean "adapter"? Known: path, dtype, device_map, attn_implementation, \
adapter, quantization, compile, revision, trust_remote_code, engine.
    """
    if isinstance(given, LocalSettings):
        return given
    try:
        return LocalSettings.model_validate(dict(given))
    except ValidationError as error:
        fault = first_fault(error)
    name = str(fault.where[0]) if fault.where else "engine"
    if fault.kind == "unknown":
        raise SettingsError(
            f"model.{name}",
            "is not a setting of a model that is loaded here",
            possible=known_names(name, LocalSettings.model_fields),
        )
    got = ... if fault.kind == "missing" or not fault.where else fault.given
    raise SettingsError(f"model.{name}", fault.rule, got)
