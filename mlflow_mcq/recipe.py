"""Recipes: an experiment in one file, a list of arms, each a run of its own.

Arms are top-level runs under one tag: MLflow keeps child runs folded away and compares
them badly.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import yaml
from mlflow import MlflowClient
from mlflow.tracking.context.registry import resolve_tags
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mlflow_mcq.datasets.built import built_name, located
from mlflow_mcq.datasets.hub import SCHEME
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.engines.handle import remote_model
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.front import checked_settings, usable_model
from mlflow_mcq.tracking import RunLog

__all__ = [
    "JUDGE_WORDS", "ArmResult", "ArmSpec", "Recipe", "RemoteSpec", "handle_of", "load_recipe",
    "run_recipe",
]  # fmt: skip


JUDGE_WORDS = {
    "judge_model": "model",
    "judge_url": "base_url",
    "judge_key_env": "api_key_env",
}
"""How the command line calls the three things that name a judge."""


class RemoteSpec(BaseModel):
    """A model behind a server; see `mlflow_mcq.remote_model` for what each part means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str
    model: str
    api_key_env: str | None = None
    concurrency: int = Field(16, ge=1)
    chat: bool = True
    timeout_s: float = Field(120.0, gt=0)


class ArmSpec(BaseModel):
    """One arm: a name, a model, and any setting that differs from the recipe's own.

    Attributes:
        name: Of the run.
        model: As in `mlflow_mcq.evaluate`, or ``{base_url, model, api_key_env}``.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1)
    model: str | RemoteSpec | None = None


class Recipe(BaseModel):
    """An experiment. Keys that are not listed here are settings of all arms.

    Attributes:
        name: Of the comparison.
        experiment: MLflow experiment; None uses the active one.
        data: Path of the data, relative to the recipe; ``hf:owner/name``; or a built set:
            ``nonsense:1000``, ``{analogy: {pairs: f}}`` (see `mlflow_mcq.datasets.built`).
        split: Of the data; see `mlflow_mcq.evaluate`.
        limit: Number of items, drawn with the seed; None takes all.
        model: For arms that name none.
        evaluators: Which of ours.
        arms: At least one.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1)
    experiment: str | None = None
    data: str | dict[str, Any]
    split: str | None = None
    limit: int | None = Field(None, ge=1)
    model: str | RemoteSpec | None = None
    evaluators: tuple[str, ...] = ("mcq_judge",)
    arms: tuple[ArmSpec, ...] = Field(min_length=1)

    def settings_of(self, arm: ArmSpec) -> dict[str, Any]:
        """The settings of one arm: the recipe's, then its own."""
        drawn = {} if self.limit is None else {"limit": self.limit}
        return {**drawn, **(self.model_extra or {}), **(arm.model_extra or {})}

    def model_of(self, arm: ArmSpec) -> str | RemoteSpec | None:
        """The model of one arm: its own, or else the recipe's."""
        return arm.model if arm.model is not None else self.model


@dataclass(frozen=True)
class ArmResult:
    """What became of one arm.

    Attributes:
        name: Of the arm.
        run_id: Its run.
        metrics: Its means.
        alarms: Names of fired alarms.
    """

    name: str
    run_id: str
    metrics: Mapping[str, float]
    alarms: str


