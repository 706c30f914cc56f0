"""A judge in an evaluation of MLflow: its faults, its key, its exam, what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script, garbage, rate_limited, refused, server_error
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from two_items import (
    N_ROWS,
    bare_oracle,
    evaluate,
    grades_of,
    judged_by,
    oracle,
    reading_judge,
    run_of,
)

import mlflow_mcq
from mlflow_mcq.trace_search import in_experiment

pytestmark = pytest.mark.usefixtures("shared_store")


def test_a_judge_that_fails_is_neither_other_nor_incorrect(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    server = judge_server(lambda request, n: server_error())
    result = evaluate(
        oracle, evaluators="mcq_judge",
        evaluator_config={"judge": judged_by(server, max_retries=0)},
    )  # fmt: skip
    assert result.metrics["judge/judge_error_rate"] == 1
    assert "judge/accuracy" not in result.metrics
    assert all(math.isfinite(value) for value in result.metrics.values())
    summary = result.tables["mcq_summary"].set_index("metric")
    assert "0 graded rows" in summary.loc["judge/accuracy", "note"]
    grades = grades_of(result)
    assert grades["verdict"].isna().all()
    assert grades["error"].str.contains("500").all()
    assert "judge_errors" in run_of(result).data.tags["mcq.alarms"]


@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        pytest.param(rate_limited(), 0, id="429 is asked again"),
        pytest.param("I would say CORRECT", 0, id="prose is asked again"),
        pytest.param(garbage(), 0, id="a broken body is asked again"),
        pytest.param(refused(400, "too long"), 1, id="a refusal is a judge error"),
    ],
)
def test_single_judge_faults(
    judge_server: Callable[[Script], FakeServer], fault: Any, errors: int
) -> None:
    server = judge_server(lambda request, n: fault if n == 0 else reading_judge(request, n))
    config = {"judge": judged_by(server, concurrency=1)}
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config=config)
    assert result.metrics["judge/n_judge_errors"] == errors
    assert result.metrics["judge/accuracy"] == 1


def test_the_judge_is_checked_on_plain_labels(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    server = judge_server(lambda request, n: "A")
    result = evaluate(
        bare_oracle, evaluators="mcq_judge", evaluator_config={"judge": judged_by(server)}
    )
    assert result.metrics["judge/prefilter_rate"] == 1
    assert result.metrics["judge/accuracy"] == 1
    assert result.metrics["judge/n_checked"] == N_ROWS
    assert result.metrics["judge/strict_agreement"] == 2 / N_ROWS
    assert run_of(result).data.tags["mcq.alarms"] == "judge_unreliable, too_few_items"


def test_judge_calls_leave_no_traces(judge: FakeServer) -> None:
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config={"judge": judged_by(judge)})
    experiment = run_of(result).info.experiment_id
    place = in_experiment(mlflow.search_traces, experiment)
    assert len(mlflow.search_traces(**place, return_type="list")) == 0


def test_the_key_is_sent_and_lands_nowhere(
    judge: FakeServer, shared_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-canary-5f1e")
    config = {"judge": judged_by(judge, api_key_env="TEST_JUDGE_KEY")}
    evaluate(oracle, evaluators="mcq_judge", evaluator_config=config)
    assert judge.headers[-1]["authorization"] == "Bearer sk-canary-5f1e"
    held = [
        f for f in shared_store.rglob("*") if f.is_file() and b"sk-canary-5f1e" in f.read_bytes()
    ]
    assert held == []


def test_half_a_character_costs_nothing(judge_server: Callable[[Script], FakeServer]) -> None:
    server = judge_server(lambda request, n: "\ud800 A")
    result = evaluate(
        lambda frame: ["The answer, \ud800 it is hard"] * len(frame),
        evaluators="mcq_judge",
        evaluator_config={"judge": judged_by(server, attempts=1)},
    )
    rows = result.artifacts["mcq_generations_parquet"].content
    assert rows["generation"].str.contains(r"\\ud800").all()
    assert len(result.tables["mcq_grades"]) == 3 * N_ROWS


def test_a_call_that_fails_loses_only_its_row(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    from fake_server import refused

    server = judge_server(lambda request, n: refused(400, "filtered") if n == 2 else "A")
    result = evaluate(mlflow_mcq.remote_model(base_url=server.url, model="m", concurrency=1))
    assert result.metrics["generation/error_rate"] == 1 / N_ROWS
    assert result.metrics["regex_bounded/n_rows"] == N_ROWS - 1
    assert "generations_failed" in run_of(result).data.tags["mcq.alarms"]
    errors = result.artifacts["mcq_generations_parquet"].content["error"]
    assert errors.str.contains("400").sum() == 1
    dead = judge_server(lambda request, n: refused(401, "who are you"))
    with pytest.raises(MlflowException, match="5 of 5 rows could not be answered"):
        evaluate(mlflow_mcq.remote_model(base_url=dead.url, model="m"))


def test_answers_are_kept_when_the_reading_breaks(
    judge: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow_mcq.graders import JudgeGrader

    def interrupted(self: JudgeGrader, generations: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(JudgeGrader, "grade", interrupted)
    with mlflow.start_run() as run, pytest.raises(KeyboardInterrupt):
        evaluate(oracle, evaluators="mcq_judge", evaluator_config={"judge": judged_by(judge)})
    client = MlflowClient()
    assert client.get_run(run.info.run_id).data.tags["mcq.error"] == "KeyboardInterrupt"
    path = client.download_artifacts(run.info.run_id, "mcq_generations.parquet")
    assert len(pd.read_parquet(path)) == N_ROWS


def test_a_judge_sits_its_exam_once_on_a_machine(
    judge_server: Callable[[Script], FakeServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path))
    server = judge_server(lambda request, n: "A")
    config = {"judge": judged_by(server, exam_replies=20, check_rows=0)}
    first = evaluate(bare_oracle, evaluators="mcq_judge", evaluator_config=config)
    assert len(server.requests) == 20
    assert first.metrics["judge/exam_n_replies"] == 20
    assert first.metrics["judge/exam_reliable"] == 0
    assert first.metrics["judge/exam_letter_bias_slot_1"] > 0.3
    assert "judge_unreliable" in run_of(first).data.tags["mcq.alarms"]
    second = evaluate(bare_oracle, evaluators="mcq_judge", evaluator_config=config)
    assert len(server.requests) == 20
    assert second.metrics["judge/exam_kappa"] == first.metrics["judge/exam_kappa"]


def test_what_a_judge_cost_and_what_a_parser_would_have_said(judge: FakeServer) -> None:
    config = {"judge": judged_by(judge, prices={"prompt": 1.0, "reply": 2.0})}
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config=config)
    assert result.metrics["judge/n_calls"] == len(judge.requests) == N_ROWS
    assert result.metrics["judge/prompt_tokens"] == 7 * N_ROWS
    assert result.metrics["judge/cost"] == pytest.approx((7 + 2 * 3) * N_ROWS / 1e6)
    assert result.metrics["regex_naive/spot_n"] == N_ROWS
    wrong = result.metrics["regex_naive/spot_n_wrong_letter"]
    assert result.metrics["regex_naive/spot_rate"] == wrong / N_ROWS > 0


def test_a_panel_votes(judge_server: Callable[[Script], FakeServer], judge: FakeServer) -> None:
    other = judge_server(lambda request, n: "OTHER")
    member = {"model": "sceptic", "base_url": other.url}
    config = {"judge": judged_by(judge, panel=[member, {**member, "model": "sceptic-2"}])}
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config=config)
    assert result.metrics["judge/other_rate"] == 1
    assert len(other.requests) == 2 * N_ROWS
