"""Every shipped recipe on the real small model: two items, eight tokens, a scripted judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow import MlflowClient

from mlflow_mcq.engines import sharing
from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.recipe import ArmResult, run_recipe

RECIPES = Path(__file__).parent.parent / "recipes"
SMALL = {"limit": 2, "max_new_tokens": 8}
pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One store for all recipes: making its tables takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    yield str(folder)
    mlflow.set_tracking_uri(before)


@pytest.fixture
def run(
    store: str, smollm2: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[list[ArmResult], Callable[[str], pd.DataFrame], MlflowClient]]:
    """Run a recipe with weights that are in memory already."""
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ARTIFACT_ROOT", store)
    folder = resolve_weights("demo:smollm2")
    monkeypatch.setattr(sharing._HELD, "chats", {(folder, smollm2.batch_size): smollm2})

    def start(recipe: str, **overrides: Any):
        results = run_recipe(RECIPES / f"{recipe}.yaml", {**SMALL, **overrides})
        client = MlflowClient()
        tag = client.get_run(results[0].run_id).data.tags["mcq.comparison"]
        return results, client, tag

    return start


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> dict[str, str]:
    """A judge that names the first option of everything."""
    server = judge_server(lambda request, n: "A")
    return {"judge_model": "first", "judge_url": server.url}


NEED_NO_JUDGE = [
    "ab_preference", "analogy", "analogy_temperature", "answer_moving", "base_vs_finetuned",
    "multilingual", "nonsense_probe", "shuffle_repeats", "sl_vs_md", "steering_sweep",
]  # fmt: skip


@pytest.mark.parametrize("recipe", NEED_NO_JUDGE)
def test_recipes_that_need_no_judge(recipe: str, run: Any) -> None:
    results, client, _ = run(recipe)
    assert all(client.get_run(r.run_id).data.tags["mcq.status"] == "finished" for r in results)
