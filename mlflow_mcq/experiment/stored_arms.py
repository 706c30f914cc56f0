"""Finished arms of a comparison, to be read again."""

from __future__ import annotations

from typing import Any

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from mlflow_mcq.errors import SettingsError

__all__ = ["finished_arms"]

_STAMP = r"-________-______"  # as `time.strftime` writes it, in the words of SQL's LIKE


def finished_arms(of: str, experiments: list[str]) -> list[Any]:
    """The runs of the arms of a comparison, in the order in which they ran.

    Args:
        of: Id of a run of one arm; a whole ``mcq.comparison``; or the name of a recipe, whose
            newest comparison is taken.
        experiments: Ids of the experiments that are looked through.

    Returns:
        Runs of MLflow, none of them read again itself.

    Raises:
        SettingsError: There are none.
    """
    client = MlflowClient()
    try:
        return [client.get_run(of)]
    except MlflowException:
        pass  # no run's id
    if "'" not in of:
        for rule in (f"= '{of}'", f"LIKE '{of}{_STAMP}'"):
            found = client.search_runs(
                experiments,
                f"tags.`mcq.role` = 'arm' AND tags.`mcq.comparison` {rule}",
                order_by=["attributes.start_time DESC"],
            )
            # What was read again carries the tags of its original.
            found = [run for run in found if "mcq.regraded_from" not in run.data.tags]
            if found:
                newest = found[0].data.tags["mcq.comparison"]
                return [r for r in found if r.data.tags["mcq.comparison"] == newest][::-1]
    raise SettingsError(
        "regrade.of",
        "names no run, and no comparison in this experiment",
        of,
        "Name a recipe that has been run here, a whole mcq.comparison, or the id of a run.",
    )
