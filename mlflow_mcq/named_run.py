"""Runs and experiments as users name them; one that is not there is met with those that are."""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names
from mlflow_mcq.shown_judge import shown_url

__all__ = ["experiment_named", "run_named"]

_UNKNOWN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND")
"""What stores answer to a name that they do not hold; anything else is a fault of the store."""
_MOST_EXPERIMENTS = 50
_LOOKED_AT, _SHOWN = 50, 5


def run_named(run_id: str, who: str = "run_id") -> Any:
    """The run of this id.

    Args:
        run_id: The id.
        who: What the caller calls it.

    Raises:
        SettingsError: There is none; names the runs that may have been meant.
        MlflowException: The store cannot be asked.
    """
    try:
        return MlflowClient().get_run(run_id)
    except MlflowException as error:
        if error.error_code not in _UNKNOWN:
            raise
        raise SettingsError(who, "there is no such run", run_id, _runs_there(run_id)) from None


def experiment_named(name: str) -> Any:
    """The experiment of this name or id.

    Raises:
        SettingsError: There is none; names those that there are.
        MlflowException: The store cannot be asked.
    """
    client = MlflowClient()
    found = client.get_experiment_by_name(name)
    if found is not None:
        return found
    try:
        return client.get_experiment(name)
    except MlflowException as error:
        if error.error_code not in _UNKNOWN:
            raise
    there = [one.name for one in client.search_experiments(max_results=_MOST_EXPERIMENTS)]
    possible = f"{known_names(name, there)} {_looked()}"
    raise SettingsError("experiment", "is not known to MLflow", name, possible)


def _runs_there(given: str) -> str:
    """The run that may have been meant, by the start of its id or by its name; and the newest."""
    runs = _newest()
    if not runs:
        return f"No evaluation stands here. {_looked()}"
    meant = [run for run in runs if given and run.info.run_id.startswith(given)]
    meant = meant or [run for run in runs if run.info.run_name == given]
    hint = f"Did you mean {_shown(meant[0])}? " if meant else ""
    listed = ", ".join(map(_shown, runs[:_SHOWN]))
    return f"{hint}Newest evaluations: {listed}. {_looked()}"


def _newest() -> list[Any]:
    client = MlflowClient()
    try:
        places = client.search_experiments(max_results=_MOST_EXPERIMENTS)
        return list(
            client.search_runs(
                [one.experiment_id for one in places],
                "tags.`mcq.status` = 'finished'",
                max_results=_LOOKED_AT,
                order_by=["attributes.start_time DESC"],
            )
        )
    except MlflowException:  # a hint that cannot be had must not hide the fault itself
        return []


def _shown(run: Any) -> str:
    return f"{run.info.run_id} ({run.info.run_name})"


def _looked() -> str:
    uri = shown_url(mlflow.get_tracking_uri())
    return f"MLflow looked at {uri}; MLFLOW_TRACKING_URI names another store."
