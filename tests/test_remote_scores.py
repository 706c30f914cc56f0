"""Label scores from a server, which lists its likeliest tokens and keeps the rest to itself."""

from __future__ import annotations

import math
from typing import Any

import fake_server as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.doors import Scorer
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.engines.remote_scores import RemoteScorer, scores_of_listed
from mlflow_mcq.errors import DataError, ModelError
from mlflow_mcq.grader_tables import label_scores_frame
from mlflow_mcq.logprob import slot_priors, summarize_logprobs
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Item, Message, Orientation, Prompt
from mlflow_mcq.scores import LabelScores

ITEM = Item("q1", "Which floats?", ("iron", "cork", "lead"), gold=1)


def prompts(n_items: int = 1, chat: bool = True, protocol: str = "letters") -> list[Prompt]:
    render = prompt_family(protocol)
    items = [Item(f"q{n}", f"Which floats, {n}?", ITEM.options, 1) for n in range(n_items)]
    return [render(item, o, chat=chat) for item in items for o in plan_for(item, "rotations")]


def labelled(*labels: str) -> Prompt:
    options = tuple(f"option {n}" for n in range(len(labels)))
    orientation = Orientation(0, "as-is", tuple(range(len(labels))))
    return Prompt(Item("q", "?", options, 0), orientation, "own", "?", labels)


def scorer(server: fake.FakeServer, **more: Any) -> RemoteScorer:
    return RemoteScorer(OpenAIChat("m", server.url, max_retries=0, **more))


# --- what is asked ----------------------------------------------------------------------


def test_one_greedy_token_is_asked_for_with_the_likeliest_beside_it(judge_server):
    server = judge_server(lambda request, n: fake.listed({"B": -0.1, "A": -3.0, "C": -4.0}))
    found = scorer(server).score(prompts())
    assert [score.logprobs for score in found] == [(-3.0, -0.1, -4.0)] * 3
    assert {score.bounded for score in found} == {()}
    sent = server.requests[0]
    assert (sent["logprobs"], sent["top_logprobs"], sent["max_tokens"]) == (True, 20, 1)
    assert sent["temperature"] == 0
    assert sent["messages"][0]["content"] == prompts()[0].content[0].content
    assert isinstance(scorer(server), Scorer)


def test_a_base_model_is_asked_through_plain_completions(judge_server):
    def script(request: dict[str, Any], n: int) -> fake.Answer:
        if request["logprobs"] > 5:
            return fake.refused(400, "logprobs must be at most 5")
        return fake.listed({" B": -0.2, " A": -2.0, " C": -3.0, "\n": -9.0}, plain=True)

    server = judge_server(script)
    found = scorer(server, speaks_chat=False).score(prompts(chat=False))
    assert found[0].token_texts == (" A", " B", " C")
    assert found[0].logprobs == (-2.0, -0.2, -3.0)
    assert set(server.paths) == {"/v1/completions"}
    # The size that the server bears is found once.
    assert sorted(request["logprobs"] for request in server.requests) == [5, 5, 5, 20]


def test_equal_prompts_are_asked_once(judge_server):
    server = judge_server(lambda request, n: fake.listed({"A": -0.1, "B": -3.0, "C": -3.5}))
    assert len(scorer(server).score([*prompts(), *prompts()])) == 6
    assert len(server.requests) == 3


def test_thinking_is_switched_as_in_the_answers(judge_server):
    server = judge_server(lambda request, n: fake.listed({"A": -0.1}))
    RemoteScorer(OpenAIChat("m", server.url), thinking=False).score(prompts()[:1])
    assert server.requests[0]["chat_template_kwargs"] == {"enable_thinking": False}


# --- what a list of tokens says ---------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "logprobs", "bounded"),
    [
        pytest.param({"A": -0.2, "B": -2.5, "C": -3.0}, (-0.2, -2.5, -3.0), (), id="all listed"),
        pytest.param(
            {"A": -0.7, "x": -1.2, "B": -2.5}, (-0.7, -2.5, -2.5), (2,), id="no more than the last"
        ),
        pytest.param(
            {"A": math.log(0.9), "B": math.log(0.0999)},
            (math.log(0.9), math.log(0.0999), math.log(0.0001)),
            (2,),
            id="no likelier than what is left",
        ),
        pytest.param({" A": -0.2, "A": -3.0, "B": -2.5, " C": -4.0}, (-0.2, -4.0, -4.0), (1,),
                     id="one form for all: after a blank"),
        pytest.param({"A": -0.2, " A": -3.0, "B": -2.5, " C": -4.0}, (-0.2, -2.5, -4.0), (2,),
                     id="one form for all: bare"),
        pytest.param({"a": -0.2, "B": -3.0}, (-3.0, -3.0, -3.0), (0, 2),
                     id="small letters are another token"),
        pytest.param({"A": 0.0}, (0.0, math.log(1e-6), math.log(1e-6)), (1, 2), id="certain"),
    ],
)  # fmt: skip
def test_a_label_that_is_not_listed_has_a_bound(listed, logprobs, bounded):
    score = scores_of_listed(labelled("A", "B", "C"), listed)
    assert score.logprobs == pytest.approx(logprobs, abs=1e-9)
    assert score.bounded == bounded


