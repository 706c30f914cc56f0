"""The old file store, which MLflow still opens where it is asked to."""

from __future__ import annotations

import logging
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from scripted_arms import items, knowing

import mlflow_mcq


def test_arms_are_evaluated_and_compared_in_a_file_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    try:
        arms = []
        for name, knows in (("base", 0.4), ("better", 0.9)):
            with mlflow.start_run(run_name=name):
                arms.append(
                    mlflow_mcq.evaluate(knowing(knows, name), items(40), evaluators="mcq_regex")
                )
        with caplog.at_level(logging.WARNING):
            found = mlflow_mcq.compare(arms)
        stored = {one.path for one in MlflowClient().list_artifacts(found.run_id)}
    finally:
        mlflow.set_tracking_uri(before)
    assert found.metrics["accuracy_shift/better"] > 0.2
    assert {"mcq_report.html", "mcq_deltas.json"} <= stored
    assert "the store keeps none (NotImplementedError)" in caplog.text
