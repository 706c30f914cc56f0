"""Several right options on the whole road: data, settings, prompts, graders, tables, regrading."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script, server_error
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.errors import SettingsError

pytestmark = pytest.mark.usefixtures("shared_store")

LETTER = re.compile(r"^([A-Z])\) (.*)$", re.MULTILINE)
FRAME = pd.DataFrame(
    {
        "question": ["Which metals melt in the hand?", "Which is the biggest?"],
        "options": [["iron", "mercury", "gallium"], ["moon", "sun"]],
        "answer": [["B", "C"], ["B"]],
        "id": ["melts", "big"],
    }
)
GOLD = {"mercury", "gallium", "sun"}
N_ROWS = 5


def letters(prompt: str) -> list[str]:
    return [letter for letter, text in LETTER.findall(prompt) if text in GOLD]


def bare(frame: pd.DataFrame) -> list[str]:
    return [", ".join(letters(prompt)) for prompt in frame["prompt"]]


def wordy(frame: pd.DataFrame) -> list[str]:
    answers = []
    for prompt in frame["prompt"]:
        texts = [text for _, text in LETTER.findall(prompt) if text in GOLD]
        answers.append(f"I would say {' as well as '.join(texts)}, without any doubt.")
    return answers


def last_gold(frame: pd.DataFrame) -> list[str]:
    return [letters(prompt)[-1] for prompt in frame["prompt"]]


def reading_judge(request: dict[str, Any], n_calls: int) -> str:
    asked = request["messages"][-1]["content"]
    reply = asked.split("The candidate's reply:")[1]
    return ", ".join(letter for letter, text in LETTER.findall(asked) if text in reply) or "OTHER"


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> dict[str, Any]:
    server = judge_server(reading_judge)
    return {"model": "fake", "base_url": server.url, "exam_replies": 0, "max_retries": 0}


def grades_of(result: Any) -> pd.DataFrame:
    table = result.artifacts["mcq_grades_parquet"].content
    return table[table["grader"] == "judge"].reset_index(drop=True)


@pytest.mark.parametrize("data", [FRAME, FRAME.to_dict("records")], ids=["frame", "dicts"])
def test_data_with_several_golds_is_refused_by_default(data: Any) -> None:
    with pytest.raises(MlflowException, match=r"row 0 \(id 'melts'\).*\"any\".*\"all\""):
        mlflow_mcq.evaluate(last_gold, data, evaluators="mcq_regex")


def test_under_any_each_gold_is_right() -> None:
    result = mlflow.models.evaluate(
        last_gold,
        FRAME,
        targets="answer",
        model_type="multiple-choice",
        evaluators="mcq_regex",
        evaluator_config={"several_gold": "any"},
    )
    assert result.metrics["regex_bounded/accuracy"] == 1
    assert result.metrics["regex_bounded/n_items_several_gold"] == 1
    assert result.metrics["data/gold_slot_share_highest"] == 0.5  # of the item with one
    notes = result.tables["mcq_summary"].set_index("metric")["note"]
    assert "1 items" in notes["regex_bounded/pick_rate_slot_1"]
    tags = MlflowClient().get_run(result.run_id).data.tags
    assert tags["mcq.items_with_several_gold"] == "1"


def test_under_all_a_set_is_right_and_can_be_read_again(judge: dict[str, Any]) -> None:
    result = mlflow_mcq.evaluate(wordy, FRAME, judge, several_gold="all")
    assert result.metrics["judge/accuracy"] == result.metrics["judge/consistency"] == 1
    assert result.metrics["judge/prefilter_rate"] == 0
    assert not any(name.startswith("regex") for name in result.metrics)
    rows = grades_of(result)
    assert [list(named) for named in rows["choices"]] == [[1, 2]] * 3 + [[1]] * 2
    assert rows["shown_letter"].tolist() == ["B, C", "A, B", "A, C", "B", "A"]
    prompts = result.artifacts["mcq_generations_parquet"].content["prompt"]
    assert prompts.str.contains("One or more options are right").all()
    again = mlflow_mcq.regrade(result.run_id, judge)
    both = set(result.metrics) & set(again.metrics)
    shared = {name for name in both if not name.endswith(("seconds", "share"))}
    assert {n: again.metrics[n] for n in shared} == {n: result.metrics[n] for n in shared}
    pd.testing.assert_frame_equal(grades_of(again), rows)
    assert mlflow_mcq.regrade(result.run_id, judge, only="errors").run_id == result.run_id


def test_sets_that_were_read_are_kept_where_errors_are_read_again(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    def shaky(request: dict[str, Any], n_calls: int) -> Any:
        return server_error() if n_calls == 3 else reading_judge(request, n_calls)

    server = judge_server(shaky)
    judge = {"model": "fake", "base_url": server.url, "exam_replies": 0, "max_retries": 0}
    broken = mlflow_mcq.evaluate(wordy, FRAME, judge, several_gold="all")
    assert broken.metrics["judge/n_judge_errors"] == 1
    n_calls = len(server.requests)
    mended = mlflow_mcq.regrade(broken.run_id, judge, only="errors")
    assert len(server.requests) - n_calls <= 2
    whole = mlflow_mcq.regrade(broken.run_id, judge)
    pd.testing.assert_frame_equal(grades_of(mended), grades_of(whole))


def test_under_all_one_gold_of_two_is_wrong_and_lists_need_no_judge(judge: dict[str, Any]) -> None:
    part = mlflow_mcq.evaluate(last_gold, FRAME, judge, several_gold="all")
    assert part.metrics["judge/accuracy"] == 2 / N_ROWS
    assert part.metrics["judge/other_rate"] == 0
    whole = mlflow_mcq.evaluate(bare, FRAME, judge, several_gold="all")
    assert whole.metrics["judge/accuracy"] == whole.metrics["judge/prefilter_rate"] == 1
    assert whole.metrics["judge/strict_agreement"] < 1  # this judge reads texts only


def test_answers_that_are_stored_are_compared_with_every_gold(judge: dict[str, Any]) -> None:
    data = FRAME.assign(generation=["C", "B"])
    for policy, accuracy in (("any", 1.0), ("all", 0.5)):
        result = mlflow_mcq.evaluate(None, data, judge, several_gold=policy)
        assert result.metrics["judge/accuracy"] == accuracy


def test_items_that_all_have_several_golds(judge: dict[str, Any]) -> None:
    result = mlflow_mcq.evaluate(wordy, FRAME.iloc[:1], judge, several_gold="all")
    assert result.metrics["judge/accuracy"] == 1
    assert "judge/pick_rate_slot_1" not in result.metrics
    assert "data/gold_slot_share_highest" not in result.metrics
    notes = result.tables["mcq_summary"].set_index("metric")["note"]
    assert "all 1 items have several right options" in notes["judge/pick_rate_slot_1"]


@pytest.mark.parametrize("name", ["mcq_regex", "mcq_analogy", "mcq_similarity"])
def test_readers_of_single_options_are_refused_under_all_before_any_inference(
    name: str, judge: dict[str, Any]
) -> None:
    def untouched(frame: pd.DataFrame) -> list[str]:
        raise AssertionError("the model was asked")

    with pytest.raises(SettingsError, match=f"{name}: reads single options"):
        mlflow_mcq.evaluate(untouched, FRAME, evaluators=name, several_gold="all")
    with pytest.raises(MlflowException, match=f"{name}: reads single options"):
        mlflow.models.evaluate(
            untouched,
            FRAME,
            targets="answer",
            model_type="mcq",
            evaluators=name,
            evaluator_config={"several_gold": "all"},
        )


def test_an_evaluator_that_inherits_all_is_refused_as_well(judge: dict[str, Any]) -> None:
    with pytest.raises(MlflowException, match="mcq_regex: reads single options"):
        mlflow.models.evaluate(
            bare,
            FRAME,
            targets="answer",
            model_type="mcq",
            evaluators=["mcq_judge", "mcq_regex"],
            evaluator_config={
                "mcq_judge": {"judge": judge, "several_gold": "all"},
                "mcq_regex": {},
            },
        )
