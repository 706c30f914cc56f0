"""Built sets as sources: by a short text or with arguments, in a recipe as anywhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlflow
import pytest
import yaml
from fake_server import FakeServer, Script
from mlflow import MlflowClient

from mlflow_mcq.datasets.built import built_name, located
from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.errors import DataError, McqError, SettingsError
from mlflow_mcq.recipe import load_recipe, run_recipe

PAIRS = {
    name: [(f"{name}{i}", f"{i}{name}x") for i in range(12)] for name in ("up", "down", "left")
}


@pytest.mark.parametrize(
    ("source", "n"),
    [
        pytest.param("nonsense:7", 7, id="number"),
        pytest.param({"nonsense": {"n": 5, "options": 3, "seed": 4}}, 5, id="arguments"),
        pytest.param({"nonsense": None}, 1000, id="nothing said"),
        pytest.param("nonsense", 1000, id="name alone"),
    ],
)
def test_a_source_is_made(source: Any, n: int) -> None:
    assert len(load_frame(source)) == n


def test_analogies_are_built_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    lines = [
        line
        for name, some in PAIRS.items()
        for line in (f": {name}", *(f"{a} {b} {c} {d}" for (a, b), (c, d) in pairwise(some)))
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    given = {"analogy": {"pairs": "p.txt", "per_relation": 4, "duplicate": True}}
    frame = load_frame(located(given, tmp_path))
    assert len(frame) == 12
    assert set(frame["variant"]) == {"duplicate"}
    with pytest.raises(DataError, match="enough for"):
        load_frame(f"analogy:{path}")  # a hundred of each are the default


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param("nonsense:many", "number of items", id="a word for a number"),
        pytest.param("nonsense:0", "number of items", id="none"),
        pytest.param({"nonsense": {"sed": 1}}, 'Did you mean "seed"', id="typo"),
        pytest.param({"nonsense": 5}, "mapping", id="no arguments"),
        pytest.param({"nonsence": {}}, "one of nonsense, analogy", id="no such builder"),
        pytest.param({"nonsense": {}, "analogy": {}}, "one of", id="two at once"),
        pytest.param("analogy", "pairs file", id="without its file"),
    ],
)
def test_faults_are_named(source: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_frame(source)


@pytest.mark.parametrize(
    "path", ["nonsense.jsonl", "data/nonsense", "./nonsense.csv", "c:nonsense"]
)
def test_files_stay_files(path: str) -> None:
    assert built_name(path) is None
    with pytest.raises(McqError, match="data file"):
        load_frame(path)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("items.jsonl", str(Path("r") / "items.jsonl"), id="file"),
        pytest.param("nonsense:9", {"nonsense": {"n": 9}}, id="no path in it"),
        pytest.param("analogy:p.txt", {"analogy": {"pairs": str(Path("r") / "p.txt")}}, id="short"),
        pytest.param(
            {"nonsense": {"words": "w.txt"}}, {"nonsense": {"words": str(Path("r") / "w.txt")}},
            id="words",
        ),
        pytest.param({"analogy": {"pairs": "/p.txt"}}, {"analogy": {"pairs": "/p.txt"}}, id="root"),
    ],
)  # fmt: skip
def test_paths_are_relative_to_the_recipe(source: Any, found: Any) -> None:
    assert located(source, Path("r")) == found


def test_a_recipe_runs_on_a_built_set(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    judge_server: Callable[[Script], FakeServer],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    server = judge_server(lambda request, n: "A")
    recipe = {
        "name": "probe",
        "data": {"nonsense": {"n": 30, "seed": 2}},
        "limit": 10,
        "model": {"base_url": server.url, "model": "always-a"},
        "evaluators": ["mcq_regex"],
        "arms": [{"name": "letters"}],
    }
    path = tmp_path / "probe.yaml"
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    try:
        (result,) = run_recipe(path)
        inputs = MlflowClient().get_run(result.run_id).inputs.dataset_inputs
    finally:
        mlflow.set_tracking_uri(before)
    assert result.metrics["regex_bounded/n_nonsense_items"] == 10
    assert result.metrics["regex_bounded/nonsense_accuracy"] == 0.25
    assert inputs[0].dataset.name == "nonsense"
    assert load_recipe(path, {"data": "nonsense:4"}).data == "nonsense:4"
