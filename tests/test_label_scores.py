"""Scores of labels read off real weights: the right tokens, in the right place."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import PLAIN_TEMPLATE, THINKS, byte_tokenizer, tiny_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from mlflow_mcq.doors import Scorer
from mlflow_mcq.engines.label_scores import LabelScorer, without_longer
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.errors import DataError, ModelError
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Conversation, Item, Message, Orientation, Prompt
from mlflow_mcq.scores import LabelScores

DIGITS = tuple(map(str, range(1, 11)))


def prompt_of(
    content: Conversation, labels: tuple[str, ...] = ("A", "B", "C"), id: str = "q1"
) -> Prompt:
    options = tuple(f"option {place}" for place in range(max(2, len(labels))))
    order = tuple(range(len(options)))
    return Prompt(Item(id, "?", options, 0), Orientation(0, "as-is", order), "own", content, labels)


def said(text: str) -> tuple[Message, ...]:
    return (Message("user", text),)


TEXTS = [prompt_of("x" * n + "\nAnswer:") for n in (1, 30, 4, 12, 2, 60, 7, 19)]


def scorer_of(
    model: torch.nn.Module | None = None, template: str | None = None, batch_size: int = 8
) -> LabelScorer:
    return LabelScorer(LocalChat(model or tiny_model(), byte_tokenizer(template), batch_size))


def plain_pass(model: torch.nn.Module, context: str, continuation: str) -> float:
    """Log-probability of each byte in turn, one forward pass a byte, nothing shared."""
    ids, total = [0, *byte_ids(context)], 0.0
    for token in byte_ids(continuation):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
        total += float(logits.log_softmax(-1)[token])
        ids.append(token)
    return total


def byte_ids(text: str) -> list[int]:
    return list(byte_tokenizer()(text, add_special_tokens=False)["input_ids"])


# --- the numbers --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "content", "context", "space"),
    [
        pytest.param(None, "Which?\nAnswer:", "Which?\nAnswer:", " ", id="plain text"),
        pytest.param(None, "Which?\n", "Which?\n", "", id="plain text that ends in a space"),
        pytest.param(PLAIN_TEMPLATE, said("Which?"), "[user]Which?[assistant]", "", id="chat"),
        pytest.param(PLAIN_TEMPLATE, "Answer:", "Answer:", " ", id="text though it has a template"),
    ],
)
@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(("A", "B", "C"), id="letters"),
        pytest.param(("(i)", "(ii)", "(iii)"), id="of several tokens, none begins another"),
        pytest.param(("ア", "イ"), id="of several bytes"),
    ],
)
def test_scores_are_those_of_a_plain_pass(template, content, context, space, labels):
    model = tiny_model()
    (score,) = scorer_of(model, template).score([prompt_of(content, labels)])
    expected = [plain_pass(model, context, space + label) for label in labels]
    assert score.logprobs == pytest.approx(expected, abs=1e-4)
    assert score.error == ""


def test_a_label_that_begins_another_is_scored_without_it():
    """Digits are tokens of their own: "1" would always beat "10"."""
    model = tiny_model()
    (score,) = scorer_of(model).score([prompt_of("Answer:", DIGITS)])
    raw = [plain_pass(model, "Answer:", " " + label) for label in DIGITS]
    assert score.logprobs[1:] == pytest.approx(raw[1:], abs=1e-4)
    assert math.exp(score.logprobs[0]) == pytest.approx(
        math.exp(raw[0]) - math.exp(raw[9]), rel=1e-3
    )
    assert score.token_texts[9] == "Ġ 1 0"


LABELS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), min_size=2, max_size=8
)


@given(LABELS.map(lambda labels: list(dict.fromkeys(labels))), st.randoms(use_true_random=False))
def test_the_labels_never_have_more_than_all_probability(labels, draw):
    chances: dict[tuple[int, ...], list[float]] = {}

    def chance(before: tuple[int, ...], token: int) -> float:
        weights = chances.setdefault(before, [draw.random() + 1e-6 for _ in range(4)])
        return weights[token] / sum(weights)

    raw = [sum(math.log(chance(x[:n], x[n])) for n in range(len(x))) for x in labels]
    own = without_longer(labels, raw)
    assert sum(map(math.exp, own)) <= 1 + 1e-9
    assert all(mine <= before + 1e-12 for mine, before in zip(own, raw, strict=True))


def test_a_label_with_nothing_of_its_own_has_no_probability():
    assert without_longer([(1,), (1, 0)], [-0.5, -0.5]) == [-math.inf, -0.5]
    assert without_longer([(1,), (1, 0)], [-math.inf, -math.inf]) == [-math.inf, -math.inf]


# --- which tokens -------------------------------------------------------------------


def merging_tokenizer(template: str | None = None) -> PreTrainedTokenizerFast:
    """Bytes, and one token each for " A" and " B"."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<s>", "</s>", *alphabet, "ĠA", "ĠB"]
    vocab = {token: place for place, token in enumerate(words)}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[("Ġ", "A"), ("Ġ", "B")]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        pytest.param("Answer:", ("ĠA", "ĠB"), id="after a word the space is part of the token"),
        pytest.param("Answer:\n", ("A", "B"), id="after a line break there is none"),
        pytest.param("Answer: ", ("A", "B"), id="the prompt's own space cannot be taken back"),
        pytest.param(said("Which?"), ("A", "B"), id="a chat template has opened the answer"),
    ],
)
def test_the_form_of_a_label_follows_from_what_stands_before(content, tokens):
    model = tiny_model()
    model.resize_token_embeddings(260)
    chat = LocalChat(model, merging_tokenizer(PLAIN_TEMPLATE))
    (score,) = LabelScorer(chat).score([prompt_of(content, ("A", "B"))])
    assert score.token_texts == tokens


