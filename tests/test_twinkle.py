"""Results of Twinkle Eval: items are known again by content, in whatever order they stood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mlflow_mcq
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.importers.twinkle import from_twinkle


def row(**changes: Any) -> dict[str, Any]:
    held = {
        "question_id": 0,
        "sample_id": 0,
        "question": "Which is liquid?\nA: iron\nB: mercury\nC: tin",
        "correct_answer": "B",
        "llm_output": "The answer is B.",
        "llm_reasoning_output": None,
        "predicted_answer": "B",
        "is_correct": True,
    }
    return {**held, **changes}


TURNED = {"question": "Which is liquid?\nA: tin\nB: iron\nC: mercury", "correct_answer": "C"}


def run_of(folder: Path, *rows: dict[str, Any], name: str = "eval_results_x_run0.jsonl") -> Path:
    path = folder / name
    lines = [json.dumps(one, ensure_ascii=False) for one in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_run_reads_as_it_was_shown(tmp_path: Path) -> None:
    other = row(question_id=1, question="何者正確？\nA: 甲\nB: 乙", correct_answer="A",
                llm_output="\\box{A}\n")  # fmt: skip
    frame = from_twinkle(run_of(tmp_path, other, row()))
    assert frame["question"].tolist() == ["何者正確？", "Which is liquid?"]
    assert frame["options"].tolist() == [["甲", "乙"], ["iron", "mercury", "tin"]]
    assert frame["answer"].tolist() == ["A", "B"]
    assert frame["generation"].tolist() == ["\\box{A}\n", "The answer is B."]


def test_shuffled_runs_are_orders_of_one_item(tmp_path: Path) -> None:
    paths = [
        run_of(tmp_path, row(), name="eval_results_x_run0.jsonl"),
        run_of(tmp_path, row(**TURNED), name="eval_results_x_run1.jsonl"),
        run_of(tmp_path, row(**TURNED), name="eval_results_x_run2.jsonl"),
    ]
    frame = from_twinkle(paths)
    assert frame["id"].nunique() == 1
    assert frame["order"].tolist() == [[0, 1, 2], [2, 0, 1], [2, 0, 1]]
    assert frame["answer"].tolist() == ["B", "B", "B"]
    assert frame["repeat"].tolist() == [0, 0, 1]
    assert frame["run"].tolist() == [path.name for path in paths]


def test_the_file_of_results_leads_to_its_runs_and_nowhere_else(tmp_path: Path) -> None:
    run_of(tmp_path, row(), name="eval_results_x_run0.jsonl")
    run_of(tmp_path, row(**TURNED), name="eval_results_x_run1.jsonl")
    outside = tmp_path.parent / "eval_results_secret.jsonl"
    outside.write_text(json.dumps(row()), encoding="utf-8")
    named = ["results/eval_results_x_run0.jsonl", "results\\eval_results_x_run1.jsonl"]
    path = tmp_path / "results_x.json"

    def results(names: list[str]) -> str:
        part = {"results": [{"file": "d.jsonl", "individual_runs": {"results": names}}]}
        return json.dumps({"timestamp": "x", "dataset_results": {"data/": part}})

    path.write_text(results(named), encoding="utf-8")
    assert from_twinkle(path)["order"].tolist() == [[0, 1, 2], [2, 0, 1]]
    path.write_text(results([*named, "../eval_results_secret.jsonl"]), encoding="utf-8")
    with pytest.raises(DataError, match="does not exist"):
        from_twinkle(path)
    path.write_text(results(["results_x.json"]), encoding="utf-8")
    with pytest.raises(DataError, match="no rows"):
        from_twinkle(path)  # a file that names itself is not followed


@pytest.mark.parametrize("nested", [False, True])
def test_older_files_hold_the_rows_themselves(tmp_path: Path, nested: bool) -> None:
    held: dict[str, Any] = {"timestamp": "x", "details": [row(), row(question_id=1)]}
    if nested:
        held = {"dataset_results": {"d": {"results": [held]}}}
    path = tmp_path / "eval_results_x.json"
    path.write_text(json.dumps(held), encoding="utf-8")
    assert len(from_twinkle(path)) == 2


def test_equal_numbers_of_two_data_files_are_two_items(tmp_path: Path) -> None:
    # All files of a run are appended to one, and each numbers its questions from 0.
    two = row(question="Which is heavy?\nA: lead\nB: wool", correct_answer="A")
    assert from_twinkle(run_of(tmp_path, row(), two))["id"].nunique() == 2


def test_rows_that_a_resumed_run_wrote_again_count_once(tmp_path: Path) -> None:
    path = run_of(tmp_path, row(), row(sample_id=1, llm_output="C"), row())
    frame = from_twinkle(path)
    assert frame["generation"].tolist() == ["The answer is B.", "C"]


@pytest.mark.parametrize(
    ("question", "stem", "options"),
    [
        pytest.param("Q\nA: x\nB: y\nid: 3\nsubject: a: b", "Q", ["x", "y"], id="columns below"),
        pytest.param("Q\nid: 3\nA: x\nB: y", "Q\nid: 3", ["x", "y"], id="a column above stays"),
        pytest.param("A: hi\nB: hello\nA: x\nB: y", "A: hi\nB: hello", ["x", "y"], id="dialogue"),
        pytest.param("Q\nA: x\nmore x\nB: y\nmore y", "Q", ["x\nmore x", "y\nmore y"], id="lines"),
        pytest.param("Q\nA: x\nB: y\nC: \nD: ", "Q", ["x", "y"], id="empty cells"),
        pytest.param("Q\nA: None\nB: nan", "Q", ["None", "nan"], id="words for nothing"),
        pytest.param("Q\nA: a: b\nB: {x}", "Q", ["a: b", "{x}"], id="a colon inside"),
    ],
)
def test_options_are_read_out_of_the_question(
    tmp_path: Path, question: str, stem: str, options: list[str]
) -> None:
    path = run_of(tmp_path, row(question=question, correct_answer="A"))
    frame = from_twinkle(path)
    assert frame["question"].tolist() == [stem]
    assert frame["options"].tolist() == [options]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"question": "Is it so?"}, "one list of options", id="no options"),
        pytest.param({"question": "Q\nA: x\nC: y"}, "one list of options", id="a gap"),
        pytest.param({"question": "Q\nA: x\nB: y\nB: z"}, "one list", id="a letter twice"),
        pytest.param({"question": None}, "one list of options", id="no question"),
        pytest.param({"question": "Q\nA: x\nB: y\nnote: z"}, "may be a column", id="one line more"),
        pytest.param({"correct_answer": "D"}, "must name one option", id="a letter too far"),
        pytest.param({"correct_answer": "mercury"}, "must name one option", id="a text"),
        pytest.param({"correct_answer": None}, "must name one option", id="none"),
        pytest.param({"llm_output": None, "logprob_scores": {"A": -1.0}}, "logit", id="scores"),
        pytest.param({"llm_output": ["B"]}, "must be a text", id="a list"),
        pytest.param(
            {"question": "Q\nA: x\nB: x\nC: y", "correct_answer": "A"}, "text of the gold",
            id="gold twice",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_and_named(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        from_twinkle(run_of(tmp_path, row(), row(question_id=1, **changes)))
    assert "line 2" in str(caught.value)


def test_bad_rows_can_be_left_out(tmp_path: Path) -> None:
    path = run_of(tmp_path, row(), row(question_id=1, correct_answer="Z"))
    with pytest.warns(UserWarning, match="1 row left out"):
        assert len(from_twinkle(path, on_bad_rows="skip")) == 1
    with pytest.raises(SettingsError, match="on_bad_rows"):
        from_twinkle(path, on_bad_rows="no")


def test_reasoning_is_kept_apart_and_is_no_answer(tmp_path: Path) -> None:
    frame = from_twinkle(run_of(tmp_path, row(llm_output=None, llm_reasoning_output="B, so B")))
    assert frame["generation"].tolist() == [None]
    assert frame["reasoning"].tolist() == ["B, so B"]


@pytest.mark.parametrize("content", ["[1, 2]", '"x"', "7", '{"dataset_results": {}}', "{"])
def test_files_of_another_kind(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError):
        from_twinkle(path)


def test_shuffled_runs_are_graded_as_one_arm(store: None, tmp_path: Path) -> None:
    numbers = row(question_id=1, question="2+2?\nA: 4\nB: 3\nC: 2", correct_answer="A",
                  llm_output="A")  # fmt: skip
    turned = {**numbers, "question": "2+2?\nA: 2\nB: 3\nC: 4", "correct_answer": "C"}
    paths = [
        run_of(tmp_path, row(), numbers, name="r0.jsonl"),
        run_of(tmp_path, row(**TURNED, llm_output="It is C."), turned, name="r1.jsonl"),
    ]
    result = mlflow_mcq.evaluate(None, from_twinkle(paths), evaluators="mcq_regex")
    found = result.metrics
    assert found["regex_bounded/n_items"] == 2
    assert found["regex_bounded/accuracy"] == 0.75  # one item says A in both orders
    assert found["regex_bounded/consistency"] == 0.5
