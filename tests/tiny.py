"""A tiny random model and a tokenizer of bytes: real classes, milliseconds to build."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.records import Decoding, Message, Query, Reply

BOS, EOS = 0, 1
PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + PLAIN_TEMPLATE
)
DROPS_SYSTEM = PLAIN_TEMPLATE.replace("[{{ m.role }}]", "").replace(
    "{{ m.content }}", "{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}"
)
THINKS = PLAIN_TEMPLATE + "{% if enable_thinking is defined %}<{{ enable_thinking }}>{% endif %}"


def byte_tokenizer(template: str | None = None, pad: str | None = None) -> PreTrainedTokenizerFast:
    """One token for each byte, with BOS in front of plain text as Llama has it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: place for place, token in enumerate(["<s>", "</s>", *alphabet])}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", BOS)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token=pad
    )
    tokenizer.chat_template = template
    return tokenizer


def tiny_model(seed: int = 0, **changes: object) -> LlamaForCausalLM:
    """A random model, with weights large enough that its answers differ."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=32,
        num_attention_heads=2,
        initializer_range=0.4,
        bos_token_id=BOS,
        eos_token_id=EOS,
        **{"max_position_embeddings": 256, "num_hidden_layers": 2, **changes},
    )
    return LlamaForCausalLM(config).float().eval()


def tiny_of(kind: str, **changes: object) -> PreTrainedModel:
    """A random model of another architecture, by its ``model_type``."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 258,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": EOS,
    }
    config = AutoConfig.for_model(kind, **{**sizes, **changes})
    return AutoModelForCausalLM.from_config(config).float().eval()


def saved(folder: Path, **changes: object) -> str:
    """The folder with the tiny model and its tokenizer in it, as users have theirs."""
    tiny_model(**changes).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return str(folder)


def tiny_chat(template: str | None = None, batch_size: int = 8) -> LocalChat:
    return LocalChat(tiny_model(), byte_tokenizer(template), batch_size)


def ten_on_the_fast_road(model: PreTrainedModel) -> None:
    """Ask a model ten questions, and see that the fast road was taken."""
    chat = LocalChat(model, byte_tokenizer(PLAIN_TEMPLATE), 4)
    queries = [Query(f"What is {'so ' * n}good?") for n in range(10)]
    replies = dict(chat.ask(queries, Decoding(max_new_tokens=4)))
    assert chat.road is not None
    assert chat.road.name == "tree"
    assert len(replies) == 10


def answers(chat: Chat, queries: list[Query], decoding: Decoding) -> list[Reply]:
    """Replies in the order of the queries, each place exactly once."""
    got = list(chat.ask(queries, decoding))
    assert sorted(place for place, _ in got) == list(range(len(queries)))
    return [reply for _, reply in sorted(got, key=lambda pair: pair[0])]


def one(chat: Chat, content: str | tuple[Message, ...], decoding: Decoding) -> Reply:
    return answers(chat, [Query(content)], decoding)[0]


USER = Message("user", "hi")
SHORT = Decoding(max_new_tokens=8)
PROMPTS = [Query("x" * n + "?") for n in (1, 30, 4, 12, 2, 60, 7, 19)]
