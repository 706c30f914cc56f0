"""The main road: `mlflow.models.evaluate` with our evaluators, on a real tracking store."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from fake_server import FakeServer, Script, garbage, rate_limited, refused, server_error
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.plugin import JudgeEvaluator
from mlflow_mcq.trace_search import in_experiment

pytestmark = pytest.mark.usefixtures("shared_store")

LETTER = re.compile(r"^([A-Z])\) (.*)$", re.MULTILINE)
FRAME = pd.DataFrame(
    {
        "question": ["Which metal is liquid at room temperature?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
        "id": ["metal", "star"],
    },
    index=[7, 7],
)
GOLD = {"mercury", "sun"}
N_ROWS = 5


def shown(prompt: str) -> dict[str, str]:
    """Letter of each option text, as the prompt shows them."""
    return {text: letter for letter, text in LETTER.findall(prompt)}


def oracle(frame: pd.DataFrame) -> list[str]:
    """Answers each prompt rightly, with prose around it that only a judge can read."""
    answers = []
    for prompt in frame["prompt"]:
        (text,) = GOLD & set(shown(prompt))
        answers.append(f"It has to be {text}, I think.")
    return answers


def bare_oracle(frame: pd.DataFrame) -> list[str]:
    right = [GOLD & set(shown(prompt)) for prompt in frame["prompt"]]
    return [
        shown(prompt)[text.pop()] if text else "no idea"
        for prompt, text in zip(frame["prompt"], right, strict=True)
    ]


def parrot(frame: pd.DataFrame) -> list[str]:
    return ["A"] * len(frame)


def reading_judge(request: dict[str, Any], n_calls: int) -> str:
    """Finds the one option text in the candidate's reply, as a perfect judge would."""
    asked = request["messages"][-1]["content"]
    reply = asked.split("The candidate's reply:")[1]
    named = [letter for text, letter in shown(asked).items() if text in reply]
    return named[0] if len(named) == 1 else "OTHER"


def judged_by(server: FakeServer, **settings: Any) -> dict[str, Any]:
    where = {"model": "fake-judge", "base_url": server.url}
    return {**where, "max_retries": 2, "exam_replies": 0, **settings}


def evaluate(model: Any, data: Any = FRAME, evaluators: Any = "mcq_regex", **more: Any) -> Any:
    more.setdefault("targets", "answer")
    return mlflow.models.evaluate(
        model, data, model_type="multiple-choice", evaluators=evaluators, **more
    )


def run_of(result: Any) -> Any:
    return MlflowClient().get_run(result.run_id)


def grades_of(result: Any, grader: str = "judge") -> pd.DataFrame:
    table = result.artifacts["mcq_grades_parquet"].content
    return table[table["grader"] == grader].reset_index(drop=True)


# --- the whole road -----------------------------------------------------------------


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> FakeServer:
    return judge_server(reading_judge)


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


# --- the ways of calling ------------------------------------------------------------


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


# --- who is asked -------------------------------------------------------------------


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


# --- no judge, wrong settings, wrong rows ------------------------------------------


def never(frame: pd.DataFrame) -> list[str]:
    raise AssertionError("the model must not be asked")


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


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param(["A"] * 4, "4", id="too few"),
        pytest.param(["A", "B", None, "A", "B"], "metal", id="None"),
        pytest.param(["A", "B", "A", 3, "B"], "star", id="a number"),
        pytest.param("A", "str", id="one text for all"),
    ],
)
def test_a_function_that_returns_something_else(answers: Any, said: str) -> None:
    with pytest.raises(MlflowException, match=said):
        evaluate(lambda frame: answers)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(list, id="list"),
        pytest.param(np.array, id="array"),
        pytest.param(lambda a: pd.Series(a, index=range(len(a), 0, -1)), id="series, odd index"),
        pytest.param(lambda a: pd.DataFrame({"out": a}, index=[0] * len(a)), id="frame, odd index"),
    ],
)
def test_answers_go_by_position(wrap: Callable[[list[str]], Any]) -> None:
    result = evaluate(lambda frame: wrap(bare_oracle(frame)))
    assert result.metrics["regex_bounded/accuracy"] == 1


def test_input_column_and_messages() -> None:
    seen: list[Any] = []

    def model(frame: pd.DataFrame) -> list[str]:
        seen.append(list(frame.columns))
        seen.extend(frame["chat"])
        return ["A"] * len(frame)

    evaluate(model, evaluator_config={"input_column": "chat", "input_format": "messages"})
    assert seen[0] == ["chat"]
    assert seen[1][0]["role"] == "user"
    assert "Which metal" in seen[1][0]["content"]