@pytest.mark.parametrize(("thinking", "ending"), [(None, ""), (False, "<False>"), (True, "<True>")])
def test_the_text_is_the_one_that_the_answers_get(thinking, ending):
    model = tiny_model()
    chat = LocalChat(model, byte_tokenizer(THINKS))
    (score,) = LabelScorer(chat, thinking=thinking).score([prompt_of(said("Which?"))])
    expected = [plain_pass(model, "[user]Which?[assistant]" + ending, x) for x in "ABC"]
    assert score.logprobs == pytest.approx(expected, abs=1e-4)


# --- batches ------------------------------------------------------------------------


def tiny_gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=258, n_positions=128, n_embd=32, n_layer=2, n_head=2)
    config.initializer_range = 0.4
    return GPT2LMHeadModel(config).eval()


def tiny_bloom() -> BloomForCausalLM:
    torch.manual_seed(0)
    config = BloomConfig(vocab_size=258, hidden_size=32, n_layer=2, n_head=2, initializer_range=0.4)
    return BloomForCausalLM(config).eval()


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(tiny_model, id="relative positions"),
        pytest.param(tiny_gpt2, id="absolute positions, wrong if padding counts"),
        pytest.param(tiny_bloom, id="a forward pass that takes no positions"),
    ],
)
@pytest.mark.parametrize("labels", [("A", "B", "C"), DIGITS], ids=["one token", "several"])
def test_neighbours_in_a_batch_change_nothing(build, labels):
    model = build()
    prompts = [prompt_of(prompt.content, labels) for prompt in TEXTS]
    alone = scorer_of(model, batch_size=1).score(prompts)
    assert len({score.logprobs for score in alone}) == len(prompts)
    for size in (3, 8):
        together = scorer_of(model, batch_size=size).score(prompts)
        for one, other in zip(alone, together, strict=True):
            assert one.prompt is other.prompt
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def counted(model: LlamaForCausalLM, memory: int = 1000) -> list[int]:
    """Count the rows of each forward pass; above ``memory`` rows there is none left."""
    forward, sizes = type(model).forward, []

    def counting(input_ids, attention_mask, position_ids, logits_to_keep, use_cache):
        sizes.append(len(input_ids))
        if len(input_ids) > memory:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.")
        return forward(
            model,
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            logits_to_keep=logits_to_keep,
            use_cache=use_cache,
        )

    model.forward = counting
    return sizes


