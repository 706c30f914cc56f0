"""Weights in memory: what reaches the model, what comes back, and what stays untouched."""

from __future__ import annotations

import random

import pytest
import torch
from tiny import (
    BOS,
    DROPS_SYSTEM,
    EOS,
    NO_SYSTEM,
    PLAIN_TEMPLATE,
    THINKS,
    byte_tokenizer,
    tiny_model,
)
from transformers import LlamaForCausalLM

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.local import LocalChat, load_local
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Message, Query, Reply


def tiny_chat(template: str | None = None, batch_size: int = 8) -> LocalChat:
    return LocalChat(tiny_model(), byte_tokenizer(template), batch_size)


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


class Watched:
    """A model that keeps what `generate` was given, and answers with fixed tokens."""

    def __init__(self, model: LlamaForCausalLM, *answers: list[int]) -> None:
        self.calls: list[dict[str, object]] = []
        self.own_config: list[object] = []
        self._model, self._answers = model, answers

    def install(self) -> LlamaForCausalLM:
        self._model.generate = self.generate
        return self._model

    def generate(self, **options: object) -> torch.Tensor:
        self.calls.append(options)
        self.own_config.append(self._model.generation_config)
        ids = options["input_ids"]
        assert isinstance(ids, torch.Tensor)
        rows = [self._answers[place % len(self._answers)] for place in range(len(ids))]
        width = max(map(len, rows))
        new = torch.tensor([row + [EOS] * (width - len(row)) for row in rows])
        return torch.cat([ids, new], dim=1)


# --- what reaches the model ---------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "content"),
    [
        pytest.param(PLAIN_TEMPLATE, (USER,), id="template writes BOS"),
        pytest.param(None, "hi", id="plain text, base model"),
        pytest.param(PLAIN_TEMPLATE, "hi", id="plain text, chat model"),
    ],
)
def test_a_prompt_has_exactly_one_bos(template, content):
    watched = Watched(tiny_model(), [5])
    chat = LocalChat(watched.install(), byte_tokenizer(template))
    one(chat, content, SHORT)
    (call,) = watched.calls
    assert call["input_ids"][0].tolist().count(BOS) == 1
    assert call["input_ids"][0, 0] == BOS


def test_a_template_without_bos_gets_none():
    watched = Watched(tiny_model(), [5])
    template = PLAIN_TEMPLATE.replace("{{ bos_token }}", "")
    reply = one(LocalChat(watched.install(), byte_tokenizer(template)), (USER,), SHORT)
    assert BOS not in watched.calls[0]["input_ids"]
    assert reply.sent == "[user]hi[assistant]"


@pytest.mark.parametrize(
    ("template", "sent"),
    [
        pytest.param(PLAIN_TEMPLATE, "<s>[system]Be brief.[user]hi[assistant]", id="taken"),
        pytest.param(NO_SYSTEM, "<s>[user]Be brief.\n\nhi[assistant]", id="refused: merged"),
        pytest.param(DROPS_SYSTEM, "<s>[user]Be brief.\n\nhi[assistant]", id="dropped: merged"),
    ],
)
def test_a_system_message_always_reaches_the_model(template, sent):
    reply = one(tiny_chat(template), (Message("system", "Be brief."), USER), SHORT)
    assert reply.sent == sent


@pytest.mark.parametrize(
    ("thinking", "tail"),
    [
        pytest.param(None, "[assistant]", id="left alone"),
        pytest.param(False, "[assistant]<False>", id="off"),
        pytest.param(True, "[assistant]<True>", id="on"),
    ],
)
def test_thinking_is_handed_to_the_template(thinking, tail):
    decoding = Decoding(max_new_tokens=2, thinking=thinking)
    assert one(tiny_chat(THINKS), (USER,), decoding).sent.endswith(tail)


def test_messages_without_a_template_are_refused():
    chat = tiny_chat(template=None)
    assert not chat.speaks_chat
    with pytest.raises(ModelError, match="no chat template"):
        one(chat, (USER,), SHORT)


def test_a_template_that_fails_costs_its_row_only():
    template = "{% if 'bad' in messages[0].content %}{{ raise_exception('no') }}{% endif %}ok"
    queries = [Query((Message("user", text),)) for text in ("good", "bad")]
    good, bad = answers(tiny_chat(template), queries, SHORT)
    assert good.error is None
    assert bad.text is None
    assert "chat template" in bad.error