@pytest.mark.parametrize("argument", ["extra_metrics", "custom_artifacts"])
def test_what_cannot_be_honoured_is_refused_in_a_sentence(argument: str) -> None:
    extra = mlflow.metrics.exact_match() if argument == "extra_metrics" else lambda *_: {}
    with pytest.raises(MlflowException, match=f"{argument}: is not computed by mcq_regex"):
        evaluate(never, **{argument: [extra]})


def test_a_raw_transformers_object_is_recognised() -> None:
    from tiny import byte_tokenizer, tiny_model
    from transformers import pipeline

    pipe = pipeline("text-generation", model=tiny_model(), tokenizer=byte_tokenizer())
    with pytest.raises(MlflowException, match=r"mlflow_mcq\.local_model"):
        evaluate(pipe)


# --- judge faults -------------------------------------------------------------------


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


# --- kinds of models ----------------------------------------------------------------


class Oracle(mlflow.pyfunc.PythonModel):
    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> list[str]:
        return bare_oracle(model_input)


def test_logged_models_by_every_address_are_linked() -> None:
    with mlflow.start_run() as training, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.pyfunc.log_model(name="oracle", python_model=Oracle())
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    for model in (loaded, info.model_uri, f"runs:/{training.info.run_id}/oracle"):
        result = evaluate(model)
        assert result.metrics["regex_bounded/accuracy"] == 1
        run = run_of(result)
        assert run.data.metrics["regex_bounded/accuracy"] == 1
        on_model = MlflowClient().get_logged_model(info.model_id).metrics
        linked = [m for m in on_model or [] if m.run_id == result.run_id]
        means = [m for m in linked if m.key == "regex_bounded/accuracy"]
        assert len(means) == 1, "linked once, not twice"


def test_a_logged_transformers_model_runs_on_our_engine() -> None:
    from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

    model = tiny_model(max_position_embeddings=1024)
    parts = {"model": model, "tokenizer": byte_tokenizer(PLAIN_TEMPLATE)}
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.transformers.log_model(
            parts, name="tiny", task="text-generation", pip_requirements=["transformers"]
        )
    result = evaluate(info.model_uri, evaluator_config={"max_new_tokens": 5})
    rows = result.artifacts["mcq_generations_parquet"].content
    assert set(rows["finish_reason"]) <= {"eos", "length"}
    assert rows["prompt"].str.startswith("<s>[user]Which").all()
    assert not any(
        text.startswith(prompt)
        for text, prompt in zip(rows["generation"], rows["prompt"], strict=True)
    )


