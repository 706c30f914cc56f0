"""A model with compiled parts answers as it does without, on the fast road, hooks and all.

The backend is torch's ``eager``: it traces the forward pass and needs no compiler.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny import byte_tokenizer, saved, tiny_model, tiny_of

import mlflow_mcq
from mlflow_mcq.engines.compiled import compile_parts, is_compiled
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.sharing import loaded, weights_shared
from mlflow_mcq.errors import ModelError
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.records import Decoding, Query

SHARED = "You are asked which of them is the one that we want to hear of today, and why it"
QUERIES = [Query(f"{SHARED} {'so ' * (n % 3)}good is number {n}?") for n in range(10)]
SHORT = Decoding(max_new_tokens=3)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch._dynamo.reset()
    # Its trace of every tensor would be kept for the report of a failure.
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
    with torch._dynamo.config.patch(skip_nnmodule_hook_guards=True):
        yield


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each graph that torch has compiled."""
    found: list[int] = []

    def counted(graph: Any, inputs: Any) -> Any:
        found.append(1)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=counted))
    return found


def compiled(folder: str) -> LocalChat:
    chat = mlflow_mcq.local_model(folder, compile=True, batch_size=2).chat
    assert isinstance(chat, LocalChat)
    return chat


def test_answers_are_those_without_on_the_fast_road(tmp_path: Path, graphs: list[int]) -> None:
    folder = saved(tmp_path)
    want = dict(mlflow_mcq.local_model(folder).chat.ask(QUERIES, SHORT))
    chat = compiled(folder)
    assert dict(chat.ask(QUERIES, SHORT)) == want
    assert chat.road is not None
    assert chat.road.name == "tree"
    assert graphs


def test_what_is_compiled_serves_all_layers_and_batches(tmp_path: Path, graphs: list[int]) -> None:
    chat = compiled(saved(tmp_path, num_hidden_layers=6))
    for n in (10, 1, 3, 7):
        dict(chat.ask(QUERIES[:n], SHORT))
    # Two kinds of parts; torch tells one row and one token from any number of them.
    assert 0 < len(graphs) <= 2 * 4


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("llama", {"LlamaMLP", "LlamaRMSNorm"}),
        ("gpt2", {"GPT2MLP", "LayerNorm"}),
        ("gpt_neox", {"GPTNeoXMLP", "LayerNorm"}),
        ("opt", {"ReLU", "LayerNorm"}),
        ("mixtral", {"MixtralSparseMoeBlock", "MixtralRMSNorm"}),
        ("gemma3_text", {"Gemma3MLP", "Gemma3RMSNorm"}),
        ("phi", {"PhiMLP", "LayerNorm"}),
        ("mamba", {"MambaRMSNorm"}),
    ],
)
def test_what_lets_tokens_see_each_other_is_left_as_it_is(kind: str, parts: set[str]) -> None:
    model = tiny_of(kind)
    compile_parts(model)
    marked = [part for part in model.modules() if part._compiled_call_impl is not None]
    assert {type(part).__name__ for part in marked} == parts
    assert not is_compiled(model)


def test_a_model_without_layers_is_refused() -> None:
    model = tiny_model(num_hidden_layers=0)
    with pytest.raises(ModelError, match=r"norms or feed-forward.*LlamaForCausalLM.*Leave compile"):
        compile_parts(model)


@pytest.mark.parametrize("place", ["mlp", "mlp.down_proj", "input_layernorm", "self_attn"])
def test_a_hook_hung_in_later_runs(tmp_path: Path, graphs: list[int], place: str) -> None:
    folder = saved(tmp_path)
    plain, chat = mlflow_mcq.local_model(folder).chat, compiled(folder)
    before = dict(chat.ask(QUERIES, SHORT))
    for one in (plain, chat):
        assert isinstance(one, LocalChat)
        part = one.model.get_submodule(f"model.layers.1.{place}")
        part.register_forward_hook(_doubled)
    after = dict(chat.ask(QUERIES, SHORT))
    assert after == dict(plain.ask(QUERIES, SHORT))
    assert after != before


def test_adapters_take_turns_on_a_compiled_base(tmp_path: Path, graphs: list[int]) -> None:
    folder, adapters = saved(tmp_path / "base"), [None]
    for seed in (1, 2):
        config = LoraConfig(r=4, lora_alpha=32, target_modules=["up_proj"], init_lora_weights=False)
        adapters.append(str(tmp_path / f"adapter{seed}"))
        base = tiny_model()
        torch.manual_seed(seed)  # after the model, which has a seed of its own
        get_peft_model(base, config).save_pretrained(adapters[-1])

    def said(compile: bool) -> list[Any]:
        settings = [LocalSettings(path=folder, adapter=name, compile=compile) for name in adapters]
        with weights_shared():
            chats = [loaded(one, 8) for one in settings]
            return [dict(chat.ask(QUERIES, SHORT)) for _ in range(2) for chat in chats]

    want = said(compile=False)
    assert want[0] != want[1] != want[2]
    assert said(compile=True) == want
    assert graphs


def test_a_model_compiled_as_a_whole_is_left_to_generate() -> None:
    model = tiny_model()
    model.compile(backend="eager", dynamic=True)
    chat = LocalChat(model, byte_tokenizer(), 2)
    assert dict(chat.ask(QUERIES, SHORT)) == dict(
        LocalChat(tiny_model(), byte_tokenizer(), 2).ask(QUERIES, SHORT)
    )
    assert str(chat.road).endswith(": it is compiled, and each batch would compile it anew")


@pytest.mark.parametrize("whole", [True, False], ids=["the whole", "its parts"])
@pytest.mark.parametrize("n", [1, 10], ids=["plain road", "fast road"])
def test_a_compiler_that_fails_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, whole: bool, n: int
) -> None:
    def broken(graph: Any, inputs: Any) -> Any:
        raise OSError("file too short")

    model = tiny_model()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=broken))
    if whole:
        model.compile()
    else:
        compile_parts(model)
    with pytest.raises(ModelError, match=r"torch.compile failed with .*file too short") as raised:
        dict(LocalChat(model, byte_tokenizer()).ask(QUERIES[:n], SHORT))
    assert "leave compile out" in str(raised.value)
    assert raised.value.__cause__ is not None


def test_what_fails_elsewhere_is_left_as_it_is() -> None:
    model = tiny_model()
    model.compile(backend="eager")
    model.register_forward_pre_hook(_fails)
    with pytest.raises(OverflowError):
        dict(LocalChat(model, byte_tokenizer()).ask(QUERIES, SHORT))


def _doubled(module: Any, inputs: Any, output: Any) -> Any:
    if isinstance(output, tuple):
        return (output[0] * 2, *output[1:])
    return output * 2


def _fails(*_: Any) -> None:
    raise OverflowError("a hook of the user's")