@pytest.mark.parametrize(
    ("decoding", "steps"),
    [
        pytest.param(Decoding(max_new_tokens=5), [], id="greedy"),
        pytest.param(
            Decoding(max_new_tokens=7, temperature=0.5, top_k=3, top_p=0.9),
            ["TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper", "RowSampler"],
            id="sampled",
        ),
        pytest.param(
            Decoding(temperature=1.0), ["TemperatureLogitsWarper", "RowSampler"], id="unfiltered"
        ),
    ],
)
def test_generate_is_given_exactly_the_decoding(decoding, steps):
    model = tiny_model()
    own = model.generation_config
    own.update(repetition_penalty=1.3, do_sample=True, temperature=0.6, top_k=20, max_length=9)
    watched = Watched(model, [5])
    one(LocalChat(watched.install(), byte_tokenizer()), "hi", decoding)
    (call,) = watched.calls
    config = call["generation_config"]
    assert config.max_new_tokens == decoding.max_new_tokens
    assert config.do_sample is False
    assert config.repetition_penalty in (None, 1.0)
    assert [type(step).__name__ for step in call["logits_processor"]] == steps
    # `generate` fills what is open from the model's own configuration: it is aside.
    assert watched.own_config == [config]
    assert model.generation_config is own
    assert own.repetition_penalty == 1.3


def test_a_checkpoint_s_sampling_values_change_nothing():
    plain, tuned = tiny_model(), tiny_model()
    tuned.generation_config.update(
        repetition_penalty=5.0, do_sample=True, temperature=9.0, no_repeat_ngram_size=1
    )
    ours = [answers(LocalChat(model, byte_tokenizer()), PROMPTS, SHORT) for model in (plain, tuned)]
    assert ours[0] == ours[1]


def test_identical_questions_are_asked_once():
    watched = Watched(tiny_model(), [5])
    chat = LocalChat(watched.install(), byte_tokenizer())
    replies = answers(chat, [Query("same", seed) for seed in range(5)], SHORT)
    assert watched.calls[0]["input_ids"].shape[0] == 1
    assert len(set(replies)) == 1


def test_samples_of_one_question_are_asked_each():
    watched = Watched(tiny_model(), [5])
    chat = LocalChat(watched.install(), byte_tokenizer())
    answers(chat, [Query("same", seed) for seed in (1, 2, 2)], Decoding(temperature=1.0))
    assert watched.calls[0]["input_ids"].shape[0] == 2


# --- padding ------------------------------------------------------------------------


@pytest.mark.parametrize("pad", [None, "</s>", "<s>"], ids=["no pad token", "eos", "bos"])
def test_padding_changes_no_answer(pad):
    model, decoding = tiny_model(), Decoding(max_new_tokens=24)
    tokenizer = byte_tokenizer(pad=pad)
    together = answers(LocalChat(model, tokenizer, 8), PROMPTS, decoding)
    alone = answers(LocalChat(model, tokenizer, 1), PROMPTS, decoding)
    assert [reply.token_ids for reply in together] == [reply.token_ids for reply in alone]
    assert len({reply.token_ids for reply in together}) > 1


def test_the_tokenizer_stays_as_it_was():
    tokenizer = byte_tokenizer(PLAIN_TEMPLATE)
    tokenizer.padding_side = "right"
    before = (len(tokenizer), tokenizer.pad_token, tokenizer.padding_side)
    answers(LocalChat(tiny_model(), tokenizer), PROMPTS, SHORT)
    assert (len(tokenizer), tokenizer.pad_token, tokenizer.padding_side) == before


def test_a_length_that_the_tokenizer_brings_neither_pads_nor_cuts():
    tokenizer, watched = byte_tokenizer(pad="<pad>"), Watched(tiny_model(), [5])
    tokenizer.backend_tokenizer.enable_padding(length=99)
    tokenizer.backend_tokenizer.enable_truncation(max_length=4)
    (reply,) = answers(LocalChat(watched.install(), tokenizer), [Query("a question")], SHORT)
    assert (reply.n_prompt_tokens, watched.calls[0]["input_ids"].shape[1]) == (11, 11)


def test_rows_of_like_length_go_together():
    watched = Watched(tiny_model(), [5])
    chat = LocalChat(watched.install(), byte_tokenizer(), batch_size=4)
    answers(chat, PROMPTS, SHORT)
    widths = [call["input_ids"].shape[1] for call in watched.calls]
    assert widths == [1 + 61, 1 + 8]


# --- what comes back ----------------------------------------------------------------


