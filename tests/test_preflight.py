"""One cheap question, before the evaluated model is asked anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_server as fake
import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.errors import JudgeUnavailable

pytestmark = pytest.mark.first_question
FRAME = pd.DataFrame({"question": ["Which?"], "options": [["sun", "moon"]], "answer": ["A"]})


@pytest.fixture(autouse=True)
def experiment(
    module_store: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An experiment for each test: runs are counted."""
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(module_store / "home"))
    mlflow.create_experiment(
        request.node.name, artifact_location=(module_store / "artifacts").as_uri()
    )
    mlflow.set_experiment(request.node.name)


def never(frame: pd.DataFrame) -> list[str]:
    raise AssertionError("the model must not be asked")


def wordy(frame: pd.DataFrame) -> list[str]:
    return ["I should think that it is the sun."] * len(frame)


def evaluate(model: Any, url: str, **judge: Any) -> Any:
    asked = {"model": "m", "base_url": url, "exam_replies": 0, "max_retries": 0, **judge}
    return mlflow_mcq.evaluate(model, FRAME, judge=asked)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(fake.refused(401, "no such key"), "401", id="wrong key"),
        pytest.param(fake.refused(403, "not for you"), "403", id="no right"),
        pytest.param(fake.refused(404, "no such model"), "404", id="wrong model"),
        pytest.param(
            fake.refused(429, "pay", code="insufficient_quota"), "pay", id="no quota left"
        ),
    ],
)
def test_a_judge_that_serves_nobody_stops_before_the_model_is_asked(judge_server, answer, words):
    server = judge_server(lambda request, n: answer)
    with pytest.raises(MlflowException) as caught:
        evaluate(never, server.url, max_retries=5)
    assert isinstance(caught.value.__cause__, JudgeUnavailable)
    for part in (words, "nothing was generated yet", "judge.api_key_env", "judge.preflight"):
        assert part in str(caught.value)
    assert len(server.requests) == 1
    [run] = mlflow.search_runs(output_format="list")
    assert run.data.tags["mcq.status"] == "failed"
    assert words in run.data.tags["mcq.error"]


def test_nothing_listens_there():
    with pytest.raises(MlflowException, match="APIConnectionError"):
        evaluate(never, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(fake.server_error(503), id="503"),
        pytest.param(fake.rate_limited("0.01"), id="429"),
        pytest.param(fake.reset(), id="reset"),
        pytest.param("hm, well", id="no verdict"),
    ],
)
def test_what_may_be_over_by_then_stops_nothing(judge_server, answer, caplog):
    server = judge_server(lambda request, n: answer if n == 0 else "A")
    result = evaluate(wordy, server.url)
    assert result.metrics["judge/n_judge_errors"] == 0
    assert ("failed a first question" in caplog.text) is (answer != "hm, well")


def test_it_is_one_call_that_counts(judge_server):
    server = judge_server(lambda request, n: "A")
    result = evaluate(wordy, server.url)
    assert len(server.requests) == result.metrics["judge/n_calls"] == 3  # and two orientations
    assert "Which metal is liquid" in server.requests[0]["messages"][-1]["content"]
    assert server.requests[0]["max_tokens"] == 256  # as the rows are asked: settings are tried


def test_it_can_be_left_out(judge_server):
    server = judge_server(lambda request, n: "A")
    evaluate(wordy, server.url, preflight=False)
    assert len(server.requests) == 2


def test_every_judge_of_a_panel_is_asked(judge_server):
    good = judge_server(lambda request, n: "A")
    bad = judge_server(lambda request, n: fake.refused(401, "no such key"))
    member = {"model": "other", "base_url": bad.url, "max_retries": 0}
    with pytest.raises(MlflowException, match="judge 'other'"):
        evaluate(never, good.url, panel=[member])


def test_regrading_by_a_judge_that_is_down_makes_no_run(judge_server):
    good = judge_server(lambda request, n: "A")
    first = evaluate(wordy, good.url)
    bad = judge_server(lambda request, n: fake.refused(404, "no such model"))
    asked = {"model": "m", "base_url": bad.url, "exam_replies": 0}
    with pytest.raises(JudgeUnavailable, match="404"):
        mlflow_mcq.regrade(first.run_id, asked)
    assert len(mlflow.search_runs(output_format="list")) == 1
    assert "mcq.regraded_by" not in MlflowClient().get_run(first.run_id).data.tags


@pytest.mark.parametrize(
    ("said", "warned"),
    [
        pytest.param("The candidate chose A, I think.", True, id="prose"),
        pytest.param("", True, id="nothing"),
        pytest.param("x" * 5000, True, id="long"),
        pytest.param("B", False, id="a slot"),
        pytest.param("OTHER", False, id="other"),
    ],
)
def test_a_judge_that_speaks_out_of_turn_is_said_at_once(judge_server, caplog, said, warned):
    evaluate(wordy, judge_server(lambda request, n: said).url)
    found = [one for one in caplog.messages if "no legal answer" in one]
    assert bool(found) is warned
    assert all(len(one) < 400 and repr(said[:20])[:-1] in one for one in found)


@pytest.mark.parametrize(
    ("n_answered", "more", "words", "n_asked"),
    [
        pytest.param(0, {}, "no such key", 1, id="the first question fails"),
        pytest.param(0, {"preflight": False}, "none of 233 calls", None, id="every question fails"),
        pytest.param(1, {}, "none of 233 calls", None, id="every question after the first fails"),
    ],
)
def test_an_exam_that_nobody_answers_is_no_finding(
    judge_server: Callable[[fake.Script], fake.FakeServer],
    n_answered: int,
    more: dict[str, Any],
    words: str,
    n_asked: int | None,
) -> None:
    shut = fake.refused(401, "no such key")
    server = judge_server(lambda request, n: "A" if n < n_answered else shut)
    judge = {"model": "m", "base_url": server.url, "max_retries": 0, **more}
    with pytest.raises(JudgeUnavailable, match=f"judge 'm': does not answer.*{words}"):
        mlflow_mcq.examine_judge(judge)
    assert n_asked in (None, len(server.requests))


def test_an_exam_says_which_replies_got_no_answer_and_why(
    judge_server: Callable[[fake.Script], fake.FakeServer],
) -> None:
    hurt = fake.refused(400, "too long for me")
    server = judge_server(lambda request, n: hurt if n == 3 else "A")
    report = mlflow_mcq.examine_judge({"model": "m", "base_url": server.url, "concurrency": 1})
    [(why, n)] = report.failures
    assert n == report.n_errors == 1
    assert "too long for me" in why


def test_an_exam_that_is_kept_asks_nobody(
    judge_server: Callable[[fake.Script], fake.FakeServer], tmp_path: Path
) -> None:
    server = judge_server(lambda request, n: "A")
    judge = {"model": "m", "base_url": server.url, "cache_dir": str(tmp_path)}
    first = mlflow_mcq.examine_judge(judge)
    n_asked = len(server.requests)
    assert mlflow_mcq.examine_judge(judge) == first
    assert len(server.requests) == n_asked
