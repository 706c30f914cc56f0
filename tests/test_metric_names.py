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
    ("name", "legal"),
    [
        pytest.param("judge/accuracy", "judge/accuracy", id="as it is"),
        pytest.param("regex_naive/pick_rate_label_é", "regex_naive/pick_rate_label_é", id="é"),
        pytest.param("sweep model:base", "sweep model:base", id="colon and blank"),
        pytest.param("v1.5", "v1.5", id="a point"),
        pytest.param("accuracy_shift/../../etc", "accuracy_shift/_/_/etc", id="up"),
        pytest.param("/etc/passwd", "_/etc/passwd", id="from the root"),
        pytest.param("a//b", "a/_/b", id="empty part"),
        pytest.param("p_value/.", "p_value/_", id="here"),
        pytest.param("p_value/", "p_value/_", id="nothing after"),
        pytest.param("=cmd|'/c calc'", "_cmd__/c calc_", id="formula"),
    ],
)
def test_a_name_never_is_a_path(name: str, legal: str) -> None:
    assert legal_names([name]) == {name: legal}


def test_numbers_of_any_name_are_logged_and_none_is_lost(store: object) -> None:
    arms = ["T=0.2", "T@0.2", "accuracy (excl. OTHER)", "acc%", "..", "", "日本"]
    values = {f"accuracy_shift/{arm}": float(place) for place, arm in enumerate(arms)}
    with mlflow.start_run() as run:
        RunLog(run.info.run_id).metrics(values)
    logged = MlflowClient().get_run(run.info.run_id).data.metrics
    assert sorted(logged.values()) == sorted(values.values())
