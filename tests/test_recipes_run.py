"""Every shipped recipe on the real small model: two items, few tokens, a scripted judge.

Grids and lists of arms are cut, so that two arms or four stand for all: what is tested is that
recipes run, and what they put on record. The model is loaded once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
import yaml
from fake_server import FakeServer, Script
from mlflow import MlflowClient

from mlflow_mcq.engines import sharing
from mlflow_mcq.experiment.stored_arms import finished_arms
from mlflow_mcq.recipe import ArmResult, run_recipe

RECIPES = Path(__file__).parent.parent / "recipes"
SMALL = {"limit": 2, "max_new_tokens": 8}
Axes = dict[str, int]
pytestmark = pytest.mark.real_model


@dataclass
class Ran:
    """What a recipe left behind."""

    arms: list[ArmResult]
    comparison: Any

    def table(self, name: str) -> pd.DataFrame:
        path = MlflowClient().download_artifacts(self.comparison.info.run_id, f"{name}.json")
        return pd.DataFrame(**json.loads(Path(path).read_text(encoding="utf-8")))

    @property
    def files(self) -> set[str]:
        listed = MlflowClient().list_artifacts(self.comparison.info.run_id)
        return {Path(file.path).stem for file in listed}

    @property
    def by_arm(self) -> pd.DataFrame:
        return self.table("mcq_arms").set_index("arm")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One store for all recipes: making its tables takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    yield folder
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def weights() -> Any:
    """What recipes share among their arms, here shared among recipes."""
    return sharing._Shared()


@pytest.fixture
def run(store: Path, weights: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    monkeypatch.chdir(store)
    monkeypatch.setattr(sharing._HELD, "shared", weights)

    def start(name: str, *, axes: Axes | None = None, arms: int = 4, **overrides: Any) -> Ran:
        path = cut(RECIPES / f"{name}.yaml", store / name, axes or {}, arms)
        results = run_recipe(path, {**({} if name == "regrade" else SMALL), **overrides})
        client = MlflowClient()
        tag = client.get_run(results[0].run_id).data.tags["mcq.comparison"]
        everywhere = [found.experiment_id for found in client.search_experiments()]
        rule = "tags.`mcq.role` = 'comparison'"
        newest = client.search_runs(everywhere, rule, order_by=["attributes.start_time DESC"])[0]
        assert newest.data.tags["mcq.comparison"].startswith(name)
        assert name == "regrade" or newest.data.tags["mcq.comparison"] == tag
        return Ran(results, newest)

    return start


def cut(recipe: Path, folder: Path, axes: Axes, arms: int) -> Path:
    """A copy with fewer arms and values (one an axis, or as said), beside links to the data."""
    folder.mkdir(exist_ok=True)
    for file in RECIPES.iterdir():
        if file.suffix != ".yaml" and not (folder / file.name).exists():
            (folder / file.name).symlink_to(file)
    given = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    given["arms"] = given.get("arms", [])[:arms]
    for place in (given, *given["arms"]):
        for name, axis in (place.get("grid") or {}).items():
            few = list(axis)[: axes.get(name, 1)]
            place["grid"][name] = {n: axis[n] for n in few} if isinstance(axis, dict) else few
    if not given["arms"]:
        del given["arms"]
    path = folder / recipe.name
    path.write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> dict[str, str]:
    """A judge that names the first option of everything."""
    server = judge_server(lambda request, n: "A")
    return {"judge_model": "first", "judge_url": server.url}


def finished(ran: Ran) -> bool:
    client = MlflowClient()
    tags = [client.get_run(arm.run_id).data.tags for arm in ran.arms]
    return all(one["mcq.status"] == "finished" for one in tags)


def test_ab_preference(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run("ab_preference")
    assert finished(ran)
    said = capsys.readouterr().err
    assert "this will take, where no row is stored yet: 2 arms, 6 prompts" in said
    assert "mcq_judge is left out of one-order, both-orders" in said
    chosen = ran.table("mcq_chosen")
    assert {"answer", "option 1", "option 2", "slot 1", "slot 2"} == set(chosen["chosen"])
    assert "logprob/accuracy" in ran.arms[1].metrics


def test_sl_vs_md(run: Any) -> None:
    ran = run("sl_vs_md")
    arms = ran.by_arm
    assert list(arms["protocol"]) == ["letters", "dashes", "letters", "dashes"]
    for arm, reader in (("letters", "regex_bounded"), ("dashes", "similarity")):
        for name in ("accuracy_variance", "pair_consistency", "circular_accuracy"):
            assert 0 <= arms.loc[arm, f"{reader}/{name}"] <= 1
        attacked = arms.loc[f"{arm}-attacked orientations=gold-at:0:swap"]
        assert -1 <= attacked[f"{reader}/attack_gap"] <= 1
    assert 0 < arms.loc["dashes", "similarity_share"] < 1
    notes = ran.table("mcq_comparison").set_index("metric")
    assert "models in both: 1;" in notes.loc["tau_dashes_letters", "note"]
    assert notes.loc["seconds_dashes", "value"] > 0


def test_nonsense_probe(run: Any) -> None:
    ran = run("nonsense_probe", data="nonsense:40")
    assert [arm.name for arm in ran.arms] == ["zero-shot", "few-shot few_shot.gold=balanced"]
    assert all("regex_bounded/chance_high" in arm.metrics for arm in ran.arms)


def test_analogy(run: Any) -> None:
    ran = run("analogy", arms=2)
    assert [arm.variant for arm in ran.arms] == ["standard", "duplicate"]
    assert all("analogy/accuracy" in arm.metrics for arm in ran.arms)


def test_analogy_temperature(run: Any) -> None:
    ran = run("analogy_temperature", axes={"temperature": 2}, arms=1)
    points = ran.table("mcq_temperature")
    assert list(zip(points["variant"], points["temperature"], strict=True)) == [
        ("standard", 0.0), ("standard", 0.4),
    ]  # fmt: skip
    assert "mcq_temperature_chart" in ran.files
    assert [arm.metrics["analogy/n_rows"] for arm in ran.arms] == [10.0] * 2


def test_answer_moving(run: Any) -> None:
    ran = run("answer_moving", arms=2)
    arms = ran.by_arm
    assert arms["regex_bounded/attack_gap"].notna().tolist() == [False, True]
    for arm in ran.arms[1:]:
        assert (arm.rows["gold_slot"] == 0).all()


def test_shuffle_repeats(run: Any) -> None:
    ran = run("shuffle_repeats")
    assert {f"mcq_repeat_{n}" for n in range(5)} <= ran.files
    aggregate = ran.table("mcq_repeats")
    assert set(aggregate["n_repeats"]) == {5}
    means = [ran.table(f"mcq_repeat_{n}")["accuracy"] for n in range(5)]
    assert aggregate["accuracy_mean"].tolist() == pytest.approx((sum(means) / 5).tolist())


def test_base_vs_finetuned(run: Any) -> None:
    arms = run("base_vs_finetuned").by_arm
    assert arms["regex_bounded/accuracy_shift"].notna().tolist() == [False, True]


def test_steering_sweep(run: Any) -> None:
    ran = run("steering_sweep", axes={"template": 2})
    assert ran.by_arm["regex_bounded/accuracy_shift"].notna().tolist() == [False, True]


def test_multilingual(run: Any) -> None:
    ran = run("multilingual", arms=2)
    assert [arm.name for arm in ran.arms] == ["en", "zh"]
    assert ran.by_arm["regex_bounded/accuracy_shift"].notna().tolist() == [False, True]


def test_abcd_judge(run: Any, judge: dict[str, str]) -> None:
    ran = run("abcd_judge", orientations="rotations:2", **judge)
    assert finished(ran)
    assert all("judge/accuracy" in arm.metrics for arm in ran.arms)
    assert "regex_mmlu_pro/accuracy" in ran.arms[0].metrics


def test_demo_and_its_answers_read_again(run: Any, judge: dict[str, str]) -> None:
    demo = run("demo", orientations="rotations:2", **judge)
    assert finished(demo)
    again = run("regrade", **judge)
    assert [arm.name for arm in again.arms] == ["letters", "dashes"]
    client = MlflowClient()
    origins = [client.get_run(arm.run_id).data.tags["mcq.regraded_from"] for arm in again.arms]
    assert origins == [arm.run_id for arm in demo.arms]
    same = ["judge/accuracy", "judge/other_rate", "regex_naive/accuracy"]
    for one, other in zip(demo.arms, again.arms, strict=True):
        assert [one.metrics[n] for n in same] == [other.metrics[n] for n in same]
        assert one.model == other.model == "demo:smollm2"
    # The newest comparison of that name is still the measured one, not its reading.
    where = [client.get_run(demo.arms[0].run_id).info.experiment_id]
    found = [arm.info.run_id for arm in finished_arms("demo", where)]
    assert found == [arm.run_id for arm in demo.arms]
