"""A beginning that all prompts share is read once, and changes no answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny import byte_tokenizer, tiny_model
from transformers import GPT2Config, GPT2LMHeadModel, MistralConfig, MistralForCausalLM

from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.prefix import SharedPrefix, families, shared_length
from mlflow_mcq.records import Decoding, Query

SHARED = "Rules that every prompt begins with, long enough to be worth it. "
PROMPTS = [Query(SHARED + "x" * n + "?") for n in (1, 30, 4, 12, 2, 40, 7)]


def gpt2() -> Any:
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=258, n_embd=32, n_layer=2, n_head=2, n_positions=256,
            initializer_range=0.4, bos_token_id=0, eos_token_id=1,
        )
    ).eval()  # fmt: skip


def sliding() -> Any:
    torch.manual_seed(0)
    return MistralForCausalLM(
        MistralConfig(
            vocab_size=258, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2, sliding_window=16,
            max_position_embeddings=256, initializer_range=0.4, bos_token_id=0, eos_token_id=1,
        )
    ).eval()  # fmt: skip


def texts(chat: LocalChat, queries: list[Query], decoding: Decoding) -> list[tuple[int, ...]]:
    return [reply.token_ids for _, reply in sorted(chat.ask(queries, decoding))]


@pytest.mark.parametrize(
    ("rows", "length"),
    [
        pytest.param([[1, 2, 3], [1, 2, 4]], 2, id="a common beginning"),
        pytest.param([[1, 2], [1, 2]], 1, id="equal rows keep one token of their own"),
        pytest.param([[1, 2, 3], [1, 2]], 1, id="one row is the beginning of the other"),
        pytest.param([[1], [2]], 0, id="nothing in common"),
        pytest.param([[1, 2, 3]], 0, id="one row shares with nobody"),
        pytest.param([[5, 9, 1], [5, 1, 9], [5, 9, 2]], 1, id="three rows"),
    ],
)
def test_shared_length(rows: list[list[int]], length: int) -> None:
    assert shared_length(rows) == length


@pytest.mark.parametrize(
    "decoding",
    [
        pytest.param(Decoding(max_new_tokens=12), id="greedy"),
        pytest.param(Decoding(max_new_tokens=12, temperature=0.9, top_k=20), id="sampled"),
    ],
)
@pytest.mark.parametrize("build", [tiny_model, gpt2], ids=["llama", "gpt2"])
def test_answers_are_those_of_each_prompt_alone(build: Any, decoding: Decoding) -> None:
    model, tokenizer = build(), byte_tokenizer()
    chat = LocalChat(model, tokenizer, 4)
    together = texts(chat, PROMPTS, decoding)
    assert chat._prefix_shown
    alone = [texts(LocalChat(model, tokenizer), [query], decoding)[0] for query in PROMPTS]
    assert together == alone


def test_the_beginning_is_not_read_again_for_each_batch() -> None:
    model = tiny_model()
    widths: list[int] = []
    model.model.register_forward_pre_hook(
        lambda module, args, kwargs: widths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    list(LocalChat(model, byte_tokenizer(), 2).ask(PROMPTS, Decoding(max_new_tokens=1)))
    # The shared beginning, one plain row for the check, and then only what differs.
    assert sum(width > len(SHARED) for width in widths) == 2


def test_a_sliding_window_takes_the_plain_road() -> None:
    model = sliding()
    assert SharedPrefix(model, [[0] * 60 + [5], [0] * 60 + [6]]).ids == []
    chat = LocalChat(model, byte_tokenizer(), 4)
    together = texts(chat, PROMPTS, Decoding(max_new_tokens=8))
    alone = [
        texts(LocalChat(model, byte_tokenizer()), [query], Decoding(max_new_tokens=8))[0]
        for query in PROMPTS
    ]
    assert together == alone


def test_a_model_for_which_it_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SharedPrefix.arguments

    def off_by_one(self: SharedPrefix, model: Any, n_rows: int) -> dict[str, Any]:
        given = broken(self, model, n_rows)
        for cache in given.values():
            for layer in cache.layers:
                layer.keys += 1.0
        return given

    monkeypatch.setattr(SharedPrefix, "arguments", off_by_one)
    chat = LocalChat(tiny_model(), byte_tokenizer(), 4)
    together = texts(chat, PROMPTS, Decoding(max_new_tokens=8))
    assert chat._prefix_fails
    monkeypatch.undo()
    assert together == texts(
        LocalChat(tiny_model(), byte_tokenizer(), 4), PROMPTS, Decoding(max_new_tokens=8)
    )


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        pytest.param([[1] * 9 + [2], [1] * 9 + [3]], [[0, 1]], id="one beginning"),
        pytest.param(
            [[1, *[2] * 60, 5], [1, *[3] * 60, 5], [1, *[2] * 60, 6]], [[0, 2], [1]], id="two"
        ),
        pytest.param([[n, 1, 1] for n in range(6)], [[0, 1, 2, 3, 4, 5]], id="each its own"),
        pytest.param([[1, 2, 2, 5], [1, 3, 3, 5]], [[0, 1]], id="too short to be worth it"),
        pytest.param([], [[]], id="none"),
    ],
)
def test_families(rows: list[list[int]], groups: list[list[int]]) -> None:
    assert families(rows) == groups


def test_two_kinds_of_prompts_are_answered_as_each_alone() -> None:
    other = [Query("Dashes: " + SHARED + "y" * n + "!") for n in (3, 8, 5)]
    mixed = [query for pair in zip(PROMPTS, other, strict=False) for query in pair]
    model, tokenizer = tiny_model(), byte_tokenizer()
    chat = LocalChat(model, tokenizer, 4)
    together = texts(chat, mixed, Decoding(max_new_tokens=8))
    assert chat._prefix_shown
    alone = [
        texts(LocalChat(model, tokenizer), [query], Decoding(max_new_tokens=8))[0]
        for query in mixed
    ]
    assert together == alone
