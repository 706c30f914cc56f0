"""Metrics for MLflow's default evaluator, over a column of answers."""

from __future__ import annotations

import inspect
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import refused

from mlflow_mcq import extra_metrics
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError

COLOURS = ["red", "green", "blue"]
DATA = pd.DataFrame(
    {
        "question": [f"Which colour is {n}?" for n in range(5)],
        "options": [COLOURS] * 5,
        "answer": ["A", "B", "C", "A", "B"],
        "prediction": ["A", "(A)", "I would not say.", "Probably A, since it glows.", None],
    }
)
FIVE = {"mcq_accuracy": 2 / 5, "mcq_accuracy_decided": 2 / 3, "mcq_other_rate": 2 / 5}


def numbers(metrics: list[Any], data: pd.DataFrame = DATA) -> dict[str, float]:
    """The metrics as MLflow would call them, without a run."""
    found: dict[str, float] = {}
    for metric in metrics:
        names = list(inspect.signature(metric.eval_fn).parameters)[2:]
        cells = [data[name] for name in names]
        value = metric.eval_fn(data["prediction"], data["answer"], *cells)
        found |= value.aggregate_results
    return found


@pytest.mark.parametrize(
    ("grader", "expected"),
    [
        pytest.param("bounded", {**FIVE, "mcq_unread_rate": 0.0}, id="a regex, by short name"),
        pytest.param(
            "strict",
            # Settled: "A" and "(A)"; nothing at all is OTHER; two replies are for a judge.
            {
                "mcq_accuracy": 1 / 3,
                "mcq_accuracy_decided": 1 / 2,
                "mcq_other_rate": 1 / 3,
                "mcq_unread_rate": 2 / 5,
            },
            id="the strict rule abstains on prose",
        ),
    ],
)
def test_numbers(grader: str, expected: dict[str, float]) -> None:
    assert numbers(extra_metrics.all_metrics("options", grader)) == pytest.approx(expected)


def test_columns_of_letters_and_orders() -> None:
    data = pd.DataFrame(
        {
            "A": ["red", "up"], "B": ["green", "down"], "C": ["blue", None],
            "shown": [[1, 2, 0], [1, 0]], "answer": ["A", "B"], "prediction": ["C", "A"],
        }
    )  # fmt: skip
    metric = extra_metrics.accuracy(["A", "B", "C"], order="shown")
    assert numbers([metric], data) == {"mcq_accuracy": 1.0}


def test_nothing_is_logged_without_rows_behind_it() -> None:
    data = DATA.iloc[[2]]
    found = numbers(extra_metrics.all_metrics("options"), data)
    assert found == {"mcq_accuracy": 0.0, "mcq_other_rate": 1.0, "mcq_unread_rate": 0.0}


def test_a_judge_reads_each_row_once(judge_server: Any) -> None:
    server = judge_server(lambda request, n: refused(400, "no") if n == 0 else "OTHER")
    judge = {"model": "m", "base_url": server.url, "max_retries": 0, "concurrency": 1}
    found = numbers(extra_metrics.all_metrics("options", judge, question="question"))
    # "A" and "(A)" and the empty reply need no judge; one of the other two fails on it.
    assert found == pytest.approx(
        {
            "mcq_accuracy": 1 / 4,
            "mcq_accuracy_decided": 1 / 2,
            "mcq_other_rate": 2 / 4,
            "mcq_unread_rate": 1 / 5,
        }
    )
    assert len(server.requests) == 2


def test_in_the_default_evaluator(store: None) -> None:
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=DATA.dropna(),
            predictions="prediction",
            targets="answer",
            extra_metrics=extra_metrics.all_metrics("options"),
        )
    assert result.metrics["mcq_accuracy"] == 2 / 4
    assert result.metrics["mcq_accuracy_decided"] == pytest.approx(2 / 3)
    table = result.tables["eval_results_table"]
    assert list(table["mcq_accuracy/score"]) == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        pytest.param(lambda: extra_metrics.accuracy("my options"), SettingsError, "Rename",
                     id="space"),
        pytest.param(lambda: extra_metrics.accuracy("targets"), SettingsError, "Rename",
                     id="taken"),
        pytest.param(
            lambda: extra_metrics.accuracy("options", "regexp"), SettingsError, "regex_naive",
            id="name"
        ),
        pytest.param(
            lambda: extra_metrics.accuracy("options", {"model": "m"}, question="question"),
            JudgeNotConfigured, "base_url", id="half a judge",
        ),
        pytest.param(
            lambda: extra_metrics.accuracy("options", {"model": "m", "base_url": "http://x"}),
            SettingsError, "what was asked", id="a judge without the question",
        ),
    ],
)  # fmt: skip
def test_refused_when_made(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