@pytest.mark.parametrize(
    ("labels", "listed", "why"),
    [
        pytest.param("AB", {"The": -0.1, "I": -3.0}, "no label is among the 2", id="none listed"),
        pytest.param(("1", "2", "10"), {"1": -0.1}, "begin with one another", id="1 and 10"),
        pytest.param(("A", "AA"), {"A": -0.1}, "begin with one another", id="A and AA"),
    ],
)
def test_what_cannot_be_known_is_not_guessed(labels, listed, why):
    score = scores_of_listed(labelled(*labels), listed)
    assert why in score.error
    assert score.pick is None


@given(
    st.lists(st.floats(1e-6, 1), min_size=4, max_size=12),
    st.integers(1, 12),
    st.integers(0, 2**16),
)
def test_law_the_pick_is_that_of_the_whole_distribution(weights, n_listed, shuffle):
    """However few tokens are listed: a pick is right, and no label lies above its bound."""
    names = ["A", "B", "C", "The", *(f"w{n}" for n in range(len(weights) - 4))]
    names = [names[(n + shuffle) % len(names)] for n in range(len(names))]
    true = dict(zip(names, (math.log(w / sum(weights)) for w in weights), strict=True))
    top = dict(sorted(true.items(), key=lambda one: -one[1])[:n_listed])
    score = scores_of_listed(labelled("A", "B", "C"), top)
    wanted = [true[label] for label in "ABC"]
    if score.error:
        assert not set("ABC") & set(top)
        return
    if score.pick is not None:
        assert wanted[score.pick] >= max(wanted) - 1e-5
    for slot, value in enumerate(score.logprobs):
        assert wanted[slot] <= value + 1e-6
        assert slot in score.bounded or wanted[slot] == pytest.approx(value)


def test_bounds_for_all_labels_are_no_scores():
    with pytest.raises(DataError, match="some of the slots only"):
        LabelScores(labelled("A", "B"), (-1.0, -1.0), ("A", "B"), bounded=(0, 1))
    with pytest.raises(DataError, match="some of the slots only"):
        LabelScores(labelled("A", "B"), (-1.0, -1.0), ("A", "B"), bounded=(2,))


# --- what may come back -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(
            fake.refused(400, "logprobs are not supported"), "not supported", id="refused"
        ),
        pytest.param("A", "no log-probabilities", id="ignored"),
        pytest.param(fake.listed({}), "no log-probabilities", id="an empty list"),
        pytest.param(fake.server_error(), "500", id="a broken server"),
        pytest.param(fake.html_page(), "no completion", id="a login wall"),
        pytest.param(fake.no_choices(), "without any choice", id="no choices"),
    ],
)
def test_a_server_without_log_probabilities_is_left_in_peace(judge_server, answer, why):
    server = judge_server(lambda request, n: answer)
    found = scorer(server).score(prompts(4))
    assert len(found) == 12
    assert all(why in score.error for score in found)
    assert found[-1].error.startswith("not asked")
    assert len(server.requests) <= 6  # three prompts, in two sizes where it says 400


def test_one_bad_row_loses_no_other(judge_server):
    def script(request: dict[str, Any], n: int) -> fake.Answer:
        bad = "floats, 0?" in request["messages"][0]["content"]
        return fake.refused(400, "filtered") if bad and n < 2 else fake.listed({"A": -0.5})

    found = scorer(judge_server(script)).score(prompts(2))
    assert [bool(score.error) for score in found] == [True] + [False] * 5


def test_tokens_as_a_vocabulary_spells_them_and_shapes_that_are_mixed(judge_server):
    mixed = fake.listed({"\u2581A": -0.3, "\u0120B": -2.0, "\u2581C": -5.0})
    found = scorer(judge_server(lambda request, n: mixed), speaks_chat=False)
    assert found.score(prompts(chat=False))[0].logprobs == (-0.3, -2.0, -5.0)


