"""Recipes: checked before anything runs, one run an arm, one tag for all."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest
import yaml
from fake_server import FakeServer, Script
from mlflow import MlflowClient
from rich.console import Console

from mlflow_mcq.__main__ import main
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.errors import JudgeNotConfigured, McqError, SettingsError
from mlflow_mcq.recipe import ArmResult, load_recipe, run_recipe
from mlflow_mcq.settings import read_settings
from mlflow_mcq.terminal import show_results

ROOT = Path(__file__).parent.parent
ITEMS = "\n".join(
    f'{{"id": "q{i}", "question": "Which is {i}?", "options": ["{i}.", "none"], "answer": 0}}'
    for i in range(10)
)


@pytest.fixture
def store(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual one, and no run of a project that these tests may stand in."""
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    return store


def written(folder: Path, **recipe: Any) -> Path:
    (folder / "items.jsonl").write_text(ITEMS, encoding="utf-8")
    whole = {"name": "trial", "data": "items.jsonl", "arms": [{"name": "one"}], **recipe}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        pytest.param({"orientatons": "swap"}, "orientatons", id="unknown setting"),
        pytest.param(
            {"evaluator": ["mcq_regex"]}, 'Did you mean "evaluators"', id="a recipe's key"
        ),
        pytest.param(
            {"arms": [{"name": "a", "origin": "b"}]}, 'of arm a. Did you mean "orig', id="an arm's"
        ),
        pytest.param({"arms": []}, "arms", id="no arms"),
        pytest.param({"arms": [{"name": "a"}, {"name": "a"}]}, "different names", id="twins"),
        pytest.param(
            {"arms": [{"name": "a", "protocol": "runes"}]}, "runes", id="unknown setting of an arm"
        ),
        pytest.param({"limit": 0}, "limit", id="no items"),
        pytest.param({"limit": "6"}, "limit", id="a text, as everywhere else"),
        pytest.param({"judge": {"model": "m"}}, "judge.base_url", id="half a judge"),
    ],
)
def test_a_recipe_is_checked_as_a_whole(tmp_path: Path, recipe: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_recipe(written(tmp_path, **recipe))


def test_a_hub_address_is_no_path_and_a_limit_is_a_setting_of_the_arms(tmp_path: Path) -> None:
    arms = [{"name": "one"}, {"name": "two", "limit": 2}]
    more = {"data": "hf:own/set:part", "split": "test", "evaluators": ["mcq_regex"]}
    path = written(tmp_path, limit=7, arms=arms, **more)
    recipe = load_recipe(path)
    assert (recipe.data, recipe.split) == ("hf:own/set:part", "test")
    assert [recipe.settings_of(arm)["limit"] for arm in recipe.arms] == [7, 2]
    recipe = load_recipe(path, {"limit": "5"})
    assert [recipe.settings_of(arm)["limit"] for arm in recipe.arms] == [5, 5]


@pytest.mark.parametrize(
    "text", ["- just\n- a list", "name: [", "!!python/object/apply:os.system ['true']"]
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="recipe"):
        load_recipe(path)


def test_one_evaluator_may_stand_without_a_list(tmp_path: Path) -> None:
    arms = [{"name": "own", "evaluators": "mcq_analogy"}, {"name": "other"}]
    recipe = load_recipe(written(tmp_path, model="m", evaluators="mcq_regex", arms=arms))
    assert [recipe.evaluators_of(arm) for arm in recipe.arms] == [["mcq_analogy"], ["mcq_regex"]]


def test_a_judge_that_no_arm_asks_is_refused(tmp_path: Path) -> None:
    arms = [{"name": "one"}, {"name": "two", "evaluators": ["mcq_analogy"]}]
    path = written(tmp_path, model="m", evaluators="mcq_regex", arms=arms)
    judge = {"judge_model": "j", "judge_url": "local"}
    with pytest.raises(SettingsError, match=r"nobody asks it.*mcq_regex, mcq_analogy"):
        load_recipe(path, judge)
    assert load_recipe(path, {"judge_model": "", "judge_url": None}).arms
    arms[1]["evaluators"] = ["mcq_judge", "mcq_regex"]
    assert load_recipe(written(tmp_path, evaluators="mcq_regex", arms=arms), judge).arms


def test_an_arm_that_is_a_bare_name_is_told_its_form(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="- name: letters; got 'dashes'"):
        load_recipe(written(tmp_path, model="m", evaluators="mcq_regex", arms=["dashes"]))


def test_overrides_hold_for_every_arm_and_empty_ones_for_none(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        judge={"model": "old", "base_url": "local"},
        arms=[{"name": "a", "orientations": "swap"}, {"name": "b"}],
        model="base",
    )
    given = {"orientations": "as-is", "limit": "3", "judge_model": "new", "data": "", "model": None}
    recipe = load_recipe(path, given)
    assert recipe.limit == 3
    assert recipe.model == "base"
    assert recipe.data == str(tmp_path / "items.jsonl")
    for arm in recipe.arms:
        settings = read_settings(recipe.settings_of(arm))
        assert settings.orientations == "as-is"
        assert settings.judge is not None
        assert (settings.judge.model, settings.judge.base_url) == ("new", "local")


@pytest.fixture
def served(store: Path, judge_server: Callable[[Script], FakeServer]) -> Path:
    server = judge_server(lambda request, n: "A")
    return written(
        store,
        experiment="trial",
        limit=4,
        model={"base_url": server.url, "model": "always-a"},
        evaluators=["mcq_regex"],
        arms=[{"name": "letters"}, {"name": "one-way", "orientations": "as-is"}],
    )


def test_each_arm_is_a_run_under_one_tag(served: Path) -> None:
    results = run_recipe(served, {"trace_rows": 0}, limit=3)
    assert [r.name for r in results] == ["letters", "one-way"]
    assert [r.metrics["regex_bounded/n_rows"] for r in results] == [6, 3]
    runs = [MlflowClient().get_run(r.run_id) for r in results]
    assert len({run.data.tags["mcq.comparison"] for run in runs}) == 1
    assert [run.data.tags["mlflow.runName"] for run in runs] == ["letters", "one-way"]
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs)
    assert len({run.data.tags["mcq.data_digest"] for run in runs}) == 1
    assert runs[0].data.params["mcq.model"] == "always-a"
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_a_recipe_that_is_refused_leaves_no_experiment(served: Path) -> None:
    recipe = yaml.safe_load(served.read_text(encoding="utf-8"))
    three = '{"question": "Which?", "options": ["a", "b", "c"], "answer": 0}'
    (served.parent / "three.jsonl").write_text(three, encoding="utf-8")
    more = {"experiment": "never-made", "data": "three.jsonl", "orientations": "swap"}
    served.write_text(yaml.safe_dump(recipe | more), encoding="utf-8")
    with pytest.raises(McqError, match="swap"):
        run_recipe(served)
    assert MlflowClient().get_experiment_by_name("never-made") is None


