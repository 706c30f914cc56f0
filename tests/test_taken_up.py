"""An evaluation that broke off goes on where it was: no call is made twice."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow import MlflowClient

import mlflow_mcq
from mlflow_mcq import report

FRAME = pd.DataFrame(
    {
        "question": ["Which metal is liquid?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
    }
)
N_ROWS = 5


@pytest.fixture(autouse=True)
def home(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(store / "home"))
    return store / "home"


@pytest.fixture
def model(judge_server: Callable[[Script], FakeServer]) -> FakeServer:
    return judge_server(lambda request, n: f"reply {n}, hard to read")


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> FakeServer:
    return judge_server(lambda request, n: "A" if n % 2 else "OTHER")


def evaluate(model: FakeServer, judge: FakeServer, **settings: Any) -> Any:
    asked = {"model": "j", "base_url": judge.url, "exam_replies": 0, "concurrency": 1}
    remote = mlflow_mcq.remote_model(model.url, "m", concurrency=1)
    return mlflow_mcq.evaluate(remote, FRAME, judge=asked, targets="answer", **settings)


def texts(result: Any) -> dict[str, str]:
    table = result.artifacts["mcq_generations_parquet"].content
    return dict(zip(table["row_id"], table["generation"], strict=True))


class Dies(Exception):
    """What a test does to a run."""


def break_off(monkeypatch: pytest.MonkeyPatch, model: FakeServer, judge: FakeServer) -> None:
    def die(*_: object, **__: object) -> None:
        raise Dies

    with monkeypatch.context() as broken:
        broken.setattr(report, "_log_tables", die)
        with pytest.raises(Dies):
            evaluate(model, judge)


def test_what_was_done_is_not_done_again(monkeypatch, model, judge, home):
    break_off(monkeypatch, model, judge)
    calls = len(model.requests), len(judge.requests)
    result = evaluate(model, judge)
    assert (len(model.requests), len(judge.requests)) == calls == (N_ROWS, N_ROWS)
    assert result.metrics["generation/n_resumed"] == N_ROWS
    assert sorted(texts(result).values()) == [f"reply {n}, hard to read" for n in range(N_ROWS)]
    gc.collect()  # a call ends when MLflow lets go of its data
    assert [*(home / "runs").iterdir()] == []


def test_a_run_that_ended_well_is_measured_afresh(model, judge):
    evaluate(model, judge)
    evaluate(model, judge)
    assert (len(model.requests), len(judge.requests)) == (2 * N_ROWS, 2 * N_ROWS)


def test_other_settings_share_nothing(monkeypatch, model, judge):
    break_off(monkeypatch, model, judge)
    evaluate(model, judge, max_new_tokens=9)
    assert len(model.requests) == 2 * N_ROWS


def test_a_folder_of_the_users_serves_the_next_run(model, judge, tmp_path):
    evaluate(model, judge, cache=str(tmp_path / "mine"))
    result = evaluate(model, judge, cache=str(tmp_path / "mine"))
    assert len(model.requests) == len(judge.requests) == N_ROWS
    assert result.metrics["generation/n_resumed"] == N_ROWS


def test_off_keeps_nothing(monkeypatch, model, judge, home):
    evaluate(model, judge, cache="off")
    assert not (home / "runs").exists()


def test_a_function_is_never_taken_up(judge, home):
    """It may have been mended since: yesterday's answers are not today's function."""
    calls = []

    def answer(frame: pd.DataFrame) -> list[str]:
        calls.extend(frame["prompt"])
        return ["A"] * len(frame)

    asked = {"model": "j", "base_url": judge.url, "exam_replies": 0, "check_rows": 0}
    for _ in range(2):
        mlflow_mcq.evaluate(answer, FRAME, judge=asked, targets="answer")
    assert len(calls) == 2 * N_ROWS
    assert not (home / "runs").exists()


def test_rows_that_failed_are_asked_again(judge_server, judge, tmp_path):
    def flaky(request: dict[str, Any], n: int) -> Any:
        return {"status": 400, "body": {"error": {"message": "no"}}} if n == 1 else "reply"

    model = judge_server(flaky)
    first = evaluate(model, judge, cache=str(tmp_path / "mine"))
    assert MlflowClient().get_run(first.run_id).data.metrics["generation/error_rate"] > 0
    second = evaluate(model, judge, cache=str(tmp_path / "mine"))
    assert second.metrics["generation/n_resumed"] == N_ROWS - 1
    assert second.metrics["generation/error_rate"] == 0
