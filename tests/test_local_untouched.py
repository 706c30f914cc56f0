"""Weights in memory: how samples are drawn, what stays untouched, memory, and names."""

from __future__ import annotations

import random

import pytest
import torch
from tiny import (
    EOS,
    PLAIN_TEMPLATE,
    PROMPTS,
    SHORT,
    USER,
    answers,
    byte_tokenizer,
    one,
    tiny_chat,
    tiny_model,
)
from transformers import LlamaForCausalLM

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.local import LocalChat, load_local
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Message, Query

SAMPLED = Decoding(max_new_tokens=12, temperature=1.0, top_p=0.95, top_k=50)


def test_a_sample_depends_on_its_seed_alone():
    model, tokenizer = tiny_model(), byte_tokenizer()
    queries = [Query(q.content, seed) for q in PROMPTS for seed in (1, 2, 3)]
    expected = answers(LocalChat(model, tokenizer, 1), queries, SAMPLED)
    assert len({reply.text for reply in expected}) > len(PROMPTS)
    torch.manual_seed(99)
    for size in (5, 24):
        assert answers(LocalChat(model, tokenizer, size), queries, SAMPLED) == expected
    backwards = answers(LocalChat(model, tokenizer, 8), queries[::-1], SAMPLED)
    assert backwards[::-1] == expected


def test_samples_follow_the_model_s_distribution():
    model, tokenizer = tiny_model(), byte_tokenizer()
    queries = [Query("hello", seed) for seed in range(2000)]
    decoding = Decoding(max_new_tokens=1, temperature=0.8, top_k=5)
    replies = answers(LocalChat(model, tokenizer, 500), queries, decoding)
    with torch.no_grad():
        logits = model(**tokenizer("hello", return_tensors="pt")).logits[0, -1] / 0.8
    top = logits.topk(5)
    drawn = torch.tensor([(reply.token_ids or (EOS,))[0] for reply in replies])
    assert set(drawn.tolist()) <= set(top.indices.tolist())
    for token, share in zip(top.indices, top.values.softmax(0), strict=True):
        # Five standard errors of a binomial share.
        assert (
            abs((drawn == token).float().mean() - share) < 5 * (share * (1 - share) / 2000) ** 0.5
        )


@pytest.mark.parametrize("decoding", [SHORT, SAMPLED], ids=["greedy", "sampled"])
def test_global_random_numbers_are_not_drawn(decoding):
    chat = tiny_chat()
    before = torch.get_rng_state(), random.getstate()
    answers(chat, PROMPTS, decoding)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_a_model_in_training_is_asked_in_evaluation_and_given_back():
    model = tiny_model(attention_dropout=0.5)
    model.train()
    model.model.layers[0].eval()  # a part frozen by the user
    model.config.use_cache = False  # as gradient checkpointing wants it
    flags = [module.training for module in model.modules()]
    chat = LocalChat(model, byte_tokenizer())
    assert answers(chat, PROMPTS, SHORT) == answers(chat, PROMPTS, SHORT)
    assert [module.training for module in model.modules()] == flags
    assert model.config.use_cache is False
    # And it can still be trained.
    ids = torch.tensor([[3, 4, 5]])
    model(input_ids=ids, labels=ids).loss.backward()


def test_a_failure_gives_the_model_back_too():
    model = tiny_model()
    model.train()
    own = model.generation_config

    def broken(**options: object) -> torch.Tensor:
        raise ZeroDivisionError

    model.generate = broken
    with pytest.raises(ZeroDivisionError):
        one(LocalChat(model, byte_tokenizer()), "hi", SHORT)
    assert model.training
    assert model.generation_config is own


def test_a_consumer_that_stops_early_leaves_the_model_alone():
    model = tiny_model()
    model.train()
    replies = LocalChat(model, byte_tokenizer(), 1).ask(PROMPTS, SHORT)
    next(replies)
    assert model.training
    replies.close()
    assert model.training