def load_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe and put the caller's own values over it.

    Args:
        path: A YAML file, loaded safely.
        overrides: ``model``, ``data``, ``limit``, ``orientations``, ``judge_model``,
            ``judge_url``, ``judge_key_env``; None and "" leave the recipe as it is.
            They hold for every arm.

    Raises:
        SettingsError: The file or a value is not usable; every arm is checked.
    """
    path = Path(path)
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise SettingsError(f"recipe {str(path)!r}", f"cannot be read ({error})") from None
    if not isinstance(given, dict):
        raise SettingsError(f"recipe {path.name!r}", "must be a mapping of names to values", given)
    if "data" in given:
        given["data"] = located(given["data"], path.parent)
    for place in (given, *(given.get("arms") or [])):
        shots = place.get("few_shot") if isinstance(place, dict) else None
        if isinstance(shots, dict) and "path" in shots:
            shots["path"] = located(shots["path"], path.parent)
    _override(given, {k: v for k, v in (overrides or {}).items() if v not in (None, "")})
    try:
        recipe = Recipe.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"recipe {path.name!r}, {where}", first["msg"].lower()) from None
    names = [arm.name for arm in recipe.arms]
    if len(set(names)) < len(names):
        raise SettingsError(f"recipe {path.name!r}", "arms must have different names", names)
    for arm in recipe.arms:
        checked_settings(recipe.settings_of(arm), recipe.evaluators)
    return recipe


def handle_of(model: str | RemoteSpec | None) -> Any:
    """What MLflow accepts, from how a recipe names a model."""
    if isinstance(model, RemoteSpec):
        return remote_model(**model.model_dump())
    return usable_model(model)


def run_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> list[ArmResult]:
    """Run every arm of a recipe, one run each, tagged as one comparison.

    Under ``mlflow run`` the project's own run carries the table of arms.

    Returns:
        What became of each arm, in order.

    Raises:
        McqError: The recipe is not usable.
        MlflowException: An arm failed; those before it stay on record.
    """
    recipe = load_recipe(path, overrides)
    frame = load_data(recipe.data, recipe.split)
    in_project = "MLFLOW_RUN_ID" in os.environ
    if recipe.experiment and not in_project:
        mlflow.set_experiment(recipe.experiment)
    comparison = f"{recipe.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    with mlflow.start_run() if in_project else nullcontext() as project:
        results = [_run_arm(recipe, arm, frame, comparison) for arm in recipe.arms]
        if project is not None:
            log = RunLog(project.info.run_id)
            log.tags({"mcq.comparison": comparison, "mcq.role": "comparison"})
            log.table("mcq_arms", _arms_table(results))
    return results


def _override(given: dict[str, Any], overrides: dict[str, Any]) -> None:
    judge = {name: overrides.pop(key) for key, name in JUDGE_WORDS.items() if key in overrides}
    if "limit" in overrides:
        try:
            overrides["limit"] = int(overrides["limit"])
        except ValueError:
            raise SettingsError("limit", "must be a whole number", overrides["limit"]) from None
    # What is given on the command line holds for every arm, also one that sets it itself.
    shared = [name for name in overrides if name != "data"]
    arms = [arm for arm in given.get("arms") or [] if isinstance(arm, dict)]
    for arm in arms:
        for name in shared:
            arm.pop(name, None)
    given.update(overrides)
    for place in (given, *arms) if judge else ():
        if place is given or "judge" in place:
            old = place.get("judge")
            place["judge"] = {**(old if isinstance(old, dict) else {}), **judge}


def _run_arm(recipe: Recipe, arm: ArmSpec, frame: pd.DataFrame, comparison: str) -> ArmResult:
    settings = recipe.settings_of(arm)
    model = recipe.model_of(arm)
    handle = handle_of(model)
    client = MlflowClient()
    tags = resolve_tags({"mcq.comparison": comparison, "mcq.arm": arm.name, "mcq.role": "arm"})
    run = client.create_run(_experiment_id(), run_name=arm.name, tags=tags)
    data = _dataset(recipe, frame)
    with mlflow.start_run(run_id=run.info.run_id, nested=True), warnings.catch_warnings():
        # MLflow's advice on integer columns of training sets does not concern items.
        warnings.filterwarnings("ignore", message="Hint: Inferred schema contains integer")
        mlflow.log_params({"mcq.arm": arm.name, "mcq.model": _shown_model(model)})
        result = mlflow.models.evaluate(
            model=handle,
            data=data,
            model_type="multiple-choice",
            evaluators=list(recipe.evaluators),
            evaluator_config=dict.fromkeys(recipe.evaluators, settings),
        )
    found = client.get_run(run.info.run_id).data.tags.get("mcq.alarms", "none")
    return ArmResult(arm.name, run.info.run_id, result.metrics, found)


def _dataset(recipe: Recipe, frame: pd.DataFrame) -> Any:
    # Dataset names reach a tag and a column: letters, digits and dashes only.
    place = str(recipe.data)
    path = Path(place)
    built, on_hub = built_name(recipe.data), place.startswith(SCHEME)
    name = built or re.sub(r"[^\w.-]+", "-", place.removeprefix(SCHEME) if on_hub else path.stem)
    with warnings.catch_warnings():
        # MLflow warns about integer columns of a training set and about paths that
        # several stores could read: neither concerns an evaluation's own file.
        warnings.simplefilter("ignore", UserWarning)
        source = None if built or on_hub else place  # MLflow knows no such addresses
        return mlflow.data.from_pandas(frame, source=source, name=name)


def _experiment_id() -> str:
    active = mlflow.active_run()
    if active is not None:
        return str(active.info.experiment_id)
    from mlflow.tracking.fluent import _get_experiment_id

    return str(_get_experiment_id())


def _shown_model(model: str | RemoteSpec | None) -> str:
    return model.model if isinstance(model, RemoteSpec) else str(model)


def _arms_table(results: Sequence[ArmResult]) -> pd.DataFrame:
    return pd.DataFrame(
        [{"arm": r.name, "run_id": r.run_id, **r.metrics, "alarms": r.alarms} for r in results]
    )