def test_a_model_in_memory_and_a_remote_model(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

    local = mlflow_mcq.local_model(
        tiny_model(max_position_embeddings=1024), byte_tokenizer(PLAIN_TEMPLATE)
    )
    local_rows = evaluate(local, evaluator_config={"max_new_tokens": 3}).artifacts[
        "mcq_generations_parquet"
    ]
    assert (local_rows.content["n_tokens"] <= 3).all()
    server = judge_server(
        lambda request, n: bare_oracle(
            pd.DataFrame({"prompt": [request["messages"][0]["content"]]})
        )[0]
    )
    result = evaluate(mlflow_mcq.remote_model(base_url=server.url, model="m"))
    assert result.metrics["regex_bounded/accuracy"] == 1
    assert len(server.requests) == N_ROWS


# --- answers that the data holds ----------------------------------------------------


def test_stored_answers_are_read_in_their_stored_order() -> None:
    data = pd.DataFrame(
        {
            "id": ["q", "q", "r"],
            "question": ["Liquid metal?"] * 2 + ["Biggest?"],
            "options": [["copper", "mercury"]] * 2 + [["sun", "moon"]],
            "answer": ["mercury", "mercury", "sun"],
            "order": [[0, 1], [1, 0], [0, 1]],
            "generation": ["B", "A", None],
        }
    )
    result = evaluate(None, data)
    grades = grades_of(result, "regex_bounded")
    assert grades["verdict"].tolist() == ["CORRECT", "CORRECT", "OTHER"]
    assert grades["gold_slot"].tolist() == [1, 0, 0]
    by_column = evaluate(None, data.rename(columns={"generation": "said"}), predictions="said")
    assert by_column.metrics["regex_bounded/accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(MlflowException, match="column with answers"):
        evaluate(None, data.drop(columns="generation"))


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


def test_stored_answers_carry_no_settings_of_ours() -> None:
    data = FRAME.reset_index(drop=True).assign(generation=["B", "A"])
    params = run_of(evaluate(None, data)).data.params
    assert params == {"mcq.protocol": "stored"}
    with pytest.raises(MlflowException, match="orientations, repeats: says how answers are made"):
        evaluate(None, data, evaluator_config={"repeats": 2, "orientations": "swap"})


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


class Chatty(mlflow.pyfunc.ChatModel):
    def predict(self, context: Any, messages: Any, params: Any = None) -> Any:
        from mlflow.types.llm import ChatChoice, ChatCompletionResponse, ChatMessage

        said = bare_oracle(pd.DataFrame({"prompt": [messages[-1].content]}))[0]
        choice = ChatChoice(message=ChatMessage(role="assistant", content=said))
        return ChatCompletionResponse(choices=[choice], model="m")


class Agent(mlflow.pyfunc.ResponsesAgent):
    def predict(self, request: Any) -> Any:
        from mlflow.types.responses import ResponsesAgentResponse

        said = bare_oracle(pd.DataFrame({"prompt": [request.input[-1].content]}))[0]
        return ResponsesAgentResponse(output=[self.create_text_output_item(text=said, id="1")])


@pytest.mark.parametrize("kind", [Chatty, Agent])
def test_chat_models_and_agents_of_mlflow(kind: Any) -> None:
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.pyfunc.log_model(name="chat", python_model=kind(), pip_requirements=[])
    assert evaluate(info.model_uri).metrics["regex_bounded/accuracy"] == 1


def test_a_function_that_returns_several_columns_says_which() -> None:
    def model(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"said": bare_oracle(frame), "text": "A"})

    assert evaluate(model, predictions="said").metrics["regex_bounded/accuracy"] == 1
    with pytest.raises(MlflowException, match="returned 2 columns"):
        evaluate(model, predictions="other")


def test_the_words_of_a_users_exception_are_shown_but_not_stored() -> None:
    def model(frame: pd.DataFrame) -> list[str]:
        raise RuntimeError("401 for key sk-canary-77")

    with mlflow.start_run() as run, pytest.raises(MlflowException, match="sk-canary-77"):
        evaluate(model)
    tags = MlflowClient().get_run(run.info.run_id).data.tags
    assert tags["mcq.error"] == "function: RuntimeError"


def test_nothing_is_kept_after_a_call() -> None:
    import gc

    from mlflow_mcq.plugin import _ARMS

    evaluate(parrot)
    gc.collect()
    assert _ARMS._held == {}


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


# --- further readers ----------------------------------------------------------------


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


def test_the_analogy_match_reads_a_window_of_tokens() -> None:
    from tiny import byte_tokenizer, tiny_model

    def speaks(frame: pd.DataFrame) -> list[str]:
        return ["mercury, of course"] * len(frame)

    result = evaluate(speaks, evaluators=["mcq_analogy"])
    assert result.metrics["analogy/accuracy"] == 3 / N_ROWS
    assert result.metrics["analogy/no_match_rate"] == 2 / N_ROWS
    assert result.metrics["analogy/window_unverified_rate"] == 1
    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    known = evaluate(local, evaluators=["mcq_analogy"], evaluator_config=None)
    assert known.metrics["analogy/window_unverified_rate"] == 0


def test_similarity_reads_the_meaning_of_the_answer_span() -> None:
    def paraphrases(frame: pd.DataFrame) -> list[str]:
        return [
            "The answer is quicksilver, the liquid metal mercury."
            if "metal" in prompt
            else "The answer is our sun."
            for prompt in frame["prompt"]
        ]

    config = {"mcq_similarity": {"similarity": {"encoder": "demo:minilm", "floor": 0.3}}}
    result = evaluate(paraphrases, evaluators=["mcq_similarity"], evaluator_config=config)
    assert result.metrics["similarity/accuracy"] == 1
    assert result.metrics["similarity/accuracy_forced"] == 1
    assert result.metrics["similarity/level_1_rate"] == 1


def test_letter_scores_are_a_diagnostic_beside_the_answers() -> None:
    from tiny import byte_tokenizer, tiny_model

    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    config = {"max_new_tokens": 3, "logprob": {"enabled": True}}
    result = evaluate(local, evaluator_config=config)
    assert result.metrics["logprob/n_rows"] == N_ROWS
    assert 0 <= result.metrics["logprob/accuracy"] <= 1
    assert run_of(result).data.metrics["logprob/accuracy"] == result.metrics["logprob/accuracy"]
    absent = evaluate(parrot, evaluator_config={"logprob": {"enabled": True}})
    assert "logprob/accuracy" not in absent.metrics
    notes = absent.tables["mcq_summary"].set_index("metric")["note"]
    assert "not loaded here" in notes["logprob/accuracy"]
