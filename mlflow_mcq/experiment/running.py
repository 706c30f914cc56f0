"""One arm of a recipe in a run of its own: measured anew, or read again."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.tracking.context.registry import resolve_tags

from mlflow_mcq.datasets.built import built_name
from mlflow_mcq.datasets.hub import SCHEME
from mlflow_mcq.engines.handle import remote_model
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.spec import ArmSpec, Model, Recipe, RemoteSpec, shown_model
from mlflow_mcq.file_dataset import as_dataset
from mlflow_mcq.front import checked_settings, judge_first, usable_model
from mlflow_mcq.regrading import regrade
from mlflow_mcq.settings import Settings
from mlflow_mcq.statistics.pairing import with_order
from mlflow_mcq.stored_run import stored_table
from mlflow_mcq.tracking import no_advice

__all__ = ["arm_settings", "experiment_id", "handle_of", "read_again", "run_arm"]

_GRADES = [
    "row_id", "item_id", "protocol", "orientation", "repeat", "grader", "verdict", "choice",
    "slot", "gold", "gold_slot", "n_options", "golds", "choices",
]  # fmt: skip


def arm_settings(recipe: Recipe, arm: ArmSpec) -> Settings:
    """The settings of an arm, checked with those who read it.

    Raises:
        McqError: They cannot be used.
    """
    return checked_settings(recipe.settings_of(arm), recipe.evaluators_of(arm))


def run_arm(recipe: Recipe, arm: ArmSpec, frame: pd.DataFrame, comparison: str) -> ArmResult:
    """Evaluate one arm.

    Args:
        recipe: That the arm belongs to.
        arm: Itself.
        frame: Its data.
        comparison: Tag of all arms.

    Raises:
        MlflowException: The evaluation failed.
    """
    settings, evaluators = recipe.settings_of(arm), judge_first(recipe.evaluators_of(arm))
    checked, model = arm_settings(recipe, arm), recipe.model_of(arm)
    client = MlflowClient()
    tags = {"mcq.comparison": comparison, "mcq.arm": arm.name, "mcq.role": "arm"}
    tags |= {"mcq.original": arm.original} if arm.original else {}
    tags |= {"mcq.variant": arm.variant} if arm.variant else {}
    run = client.create_run(experiment_id(), run_name=arm.name, tags=resolve_tags(tags))
    data = _dataset(recipe.source_of(arm)[0], frame)
    with mlflow.start_run(run_id=run.info.run_id, nested=True), no_advice():
        mlflow.log_params({"mcq.arm": arm.name, "mcq.model": shown_model(model)})
        result = mlflow.models.evaluate(
            model=handle_of(model, checked),
            data=data,
            model_type="multiple-choice",
            evaluators=evaluators,
            evaluator_config=dict.fromkeys(evaluators, settings),
        )
    return _result(run.info.run_id, result.metrics)


def read_again(old: Any, judge: Any, only: str | tuple[str, ...]) -> ArmResult:
    """Let a judge read a finished arm, into a run of its own.

    Args:
        old: Run of the arm.
        judge: Who judges.
        only: Which rows; see `mlflow_mcq.regrade`.

    Raises:
        McqError: Nobody judges, or the run holds no answers.
    """
    result = regrade(old.info.run_id, judge, only=only)
    params = {key: value for key, value in old.data.params.items() if key == "mcq.model"}
    MlflowClient().log_batch(
        result.run_id, params=[mlflow.entities.Param(k, v) for k, v in params.items()]
    )
    return _result(str(result.run_id), result.metrics)


def _result(run_id: str, metrics: Mapping[str, float]) -> ArmResult:
    """What became of a run, by what stands in it: measured and read again alike."""
    return replace(ArmResult.of_run(run_id, metrics), rows=_rows(run_id))


def _rows(run_id: str) -> pd.DataFrame:
    # Without the texts: a comparison of many arms must fit in memory.
    grades = stored_table(run_id, "mcq_grades", _GRADES)
    return with_order(grades, stored_table(run_id, "mcq_generations", ["row_id", "order"]))


def handle_of(model: Model | None, settings: Settings) -> Any:
    """What MLflow accepts, from how a recipe names a model."""
    if isinstance(model, RemoteSpec):
        return remote_model(**model.model_dump())
    return usable_model(model, settings)


def _dataset(source: Any, frame: pd.DataFrame) -> Any:
    # Dataset names reach a tag and a column: letters, digits and dashes only.
    place = str(source)
    path = Path(place)
    built, on_hub = built_name(source), place.startswith(SCHEME)
    name = built or re.sub(r"[^\w.-]+", "-", place.removeprefix(SCHEME) if on_hub else path.stem)
    with warnings.catch_warnings():
        # MLflow warns about integer columns of a training set and about paths that
        # several stores could read: neither concerns an evaluation's own file.
        warnings.simplefilter("ignore", UserWarning)
        address = None if built or on_hub else place  # MLflow knows no such addresses
        return as_dataset(frame, source=address, name=name)


def experiment_id() -> str:
    """The experiment that new runs go to."""
    active = mlflow.active_run()
    if active is not None:
        return str(active.info.experiment_id)
    from mlflow.tracking.fluent import _get_experiment_id

    return str(_get_experiment_id())
