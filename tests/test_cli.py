"""The command line: what each command prints, for people and for machines, and its exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
import yaml
from fake_server import FakeServer, Script
from rich.console import Console

from mlflow_mcq.cli.recipes import shipped
from mlflow_mcq.cli.root import COMMANDS, main
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.recipe_run import RecipeRun
from mlflow_mcq.terminal import show_results

RECIPES = Path(__file__).parent.parent / "recipes"
ANSWERS = pd.DataFrame(
    {
        "question": ["Which metal is liquid at room temperature?", "Which star is nearest?"],
        "A": ["copper", "the Sun"],
        "B": ["mercury", "Sirius"],
        "answer": ["B", "A"],
        "generation": ["The answer is B.", "B, I believe."],
    }
)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """Exit code and document of a command with --json."""
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_explains_itself(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command.name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert command.name == "ui-hint" or f"mlflow_mcq {command.name}" in text.replace("-mcq", "_mcq")


@pytest.mark.parametrize(
    ("arguments", "code", "wanted"),
    [
        pytest.param(["spin"], 2, "No such command", id="command"),
        pytest.param(["run"], 2, "Missing argument", id="argument"),
        pytest.param(["run", "x.yaml", "--modle", "m"], 2, "--model", id="option"),
        pytest.param(["run", "nowhere.yaml"], 2, "nowhere.yaml", id="recipe"),
        pytest.param(["recipes", "dmeo"], 2, "answer_moving", id="shipped"),
        pytest.param(["exam"], 2, "judge", id="judge"),
        pytest.param(["lint", "x.csv", "--column", "Frage"], 2, "NOUN=NAME", id="no pair"),
        pytest.param(["lint", "x.csv", *2 * ["--column", "id=n"]], 2, "twice", id="noun twice"),
        pytest.param(["run", "dmeo"], 2, 'Did you mean "demo"', id="shipped recipe"),
        pytest.param(["cost", "no.yaml"], 2, "is no file", id="recipe file"),
        pytest.param(["grade", "x.jsonl", "--stored-by", "helm"], 2, "twinkle", id="harness"),
        pytest.param(
            ["grade", "x.csv", "--evaluators", "mcq_regex", "--judge-model", "m"],
            2,
            "nobody asks it",
            id="judge that reads nothing",
        ),
    ],
)
def test_what_cannot_be_used_says_what_can(
    arguments: list[str], code: int, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    heard = capsys.readouterr()
    assert wanted in heard.err
    assert not heard.out


def test_recipes_are_listed_with_what_they_ask(capsys: pytest.CaptureFixture[str]) -> None:
    code, listed = said(capsys, "recipes")
    assert code == 0
    assert [one["name"] for one in listed] == sorted(path.stem for path in RECIPES.glob("*.yaml"))
    assert all(one["about"] and not one["about"].startswith("#") for one in listed)


def test_a_recipe_is_copied_with_its_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recipes", "answer_moving", "--copy", str(tmp_path)]) == 0
    recipe = yaml.safe_load((tmp_path / "answer_moving.yaml").read_text(encoding="utf-8"))
    assert (tmp_path / recipe["data"]).exists()
    assert main(["recipes", "answer_moving", "--copy", str(tmp_path)]) == 2
    assert "never writes over" in capsys.readouterr().err


def test_a_shipped_recipe_runs_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def measure_recipe(path: str, given: dict[str, str]) -> RecipeRun:
        asked.append((path, given))
        return RecipeRun([], None, "there is no arm")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow_mcq.recipe.measure_recipe", measure_recipe)
    code, found = said(capsys, "run", "demo", "--limit", "3")
    assert (code, found["arms"], found["comparison"]) == (0, [], None)
    [(path, given)] = asked
    assert Path(path) == shipped()["demo"]
    assert {name: value for name, value in given.items() if value} == {"limit": "3"}


ODD = ANSWERS.rename(
    columns={"question": "Frage", "A": "opt1", "B": "opt2", "generation": "Antwort"}
).assign(answer=[2, 1])
NAMED = ("question=Frage", "options=opt1,opt2", "answer=answer", "answer_as=number")


@pytest.mark.usefixtures("store")
def test_columns_of_a_file_are_named_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.csv"
    ODD.to_csv(path, index=False)
    named = [part for pair in (*NAMED, "generation=Antwort") for part in ("--column", pair)]
    code, found = said(capsys, "grade", str(path), *named)
    assert (code, found["metrics"]["regex_bounded/accuracy"]) == (0, 0.5)
    code, found = said(capsys, "lint", str(path), *named[:-2])
    assert (code, found["findings"]) == (0, [])
    assert main(["lint", str(path)]) == 2
    assert "columns = {" in capsys.readouterr().err


@pytest.mark.usefixtures("store")
def test_stored_answers_are_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ANSWERS.to_csv(tmp_path / "answers.csv", index=False)
    code, found = said(capsys, "grade", "answers.csv", "--run-name", "mine")
    assert code == 0
    assert found["metrics"]["regex_bounded/accuracy"] == 0.5
    run = mlflow.get_run(found["run_id"])
    assert run.info.run_name == "mine"
    assert found["alarms"] == run.data.tags["mcq.alarms"]
    assert "too_few_items" in found["alarms"]
    assert main(["grade", "answers.csv"]) == 0
    shown = capsys.readouterr().out
    assert "regex_bounded" in shown
    assert f"of answers.csv: {found['alarms']}" in " ".join(shown.split())
    assert "run of answers.csv: " in shown


@pytest.mark.usefixtures("store")
def test_what_is_ours_in_mlflows_clothes_has_our_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.csv"
    ANSWERS.assign(answer="none of these").to_csv(path, index=False)
    assert main(["grade", str(path)]) == 2
    said_so = capsys.readouterr().err
    assert "row 0" in said_so
    assert "once that is mended" not in said_so


def test_faults_of_items_are_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "items.csv"
    ANSWERS.drop(columns="generation").to_csv(path, index=False)
    code, found = said(capsys, "lint", str(path))
    assert (code, found["findings"]) == (0, [])
    assert found["read_as"].startswith("read as: ")
    twice = ANSWERS.drop(columns="generation").assign(B=["copper", "Sirius"])
    twice.to_csv(path, index=False)
    code, found = said(capsys, "lint", str(path))
    assert code == 1
    assert found["findings"][0]["rule"] == "duplicate_options"


def test_a_judge_that_says_one_thing_fails_its_exam(
    judge_server: Callable[[Script], FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    url = judge_server(lambda request, n: "A").url
    code, found = said(capsys, "exam", "--judge-model", "one-note", "--judge-url", url)
    assert code == 1
    assert not found["reliable"]
    assert found["numbers"]["exam_kappa"] < 0.8


@pytest.mark.usefixtures("store")
def test_the_way_to_the_pages_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "ui-hint")
    assert code == 0
    assert mlflow.get_tracking_uri() in found["open"]


def test_words_complete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_MLFLOW_MCQ_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "mlflow-mcq re")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["plain,recipes", "plain,regrade"]


def test_no_number_is_cut_on_a_narrow_page() -> None:
    text = io.StringIO()
    arm = ArmResult(
        "letters-attacked orientations=gold-at:0:swap", "r",
        {f"regex_bounded/{name}": 0.25 for name in (
            "accuracy", "accuracy_decided", "other_rate", "judge_error_rate",
            "pick_rate_slot_1", "consistency", "accuracy_lowest", "accuracy_highest")},
        "none",
    )  # fmt: skip
    show_results([arm], Console(file=text, width=80))
    assert "…" not in text.getvalue()
    assert text.getvalue().count("0.25") == 8


def test_no_name_becomes_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    show_results([ArmResult("gold=all-at:A: x", "r", {}, "too_few_items")])
    assert "gold=all-at:A: x" in capsys.readouterr().out
