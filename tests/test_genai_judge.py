"""Judges in `mlflow.genai.evaluate` are measured as everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from fair_judge import fair_judge
from fake_server import FakeServer

import mlflow_mcq
from mlflow_mcq import scorers
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.evaluation import bounded_workers

METALS = ["iron", "mercury", "tin", "zinc"]
DATA = [
    {"id": f"q{i}", "question": f"Which is number {i}?", "options": METALS, "answer": i % 4}
    for i in range(4)
]


def says(prompt: str) -> str:
    """A label, an option in a sentence, and a refusal."""
    if "number 1" in prompt:
        return "B"
    return "I would go for tin here." if "number 2" in prompt else "Nobody can tell."


@pytest.fixture(scope="module")
def reads_fairly() -> Iterator[FakeServer]:
    """A judge that finds most replies of the exam by their text."""
    server = FakeServer(fair_judge())
    yield server
    server.close()


def judged_alike(server: FakeServer, cache: Path) -> dict[str, Any]:
    few = {"exam_replies": 80, "canaries": 2}
    return {"model": "m", "base_url": server.url, "cache_dir": str(cache), **few}


def test_a_judge_has_the_same_numbers_as_in_an_evaluator(
    reads_fairly: FakeServer, store: None, tmp_path: Path
) -> None:
    judge = judged_alike(reads_fairly, tmp_path / "judge")
    there = mlflow_mcq.evaluate(
        lambda frame: [says(prompt) for prompt in frame["prompt"]],
        DATA[:3],
        judge,
        orientations="rotations:2",
    )
    with mlflow.start_run() as run:  # a second arm
        here = mlflow_mcq.genai_evaluate(DATA[:3], says, judge=judge, orientations="rotations:2")
    cost = {"judge/n_calls", "judge/n_cached", "judge/prompt_tokens", "judge/reply_tokens"}
    wanted = {
        name: value
        for name, value in there.metrics.items()
        if name.startswith("judge/") and "regex" not in name and name not in cost
    }
    assert {name: here.metrics.get(name) for name in wanted} == pytest.approx(wanted)
    assert {"judge/accuracy_corrected", "judge/exam_kappa", "judge/canary_accuracy"} <= set(wanted)
    params, others = (mlflow.get_run(i).data.params for i in (run.info.run_id, there.run_id))
    for name in ("mcq.judge_model", "mcq.judge_shape", "mcq.judge_fingerprint"):
        assert params[name] == others[name]
    names = {one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
    assert "mcq_judge_exam_by_kind.json" in names


@pytest.fixture
def read_by_mlflow(
    reads_fairly: FakeServer, store: None, tmp_path: Path
) -> tuple[Any, dict[str, Any]]:
    """A run of MLflow alone, and who judged it."""
    who = judged_alike(reads_fairly, tmp_path / "judge") | {"check_rows": 0, "name": "referee"}
    with bounded_workers():
        result = mlflow.genai.evaluate(
            data=mlflow_mcq.rotated(DATA[:2], "as-is"),
            predict_fn=says,
            scorers=[scorers.judge(**who)],
        )
    return result, who


def test_by_mlflow_alone_the_judge_is_examined_when_rows_are_folded(
    read_by_mlflow: tuple[Any, dict[str, Any]],
) -> None:
    result, who = read_by_mlflow
    arm = mlflow_mcq.folded(result, 2, scorers=[scorers.judge(**who)])
    assert {"referee/accuracy_corrected", "referee/exam_kappa"} <= set(arm.metrics)
    assert {"mcq_referee_exam", "mcq_referee_exam_by_kind"} <= set(arm.artifacts)


def test_only_the_judge_that_read_may_correct(
    read_by_mlflow: tuple[Any, dict[str, Any]],
) -> None:
    result, who = read_by_mlflow
    with pytest.raises(SettingsError, match="another judge under the name 'referee'"):
        mlflow_mcq.folded(result, scorers=[scorers.judge(**{**who, "model": "other"})])
    arm = mlflow_mcq.folded(result)
    assert "referee/accuracy_corrected" not in arm.metrics
    notes = arm.tables["mcq_summary"].set_index("metric")["note"]
    assert "folded(result, scorers=[...])" in notes["referee/accuracy_corrected"]
