"""The main road: `mlflow.models.evaluate` with our evaluators, on a real tracking store."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from two_items import (
    FRAME,
    N_ROWS,
    bare_oracle,
    evaluate,
    grades_of,
    judged_by,
    never,
    oracle,
    parrot,
    run_of,
    shown,
)

import mlflow_mcq
from mlflow_mcq.plugin import JudgeEvaluator

pytestmark = pytest.mark.usefixtures("shared_store")


def test_a_judged_evaluation_lands_in_mlflow(judge: FakeServer) -> None:
    result = evaluate(
        oracle,
        evaluators=["mcq_judge"],
        evaluator_config={"mcq_judge": {"judge": judged_by(judge)}},
    )
    assert result.metrics["judge/accuracy"] == 1
    assert result.metrics["judge/n_rows"] == N_ROWS
    assert result.metrics["judge/n_items"] == 2
    assert result.metrics["judge/consistency"] == 1
    assert result.metrics["judge/judge_error_rate"] == 0
    # Other evaluators of the call name theirs without a group: none can replace one of ours.
    assert all("/" in name for name in result.metrics)
    # "It has to be ..." starts with I and holds an a: the naive regex is somewhere else.
    assert result.metrics["judge/regex_naive_disagreement"] > 0
    run = run_of(result)
    assert run.info.status == "FINISHED"
    assert run.data.tags["mcq.status"] == "finished"
    assert run.data.tags["mcq.judge_fingerprint"] == run.data.params["mcq.judge_fingerprint"]
    assert run.data.params["mcq.judge_model"] == "fake-judge"
    assert {k: run.data.metrics[k] for k in result.metrics} == pytest.approx(result.metrics)
    assert run.inputs.dataset_inputs
    files = {f.path for f in MlflowClient().list_artifacts(result.run_id)}
    assert files >= {
        "mcq_generations.parquet", "mcq_grades.parquet", "mcq_generations.json",
        "mcq_grades.json", "mcq_by_orientation.json", "mcq_confusion.json", "mcq_summary.json",
        "mcq_alarms.json", "mcq_confusion_judge.png", "mcq_by_orientation_chart.png",
        "mcq_prompts.txt", "mcq_settings.json",
    }  # fmt: skip


def test_each_orientation_is_a_step_and_a_row(judge: FakeServer) -> None:
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config={"judge": judged_by(judge)})
    history = MlflowClient().get_metric_history(result.run_id, "judge_by_orientation/accuracy")
    assert [(m.step, m.value) for m in history] == [(0, 1.0), (1, 1.0), (2, 1.0)]
    assert not any(name.startswith("judge_by_orientation") for name in result.metrics)
    table = result.tables["mcq_by_orientation"]
    assert table[table["grader"] == "judge"]["n_rows"].tolist() == [2, 2, 1]


def test_tables_hold_every_row_with_what_was_sent(judge: FakeServer) -> None:
    result = evaluate(oracle, evaluators="mcq_judge", evaluator_config={"judge": judged_by(judge)})
    rows = result.artifacts["mcq_generations_parquet"].content
    assert rows["row_id"].tolist() == ["metal/o0", "metal/o1", "metal/o2", "star/o0", "star/o1"]
    assert [list(order) for order in rows["order"]] == [
        [0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1], [1, 0],
    ]  # fmt: skip
    assert rows["gold_letter"].tolist() == ["B", "A", "C", "A", "B"]
    for prompt, order, options in zip(rows["prompt"], rows["order"], rows["options"], strict=True):
        assert list(shown(prompt)) == [options[option] for option in order]
    grades = grades_of(result)
    assert set(grades["verdict"]) == {"CORRECT"}
    assert grades["shown_letter"].tolist() == rows["gold_letter"].tolist()
    assert list(result.tables["mcq_grades"].columns[:2]) == ["row_id", "verdict"]
    assert {"mcq_generations", "mcq_grades", "mcq_confusion", "mcq_summary"} <= set(result.tables)


def test_a_parrot_shows_as_position_bias() -> None:
    metrics = evaluate(parrot).metrics
    assert metrics["regex_bounded/pick_rate_slot_1"] == 1
    assert metrics["regex_bounded/consistency"] == 0
    assert metrics["regex_bounded/accuracy"] == 2 / N_ROWS
    # Alone, the item whose gold is first is right in one orientation and wrong in the other.
    assert evaluate(parrot, FRAME.iloc[1:]).metrics["regex_bounded/accuracy_spread"] == 1


@pytest.mark.parametrize(
    ("evaluators", "wrap"),
    [
        pytest.param("mcq_judge", lambda config: config, id="string, flat"),
        pytest.param("mcq_judge", lambda config: {"mcq_judge": config}, id="string, nested"),
        pytest.param(["mcq_judge"], lambda config: {"mcq_judge": config}, id="list, nested"),
    ],
)
def test_configuration_flat_and_nested(
    judge: FakeServer, evaluators: Any, wrap: Callable[[Any], Any]
) -> None:
    config = {"judge": judged_by(judge), "orientations": "as-is"}
    result = evaluate(oracle, evaluators=evaluators, evaluator_config=wrap(config))
    assert result.metrics["judge/n_rows"] == 2


def test_the_older_mlflow_evaluate_is_the_same_road() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = mlflow.evaluate(
            bare_oracle, FRAME, targets="answer", model_type="mcq", evaluators="mcq_regex"
        )
    assert result.metrics["regex_bounded/accuracy"] == 1


def test_one_line_without_mlflow_words(judge: FakeServer) -> None:
    result = mlflow_mcq.evaluate(
        oracle, FRAME.to_dict("records"), judge=judged_by(judge), orientations="rotations:2"
    )
    assert result.metrics["judge/n_rows"] == 4


@pytest.mark.parametrize(
    ("data", "more"),
    [
        pytest.param(FRAME.to_dict("records"), {"targets": None}, id="list of dicts"),
        pytest.param(
            FRAME.drop(columns="answer").to_dict("records"), {"targets": ["B", "A"]},
            id="list of dicts and a list of answers",
        ),
        pytest.param(
            mlflow.data.from_pandas(FRAME.reset_index(drop=True), targets="answer", name="metals"),
            {"targets": None}, id="MLflow dataset with targets",
        ),
        pytest.param(
            mlflow.data.from_pandas(FRAME.reset_index(drop=True)), {"targets": None},
            id="MLflow dataset without targets",
        ),
        pytest.param(FRAME.assign(options=FRAME["options"].map(json.dumps)), {}, id="JSON options"),
        pytest.param(FRAME.set_index([pd.Index([0.5, 1.5])]), {}, id="float index"),
        pytest.param(
            pd.DataFrame(
                {"question": FRAME["question"].tolist(), "A": ["copper", "sun"],
                 "B": ["mercury", "moon"], "C": ["tin", None], "answer": [1, 0]}
            ), {}, id="lettered columns, index answers",
        ),
    ],
)  # fmt: skip
def test_data_in_every_kind(data: Any, more: dict[str, Any]) -> None:
    result = evaluate(bare_oracle, data, **more)
    assert result.metrics["regex_bounded/accuracy"] == 1
    assert result.metrics["regex_bounded/n_rows"] == N_ROWS


def test_evaluators_of_one_call_generate_once(judge: FakeServer) -> None:
    calls = []

    def model(frame: pd.DataFrame) -> list[str]:
        calls.append(len(frame))
        return oracle(frame)

    result = evaluate(
        model, evaluators=["mcq_regex", "mcq_judge"],
        evaluator_config={"mcq_judge": {"judge": judged_by(judge)}, "mcq_regex": {}},
    )  # fmt: skip
    assert sum(calls) == N_ROWS
    assert {"judge/accuracy", "regex_naive/accuracy", "judge/regex_bounded_disagreement"} <= set(
        result.metrics
    )
    assert len(grades_of(result, "judge")) == len(grades_of(result, "regex_naive")) == N_ROWS
    for name in ("regex_naive_by_orientation/accuracy", "judge_by_orientation/accuracy"):
        assert len(MlflowClient().get_metric_history(result.run_id, name)) == 3


def test_evaluators_of_one_call_cannot_ask_for_different_rows(judge: FakeServer) -> None:
    config = {
        "mcq_regex": {"orientations": "as-is"},
        "mcq_judge": {"judge": judged_by(judge), "orientations": "rotations"},
    }
    with pytest.raises(MlflowException, match="orientations: evaluators of one call"):
        evaluate(oracle, evaluators=["mcq_regex", "mcq_judge"], evaluator_config=config)


@pytest.mark.parametrize(
    ("model_type", "config", "said"),
    [
        pytest.param("multiple-choice", {}, True, id="ours"),
        pytest.param("mcq", None, True, id="ours, short"),
        pytest.param("text", {"mcq_judge": {}}, True, id="named by the configuration"),
        *(
            pytest.param(kind, config, False, id=f"{kind} with {config}")
            for kind in ("classifier", "regressor", "text", "question-answering", None)
            for config in ({}, None, {"judge": {"model": "m"}}, {"metric_prefix": "x"})
        ),
    ],
)
def test_can_evaluate_takes_nothing_over(model_type: Any, config: Any, said: bool) -> None:
    assert JudgeEvaluator.can_evaluate(model_type=model_type, evaluator_config=config) is said


def test_other_peoples_evaluations_are_left_alone() -> None:
    data = pd.DataFrame({"x": [0.0, 1.0, 0.2, 0.9], "y": [0, 1, 0, 1]})
    result = mlflow.models.evaluate(
        lambda frame: (frame["x"] > 0.5).astype(int), data, targets="y",
        model_type="classifier", evaluators=None, evaluator_config={"log_explainer": False},
    )  # fmt: skip
    assert result.metrics["accuracy_score"] == 1
    assert not any(name.startswith(("judge/", "regex_")) for name in result.metrics)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"judge": None}, id="none"),
        pytest.param({"judge": {"model": "m"}}, id="no server"),
        pytest.param({"judge": {"base_url": "local"}}, id="no model"),
        pytest.param({"judge": "sk-canary-91"}, id="a key in the wrong place"),
    ],
)
def test_without_a_judge_nothing_is_judged(config: dict[str, Any]) -> None:
    with mlflow.start_run() as run, pytest.raises(MlflowException) as error:
        evaluate(never, evaluators="mcq_judge", evaluator_config=config)
    for thing in ("judge.model", "judge.base_url", "judge.api_key_env"):
        assert thing in str(error.value)
    assert "canary" not in str(error.value)
    data = MlflowClient().get_run(run.info.run_id).data
    assert data.tags["mcq.status"] == "blocked"
    assert data.metrics == {}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param({"orientatons": "swap"}, 'Did you mean "orientations"', id="misspelt"),
        pytest.param({"orientations": "spin"}, "orientations: must be as-is", id="unknown scheme"),
        pytest.param({"repeats": 0}, "repeats: .*greater than or equal to 1", id="out of range"),
        pytest.param({"orientations": "swap"}, "metal.*two options", id="swap with three options"),
        pytest.param(
            {"judge": {"model": "m", "base_url": "u", "temperature": 0.7}},
            "judge.temperature", id="a judge that draws lots",
        ),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_by_name(config: dict[str, Any], said: str) -> None:
    with mlflow.start_run() as run, pytest.raises(MlflowException, match=said):
        evaluate(never, evaluator_config=config)
    assert MlflowClient().get_run(run.info.run_id).data.tags["mcq.status"] == "failed"


@pytest.mark.parametrize("argument", ["extra_metrics", "custom_artifacts"])
def test_what_cannot_be_honoured_is_refused_in_a_sentence(argument: str) -> None:
    extra = mlflow.metrics.exact_match() if argument == "extra_metrics" else lambda *_: {}
    with pytest.raises(MlflowException, match=f"{argument}: is not computed by mcq_regex"):
        evaluate(never, **{argument: [extra]})


def test_an_evaluation_that_breaks_tags_a_run_that_goes_on() -> None:
    with mlflow.start_run() as run, pytest.raises(MlflowException, match="needs a question"):
        evaluate(never, FRAME.drop(columns="question"))
    tags = MlflowClient().get_run(run.info.run_id).data.tags
    assert tags["mcq.status"] == "failed"
    assert "needs a question" in tags["mcq.error"]


def test_a_run_is_one_arm() -> None:
    with mlflow.start_run() as run:
        evaluate(parrot)
        with pytest.raises(MlflowException, match="a run is one arm"):
            evaluate(never, evaluator_config={"orientations": "as-is"})
        with mlflow.start_run(nested=True):
            evaluate(parrot, evaluator_config={"orientations": "as-is"})
    data = MlflowClient().get_run(run.info.run_id).data
    assert data.tags["mcq.status"] == "finished"
    assert data.metrics["regex_bounded/n_rows"] == N_ROWS


def test_two_threads_give_autologging_back() -> None:
    import threading

    from mlflow.utils import autologging_utils

    from mlflow_mcq.tracking import quiet

    inside, leave = threading.Event(), threading.Event()

    def longer() -> None:
        with quiet():
            inside.set()
            leave.wait(10)

    with quiet():
        thread = threading.Thread(target=longer)
        thread.start()
        inside.wait(10)
    assert autologging_utils._AUTOLOGGING_GLOBALLY_DISABLED
    leave.set()
    thread.join()
    assert not autologging_utils._AUTOLOGGING_GLOBALLY_DISABLED


def test_nothing_is_kept_after_a_call() -> None:
    import gc

    from mlflow_mcq.plugin import _ARMS

    evaluate(parrot)
    gc.collect()
    assert _ARMS._held == {}
