"""Weights in memory: what reaches the model, what comes back, and what stays untouched."""

from __future__ import annotations

import pytest
import torch
from tiny import (
    BOS,
    DROPS_SYSTEM,
    EOS,
    NO_SYSTEM,
    PLAIN_TEMPLATE,
    PROMPTS,
    SHORT,
    THINKS,
    USER,
    answers,
    byte_tokenizer,
    one,
    tiny_chat,
    tiny_model,
)
from transformers import LlamaForCausalLM

from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Message, Query


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
