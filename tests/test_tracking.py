"""Runs of our own: where they stand, and under what name."""

from __future__ import annotations

import mlflow
import pytest
from mlflow import MlflowClient

from mlflow_mcq.tracking import run_beside


@pytest.mark.parametrize("under_way", [False, True], ids=["alone", "a run is under way"])
def test_a_run_beside_others_is_nobodys_child(store: None, under_way: bool) -> None:
    home = mlflow.create_experiment("mine")
    if under_way:
        mlflow.start_run(run_name="outer")
    with run_beside(home, "a result") as run:
        mlflow.log_metric("n", 1.0)
    assert (mlflow.active_run() is not None) == under_way  # what was under way goes on
    mlflow.end_run()
    found = MlflowClient().get_run(run.info.run_id)
    assert (found.info.experiment_id, found.info.run_name) == (home, "a result")
    assert found.info.status == "FINISHED"
    assert found.data.metrics == {"n": 1.0}
    assert "mlflow.parentRunId" not in found.data.tags
    assert found.data.tags["mlflow.source.type"] == "LOCAL"
