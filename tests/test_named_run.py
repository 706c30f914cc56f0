"""Names of runs and experiments that are not there: what may have been meant, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST, TEMPORARILY_UNAVAILABLE

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.named_run import experiment_named, run_named

UNKNOWN, AWAY = RESOURCE_DOES_NOT_EXIST, TEMPORARILY_UNAVAILABLE


def run(run_id: str, name: str) -> Any:
    return SimpleNamespace(info=SimpleNamespace(run_id=run_id, run_name=name))


@dataclass
class Store:
    """Stands where MLflow's client does."""

    code: int = UNKNOWN
    runs: list[Any] = field(default_factory=list)
    experiments: list[str] = field(default_factory=list)
    searchable: bool = True

    def get_run(self, run_id: str) -> Any:
        raise MlflowException("no", self.code)

    def get_experiment(self, name: str) -> Any:
        raise MlflowException("no", self.code)

    def get_experiment_by_name(self, name: str) -> None:
        return None

    def search_experiments(self, **_: Any) -> list[Any]:
        return [SimpleNamespace(name=name, experiment_id=name) for name in self.experiments]

    def search_runs(self, *_: Any, **__: Any) -> list[Any]:
        if not self.searchable:
            raise MlflowException("away", AWAY)
        return self.runs


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr("mlflow_mcq.named_run.MlflowClient", lambda: store)
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: "https://me:pw@there/api")
    return store


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        pytest.param("3f2a", 'mean 3f2ab0 (letters)?', id="the start of an id"),
        pytest.param("dashes", "mean 77c1d2 (dashes)?", id="a name"),
        pytest.param("zz", "", id="neither"),
        pytest.param("", "", id="nothing"),
    ],
)  # fmt: skip
def test_the_run_that_was_meant_is_named(store: Store, given: str, hint: str) -> None:
    store.runs = [run("3f2ab0", "letters"), run("77c1d2", "dashes")]
    with pytest.raises(SettingsError) as met:
        run_named(given)
    said = str(met.value)
    assert hint in said
    assert ("Did you mean" in said) == bool(hint)
    assert "Newest evaluations: 3f2ab0 (letters), 77c1d2 (dashes)" in said
    assert "https://there/api" in said
    assert "pw" not in said


@pytest.mark.parametrize("searchable", [True, False], ids=["empty", "cannot be searched"])
def test_where_no_run_can_be_named_the_place_is(store: Store, searchable: bool) -> None:
    store.searchable = searchable
    with pytest.raises(SettingsError, match=r"no such run; got '3f2a'\. No evaluation.*there/api"):
        run_named("3f2a")


def test_the_experiment_that_was_meant_is_named(store: Store) -> None:
    store.experiments = ["Default", "my arms"]
    with pytest.raises(SettingsError, match=r'"my arms".*Known: Default, my arms'):
        experiment_named("my_arms")


def test_a_store_that_is_away_is_no_wrong_name(store: Store) -> None:
    store.code = AWAY
    for named in (run_named, experiment_named):
        with pytest.raises(MlflowException, match="no"):
            named("x")
