"""Names of metrics: users' arms and labels become what MLflow takes, and stay apart."""

from __future__ import annotations

import mlflow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow import MlflowClient
from mlflow.utils.validation import _validate_metric_name

from mlflow_mcq.tracking import RunLog, legal_names

SIGNS = st.text(st.sampled_from("a0 ./:@%=(+_-é日") | st.characters(codec="utf-8"), max_size=8)


@given(st.sets(SIGNS, min_size=1, max_size=6), st.booleans())
def test_mlflow_takes_every_name_and_no_two_become_one(names: set[str], flat: bool) -> None:
    found = legal_names(sorted(names), flat=flat)
    for one in found.values():
        _validate_metric_name(f"accuracy_shift/{one}" if flat else one)
    assert len(set(found.values())) == len(names)


@pytest.mark.parametrize(
    "name",
    ["judge/accuracy", "regex_naive/pick_rate_label_é", "tau_a_b", "T 0.2", "sweep model:base"],
)
def test_a_name_that_is_legal_stays(name: str) -> None:
    assert legal_names([name]) == {name: name}


def test_numbers_of_any_name_are_logged_and_none_is_lost(store: object) -> None:
    arms = ["T=0.2", "T@0.2", "accuracy (excl. OTHER)", "acc%", "..", "", "日本"]
    values = {f"accuracy_shift/{arm}": float(place) for place, arm in enumerate(arms)}
    with mlflow.start_run() as run:
        RunLog(run.info.run_id).metrics(values)
    logged = MlflowClient().get_run(run.info.run_id).data.metrics
    assert sorted(logged.values()) == sorted(values.values())