def test_under_mlflow_run_the_project_run_holds_the_table(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = mlflow.create_experiment("project")
    project = MlflowClient().create_run(experiment)
    monkeypatch.setenv("MLFLOW_RUN_ID", project.info.run_id)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment)
    results = run_recipe(served)
    client = MlflowClient()
    assert {client.get_run(r.run_id).info.experiment_id for r in results} == {experiment}
    assert client.get_run(project.info.run_id).data.tags["mcq.role"] == "comparison"
    files = {f.path for f in client.list_artifacts(project.info.run_id)}
    assert {"mcq_arms.json", "mcq_comparison.json", "mcq_cost.json"} <= files
    assert {"mcq_report.html", "mcq_deltas.json", "mcq_differing_rows.parquet"} <= files


def comparison_of(results: list[ArmResult]) -> str:
    """The one run that compares these arms."""
    first = MlflowClient().get_run(results[0].run_id)
    runs = MlflowClient().search_runs([first.info.experiment_id], "tags.`mcq.role` = 'comparison'")
    (one,) = [run.info.run_id for run in runs]
    return one


@pytest.mark.parametrize(
    ("more", "compared"),
    [
        pytest.param({}, True, id="several arms"),
        pytest.param({"compare": False}, False, id="switched off"),
        pytest.param({"arms": [{"name": "letters"}]}, False, id="one arm"),
    ],
)
def test_several_arms_are_compared_at_the_end(
    served: Path, more: dict[str, Any], compared: bool
) -> None:
    recipe = yaml.safe_load(served.read_text(encoding="utf-8"))
    served.write_text(yaml.safe_dump(recipe | {"trace_rows": 0} | more), encoding="utf-8")
    results = run_recipe(served)
    tags = MlflowClient().get_run(comparison_of(results)).data.tags
    assert tags.get("mcq.arms", "").split(",") == (
        [r.run_id for r in results] if compared else [""]
    )


