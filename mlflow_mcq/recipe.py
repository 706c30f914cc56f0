"""Recipes: an experiment in one file, a list of arms, each a run of its own.

Arms are top-level runs under one tag: MLflow keeps child runs folded away and compares
them badly. One more run, the comparison, holds what is only seen side by side.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.utils.logging_utils import eprint
from pydantic import ValidationError

from mlflow_mcq.comparison.compare import Comparison, compare_into
from mlflow_mcq.datasets.built import located
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.streaming import draw_key, load_part
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.engines.sharing import keep_only, weights_shared
from mlflow_mcq.errors import JudgeNotConfigured, McqError, SettingsError
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.comparison import record
from mlflow_mcq.experiment.grid import expanded
from mlflow_mcq.experiment.recipe_file import read_recipe_file
from mlflow_mcq.experiment.recipe_run import RecipeRun
from mlflow_mcq.experiment.running import (
    arm_settings,
    experiment_id,
    handle_of,
    read_again,
    run_arm,
)
from mlflow_mcq.experiment.spec import ArmSpec, Model, Recipe, RegradeSpec, RemoteSpec
from mlflow_mcq.experiment.stored_arms import finished_arms
from mlflow_mcq.experiment.twinkle_config import is_twinkle, recipe_of_twinkle
from mlflow_mcq.forecast import Asked, Cost, cost_of, said, tokenizer_for
from mlflow_mcq.judge_settings import JUDGE_WORDS, refuse_idle
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.nearest import known_names
from mlflow_mcq.settings import EVALUATORS, Settings, read_settings
from mlflow_mcq.store.hold import held_together
from mlflow_mcq.tracking import RunLog

__all__ = [
    "ArmResult",
    "ArmSpec",
    "Recipe",
    "RemoteSpec",
    "load_recipe",
    "measure_recipe",
    "no_comparison",
    "recipe_costs",
    "run_recipe",
]

_log = logging.getLogger(__name__)

_MOST_COUNTED = 2_000
"""What is printed before a run must not take longer than it is worth."""

Frames = dict[str, pd.DataFrame]


def load_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe and put the caller's own values over it.

    Args:
        path: A YAML file, loaded safely; a configuration of Twinkle Eval is translated, and
            what became of it is said.
        overrides: ``model``, ``data``, ``limit``, ``orientations``, ``judge_model``,
            ``judge_url``, ``judge_key_env``, or any setting; None and "" leave the recipe as
            it is. They hold for every arm, and what a grid would vary is no longer varied.

    Returns:
        The recipe with its grids expanded.

    Raises:
        SettingsError: The file or a value is not usable; every arm is checked.
    """
    path = Path(path)
    given = _read(path)
    _locate(given, path.parent)
    over = {k: v for k, v in (overrides or {}).items() if v not in (None, "")}
    _override(given, dict(over))
    try:
        recipe = Recipe.model_validate(expanded(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ", ".join([f"recipe {path.name!r}", *map(str, first["loc"])])
        raise SettingsError(where, first["msg"].removeprefix("Value error, ")) from None
    for arm in recipe.arms:
        arm_settings(recipe, arm)
    _refuse_idle_judge(recipe, over)
    if recipe.regrade is not None and read_settings(recipe.model_extra).judge is None:
        raise JudgeNotConfigured
    return recipe


def _refuse_idle_judge(recipe: Recipe, over: Mapping[str, Any]) -> None:
    named = [name for name in (*JUDGE_WORDS, "judge") if name in over]
    if named and recipe.regrade is None:
        read_by = [name for arm in recipe.arms for name in recipe.evaluators_of(arm)]
        refuse_idle(named[0], over[named[0]], read_by)


def _read(path: Path) -> dict[str, Any]:
    given = read_recipe_file(path)
    if is_twinkle(given):
        given, lines = recipe_of_twinkle(given, path.parent, path.stem)
        for line in lines:
            eprint(f"{path.name}: {line}")
        # Its paths are found already.
        given["arms"] = [{**arm, "data": str(Path(arm["data"]).resolve())} for arm in given["arms"]]
    return dict(given)


def _locate(given: dict[str, Any], folder: Path) -> None:
    """Take paths as relative to the recipe."""
    for place in (given, *_dicts(given.get("arms"))):
        if "data" in place:
            place["data"] = located(place["data"], folder)
        grid = place.get("grid")
        varied = grid.get("data") if isinstance(grid, dict) else None
        if isinstance(grid, dict) and isinstance(varied, dict):
            grid["data"] = {name: located(source, folder) for name, source in varied.items()}
        shots = place.get("few_shot")
        if isinstance(shots, dict) and "path" in shots:
            shots["path"] = located(shots["path"], folder)


def _dicts(arms: Any) -> list[dict[str, Any]]:
    return [arm for arm in arms if isinstance(arm, dict)] if isinstance(arms, list) else []


def recipe_costs(
    recipe: Recipe, frames: Frames | None = None, probe: int = 0, most: int | None = None
) -> list[Cost]:
    """What each arm will ask for, by reading its data and setting its prompts.

    Args:
        recipe: Loaded.
        frames: Tables that are read already, by source; others are added.
        probe: So many prompts are tried on each model that is loaded here; 0 loads none.
        most: About so many prompts of an arm are counted, and more are estimated; None
            counts all.

    Raises:
        McqError: Data cannot be read, or a prompt cannot be set.
    """
    frames = {} if frames is None else frames
    # One each: a tokenizer takes a second to load, and a sweep has many arms.
    models = {str(model): model for model in map(recipe.model_of, recipe.arms)}
    tokenizers = {name: tokenizer_for(model) for name, model in models.items()}
    costs = []
    with weights_shared():
        for place, arm in enumerate(recipe.arms):
            if probe:
                keep_only(_weights(recipe, place))
            settings, model = arm_settings(recipe, arm), recipe.model_of(arm)
            rows = read_data(_frame(recipe, arm, frames), settings).rows
            asked = _asked(model, settings, tokenizers[str(model)], probe, most)
            judged = "mcq_judge" in recipe.evaluators_of(arm)
            costs.append(cost_of(arm.name, rows, settings, asked, judged))
    return costs


def _asked(
    model: Model | None, settings: Settings, tokenizer: Any, probe: int, most: int | None
) -> Asked | None:
    if model is None:
        return None
    if isinstance(model, RemoteSpec):
        return Asked(model.chat, most=most)  # a server is never tried
    handle = handle_of(model, settings) if probe else None
    if not isinstance(handle, ModelHandle):
        return Asked(tokenizer=tokenizer, most=most)
    return Asked(handle.chat.speaks_chat, tokenizer, handle, probe, most)


def _frame(recipe: Recipe, arm: ArmSpec, frames: Frames) -> pd.DataFrame:
    source, split = recipe.source_of(arm)
    settings = arm_settings(recipe, arm)
    # Of a file only the rows that these settings draw are held.
    key = repr((source, split, draw_key(source, settings)))
    if key not in frames:
        frames[key] = load_part(source, split, settings)
    return frames[key]


def run_recipe(
    path: str | Path, overrides: Mapping[str, Any] | None = None, **more: Any
) -> list[ArmResult]:
    """Run every arm of a recipe, one run each, tagged as one comparison.

    What it will cost is printed before anything is asked. One more run holds the table of
    arms; under ``mlflow run`` it is the project's own.

    Args:
        path: See `mlflow_mcq.recipe.load_recipe`.
        overrides: What is put over the recipe for every arm, likewise.
        more: The same as keywords: ``run_recipe("my.yaml", limit=6, orientations="swap")``.

    Returns:
        What became of each arm, in order.

    Raises:
        McqError: The recipe is not usable.
        MlflowException: An arm failed; those before it stay on record.
    """
    twice = sorted({*(overrides or {})} & {*more})
    if twice:
        raise SettingsError(twice[0], "is given twice: among the overrides and as a keyword")
    return list(measure_recipe(path, {**(overrides or {}), **more}).arms)


def measure_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> RecipeRun:
    """What `run_recipe` does, with what was found between the arms beside them.

    Raises:
        McqError: The recipe is not usable.
        MlflowException: An arm failed; those before it stay on record.
    """
    recipe = load_recipe(path, overrides)
    in_project = "MLFLOW_RUN_ID" in os.environ
    frames: Frames = {}
    # Data and prompts come first: a recipe that is refused leaves no empty experiment behind.
    costs = [] if recipe.regrade else recipe_costs(recipe, frames, most=_MOST_COUNTED)
    if recipe.experiment and not in_project:
        mlflow.set_experiment(recipe.experiment)
    if recipe.regrade is not None:
        return _read_again(recipe, recipe.regrade, in_project)
    _say_left_out(recipe)
    for line in said(costs):
        eprint(line)
    comparison = _stamped(recipe.name)
    with held_together(), _comparison_run(comparison, in_project) as own, weights_shared():
        results = []
        for place, arm in enumerate(recipe.arms):
            keep_only(_weights(recipe, place))
            results.append(run_arm(recipe, arm, _frame(recipe, arm, frames), comparison))
        return _put_on_record(RunLog(own.info.run_id), comparison, recipe, results, costs)


def _put_on_record(
    log: RunLog,
    comparison: str,
    recipe: Recipe,
    results: Sequence[ArmResult],
    costs: Sequence[Cost] = (),
) -> RecipeRun:
    log.tags({"mcq.comparison": comparison, "mcq.role": "comparison"})
    record(log, recipe, results, costs)
    why = no_comparison(recipe, len(results))
    if why:
        return RecipeRun(results, None, why)
    found, why = _compare(log.run_id, recipe, results)
    return RecipeRun(results, found, why)


def no_comparison(recipe: Recipe, n_arms: int) -> str:
    """Why the arms of a recipe will not be compared; empty where they will.

    Args:
        recipe: Loaded.
        n_arms: How many there are, or will be.
    """
    if not recipe.compare:
        return "the recipe says compare: false"
    return "there is one arm" if n_arms < 2 else ""


def _compare(
    run_id: str, recipe: Recipe, results: Sequence[ArmResult]
) -> tuple[Comparison | None, str]:
    """Compare the arms, or say why not; they stand on record whatever becomes of that."""
    ids = {result.name: result.run_id for result in results}
    base = ids[recipe.baseline or results[0].name]
    try:
        found = compare_into(run_id, list(ids.values()), base, recipe.trace_rows)
    except (McqError, MlflowException) as error:
        _log.warning("the arms are on record, but were not compared: %s", error)
        return None, str(error)
    for arm, line in found.headlines.items():
        eprint(line)
        if found.alarms[arm]:
            eprint(f"  alarms: {', '.join(found.alarms[arm])}")
    eprint(f"comparison: run {run_id}, read by {found.read_by}; open mcq_report.html")
    return found, ""


def _read_again(recipe: Recipe, asked: RegradeSpec, in_project: bool) -> RecipeRun:
    judge = (recipe.model_extra or {})["judge"]
    named = MlflowClient().get_experiment_by_name(recipe.experiment) if recipe.experiment else None
    places = {experiment_id(), *([named.experiment_id] if named else [])}
    old = finished_arms(asked.of, sorted(places))
    n_rows = sum(int(run.data.metrics.get("generation/n_rows", 0)) for run in old)
    n_arms = "one arm" if len(old) == 1 else f"{len(old)} arms"
    eprint(f"this will read {n_arms} with {n_rows:,} stored answers again; no inference")
    comparison = _stamped(recipe.name)
    with _comparison_run(comparison, in_project) as own, weights_shared():
        results = [read_again(run, judge, asked.only) for run in old]
        return _put_on_record(RunLog(own.info.run_id), comparison, recipe, results)


def _stamped(name: str) -> str:
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _comparison_run(name: str, in_project: bool) -> mlflow.ActiveRun:
    # A project's run is taken up as it is: MLflow has named it in the environment.
    return mlflow.start_run() if in_project else mlflow.start_run(run_name=name, nested=True)


def _weights(recipe: Recipe, place: int) -> list[str | LocalSettings]:
    """What is loaded here and needed by this arm or a later one."""
    names: list[str | LocalSettings] = []
    for arm in recipe.arms[place:]:
        settings = arm_settings(recipe, arm)
        judges = [] if settings.judge is None else [settings.judge, *settings.judge.panel]
        names += [judge.model for judge in judges if judge.base_url == "local"]
        model = recipe.model_of(arm)
        names += [model] if isinstance(model, (str, LocalSettings)) else []
    return names


def _say_left_out(recipe: Recipe) -> None:
    without = [
        arm.name
        for arm in recipe.arms
        if "mcq_judge" in (arm.evaluators or recipe.evaluators)
        and "mcq_judge" not in recipe.evaluators_of(arm)
    ]
    if without:
        eprint(
            f"no judge is named, so mcq_judge is left out of {', '.join(without)} and no judged "
            "number is reported; name one with judge_model and judge_url"
        )


def _override(given: dict[str, Any], overrides: dict[str, Any]) -> None:
    known = [*JUDGE_WORDS, *dict.fromkeys((*Recipe.model_fields, *Settings.model_fields))]
    for name in overrides:
        if name not in known and name not in EVALUATORS:
            raise SettingsError(
                str(name), "is nothing that is put over a recipe", possible=known_names(name, known)
            )
    judge = {name: overrides.pop(key) for key, name in JUDGE_WORDS.items() if key in overrides}
    if isinstance(overrides.get("limit"), str):  # of the command line, where all is text
        try:
            overrides["limit"] = int(overrides["limit"])
        except ValueError:
            raise SettingsError("limit", "must be a whole number", overrides["limit"]) from None
    arms = _dicts(given.get("arms"))
    own = [*map(_varied, arms), _varied({"grid": given.get("grid")})]
    if "data" in overrides and any("data" in names for names in own):
        raise SettingsError(
            "data",
            "differs from arm to arm in this recipe, so one value cannot stand for all",
            overrides["data"],
            "Change the arms in the recipe.",
        )
    # What is given on the command line holds for every arm, also one that sets it itself.
    for place in (given, *arms):
        _drop(place, overrides, keep_own=place is given)
    given.update(overrides)
    for place in (given, *arms) if judge else ():
        if place is given or "judge" in place:
            old = place.get("judge")
            place["judge"] = {**(old if isinstance(old, dict) else {}), **judge}


def _varied(place: dict[str, Any]) -> set[str]:
    grid = place.get("grid")
    return {*place, *(grid if isinstance(grid, dict) else ())}


def _drop(place: dict[str, Any], overrides: Mapping[str, Any], keep_own: bool) -> None:
    grid = place.get("grid")
    if isinstance(grid, dict):
        left = {name: values for name, values in grid.items() if name not in overrides}
        place["grid"] = left or None
    for name in () if keep_own else overrides:
        place.pop(name, None)