def ids_of(text: str) -> list[int]:
    return list(byte_tokenizer()(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize(
    ("new", "text", "reason"),
    [
        pytest.param([*ids_of("B"), EOS], "B", "eos", id="ends itself"),
        pytest.param(ids_of("abcdefgh"), "abcdefgh", "length", id="cut at the limit"),
        pytest.param([*ids_of("abcdefg"), EOS], "abcdefg", "eos", id="ends at the limit"),
        pytest.param([EOS], "", "eos", id="says nothing"),
        pytest.param([*ids_of(" B \n"), EOS], " B \n", "eos", id="raw: spaces stay"),
    ],
)
def test_the_reply_says_how_it_ended(new, text, reason):
    # Beside a row of full length, so that short rows carry padding (here: EOS again).
    watched = Watched(tiny_model(), new, ids_of("12345678"))
    chat = LocalChat(watched.install(), byte_tokenizer())
    reply, full = answers(chat, [Query("longer"), Query("short")], SHORT)
    assert (reply.text, reply.finish_reason) == (text, reason)
    assert list(reply.token_ids) == ids_of(text)
    assert (reply.n_tokens, reply.n_prompt_tokens) == (len(text), 1 + len("longer"))
    assert (full.text, full.finish_reason) == ("12345678", "length")


@pytest.mark.parametrize(
    ("own", "token"),
    [
        pytest.param([7, 9], 9, id="list in the checkpoint"),
        pytest.param(7, EOS, id="only the tokenizer names it"),
        pytest.param(None, EOS, id="checkpoint names none"),
    ],
)
def test_every_known_eos_ends_an_answer(own, token):
    model = tiny_model()
    model.generation_config.eos_token_id = own
    watched = Watched(model, [50, token, 51])
    reply = one(LocalChat(watched.install(), byte_tokenizer()), "hi", SHORT)
    assert reply.token_ids == (50,)
    assert reply.finish_reason == "eos"
    assert token in watched.calls[0]["generation_config"].eos_token_id


def test_eos_ends_generation_in_the_real_loop():
    model, decoding = tiny_model(), Decoding(max_new_tokens=20)
    free = one(LocalChat(model, byte_tokenizer()), "tell me", decoding)
    assert free.finish_reason == "length"
    end = free.token_ids[6]
    model.generation_config.eos_token_id = [end]
    ended = one(LocalChat(model, byte_tokenizer()), "tell me", decoding)
    assert ended.token_ids == free.token_ids[: free.token_ids.index(end)]
    assert ended.finish_reason == "eos"


def say(model: LlamaForCausalLM, text: str) -> None:
    """Make the real generation loop say a text, whatever the prompt."""
    script = ids_of(text)
    start: list[int] = []

    def forced(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        start.append(input_ids.shape[1])
        place = input_ids.shape[1] - start[0]
        scores = torch.full_like(scores, -1e9)
        scores[:, script[place % len(script)]] = 0
        return scores

    generate = model.generate

    def scripted(*, logits_processor: list[object], **options: object) -> torch.Tensor:
        start.clear()
        return generate(logits_processor=[*logits_processor, forced], **options)

    model.generate = scripted


@pytest.mark.parametrize(
    ("prompt", "stop", "text", "reason"),
    [
        pytest.param("Q", ("Question",), "Answer: B\nQuestion", "stop", id="across tokens"),
        pytest.param("Q", ("zzz", "\n"), "Answer: B\n", "stop", id="the first of several"),
        pytest.param("Q\n", ("\nA",), "Answer: B\nQuestio", "length", id="not into the prompt"),
        pytest.param("Q", ("none",), "Answer: B\nQuestio", "length", id="never met"),
    ],
)
def test_a_stop_text_ends_the_answer_and_stays_in_it(prompt, stop, text, reason):
    model = tiny_model()
    say(model, "Answer: B\nQuestion: why?")
    decoding = Decoding(max_new_tokens=len("Answer: B\nQuestio") + (reason == "stop"), stop=stop)
    reply = one(LocalChat(model, byte_tokenizer()), prompt, decoding)
    assert (reply.text, reply.finish_reason) == (text, reason)


def test_stopped_rows_do_not_stop_their_neighbours():
    model, decoding = tiny_model(), Decoding(max_new_tokens=24)
    free = answers(LocalChat(model, byte_tokenizer()), PROMPTS, decoding)
    stop = next(c for c in free[0].text[3:] if c.isascii() and c.isprintable())
    ended = answers(
        LocalChat(model, byte_tokenizer()), PROMPTS, Decoding(max_new_tokens=24, stop=(stop,))
    )
    for whole, cut in zip(free, ended, strict=True):
        assert whole.token_ids[: len(cut.token_ids)] == cut.token_ids
        assert (cut.finish_reason == "stop") == (stop in whole.text)


@pytest.mark.parametrize(
    ("n_prompt", "reason"),
    [
        pytest.param(248, "length", id="fits exactly"),
        pytest.param(249, "prompt_too_long", id="one too many"),
        pytest.param(4000, "prompt_too_long", id="far too long"),
    ],
)
def test_a_prompt_that_does_not_fit_is_never_cut(n_prompt, reason):
    model = tiny_model()
    say(model, "abcdefgh")
    reply = one(LocalChat(model, byte_tokenizer()), "x" * (n_prompt - 1), SHORT)
    assert reply.finish_reason == reason
    assert reply.n_prompt_tokens == n_prompt
    assert reply.error is None
    assert reply.text == ("" if reason == "prompt_too_long" else "abcdefgh")


def test_an_empty_prompt_is_an_error_of_its_row():
    chat = tiny_chat("{{ messages[0].content }}")
    queries = [Query((Message("user", text),)) for text in ("", "hi")]
    empty, asked = answers(chat, queries, SHORT)
    assert empty.error == "the prompt has no tokens"
    assert asked.error is None


# --- sampling -----------------------------------------------------------------------

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


# --- what stays untouched -----------------------------------------------------------


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


# --- memory -------------------------------------------------------------------------


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


# --- identity -----------------------------------------------------------------------


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


# --- a real model -------------------------------------------------------------------

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
