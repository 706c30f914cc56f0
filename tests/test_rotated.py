"""The fast road gives the tokens of plain generation, and reads each shared token once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tiny import EOS, PLAIN_TEMPLATE, byte_tokenizer, tiny_model, tiny_of

from mlflow_mcq.engines import rotated
from mlflow_mcq.engines.decoding import generation_config
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.rotated import RotatedGenerator
from mlflow_mcq.engines.shared_attention import merged
from mlflow_mcq.engines.work import Ended, Work
from mlflow_mcq.records import Decoding, Message, Query, Reply

TOKENIZER = byte_tokenizer(PLAIN_TEMPLATE)
RULES = "Answer with one letter and nothing else. Here are the rules of it, in full: none. "
STEMS = ["Which metal is liquid?", "Who?", "Which metal is heavy, and why is it so?", "2 + 2?"]
TEXTS = ["iron", "the river at night", "tin", "a"]


def rotations(shared: str = RULES) -> list[str]:
    """Each stem with its options in four orders."""
    pages = []
    for stem in STEMS:
        for turn in range(4):
            shown = [*TEXTS[turn:], *TEXTS[:turn]]
            lines = [f"{letter}) {text}" for letter, text in zip("ABCD", shown, strict=True)]
            pages.append(shared + stem + "\n" + "\n".join(lines) + "\nAnswer:")
    return pages


def work_of(pages: list[str]) -> list[Work]:
    return [Work(TOKENIZER(page)["input_ids"], seed) for seed, page in enumerate(pages)]


def generator(model: Any, decoding: Decoding) -> RotatedGenerator:
    return RotatedGenerator(model, TOKENIZER, decoding, [EOS])


def ended(answers: Iterator[Ended]) -> dict[int, Ended]:
    """Answers by place, each place once."""
    found: dict[int, Ended] = {}
    for one in answers:
        assert one.place not in found
        found[one.place] = one
    return found


def alone(model: Any, ids: list[int], n_new: int) -> list[int]:
    """What plain `generate` says to one prompt, with the token that ends it."""
    config = generation_config(Decoding(max_new_tokens=n_new), [EOS], EOS)
    rows = torch.tensor([ids])
    out = model.generate(
        input_ids=rows, attention_mask=torch.ones_like(rows), generation_config=config
    )
    return out[0, len(ids) :].tolist()


ARCHITECTURES = [
    pytest.param("llama", {}, id="llama"),
    pytest.param("llama", {"num_key_value_heads": 4, "tie_word_embeddings": True}, id="llama MHA"),
    pytest.param("qwen2", {}, id="qwen2"),
    pytest.param("qwen3", {"head_dim": 8}, id="qwen3"),
    pytest.param("mistral", {"sliding_window": None}, id="mistral without a window"),
    pytest.param("mixtral", {"num_local_experts": 4, "sliding_window": None}, id="mixtral"),
    pytest.param("phi3", {"sliding_window": None}, id="phi3"),
    pytest.param("olmo2", {}, id="olmo2"),
    pytest.param("granite", {"attention_multiplier": 0.2}, id="granite: a scale of its own"),
    pytest.param("gemma", {"head_dim": 16}, id="gemma: heads wider than the model"),
    pytest.param("gpt2", {}, id="gpt2: learned positions"),
]


@pytest.mark.parametrize(("kind", "changes"), ARCHITECTURES)
def test_tokens_are_those_of_plain_generation(kind: str, changes: dict[str, Any]) -> None:
    model = tiny_of(kind, **changes)
    work = work_of(rotations())
    answers = ended(generator(model, Decoding(max_new_tokens=10)).run(work))
    expected = [alone(model, one.ids, 10) for one in work]
    assert [answers[place].new for place in range(len(work))] == expected
    assert len({tuple(new) for new in expected}) > 4


@pytest.mark.parametrize("shared", [RULES, ""], ids=["few-shot", "zero-shot"])
def test_each_token_of_the_tree_is_read_once(shared: str) -> None:
    work = work_of(rotations(shared))
    made = generator(tiny_model(max_position_embeddings=512), Decoding(max_new_tokens=1))
    ended(made.run(work))
    heads = [one.ids[:-1] for one in work]
    assert made.tally.read == len({tuple(h[:n]) for h in heads for n in range(1, len(h) + 1)})
    assert made.tally.prompts == sum(len(one.ids) for one in work)


def test_a_beginning_that_goes_on_from_another_is_read_once() -> None:
    deeper = RULES + "And now some examples, which only a part of the prompts has: A, B, C, D. "
    pages = [f"{RULES}{n}?" for n in range(40)] + [f"{deeper}{n}?" for n in range(40)]
    work = work_of(pages)
    model = tiny_model(max_position_embeddings=512)
    made = generator(model, Decoding(max_new_tokens=3))
    answers = ended(made.run(work))
    for place in (0, 39, 40, 79):
        assert answers[place].new == alone(model, work[place].ids, 3)
    # Single digits may be read again where an item's first token is its whole stem.
    heads = [one.ids[:-1] for one in work]
    least = len({tuple(h[:n]) for h in heads for n in range(1, len(h) + 1)})
    assert least <= made.tally.read <= least + 16


def test_one_token_prompts_and_equal_prompts() -> None:
    model = tiny_model()
    work = [Work([5]), Work([5]), Work([5, 6]), Work([9])]
    answers = ended(generator(model, Decoding(max_new_tokens=6)).run(work))
    assert [answers[p].new for p in range(4)] == [alone(model, w.ids, 6) for w in work]


def test_rows_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rotated._MOST_SLOTS, "cpu", 4)
    model = tiny_model(max_position_embeddings=512)
    # Ends rows at different steps, so that others enter beside rows under way.
    first = [alone(model, one.ids, 12) for one in work_of(rotations())]
    model.generation_config.eos_token_id = first[0][5]
    work = work_of(rotations())
    made = RotatedGenerator(model, TOKENIZER, Decoding(max_new_tokens=12), [first[0][5]])
    answers = ended(made.run(work))
    for place, new in enumerate(first):
        end = new.index(first[0][5]) + 1 if first[0][5] in new else 12
        assert answers[place].new == new[:end]
    assert made.tally.slots == 4
    assert len({len(one.new) for one in answers.values()}) > 1


# --- memory ---------------------------------------------------------------------------


def with_memory_for(model: Any, n_tokens: int) -> list[int]:
    """Let the model run out of memory above a number of tokens a pass; returns those tried."""
    forward, tried = model.forward, []

    def limited(input_ids: torch.Tensor, **options: Any) -> Any:
        tried.append(input_ids.shape[1])
        if input_ids.shape[1] > n_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.")
        return forward(input_ids=input_ids, **options)

    limited.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    model.forward = limited
    return tried


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "sampled"])
def test_out_of_memory_halves_the_slots_and_loses_no_row(temperature: float) -> None:
    decoding = Decoding(max_new_tokens=6, temperature=temperature)
    pages = [f"{n}?" for n in range(12)]
    expected = ended(generator(tiny_model(), decoding).run(work_of(pages)))
    model = tiny_model()
    with_memory_for(model, 5)
    made = generator(model, decoding)
    assert ended(made.run(work_of(pages))) == expected
    assert made.n_slots <= 3


def test_a_row_that_never_fits_costs_itself_alone() -> None:
    model = tiny_model()
    with_memory_for(model, 20)
    work = work_of(["x" * 40, "short?", "a?"])
    answers = ended(generator(model, Decoding(max_new_tokens=4)).run(work))
    assert answers[0].out_of_memory
    assert not answers[1].out_of_memory
    assert len(answers[1].new) == len(answers[2].new) == 4


# --- through the door -----------------------------------------------------------------


def replies(chat: LocalChat, queries: list[Query], decoding: Decoding) -> list[Reply]:
    got = list(chat.ask(queries, decoding))
    assert sorted(place for place, _ in got) == list(range(len(queries)))
    return [reply for _, reply in sorted(got, key=lambda pair: pair[0])]


def plainly(model: Any, queries: list[Query], decoding: Decoding) -> list[Reply]:
    """Each query by itself: too few rows for the fast road."""
    chats = LocalChat(model, TOKENIZER)
    found = [replies(chats, [query], decoding)[0] for query in queries]
    assert chats.road is not None
    assert chats.road.name == "plain"
    return found


def as_chat(page: str) -> Query:
    return Query((Message("system", RULES), Message("user", page.removeprefix(RULES))))


@pytest.mark.parametrize(
    "query",
    [pytest.param(Query, id="plain text"), pytest.param(as_chat, id="chat template")],
)
@pytest.mark.parametrize(
    "decoding",
    [
        pytest.param(Decoding(12), id="greedy"),
        pytest.param(Decoding(12, temperature=0.9, top_k=30, top_p=0.9), id="sampled"),
    ],
)
def test_a_chat_replies_as_on_the_plain_road(
    query: Callable[[str], Query], decoding: Decoding
) -> None:
    model = tiny_model(max_position_embeddings=512)
    queries = [query(page) for page in rotations()]
    queries = [Query(q.content, seed) for seed, q in enumerate(queries)]
    chat = LocalChat(model, TOKENIZER)
    assert replies(chat, queries, decoding) == plainly(model, queries, decoding)
    assert chat.road is not None
    assert chat.road.name == "tree"


def test_stop_texts_and_eos_end_rows_as_on_the_plain_road() -> None:
    model = tiny_model(max_position_embeddings=512)
    queries = [Query(page) for page in rotations()]
    free = replies(LocalChat(model, TOKENIZER), queries, Decoding(max_new_tokens=16))
    model.generation_config.eos_token_id = free[1].token_ids[9]
    stop = next(c for c in free[0].text[3:] if c.isascii() and c.isprintable())
    decoding = Decoding(max_new_tokens=16, stop=(stop,))
    chat = LocalChat(model, TOKENIZER)
    got = replies(chat, queries, decoding)
    assert got == plainly(model, queries, decoding)
    assert {reply.finish_reason for reply in got} == {"eos", "stop", "length"}
    assert chat.road is not None
    assert chat.road.name == "tree"


def test_a_users_hooks_stay_active() -> None:
    model = tiny_model(max_position_embeddings=512)
    queries = [Query(page) for page in rotations()]
    decoding = Decoding(max_new_tokens=8)
    before = replies(LocalChat(model, TOKENIZER), queries, decoding)
    push = torch.linspace(-1, 1, 32)
    model.model.layers[0].register_forward_hook(lambda module, args, out: _pushed(out, push))
    chat = LocalChat(model, TOKENIZER)
    after = replies(chat, queries, decoding)
    assert after == plainly(model, queries, decoding)
    assert after != before
    assert chat.road is not None
    assert chat.road.name == "tree"


def test_a_hook_that_knows_rows_by_place_closes_the_fast_road() -> None:
    model = tiny_model(max_position_embeddings=512)

    def last_only(module: Any, args: Any, out: Any) -> Any:
        states = out[0] if isinstance(out, tuple) else out
        states = states.clone()
        states[:, -1] += torch.linspace(-2, 2, 32)
        return (states, *out[1:]) if isinstance(out, tuple) else states

    model.model.layers[0].register_forward_hook(last_only)
    queries = [Query(page) for page in rotations()]
    chat = LocalChat(model, TOKENIZER, 1)
    got = replies(chat, queries, Decoding(max_new_tokens=6))
    assert chat.road is not None
    assert chat.road.name != "tree"
    assert "differs from plain generation" in chat.road.reason
    assert len(got) == len(queries)


def _pushed(out: Any, push: torch.Tensor) -> Any:
    return (out[0] + push, *out[1:]) if isinstance(out, tuple) else out + push


def test_the_model_is_given_back_between_answers() -> None:
    model = tiny_model(attention_dropout=0.5, max_position_embeddings=512)
    model.train()
    own, attention = model.generation_config, model.config._attn_implementation
    for _ in LocalChat(model, TOKENIZER).ask([Query(p) for p in rotations()], Decoding(4)):
        assert model.training
        assert model.generation_config is own
        assert model.config._attn_implementation == attention


def test_no_random_number_of_the_user_is_drawn() -> None:
    before = torch.get_rng_state()
    decoding = Decoding(max_new_tokens=4, temperature=1.0)
    chat = LocalChat(tiny_model(max_position_embeddings=512), TOKENIZER)
    replies(chat, [Query(page, 3) for page in rotations()], decoding)
    assert torch.equal(torch.get_rng_state(), before)


# --- the merge ------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 200.0, -200.0], ids=["alike", "first wins", "second wins"])
def test_two_parts_merge_to_one_softmax(shift: float) -> None:
    torch.manual_seed(0)
    scores, values = torch.randn(5, 9), torch.randn(9, 4)
    scores[:, :3] += shift
    whole = scores.softmax(-1) @ values
    parts = [(scores[:, :3], values[:3]), (scores[:, 3:], values[3:])]
    (one, a), (other, b) = [(s.softmax(-1) @ v, s.logsumexp(-1)) for s, v in parts]
    assert torch.allclose(merged(one, a, other, b), whole, atol=1e-6)


# --- a real model ---------------------------------------------------------------------


def test_a_real_model_says_the_same_on_the_fast_road(smollm2: LocalChat) -> None:
    queries = [as_chat(page) for page in rotations()[:8]]
    decoding = Decoding(max_new_tokens=16)
    chat = LocalChat(smollm2.model, smollm2.tokenizer)
    fast = replies(chat, queries, decoding)
    assert chat.road is not None
    assert chat.road.name == "tree"
    halves = [queries[:4], queries[4:]]  # too few rows for the fast road
    slow = [replies(LocalChat(smollm2.model, smollm2.tokenizer), half, decoding) for half in halves]
    assert fast == [*slow[0], *slow[1]]
