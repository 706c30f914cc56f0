"""A compiled model answers as it does without, and says what to do where it cannot.

The backend is torch's ``eager``: it traces the forward pass and needs no compiler.
"""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import byte_tokenizer, saved, tiny_model

import mlflow_mcq
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Query

QUERIES = [Query(f"Which is number {n}{'?' * (n % 3)}") for n in range(3)]
SHORT = Decoding(max_new_tokens=3)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    # Its trace of every tensor would be kept for the report of a failure.
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "propagate", False)


def test_answers_are_those_without_and_the_road_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(graph: Any, inputs: Any) -> Any:
        calls.append(1)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=counted))
    folder = saved(tmp_path)
    want = dict(mlflow_mcq.local_model(folder).chat.ask(QUERIES, SHORT))
    chat = mlflow_mcq.local_model(folder, compile=True, batch_size=2).chat
    assert dict(chat.ask(QUERIES, SHORT)) == want
    # Lengths and batches differ, and one graph of the first step and one of the others do.
    assert 0 < len(calls) <= 4
    assert str(chat.road).endswith(": it is compiled, and each batch would compile it anew")


def test_a_compiler_that_fails_says_what_to_do() -> None:
    def broken(graph: Any, inputs: Any) -> Any:
        raise OSError("file too short")

    model = tiny_model()
    model.compile(backend=broken)
    with pytest.raises(ModelError, match=r"torch.compile failed with .*file too short") as raised:
        dict(LocalChat(model, byte_tokenizer()).ask(QUERIES, SHORT))
    assert "leave compile out" in str(raised.value)
    assert raised.value.__cause__ is not None


def test_what_fails_elsewhere_is_left_as_it_is() -> None:
    model = tiny_model()
    model.compile(backend="eager")
    model.register_forward_pre_hook(_fails)
    with pytest.raises(OverflowError):
        dict(LocalChat(model, byte_tokenizer()).ask(QUERIES, SHORT))


def _fails(*_: Any) -> None:
    raise OverflowError("a hook of the user's")
