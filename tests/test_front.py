"""The one-line door: good errors before a run is opened."""

from __future__ import annotations

from typing import Any

import mlflow
import pandas as pd
import pytest

import mlflow_mcq
from mlflow_mcq.datasets.frame import read_rows
from mlflow_mcq.errors import McqError
from mlflow_mcq.front import usable_model
from mlflow_mcq.settings import read_settings
from mlflow_mcq.unwrap import stored_answers

DATA = pd.DataFrame({"question": ["q?"], "options": [["x", "y"]], "answer": ["A"]})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({"evaluators": ["mcq_jugde"]}, "evaluators: must be some of ours", id="typo"),
        pytest.param({"evaluators": []}, "evaluators", id="none"),
        pytest.param({"orientatoins": "swap"}, 'Did you mean "orientations"', id="setting"),
        pytest.param({"judge": {"model": "m"}}, r"judge\.base_url", id="half a judge"),
        pytest.param(
            {"judge": {"model": "m", "base_url": "local"}},
            "judge: names a judge, and nobody asks it: the evaluators are mcq_regex",
            id="a judge that nobody asks",
        ),
        pytest.param({"data": 3}, "data: must be", id="data of no kind"),
        pytest.param({"data": "no.jsonl"}, "does not exist", id="missing file"),
        pytest.param({"data": "no.xlsx"}, "unknown ending", id="file of another kind"),
        pytest.param({"model": ("a", "b", "c")}, "model, tokenizer", id="a tuple of three"),
        pytest.param({"model": "openai:/gpt-4o"}, "remote_model", id="a provider's name"),
    ],
)
def test_faults_are_found_before_a_run_is_opened(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"model": lambda frame: [], "data": DATA, "evaluators": ["mcq_regex"]}
    with pytest.raises(McqError, match=said):
        mlflow_mcq.evaluate(**{**given, **arguments})
    assert mlflow.active_run() is None


@pytest.mark.parametrize(
    "model", ["models:/m/1", "models:/m-123", "runs:/abc/model", "endpoints:/x", None, len]
)
def test_what_mlflow_understands_is_left_to_it(model: Any) -> None:
    assert usable_model(model) is model


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(DATA, "must be a column with answers", id="no answers"),
        pytest.param(DATA.assign(generation="A"), "these are made already", id="answers"),
    ],
)
def test_without_a_model_the_first_thing_missing_is_said(data: pd.DataFrame, said: str) -> None:
    settings = read_settings({"orientations": "swap"})
    with pytest.raises(McqError, match=said):
        stored_answers(read_rows(data, settings.columns), None, settings)


@pytest.mark.parametrize(
    "targets", [["A"], ("A",), pd.Series(["A"]), 1], ids=lambda given: type(given).__name__
)
@pytest.mark.parametrize("ask", [mlflow_mcq.evaluate, mlflow_mcq.cost_before])
def test_answers_beside_the_data_are_refused(ask: Any, targets: Any) -> None:
    data = [{"question": "?", "options": ["sun", "moon"]}]
    with pytest.raises(McqError, match=r"targets: must be the name of a column; got '\w+'"):
        ask(print, data, targets=targets, evaluators="mcq_regex")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("n_items", "fired"),
    [pytest.param(3, True, id="few items"), pytest.param(40, False, id="many")],
)
def test_alarms_are_said_beside_the_numbers(n_items: int, fired: bool, capsys) -> None:
    rows = [
        {"question": f"Which is {n}?", "options": [f"iron {n}", f"tin {n}"], "answer": "AB"[n % 2]}
        for n in range(n_items)
    ]
    result = mlflow_mcq.evaluate(
        lambda frame: ["A" if n % 2 else "B" for n in range(len(frame))], rows,
        evaluators="mcq_regex",
    )  # fmt: skip
    tag = mlflow.get_run(result.run_id).data.tags["mcq.alarms"]
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("alarms: ")]
    assert ("too_few_items" in tag) is fired
    assert said == ([f"alarms: {tag}; what each found and asks for is in the table mcq_alarms"]
                    if tag != "none" else [])  # fmt: skip


@pytest.mark.usefixtures("store")
def test_numbered_answers_bring_no_advice_on_training_sets(
    recwarn: pytest.WarningsRecorder,
) -> None:
    data = DATA.assign(answer=[0])
    mlflow_mcq.evaluate(lambda frame: ["A"] * len(frame), data, evaluators="mcq_regex")
    assert not [one for one in recwarn if "integer column" in str(one.message)]