def with_memory_for(model: LlamaForCausalLM, rows: int) -> list[int]:
    """Let `generate` run out of memory above a number of rows; returns the sizes tried."""
    generate, tried = model.generate, []

    def limited(*, input_ids: torch.Tensor, **options: object) -> torch.Tensor:
        tried.append(len(input_ids))
        if len(input_ids) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.")
        return generate(input_ids=input_ids, **options)

    model.generate = limited
    return tried


def test_out_of_memory_halves_the_batch_and_loses_no_row():
    expected = answers(tiny_chat(), PROMPTS, SHORT)
    model = tiny_model()
    tried = with_memory_for(model, 3)
    assert answers(LocalChat(model, byte_tokenizer(), 8), PROMPTS, SHORT) == expected
    assert tried == [8, 4, 2, 2, 2, 2]


def test_out_of_memory_on_one_row_is_an_error_of_that_row():
    model = tiny_model()
    with_memory_for(model, 0)
    reply = one(LocalChat(model, byte_tokenizer()), "hi", SHORT)
    assert reply.text is None
    assert "out of memory" in reply.error


def test_the_fingerprint_names_weights_and_template():
    def name(model: LlamaForCausalLM, template: str | None = None) -> str:
        return LocalChat(model, byte_tokenizer(template)).fingerprint

    tuned = tiny_model()
    with torch.no_grad():
        tuned.model.layers[1].mlp.up_proj.weight.add_(1e-3)
    names = [
        name(tiny_model()),
        name(tiny_model(seed=1)),
        name(tuned),
        name(tiny_model(), PLAIN_TEMPLATE),
        name(tiny_model().bfloat16()),
    ]
    assert len(set(names)) == len(names)
    assert all(len(one_name) == 12 for one_name in names)
    assert name(tiny_model()) == names[0]


def test_a_saved_model_keeps_its_name_wherever_it_lies(tmp_path):
    chat = tiny_chat(PLAIN_TEMPLATE)
    names, texts = set(), set()
    for folder in ("here", "there"):
        chat.model.save_pretrained(tmp_path / folder)
        chat.tokenizer.save_pretrained(tmp_path / folder)
        loaded = load_local(str(tmp_path / folder))
        names.add(loaded.fingerprint)
        texts.add(one(loaded, (USER,), SHORT))
    assert len(names) == 1
    assert texts == {one(chat, (USER,), SHORT)}


def test_a_local_chat_satisfies_the_door():
    chat = tiny_chat()
    assert isinstance(chat, Chat)
    assert chat.deterministic


@pytest.mark.parametrize("model", ["no/such-model-anywhere", "/nowhere"])
def test_what_cannot_be_loaded_is_a_model_error(model):
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_local(model)


def test_what_cannot_generate_is_a_model_error():
    with pytest.raises(ModelError, match="causal language model"):
        LocalChat(torch.nn.Linear(2, 2), byte_tokenizer())


QUESTIONS = [
    "Which metal is liquid at room temperature?\n\nA) iron\nB) mercury\n\nAnswer: A or B.",
    "What is 2 + 2?",
    "Name a colour.",
    "Explain in two sentences why the sky is blue during the day and red in the evening.",
    "Which planet is the largest one of the solar system?\n\nA) Mars\nB) Jupiter\nC) Venus",
    "Say hello.",
    "Who wrote Hamlet? Answer with the name only, without any further comment or text.",
    "Translate to French: the house is small.",
]


def test_padding_changes_no_answer_of_a_real_model(smollm2):
    queries = [Query((Message("user", text),)) for text in QUESTIONS]
    decoding = Decoding(max_new_tokens=48)
    alone = LocalChat(smollm2.model, smollm2.tokenizer, batch_size=1)
    together = answers(smollm2, queries, decoding)
    assert [r.text for r in together] == [r.text for r in answers(alone, queries, decoding)]
