"""What a run says of its judge's errors: by the exam, and by people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fair_judge import fair_judge
from fake_chat import ScriptedChat, always, judge
from fake_server import FakeServer, Script
from mlflow.exceptions import MlflowException
from sklearn.metrics import cohen_kappa_score

import mlflow_mcq
from mlflow_mcq.corrected import Calibration, rogan_gladen
from mlflow_mcq.corrections import calibration_of, corrected_numbers, human_numbers
from mlflow_mcq.graders.exam import ExamReport, examine_judge, load_exam
from mlflow_mcq.ppi import ppi_mean
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply, Verdict
from mlflow_mcq.reliability import agreement

C, W, N = Verdict.CORRECT, Verdict.INCORRECT, Verdict.OTHER
N_RIGHT, N_NOT = 75, 158
"""Replies of the shipped exam that are right, and the others."""


def row(item: str, orientation: int = 0, label: Verdict | None = None) -> Generation:
    order = (0, 1) if orientation == 0 else (1, 0)
    shown = Prompt(
        Item(item, "Which?", ("x", "y"), 0), Orientation(orientation, "o", order), "p", "", ()
    )
    return Generation(shown, 0, Reply("hm"), human_label=label)


def graded(
    verdict: Verdict | None, item: str, judge: str = "", orientation: int = 0, label: Any = None
) -> Grade:
    error = "" if verdict else "it broke"
    return Grade(row(item, orientation, label), "judge", verdict, error=error, judge=judge)


def exam(tp: int = 68, tn: int = 150) -> ExamReport:
    """A report of a judge named J that got so many of the shipped exam right."""
    report = examine_judge(judge(ScriptedChat(always("OTHER"))))
    others = [reply.verdict for reply in load_exam() if reply.verdict is not C]
    pairs = [(C.value, C.value if i < tp else N.value) for i in range(N_RIGHT)]
    pairs += [(v.value, v.value if i < tn else C.value) for i, v in enumerate(others)]
    return replace(report, judge="J", verdicts=agreement(pairs, [v.value for v in Verdict]))


# ------------------------------------------------------------------- by the exam


def test_the_calibration_is_read_from_the_report_in_whole_rows() -> None:
    assert calibration_of(exam()) == Calibration(68, N_RIGHT - 68, 150, N_NOT - 150)
    blank = examine_judge(judge(ScriptedChat(always("OTHER"))))
    assert calibration_of(blank) == Calibration(0, N_RIGHT, N_NOT, 0)
    mute = examine_judge(judge(ScriptedChat(always("well"))))
    assert calibration_of(mute) == Calibration(0, 0, 0, 0)


def test_judged_rows_are_corrected_and_settled_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    grades = [
        graded(C if rng.random() < 0.7 else N, f"q{i}", "J" if rng.random() < 0.5 else "", o)
        for i in range(40)
        for o in (0, 1)
    ]
    grades.append(graded(None, "q0", "J"))
    summary = corrected_numbers(grades, exam())
    read = grades[:-1]
    expected = rogan_gladen(
        [g.verdict for g in read], [g.generation.prompt.item.id for g in read],
        Calibration(68, 7, 150, 8), exact=[not g.judge for g in read],
    )  # fmt: skip
    assert summary.values == {
        "accuracy_corrected": expected.estimate,
        "accuracy_corrected_low": expected.low,
        "accuracy_corrected_high": expected.high,
    }
    assert not summary.undefined
    assert not summary.notes


THREE = Orientation(0, "as-is", (0, 1, 2))
MIXED = [graded(C, "a"), graded(C, "b", "J"), graded(W, "c", "J")]


@pytest.mark.parametrize(
    ("grades", "report", "reason"),
    [
        pytest.param(MIXED, None, "sat no exam", id="no exam"),
        pytest.param(MIXED, exam(tp=20, tn=100), "no better than chance", id="a useless judge"),
        pytest.param(MIXED, examine_judge(judge(ScriptedChat(always("well")))), "another judge",
                     id="another judge"),
        pytest.param([graded(None, "a", "J")], exam(), "0 judged rows", id="all failed"),
    ],
)  # fmt: skip
def test_no_number_without_a_fit_exam(grades: Any, report: Any, reason: str) -> None:
    summary = corrected_numbers(grades, report)
    assert not summary.values
    assert reason in summary.undefined["accuracy_corrected"]


def test_an_exam_of_single_answers_says_nothing_of_sets() -> None:
    item = Item("a", "Which?", ("x", "y", "z"), 0, also_right=(1,), policy="all")
    several = replace(row("a"), prompt=replace(row("a").prompt, item=item, orientation=THREE))
    judged = Grade(several, "judge", C, judge="J")
    summary = corrected_numbers([judged, *MIXED], exam())
    assert "single answers only" in summary.undefined["accuracy_corrected"]
    settled = Grade(several, "judge", C)
    assert "accuracy_corrected" in corrected_numbers([settled, *MIXED], exam()).values


@pytest.mark.parametrize(
    ("n_right", "n_not", "reason"),
    [
        pytest.param(9, 40, "9 right answers in its exam; 10 needed", id="right ones"),
        pytest.param(40, 3, "3 other answers in", id="the others"),
        pytest.param(2, 3, "2 right answers and 3 other answers", id="both"),
        pytest.param(10, 10, "", id="just enough"),
    ],
)
def test_a_short_exam_corrects_nothing(n_right: int, n_not: int, reason: str) -> None:
    replies = load_exam()
    few = [r for r in replies if r.verdict is C][:n_right]
    few += [r for r in replies if r.verdict is not C][:n_not]
    report = examine_judge(judge(ScriptedChat(always("OTHER"))), replies=few)
    rated = replace(report, judge="J")
    found = corrected_numbers(MIXED, rated).undefined["accuracy_corrected"]
    assert (reason or "chance") in found


def test_rows_that_no_judge_has_read_need_no_exam_result() -> None:
    useless = exam(tp=0, tn=0)
    summary = corrected_numbers([graded(C, "a"), graded(N, "b"), graded(None, "c", "J")], useless)
    assert summary.values["accuracy_corrected"] == 0.5


def test_what_is_clipped_is_said_beside_the_number() -> None:
    grades = [graded(N, f"q{i}", "J") for i in range(50)]
    summary = corrected_numbers(grades, exam(tn=120))
    assert summary.values["accuracy_corrected"] == 0
    assert "clipped" in summary.notes["accuracy_corrected"]


def test_one_item_has_no_interval_and_says_so() -> None:
    summary = corrected_numbers([graded(C, "a", "J"), graded(N, "a", "J", 1)], exam())
    assert set(summary.values) == {"accuracy_corrected"}
    assert "fewer than 2 items" in summary.undefined["accuracy_corrected_low"]


# --------------------------------------------------------------------- by people


def test_people_and_the_judge() -> None:
    rng = np.random.default_rng(2)
    grades = []
    for i in range(60):
        for o in (0, 1):
            truth = (C, W, N)[rng.choice(3, p=[0.6, 0.3, 0.1])]
            said = truth if rng.random() < 0.8 else (C, W, N)[rng.integers(3)]
            grades.append(graded(said, f"q{i}", "J", o, truth if i % 3 == 0 else None))
    grades.append(graded(None, "q0", "J", label=C))  # the judge failed: in no denominator
    found = human_numbers(grades).values
    read = grades[:-1]
    pairs = [
        (g.generation.human_label.value, g.verdict.value)  # type: ignore[union-attr]
        for g in read
        if g.generation.human_label
    ]
    assert found["n_human"] == len(pairs) == 40
    assert found["human_agreement"] == np.mean([a == b for a, b in pairs])
    assert found["human_agreement_low"] < found["human_agreement"] < found["human_agreement_high"]
    assert found["human_kappa"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    expected = ppi_mean(
        [g.verdict for g in read], [g.generation.human_label for g in read],
        [g.generation.prompt.item.id for g in read],
    )  # fmt: skip
    assert (found["accuracy_ppi"], found["accuracy_ppi_low"], found["accuracy_ppi_high"]) == (
        expected.estimate, expected.low, expected.high,
    )  # fmt: skip


def test_other_and_incorrect_are_two_things_to_kappa_and_one_to_accuracy() -> None:
    grades = [graded(N if i % 2 else C, f"q{i}", "J", label=W if i % 2 else C) for i in range(20)]
    found = human_numbers(grades).values
    assert found["human_agreement"] == 0.5
    assert found["accuracy_ppi"] == 0.5
    assert found["human_kappa"] < 0.5


@pytest.mark.parametrize(
    ("grades", "names", "reason"),
    [
        pytest.param([graded(C, "a")], {"accuracy_ppi"}, "0 rows with a verdict", id="no labels"),
        pytest.param([graded(None, "a", "J", label=C)], {"accuracy_ppi"}, "0 rows",
                     id="the judge failed on the only one"),
        pytest.param(
            [graded(C, "a", label=C), graded(C, "a", "J", 1, C), graded(C, "b", "J")],
            {"accuracy_ppi", "human_agreement", "human_kappa"}, "at least 2 needed", id="one item",
        ),
        pytest.param([graded(C, item, label=C) for item in "abc"], {"human_kappa"},
                     "one label only", id="everybody agrees on one verdict"),
    ],
)  # fmt: skip
def test_too_few_labels_have_a_reason(grades: Any, names: set[str], reason: str) -> None:
    summary = human_numbers(grades)
    assert set(summary.undefined) == names
    assert not names & set(summary.values)
    assert all(reason in why for why in summary.undefined.values())


def test_labels_on_every_row_need_no_judge_and_say_so() -> None:
    summary = human_numbers([graded(N, f"q{i}", "J", label=C if i % 2 else W) for i in range(8)])
    assert summary.values["accuracy_ppi"] == 0.5
    assert summary.notes["accuracy_ppi"].startswith("human labels alone")


# ---------------------------------------------------------------- all the way


@pytest.fixture
def cached(shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "cache"))


STORED = pd.DataFrame(
    {
        "id": [f"q{i}" for i in range(12)],
        "question": [f"Which number is {i}?" for i in range(12)],
        "options": [[f"{i}", f"{i + 50}"] for i in range(12)],
        "answer": [0] * 12,
        "generation": ["A", "B"] * 3 + ["well, the first I would guess"] * 6,
        "checked": ["correct", "INCORRECT", ""] * 2 + ["Correct", "other", None] * 2,
    }
)


def judged_by(server: FakeServer, **settings: Any) -> dict[str, Any]:
    return {"model": "fake", "base_url": server.url, "max_retries": 0, "check_rows": 0, **settings}


def test_labels_and_corrections_land_in_the_run_and_outlive_a_regrade(
    cached: None, judge_server: Callable[[Script], FakeServer]
) -> None:
    server = judge_server(fair_judge())
    who = judged_by(server)
    columns = {"human_label": "checked"}
    first = mlflow_mcq.evaluate(None, STORED, judge=who, columns=columns)
    metrics = first.metrics
    assert metrics["judge/accuracy"] == 0.75
    assert metrics["judge/exam_sensitivity_correct"] > 0.8
    for name in ("accuracy_corrected", "accuracy_ppi", "human_agreement"):
        low, high = metrics[f"judge/{name}_low"], metrics[f"judge/{name}_high"]
        assert 0 <= low <= metrics[f"judge/{name}"] <= high <= 1
    assert metrics["judge/n_human"] == 8
    assert metrics["judge/human_agreement"] == 4 / 8
    table = first.artifacts["mcq_generations_parquet"].content
    labels = STORED["checked"].fillna("").str.upper().tolist()
    assert table["human_label"].tolist() == labels
    second = mlflow_mcq.regrade(first.run_id, who)
    for name in ("n_human", "human_kappa", "accuracy_ppi", "accuracy_corrected"):
        assert second.metrics[f"judge/{name}"] == metrics[f"judge/{name}"]


def test_a_person_labels_the_table_of_a_run_and_reads_it_again(
    cached: None, judge_server: Callable[[Script], FakeServer]
) -> None:
    server = judge_server(lambda request, n: "OTHER")
    who = judged_by(server, exam_replies=0)
    first = mlflow_mcq.evaluate(
        lambda frame: ["It may be the first"] * len(frame), STORED.drop(columns="checked"),
        evaluators=["mcq_regex"], orientations="swap",
    )  # fmt: skip
    table = first.artifacts["mcq_generations_parquet"].content
    table["human_label"] = ["CORRECT" if i % 3 == 0 else "" for i in range(len(table))]
    second = mlflow_mcq.evaluate(None, table, judge=who)
    assert second.metrics["judge/n_rows"] == 24
    assert second.metrics["judge/n_human"] == 8
    assert second.metrics["judge/human_agreement"] == 0
    assert "judge/accuracy_corrected" not in second.metrics
    notes = second.tables["mcq_summary"].set_index("metric")["note"]
    assert "sat no exam" in notes["judge/accuracy_corrected"]


def test_labels_beside_a_model_are_refused_before_it_is_asked(cached: None) -> None:
    def never(frame: pd.DataFrame) -> list[str]:
        raise AssertionError("the model must not be asked")

    data = STORED.drop(columns="generation").rename(columns={"checked": "human_label"})
    with pytest.raises(MlflowException, match=r"columns\.human_label.*a model gives new ones"):
        mlflow_mcq.evaluate(never, data, evaluators=["mcq_regex"])
