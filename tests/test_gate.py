"""The gate: what passes, what fails and in which words, in Python and on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.models.evaluation.validation import ModelValidationFailedException

import mlflow_mcq
from mlflow_mcq.cli.root import main
from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.recipe_run import RecipeRun

TWO_ARMS = "name: two\ndata: nonsense:4\nevaluators: [mcq_regex]\nmodel: m\n"
ARMS = "arms: [{name: base}, {name: tired}]\n"


def comparison(**lost: float) -> Comparison:
    return Comparison(
        run_id="c0ffee",
        baseline="base",
        headlines={arm: f"{arm} against base" for arm in lost},
        alarms={arm: ("other_rate_up",) if loss else () for arm, loss in lost.items()},
        alarms_of_arms={"base": ("too_few_items",), **dict.fromkeys(lost, ("too_few_items",))},
        read_by="judge",
        tables={},
        metrics={f"shown_loss/{arm}": loss for arm, loss in lost.items()},
    )


@pytest.mark.parametrize(
    ("lost", "by", "named"),
    [
        pytest.param({"tired": 0.0}, 0.0, [], id="nothing is lost"),
        pytest.param({"tired": 0.02}, 0.02, [], id="as much as may be lost"),
        pytest.param({"tired": 0.021}, 0.02, ["tired: 0.021"], id="more"),
        pytest.param({"tired": 0.3, "new": 0.0}, 0.1, ["tired: 0.300"], id="one of two"),
        pytest.param({"a": 0.3, "b": 0.4}, 0.1, ["a: 0.300", "b: 0.400"], id="both"),
    ],
)
def test_the_gate_names_each_arm_and_its_loss(
    lost: dict[str, float], by: float, named: list[str]
) -> None:
    found = comparison(**lost)
    thresholds = mlflow_mcq.loss_thresholds(found, by)
    if not named:
        mlflow_mcq.fail_if_worse(found, by)
        mlflow.validate_evaluation_results(thresholds, found.result)
        return
    with pytest.raises(ModelValidationFailedException) as failed:
        mlflow_mcq.fail_if_worse(found, by)
    said = str(failed.value)
    assert all(one in said for one in [*named, "base", "c0ffee", f"{by:g}"])
    assert "new" not in said
    with pytest.raises(ModelValidationFailedException):  # MLflow's own gate, likewise
        mlflow.validate_evaluation_results(thresholds, found.result)


@pytest.mark.parametrize("gate", [mlflow_mcq.fail_if_worse, mlflow_mcq.loss_thresholds])
@pytest.mark.parametrize(
    ("given", "by", "said"),
    [
        pytest.param(["one", "other"], 0.02, r"what mlflow_mcq\.compare returns.*'list'", id="ids"),
        pytest.param(None, 0.02, r"what mlflow_mcq\.compare returns.*'NoneType'", id="nothing"),
        pytest.param(comparison(), 2, "by: must be a fraction.*got 2", id="points"),
        pytest.param(comparison(), -0.1, "by: must be a fraction", id="below 0"),
        pytest.param(comparison(), float("nan"), "by: must be a fraction", id="no number"),
        pytest.param(comparison(), "much", "by: must be a fraction.*'much'", id="a word"),
        pytest.param(comparison(), None, "by: must be a fraction.*None", id="none"),
        pytest.param(comparison(), True, "by: must be a fraction.*True", id="a truth value"),
    ],
)
def test_what_is_no_comparison_or_no_share_is_refused(
    gate: Callable[[Any, Any], object], given: Any, by: Any, said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        gate(given, by)


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(TWO_ARMS + ARMS, encoding="utf-8")
    return str(path)


def done(monkeypatch: pytest.MonkeyPatch, found: Comparison | None, why: str = "") -> None:
    arms = [ArmResult(name, name * 2, {}, "none") for name in ("base", "tired")]
    monkeypatch.setattr(
        "mlflow_mcq.recipe.measure_recipe", lambda path, given: RecipeRun(arms, found, why)
    )
    monkeypatch.setattr("mlflow_mcq.comparison.compare.compare", lambda *runs, **more: found)


@pytest.mark.parametrize(
    ("loss", "flag", "code"),
    [
        pytest.param(0.3, [], 0, id="no gate"),
        pytest.param(0.3, ["--fail-if-worse", ""], 0, id="an empty one, as MLproject passes it"),
        pytest.param(0.3, ["--fail-if-worse", "0.02"], 1, id="lost"),
        pytest.param(0.0, ["--fail-if-worse", "0.02"], 0, id="not lost"),
    ],
)
def test_run_and_compare_say_the_same_of_one_comparison(
    loss: float, flag: list[str], code: int, recipe: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    done(monkeypatch, comparison(tired=loss))
    assert main(["compare", "a", "b", "--json", *flag]) == code
    compared = json.loads(capsys.readouterr().out)
    assert main(["run", recipe, "--json", *flag]) == code
    ran = json.loads(capsys.readouterr().out)
    assert [arm["arm"] for arm in ran["arms"]] == ["base", "tired"]
    assert (ran["not_compared"], bool(ran["failed"])) == ("", code == 1)
    assert ran["failed"] == compared.pop("failed")
    assert ran["comparison"] == compared
    assert compared["metrics"] == {"shown_loss/tired": loss}
    assert (compared["baseline"], compared["read_by"]) == ("base", "judge")
    assert main(["run", recipe, *flag]) == code
    assert ("--fail-if-worse: accuracy is lower" in capsys.readouterr().err) == (code == 1)


def test_a_gate_over_arms_that_were_not_compared_does_not_stand_open(
    recipe: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done(monkeypatch, None, "arms share no graded row")
    assert main(["run", recipe, "--fail-if-worse", "0.02"]) == 1
    assert "not compared (arms share no graded row)" in capsys.readouterr().err
    assert main(["run", recipe, "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert (ran["comparison"], ran["not_compared"]) == (None, "arms share no graded row")


@pytest.mark.parametrize(
    ("text", "share", "said"),
    [
        pytest.param(TWO_ARMS + ARMS, "2", "--fail-if-worse: must be a fraction", id="points"),
        pytest.param(TWO_ARMS + ARMS, "2%", "--fail-if-worse: must be a fraction", id="percent"),
        pytest.param(TWO_ARMS + "arms: [{name: base}]\n", "0.1", "there is one arm", id="one arm"),
        pytest.param(TWO_ARMS + ARMS + "compare: false\n", "0.1", "compare: false", id="off"),
    ],
)
def test_a_gate_that_could_never_speak_is_refused_before_anything_is_run(
    text: str, share: str, said: str, recipe: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def never(*_: object) -> None:
        raise AssertionError("it was run")

    monkeypatch.setattr("mlflow_mcq.recipe.measure_recipe", never)
    Path(recipe).write_text(text, encoding="utf-8")
    assert main(["run", recipe, "--fail-if-worse", share]) == 2
    assert said in capsys.readouterr().err


def test_alarms_of_the_arms_themselves_are_said_once_where_all_have_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done(monkeypatch, comparison(tired=0.3))
    assert main(["compare", "a", "b"]) == 0
    shown = capsys.readouterr().out
    assert "alarms: other_rate_up" in shown
    assert "alarms of both arms: too_few_items\n" in shown
    assert "read by judge" in shown
