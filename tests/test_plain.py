"""Grading plain texts, with no MLflow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from mlflow_mcq.errors import DataError, ModelError, SettingsError
from mlflow_mcq.graders import ALL_REGEX_GRADERS, JudgeGrader, PlainGrade, grade
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Generation, Grade, Reply, Verdict

METALS = ["iron", "mercury"]
RIGHT, WRONG, OTHER = Verdict.CORRECT, Verdict.INCORRECT, Verdict.OTHER


class Scripted:
    """A judge that always names the same label."""

    fingerprint, deterministic, speaks_chat = "scripted", True, True

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def ask(self, queries, decoding):
        return ((place, Reply(self.reply)) for place, _ in enumerate(queries))


class Backwards:
    """A grader that reads everything as the first option, last row first."""

    name = "backwards"

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        for row in reversed(generations):
            yield Grade.of_choice(row, self.name, 0, row.text)


class Forgetful:
    name = "forgetful"

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        return iter(())


def judge(reply: str, shape: str = "extract") -> JudgeGrader:
    settings = JudgeSettings(model="scripted", base_url="local", shape=shape)
    return JudgeGrader(Scripted(reply), settings)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("B", PlainGrade(1, RIGHT, "strict"), id="label"),
        pytest.param("iron.", PlainGrade(0, WRONG, "strict"), id="text"),
        pytest.param("I refuse", PlainGrade(None, None, "abstains"), id="abstaining is not OTHER"),
        pytest.param("", PlainGrade(None, OTHER, "empty"), id="empty"),
        pytest.param(None, PlainGrade(None, OTHER, "empty"), id="none"),
        pytest.param("A) mercury", PlainGrade(None, OTHER, "label_text_conflict"), id="conflict"),
        pytest.param("<think>B", PlainGrade(None, OTHER, "unfinished_thought"), id="unfinished"),
    ],
)
def test_strict_is_the_default(text, result):
    assert grade([text], METALS, gold=1) == [result]


def test_without_gold_only_other_is_a_verdict():
    named, other = grade(["B", "A) mercury"], METALS)
    assert (named.choice, named.verdict, named.reason) == (1, None, "strict")
    assert other.verdict is OTHER


def test_everything_may_differ_by_row():
    results = grade(
        ["A", "(C)", "B"],
        [["x", "y"], ["u", "v", "w"], ["p", "q"]],
        [1, 2, 1],
        orders=[[1, 0], [0, 1, 2], [1, 0]],
        question=["Q1", "Q2", "Q3"],
    )
    assert [(one.choice, one.verdict) for one in results] == [(1, RIGHT), (2, RIGHT), (0, WRONG)]


def test_one_order_and_own_labels_for_all():
    results = grade(["(ii)", "i)"], METALS, 1, labels=["i", "ii"], orders=[1, 0])
    assert [one.choice for one in results] == [0, 1]
    assert grade(["B", "iron"], METALS, labels=())[0].choice is None


@pytest.mark.parametrize("name", ALL_REGEX_GRADERS)
def test_every_baseline_goes_by_its_name(name):
    found, missed = grade(["the answer is B", "no"], METALS, 1, grader=name)
    assert missed == PlainGrade(None, OTHER, "no_match")
    assert found.choice == (0 if name == "regex_naive" else 1)


def test_any_grader_object_will_do():
    results = grade(["one", "two"], METALS, 0, grader=Backwards())
    assert [one.reason for one in results] == ["one", "two"]  # joined by key, not by place
    [judged] = grade(["the liquid one"], METALS, 1, grader=judge("B"), question="Which?")
    assert judged == PlainGrade(1, RIGHT, "judge")
    [failed] = grade(["the liquid one"], METALS, 1, grader=judge("hm"))
    assert failed.verdict is None
    assert failed.error


def test_a_judge_that_needs_gold_is_not_given_a_made_up_one():
    with pytest.raises(SettingsError, match="direct"):
        grade(["B"], METALS, grader=judge("CORRECT", "direct"))
    assert grade(["hm"], METALS, 1, grader=judge("CORRECT", "direct"))[0].verdict is RIGHT


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        pytest.param({"texts": "B"}, DataError, "list of answers", id="one text"),
        pytest.param({"options": "AB"}, DataError, "options", id="options as one text"),
        pytest.param({"options": [["x", "y"]] * 3}, DataError, "options", id="too many lists"),
        pytest.param({"options": ["x", ["y", "z"]]}, DataError, "options", id="mixed"),
        pytest.param({"options": ["x"]}, DataError, "two options", id="one option"),
        pytest.param({"gold": 2}, DataError, "gold", id="gold out of range"),
        pytest.param({"gold": "B"}, DataError, "gold", id="gold as a letter"),
        pytest.param({"gold": [0]}, DataError, "gold", id="gold for one of two"),
        pytest.param({"orders": [0, 0]}, DataError, "permutation", id="no permutation"),
        pytest.param({"orders": [0, 1, 2]}, DataError, "order", id="order of three"),
        pytest.param({"labels": ["A"]}, DataError, "label", id="too few labels"),
        pytest.param({"grader": "regex_nave"}, SettingsError, "regex_naive", id="misspelt"),
        pytest.param({"grader": Forgetful()}, ModelError, "lost 2 of 2 rows", id="rows lost"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, says):
    good = {"texts": ["A", "B"], "options": METALS, "gold": 1}
    with pytest.raises(error, match=says):
        grade(**(good | arguments))


def test_no_texts_no_results():
    assert grade([], METALS) == []
    assert grade([], []) == []


def test_it_needs_neither_mlflow_nor_pandas():
    code = (
        "import sys; from mlflow_mcq.graders import grade; grade(['B'], ['x', 'y']);"
        "print([m for m in ('mlflow', 'pandas', 'torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