def test_tokens_that_are_spelt_alike_are_added_up(judge_server):
    twice = fake.listed({" A": math.log(0.3), "\u2581A": math.log(0.2), " B": math.log(0.1)})
    (score, *_) = scorer(judge_server(lambda request, n: twice)).score(prompts()[:1])
    assert score.logprobs[:2] == pytest.approx((math.log(0.5), math.log(0.1)))


@pytest.mark.parametrize("value", [None, math.nan, {}])
def test_a_number_that_is_none_is_no_number(judge_server, value):
    server = judge_server(lambda request, n: fake.listed({"A": -0.1, "B": value}))
    assert "no log-probabilities" in scorer(server).score(prompts()[:1])[0].error


def test_the_key_stays_out_of_the_reasons(judge_server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-0123456789")
    server = judge_server(lambda request, n: fake.refused(401, "no sk-very-secret-0123456789"))
    (score, *_) = scorer(server, api_key_env="MY_KEY").score(prompts())
    assert "401" in score.error
    assert "secret" not in score.error


def test_prompts_without_labels_are_refused(judge_server):
    server = judge_server(lambda request, n: fake.listed({"A": -0.1}))
    with pytest.raises(ModelError, match="shows no labels"):
        scorer(server).score(prompts(protocol="dashes"))
    assert server.requests == []


# --- what is made of bounds -------------------------------------------------------------


def test_bounds_count_for_the_pick_and_for_nothing_that_adds_up():
    def listed(prompt: Prompt) -> dict[str, float]:
        sure = {"A": math.log(0.5), "The": math.log(0.3)}
        return sure if prompt.item.id == "q0" else {**sure, "B": -3.0, "C": -4.0}

    scores = [scores_of_listed(prompt, listed(prompt)) for prompt in prompts(4)]
    values = summarize_logprobs(scores).values
    assert values["accuracy"] == pytest.approx(1 / 3)  # always A
    assert (values["coverage"], values["exact_rate"]) == (1.0, 0.75)
    exact = 0.5 + math.exp(-3) + math.exp(-4)
    assert values["mass"] == pytest.approx((0.5 + 3 * exact) / 4)  # known labels only
    assert ("q0", "letters") not in slot_priors(scores, prior_items=9)[3].items
    rest = [score for score in scores if score.key[0] != "q0"]
    known = summarize_logprobs(rest).values
    assert values["accuracy_debiased"] == known["accuracy_debiased"]
    assert values["n_prior_items"] == known["n_prior_items"] == 1


def test_without_scores_the_reason_is_the_first_error():
    failed = [LabelScores(prompt, (), (), "the server is shy") for prompt in prompts()]
    summary = summarize_logprobs(failed)
    assert summary.values["coverage"] == 0
    assert summary.undefined["accuracy"] == "undefined: 0 scored rows: the server is shy"


def test_the_table_of_scores():
    turned = prompts()[1]  # A) cork B) lead C) iron
    frame = label_scores_frame(
        [
            LabelScores(turned, (-1.0, -3.0, -1.0), (" A", " B", " C"), bounded=(1,)),
            LabelScores(prompts()[0], (), (), "too long"),
        ]
    )
    assert frame["letter"].tolist()[:3] == ["A", "B", "C"]
    assert frame["option"].tolist()[:3] == [1, 2, 0]
    assert frame["is_gold"].tolist()[:3] == [True, False, False]
    assert frame["rank"].tolist()[:3] == [1, 3, 1]
    assert frame["tied"].tolist()[:3] == [True, False, True]
    assert frame["bounded"].tolist()[:3] == [False, True, False]
    assert frame["logprob_raw"].tolist()[:3] == [-1.0, -3.0, -1.0]
    assert sum(map(math.exp, frame["logprob"][:3])) == pytest.approx(1)
    last = frame.iloc[3]
    assert (last["item_id"], last["orientation"], last["error"]) == ("q0", 0, "too long")
    assert last[["letter", "logprob", "rank"]].isna().all()
    assert list(label_scores_frame([]).columns) == list(frame.columns)


def test_messages_are_what_the_answers_were_asked_with(judge_server):
    server = judge_server(lambda request, n: fake.listed({"A": -0.1}))
    messages = (Message("system", "Be brief."), Message("user", "?"))
    prompt = Prompt(ITEM, Orientation(0, "as-is", (0, 1, 2)), "own", messages, ("A", "B", "C"))
    scorer(server).score([prompt])
    assert [m["role"] for m in server.requests[0]["messages"]] == ["system", "user"]