def test_labels_of_one_token_need_one_row_and_equal_prompts_one_reading():
    model = tiny_model()
    sizes = counted(model)
    again = [prompt_of(said(text)) for text in ("same", "same", "other", "same")]
    scores = scorer_of(model, PLAIN_TEMPLATE).score(again)
    assert sizes == [2]
    assert scores[0].logprobs == scores[1].logprobs == scores[3].logprobs != scores[2].logprobs


def test_out_of_memory_halves_the_batch_and_loses_no_row():
    prompts = [prompt_of(said("x" * n)) for n in range(8)]
    expected = scorer_of(template=PLAIN_TEMPLATE).score(prompts)
    model = tiny_model()
    sizes = counted(model, memory=3)
    found = scorer_of(model, PLAIN_TEMPLATE).score(prompts)
    assert sizes == [8, 4, 2, 2, 2, 2]
    for one, other in zip(expected, found, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


# --- what cannot be scored ----------------------------------------------------------


def test_out_of_memory_on_one_row_is_an_error_of_that_row():
    model = tiny_model()
    counted(model, memory=0)
    (score,) = scorer_of(model).score(TEXTS[:1])
    assert "out of memory" in score.error


@pytest.mark.parametrize(
    ("n_bytes", "labels", "error"),
    [
        pytest.param(255, ("A", "B"), "", id="fits exactly"),
        pytest.param(256, ("A", "B"), "prompt_too_long", id="one too many"),
        pytest.param(255, ("A", "10"), "prompt_too_long", id="too long for the longest label"),
    ],
)
def test_a_prompt_that_does_not_fit_is_never_cut(n_bytes, labels, error):
    long, short = prompt_of("x" * (n_bytes - 1) + "\n", labels), TEXTS[0]
    found, other = scorer_of().score([long, short])
    assert found.error == error
    assert len(found.logprobs) == (0 if error else len(labels))
    assert other.error == ""


def test_a_template_that_fails_costs_its_own_row_only():
    template = "{% if 'bad' in messages[0].content %}{{ nothing.at.all }}{% endif %}[a]"
    found = scorer_of(template=template).score([prompt_of(said(t)) for t in ("bad", "good")])
    assert [bool(score.error) for score in found] == [True, False]


def test_logits_that_are_no_numbers_are_an_error_of_the_row():
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    (score,) = scorer_of(model).score(TEXTS[:1])
    assert "not numbers" in score.error


def test_a_prompt_without_labels_is_refused_by_name():
    item = Item("q-17", "Which?", ("iron", "mercury"), 1)
    dashed = prompt_family("dashes")(item, Orientation(0, "as-is", (0, 1)), chat=False)
    with pytest.raises(ModelError, match=r"'q-17'.*no labels.*'dashes'"):
        scorer_of().score([*TEXTS, dashed])


@pytest.mark.parametrize("labels", [("A", "A"), ("A", "")], ids=["the same twice", "no token"])
def test_labels_that_are_one_to_the_model_are_refused(labels):
    with pytest.raises(ModelError, match="cannot tell them apart"):
        scorer_of().score([prompt_of("Answer:\n", labels)])


def test_chat_messages_need_a_template():
    with pytest.raises(ModelError, match="no chat template"):
        scorer_of().score([prompt_of(said("hi"))])


# --- ties ---------------------------------------------------------------------------


def test_labels_that_the_model_cannot_tell_apart_are_a_tie():
    model = tiny_model()
    a, b = byte_ids("AB")
    with torch.no_grad():
        model.lm_head.weight[b] = model.lm_head.weight[a]
    (score,) = scorer_of(model).score([prompt_of("Answer:\n", ("A", "B"))])
    assert score.tied
    assert score.pick is None


@pytest.mark.parametrize(
    ("logprobs", "best", "pick"),
    [
        pytest.param((-1.0, -2.0, -3.0), (0,), 0, id="one"),
        pytest.param((-2.5, -0.25, -0.25), (1, 2), None, id="two"),
        pytest.param((-2.0, -2.0 + 1e-6, -9.0), (0, 1), None, id="closer than rounding"),
        pytest.param((-2.0, -2.0 + 1e-4, -9.0), (1,), 1, id="close, but no tie"),
        pytest.param((-math.inf, -40.0, -math.inf), (1,), 1, id="only one is possible"),
        pytest.param((-math.inf,) * 3, (0, 1, 2), None, id="none is possible"),
    ],
)
def test_a_tie_names_no_slot(logprobs, best, pick):
    score = LabelScores(TEXTS[0], logprobs, ("A", "B", "C"))
    assert (score.best, score.pick, score.tied) == (best, pick, len(best) > 1)


@pytest.mark.parametrize(
    ("logprobs", "texts", "error"),
    [
        pytest.param((-1.0, -2.0), ("A", "B", "C"), "", id="a label without a number"),
        pytest.param((-1.0, -2.0, -3.0), ("A",), "", id="a label without its token"),
        pytest.param((-1.0, -2.0, math.nan), ("A", "B", "C"), "", id="no number"),
        pytest.param((-1.0, -2.0, -3.0), ("A", "B", "C"), "failed", id="numbers and an error"),
        pytest.param((), (), "", id="neither"),
    ],
)
def test_scores_that_cannot_be_are_refused(logprobs, texts, error):
    with pytest.raises(DataError, match="'q1'"):
        LabelScores(TEXTS[0], logprobs, texts, error)


def test_without_scores_there_is_no_pick():
    score = LabelScores(TEXTS[0], (), (), "prompt_too_long")
    assert (score.best, score.pick, score.tied) == ((), None, False)


# --- what stays untouched -----------------------------------------------------------


def test_model_tokenizer_and_random_numbers_stay_as_they_were():
    model, tokenizer = tiny_model(attention_dropout=0.5), byte_tokenizer()
    model.train()
    model.model.layers[0].eval()  # a part frozen by the user
    tokenizer.padding_side = "right"
    flags = [module.training for module in model.modules()]
    own, before = model.generation_config, (torch.get_rng_state(), random.getstate())
    scorer = LabelScorer(LocalChat(model, tokenizer))
    assert scorer.score(TEXTS) == scorer.score(TEXTS)
    assert [module.training for module in model.modules()] == flags
    assert model.generation_config is own
    assert (tokenizer.padding_side, tokenizer.pad_token, len(tokenizer)) == ("right", None, 258)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    # And it can still be trained.
    ids = torch.tensor([[3, 4, 5]])
    model(input_ids=ids, labels=ids).loss.backward()


def test_a_failure_gives_the_model_back_too():
    model = tiny_model()
    model.train()
    model.lm_head.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scorer_of(model).score(TEXTS)
    assert model.training


def test_a_label_scorer_satisfies_the_door():
    scorer = scorer_of()
    assert isinstance(scorer, Scorer)
    assert scorer.fingerprint == LocalChat(tiny_model(), byte_tokenizer()).fingerprint
    assert scorer.score([]) == []


# --- a real model -------------------------------------------------------------------


def test_a_real_model_is_scored_on_the_tokens_it_would_write(smollm2):
    item = Item("q1", "Which animal barks?", ("the cat", "the dog", "the cow"), 1)
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    turned = [Orientation(n, f"rot{n}", order) for n, order in enumerate(orders)]
    prompts = [prompt_family("letters")(item, o, chat=c) for c in (False, True) for o in turned]
    scores = LabelScorer(smollm2).score(prompts)
    tokenizer, model = smollm2.tokenizer, smollm2.model
    for score in scores:
        plain = isinstance(score.prompt.content, str)
        assert score.token_texts == tuple("Ġ" * plain + label for label in "ABC")
        sent = (
            score.prompt.content
            if plain
            else tokenizer.apply_chat_template(
                [{"role": "user", "content": score.prompt.content[0].content}],
                tokenize=False,
                add_generation_prompt=True,
            )
        )
        ids = tokenizer(sent, return_tensors="pt", add_special_tokens=plain)["input_ids"]
        with torch.no_grad():
            logprobs = model(ids).logits[0, -1].log_softmax(-1)
        wanted = tokenizer.convert_tokens_to_ids(list(score.token_texts))
        assert score.logprobs == pytest.approx(logprobs[wanted].tolist(), abs=1e-3)
    # After "Answer:" these three letters are nearly all that this model would write.
    assert min(sum(map(math.exp, score.logprobs)) for score in scores[:3]) > 0.5
