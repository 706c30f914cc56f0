"""The front door in one line: `mlflow_mcq.evaluate`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.models.evaluation.base import EvaluationResult

from mlflow_mcq.datasets.part import part_of
from mlflow_mcq.datasets.reading import check_layout
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.engines.handle import loaded_model, local_model
from mlflow_mcq.errors import JudgeNotConfigured, ModelError, SettingsError, StoreError
from mlflow_mcq.file_dataset import FilePart, as_dataset
from mlflow_mcq.given_path import home_path
from mlflow_mcq.judge_settings import JudgeSettings, refuse_idle
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.nearest import known_names
from mlflow_mcq.settings import EVALUATORS, Settings, check_reads_sets, read_settings
from mlflow_mcq.store.hold import held_together
from mlflow_mcq.together import call_parts, evaluate_together, ranks_of_call
from mlflow_mcq.tracking import no_advice

__all__ = ["check_targets", "checked_settings", "evaluate", "judge_first", "usable_model"]


def evaluate(
    model: Any,
    data: Any,
    judge: Mapping[str, Any] | JudgeSettings | None = None,
    *,
    targets: str | None = None,
    evaluators: str | Sequence[str] | None = None,
    split: str | None = None,
    **settings: Any,
) -> EvaluationResult:
    """Evaluate one arm: `mlflow.models.evaluate` with good defaults and good errors.

    Args:
        model: A function of a DataFrame, a pyfunc, a ``models:/``, ``runs:/`` or
            ``endpoints:/`` URI,
            `local_model`, `remote_model`, ``(model, tokenizer)``, a folder or hub name, or
            ``{"path": ..., "adapter": ..., "dtype": ...}`` (see
            `mlflow_mcq.local_settings.LocalSettings`); None reads the answers that the data
            holds.
        data: DataFrame, list of dicts, dict of columns, MLflow dataset, the path of a data file,
            ``hf:owner/name[:config][@revision]``, or a built set such as ``nonsense:1000``;
            native layouts are recognised.
        judge: Who judges: ``{"model": ..., "base_url": ..., "api_key_env": ...}``.
        targets: Column with the answers; None looks for the usual names.
        evaluators: Which of ours; None is ``["mcq_judge"]``.
        split: Of a hub data set, or by a column ``split``.
        settings: Anything in `mlflow_mcq.settings.Settings`.

    Where processes are connected (Accelerate, torch.distributed) it may be called on every
    rank: all generate, the main one grades and logs one run, and all return its result. The
    main rank may call it alone, on a line of its own: the same line of the program means the
    same call, and where ranks differ there in data or settings all end with an error. Nor the
    very same call once alone and once with the others, who would take the first for theirs.

    Returns:
        MLflow's result: ``metrics``, ``artifacts`` and ``tables``.

    Raises:
        McqError: The arguments cannot be used.
        MlflowException: The evaluation itself failed; the run says why.

    Example:
        ``evaluate(answer, frame, evaluators=["mcq_regex"], orientations="swap")``
    """
    names = ["mcq_judge"] if evaluators is None else evaluators
    names = judge_first([names] if isinstance(names, str) else names)
    config = dict(settings)
    if judge is not None:
        config["judge"] = judge.model_dump() if isinstance(judge, JudgeSettings) else judge
    check_targets(targets)
    checked = checked_settings(config, names)  # refused here, before MLflow opens a run for it
    refuse_idle("judge", judge, names)

    def whole(given: Any, handle: Any) -> EvaluationResult:
        # MLflow's last words to its store come after ours, and may be the ones that fail.
        with held_together(), no_advice():
            result = mlflow.models.evaluate(
                model=handle,
                data=given,
                model_type="multiple-choice",
                evaluators=names,
                evaluator_config=dict.fromkeys(names, config),
                # MLflow wants to hear of targets once: a data set of ours names them itself.
                **({} if targets is None or isinstance(given, FilePart) else {"targets": targets}),
            )
            _say_alarms(result)  # asks the store, too
        return result

    def usable() -> Any:
        return _usable_data(data, split, checked, targets)

    ranks = ranks_of_call(checked)
    if ranks.size == 1:
        return whole(usable(), usable_model(model, checked))
    return evaluate_together(
        lambda: usable_model(model, checked),
        call_parts(data, split, checked, names),
        lambda handle: whole(usable(), handle),
        ranks,
    )


def _say_alarms(result: EvaluationResult) -> None:
    """Say which alarms a run has fired: whoever prints a number next must have seen them."""
    from mlflow.utils.logging_utils import eprint

    fired = MlflowClient().get_run(result.run_id).data.tags.get("mcq.alarms", "none")
    if fired != "none":
        eprint(f"alarms: {fired}; what each found and asks for is in the table mcq_alarms")


def judge_first(evaluators: Sequence[str]) -> list[str]:
    """The order in which evaluators are best called: the judge first.

    The first one has the answers made, so its judge is tried before they are, and may read
    them meanwhile. What each says does not depend on the order.

    Example:
        >>> judge_first(["mcq_similarity", "mcq_judge", "mcq_regex"])
        ['mcq_judge', 'mcq_similarity', 'mcq_regex']
    """
    return sorted(evaluators, key=lambda name: name != "mcq_judge")


def checked_settings(config: Mapping[str, Any], evaluators: Sequence[str]) -> Settings:
    """Settings that some of our evaluators can work with.

    Raises:
        JudgeNotConfigured: A judge is needed, and none is named.
        SettingsError: An evaluator is not ours, or a setting is not usable.
        StoreError: A folder for rows is in the home of nobody.
    """
    unknown = [name for name in evaluators if name not in EVALUATORS]
    if not evaluators or unknown:
        known = known_names(str(unknown[0]) if unknown else "", EVALUATORS)
        raise SettingsError("evaluators", "must be some of ours", list(evaluators), known)
    settings = read_settings(config, evaluators[0])
    check_layout(settings.layout)
    # Here, since they are opened only once the weights are loaded.
    home_path(settings.cache, "cache", StoreError)
    home_path(settings.directory or "", "directory", StoreError)
    if "mcq_judge" in evaluators and settings.judge is None:
        raise JudgeNotConfigured
    for name in evaluators:
        check_reads_sets(name, settings.several_gold)
    return settings


def check_targets(targets: object) -> None:
    """Refuse answers that stand beside the data; MLflow takes them for arrays alone.

    Raises:
        SettingsError: It is not the name of a column.
    """
    if targets is not None and not isinstance(targets, str):
        raise SettingsError(
            "targets",
            "must be the name of a column",
            type(targets).__name__,
            "Put the answers into a column of the data, and name it.",
        )


def usable_model(model: Any, settings: Settings | None = None) -> Any:
    """What MLflow accepts, from what people write.

    Args:
        model: See `evaluate`.
        settings: Rows at a time of a model that is loaded here, and number of processes.

    Raises:
        ModelError: A tuple that is not a model with its tokenizer.
    """
    settings = read_settings(None) if settings is None else settings
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ModelError("model", "a tuple must be (model, tokenizer)", len(model))
        return local_model(*model, batch_size=settings.batch_size)
    if isinstance(model, (Mapping, LocalSettings)):
        return loaded_model(read_local(model), settings)
    if isinstance(model, str) and not re.match(r"[a-z0-9_+-]+:/", model):
        return loaded_model(read_local({"path": model}), settings)
    if isinstance(model, str) and model.partition(":/")[0] in _PROVIDERS:
        # MLflow takes such names for judges, and would look for an artifact repository here.
        raise ModelError(
            "model",
            "is the name of a provider's model, which MLflow loads from nowhere",
            model,
            "Use mlflow_mcq.remote_model(base_url=..., model=..., api_key_env=...), or "
            "endpoints:/name for MLflow's AI gateway.",
        )
    return model


_PROVIDERS = ("openai", "anthropic", "gemini", "mistral", "bedrock", "togetherai")


def _usable_data(data: Any, split: str | None, settings: Settings, targets: str | None) -> Any:
    known = isinstance(data, pd.DataFrame) or hasattr(data, "to_evaluation_dataset")
    if known and split is None:
        return data
    # A list too: MLflow would make an object array of it, in which `targets` finds no column.
    frame = load_part(data, split, settings, targets)
    return frame if part_of(frame) is None else as_dataset(frame, targets=targets)