def test_a_run_of_a_recipe_says_what_was_found_between_its_arms(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = yaml.safe_load(served.read_text(encoding="utf-8"))
    served.write_text(yaml.safe_dump(recipe | {"trace_rows": 0}), encoding="utf-8")
    assert main(["run", str(served), "--json", "--fail-if-worse", "0.9"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = said["comparison"]
    assert [arm["arm"] for arm in said["arms"]] == ["letters", "one-way"]
    assert (found["baseline"], found["read_by"]) == ("letters", "regex_bounded")
    assert "one-way against letters: accuracy" in found["headlines"]["one-way"]
    assert found["alarms_of_arms"] == {
        arm["arm"]: arm["alarms"].split(", ") for arm in said["arms"]
    }
    run = MlflowClient().get_run(found["run_id"])
    assert {name: run.data.metrics[name] for name in found["metrics"]} == found["metrics"]


def test_an_arm_of_other_data_is_left_out_and_said(
    served: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = served.parent / "others.jsonl"
    other.write_text(ITEMS.replace('"id": "q', '"id": "other'), encoding="utf-8")
    recipe = yaml.safe_load(served.read_text(encoding="utf-8"))
    recipe["arms"].append({"name": "elsewhere", "data": "others.jsonl"})
    served.write_text(yaml.safe_dump(recipe | {"trace_rows": 0}), encoding="utf-8")
    with caplog.at_level("WARNING", "mlflow_mcq"):
        results = run_recipe(served)
    tags = MlflowClient().get_run(comparison_of(results)).data.tags
    assert tags["mcq.arms"].split(",") == [r.run_id for r in results[:2]]
    assert "'elsewhere': share no graded row" in caplog.text


def test_the_comparison_has_a_run_of_its_own(served: Path) -> None:
    results = run_recipe(served)
    client = MlflowClient()
    where = client.get_run(results[0].run_id).info.experiment_id
    [own] = client.search_runs([where], "tags.`mcq.role` = 'comparison'")
    tag = client.get_run(results[0].run_id).data.tags["mcq.comparison"]
    assert own.data.tags["mcq.comparison"] == own.info.run_name == tag
    assert own.data.metrics["seconds_letters"] > 0


def test_what_it_costs_is_said_before_the_first_call(
    store: Path, judge_server: Callable[[Script], FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    def script(request: dict[str, Any], n: int) -> str:
        if n == 0:
            said.append(capsys.readouterr().err)
        return "A"

    model = {"base_url": judge_server(script).url, "model": "always-a"}
    path = written(store, limit=4, model=model, evaluators=["mcq_judge", "mcq_regex"])
    run_recipe(path)
    assert "1 arm, 8 prompts" in said[0]
    assert "an estimate: characters / 4" in said[0]
    assert "mcq_judge is left out of one" in said[0]


def test_arms_may_have_data_and_readers_of_their_own(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    model = {"base_url": judge_server(lambda request, n: "A").url, "model": "always-a"}
    item = {"question": "?", "options": ["yes", "no"], "answer": 1}
    more = [{"id": f"x{i}", **item, "split": f"s{i}"} for i in range(3)]
    (store / "more.jsonl").write_text("\n".join(map(json.dumps, more)))
    arms = [
        {"name": "own", "data": "more.jsonl"},
        {"name": "part", "data": "more.jsonl", "split": "s1"},
        {"name": "shared", "evaluators": ["mcq_regex"], "orientations": "as-is"},
    ]
    path = written(store, model=model, evaluators=["mcq_regex"], arms=arms)
    results = run_recipe(path)
    assert [r.metrics["regex_bounded/n_rows"] for r in results] == [6, 2, 10]
    with pytest.raises(SettingsError, match="differs from arm to arm"):
        load_recipe(path, {"data": "other.jsonl"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"limt": 3}, r'^limt: .*Did you mean "limit"', id="of the recipe"),
        pytest.param({"orientatoins": "swap"}, '"orientations"', id="setting"),
        pytest.param({"judge_modle": "m"}, '"judge_model"', id="of the judge"),
        pytest.param({"overrides": {"limit": 3}, "limit": 4}, "limit: is given twice", id="twice"),
    ],
)
def test_a_misspelt_override_is_met_with_the_nearest(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        run_recipe(written(tmp_path, evaluators=["mcq_regex"]), **given)


def test_an_override_takes_an_axis_out_of_a_grid(tmp_path: Path) -> None:
    arms = [{"name": "a", "grid": {"orientations": ["as-is", "swap"]}}]
    path = written(tmp_path, evaluators=["mcq_regex"], arms=arms, grid={"temperature": [0, 1]})
    assert len(load_recipe(path).arms) == 4
    recipe = load_recipe(path, {"orientations": "as-is"})
    assert [arm.name for arm in recipe.arms] == ["a temperature=0", "a temperature=1"]


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        pytest.param({"baseline": "nobody"}, "nobody is no arm", id="baseline"),
        pytest.param(
            {"arms": [{"name": "a", "original": "b"}]}, "b is no arm; there are a", id="original"
        ),
        pytest.param({"tables": ["all"]}, "tables", id="no such table"),
        pytest.param({"regrade": {"of": "x"}}, "does not take arms, data", id="new and old arms"),
        pytest.param({"data": None}, "names no data", id="no data at all"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, recipe: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        load_recipe(written(tmp_path, evaluators=["mcq_regex"], **recipe))


def test_three_models_under_two_protocols_are_ranked(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    shares = {"weak": 2, "middle": 5, "strong": 9}

    def script(request: dict[str, Any], n: int) -> str:
        asked = str(request["messages"][-1]["content"])
        number = int(re.search(r"Which is (\d)", asked)[1])
        return "A" if number < shares[request["model"]] else "B"

    url = judge_server(script).url
    models = {name: {"base_url": url, "model": name} for name in shares}
    arms = [{"name": name, "protocol": name} for name in ("letters", "letters-shuffled-labels")]
    path = written(
        store, evaluators=["mcq_regex"], orientations="as-is", arms=arms, grid={"model": models}
    )
    results = run_recipe(path)
    client = MlflowClient()
    where = client.get_run(results[0].run_id).info.experiment_id
    [own] = client.search_runs([where], "tags.`mcq.role` = 'comparison'")
    assert own.data.metrics["tau_by_regex_bounded_regex_naive"] == 1.0
    assert -1 <= own.data.metrics["tau_letters_letters-shuffled-labels"] <= 1


def test_a_comparison_that_is_not_there_cannot_be_read_again(store: Path) -> None:
    path = store / "again.yaml"
    again = {"name": "again", "regrade": {"of": "it's nowhere"}}
    path.write_text(yaml.safe_dump(again), encoding="utf-8")
    with pytest.raises(SettingsError, match="names no run"):
        run_recipe(path, JUDGE)


def test_the_command_line_says_what_is_wrong(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(served), "--orientations", "spin"]) == 2
    assert "orientations: must be" in capsys.readouterr().err
    assert main(["run", "nowhere.yaml"]) == 2


def test_the_command_line_ends_with_a_table_and_the_way_to_the_ui(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(served), "--limit", "2"]) == 0
    said = capsys.readouterr().out
    assert "one-way" in said
    assert "mlflow ui --backend-store-uri sqlite:///" in said


def test_names_are_no_markup() -> None:
    text = io.StringIO()
    result = ArmResult("[red]x[/]", "r", {"judge/other_rate": 0.5}, "judge_unreliable")
    show_results([result], Console(file=text, width=150))
    assert text.getvalue().count("[red]x[/]") == 3


def shown_results(**metrics: float) -> str:
    text = io.StringIO()
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    show_results([ArmResult("arm", "r", named, "none")], Console(file=text, width=150))
    return text.getvalue()


@pytest.mark.parametrize(
    ("metrics", "cells"),
    [
        pytest.param(
            {"judge__accuracy": 0.5, "judge__other_rate": 0.25},
            ["arm", "judge", "0.50", "-", "0.25", "-", "-", "-", "-"],
            id="one orientation has no range",
        ),
        pytest.param(
            {"judge__other_rate": 0.0, "judge__accuracy_lowest": 0.1, "judge__accuracy_highest": 1},
            ["arm", "judge", "-", "-", "0.00", "-", "-", "-", "0.10-1.00"],
            id="a range",
        ),
        pytest.param(
            {"judge__judge_error_rate": 1.0},
            ["arm", "judge", "-", "-", "-", "1.00", "-", "-", "-"],
            id="every call failed",
        ),
    ],
)
def test_every_reader_has_a_line(metrics: dict[str, float], cells: list[str]) -> None:
    (line,) = [line for line in shown_results(**metrics).splitlines() if "judge" in line]
    assert line.split() == cells


def test_guessing_is_said_where_the_set_is_nonsense() -> None:
    band = {"judge__nonsense_accuracy": 0.3, "judge__chance_low": 0.2, "judge__chance_high": 0.29}
    assert "guessing is 0.200 to 0.290: outside" in shown_results(**band)
    assert "guessing" not in shown_results(judge__other_rate=0.5)


SHIPPED = sorted((ROOT / "recipes").glob("*.yaml"))
JUDGE = {"judge_model": "m", "judge_url": "http://127.0.0.1:9/v1"}
UNJUDGED = {"analogy", "analogy_temperature"}  # a judge of theirs would be refused


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_recipe_is_usable(path: Path) -> None:
    recipe = load_recipe(path, None if path.stem in UNJUDGED else JUDGE)
    assert recipe.name == path.stem
    for arm in recipe.arms:
        assert len(load_data(*recipe.source_of(arm)))


@pytest.mark.parametrize("name", ["abcd_judge", "regrade"])
def test_a_recipe_whose_numbers_are_the_judges_is_refused_without_one(name: str) -> None:
    with pytest.raises(JudgeNotConfigured):
        load_recipe(ROOT / "recipes" / f"{name}.yaml")


def test_the_project_file_passes_everything_on() -> None:
    project = yaml.safe_load((ROOT / "MLproject").read_text(encoding="utf-8"))
    for entry in project["entry_points"].values():
        assert set(re.findall(r"\{(\w+)\}", entry["command"])) == set(entry["parameters"])
        assert not any("key" in name and not name.endswith("_env") for name in entry["parameters"])
    assert (ROOT / project["python_env"]).is_file()


@pytest.mark.real_model
def test_mlflow_run_on_the_real_model(smollm2: Any, tmp_path: Path) -> None:
    """The demo itself, on two items: every step a newcomer takes but the installation."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    command = [
        sys.executable, "-m", "mlflow", "run", ".", "--env-manager", "local",
        "-P", "limit=2", "-P", "orientations=rotations:2",
    ]  # fmt: skip
    # MLflow leaves the experiment of earlier tests in the environment.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**clean, "MLFLOW_TRACKING_URI": uri, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mlflow ui --backend-store-uri" in done.stdout
    client = MlflowClient(uri)
    runs = client.search_runs(["0"], "tags.`mcq.role` = 'arm'")
    assert {run.data.tags["mcq.arm"] for run in runs} == {"letters", "dashes"}
    for run in runs:
        assert run.data.metrics["judge/n_rows"] == 4
        assert run.data.tags["mcq.status"] == "finished"
