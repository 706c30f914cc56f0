"""A small rotated evaluation that is repeated while a model is trained."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import mlflow
from mlflow.exceptions import MlflowException

from mlflow_mcq import judges, metrics
from mlflow_mcq.arm import Arm, measure
from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.doors import Grader
from mlflow_mcq.engines.handle import local_model
from mlflow_mcq.engines.spread import refuse_sharded
from mlflow_mcq.errors import McqError, SettingsError
from mlflow_mcq.front import checked_settings
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.pipeline import data_digest, grade, requests_for
from mlflow_mcq.places import without_places
from mlflow_mcq.plugin import Plan, plan_of
from mlflow_mcq.settings import Settings
from mlflow_mcq.table import grades_frame
from mlflow_mcq.tracking import RunLog, quiet
from mlflow_mcq.training.untouched import untouched
from mlflow_mcq.unwrap import speaks_chat

__all__ = ["Probe"]

_log = logging.getLogger(__name__)
_ITEMS = 32
_CURVES = (
    "accuracy", "accuracy_decided", "other_rate", "judge_error_rate", "consistency", "slot_shift",
    "pick_rate_slot_1", "pick_rate_slot_2", "pick_rate_slot_3", "pick_rate_slot_4",
)  # fmt: skip
_FEW_DRAWS = 50
"""Intervals of curves are not logged, so few draws of the bootstrap suffice."""


class Probe:
    """Measures a model in memory and logs the numbers as curves, ``mcq/<grader>/<metric>``.

    The same items in the same orientations each time, so that a curve moves with the model
    alone. The model, its tokenizer and every random state are left as they were.

    Args:
        data: As in `mlflow_mcq.evaluate`; read at once.
        judge: Who judges: ``{"model": ..., "base_url": ..., "api_key_env": ...}``.
        evaluators: Of ours; None is ``mcq_judge`` where a judge is named, else ``mcq_regex``.
        split: Of a hub data set, or by a column ``split``.
        run_id: The run to log into; None is the active one.
        settings: Anything in `mlflow_mcq.settings.Settings`. ``limit`` is 32 items where
            nothing is said.

    Raises:
        McqError: Data or settings are not usable, or the judge serves nobody.

    Example:
        ``Probe("toy.csv", orientations="swap").log(model, tokenizer, step=100)``
    """

    def __init__(
        self,
        data: Any,
        *,
        judge: Mapping[str, Any] | JudgeSettings | None = None,
        evaluators: str | Sequence[str] | None = None,
        split: str | None = None,
        run_id: str | None = None,
        **settings: Any,
    ) -> None:
        config: dict[str, Any] = {"limit": _ITEMS, **settings}
        if judge is not None:
            config["judge"] = judge.model_dump() if isinstance(judge, JudgeSettings) else judge
        usual = ["mcq_regex"] if judge is None else ["mcq_judge"]
        names = usual if evaluators is None else evaluators
        self.evaluators = [names] if isinstance(names, str) else list(names)
        self.settings = checked_settings(config, self.evaluators)
        if self.settings.logprob.enabled:
            raise SettingsError("logprob.enabled", "is not measured in training")
        if self.settings.directory is not None:
            raise SettingsError("directory", "keeps rows of one model, and this one is in training")
        self.items = items_of(
            list(read_data(load_part(data, split, self.settings), self.settings).rows)
        )
        self.run_id = run_id
        self._noted: str | None = None
        self._plans: list[Plan] | None = None
        asked = self.settings.judge
        if asked is not None and asked.preflight and asked.base_url != "local":
            judges.ask_first(judges.judge_of(asked))

    def measure(self, model: Any, tokenizer: Any) -> dict[str, float]:
        """The numbers of a model as it is now; those that do not exist are left out.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer.

        Raises:
            ModelError: The model cannot answer, or its weights are spread over processes.
        """
        refuse_sharded(model)
        start = time.monotonic()
        values: dict[str, float] = {}
        with untouched(model), quiet():
            engine = local_model(model, tokenizer, batch_size=self.settings.batch_size).engine
            chat = speaks_chat(engine, self.settings)
            arm = measure(engine, requests_for(self.items, self.settings, chat=chat), self.settings)
            for grader in self._graders(arm):
                values |= _numbers(grader, arm)
        rows = arm.numbers.values
        values["mcq/generation/truncated_rate"] = rows["generation/n_truncated"] / len(
            arm.generations
        )
        return values | {"mcq/generation/seconds": time.monotonic() - start}

    def log(self, model: Any, tokenizer: Any, step: int) -> dict[str, float]:
        """Measure, and log the numbers at a step.

        A fault costs this point of the curves and never the training: it is said, and the run
        is tagged with it.

        Returns:
            The numbers; none where it failed.
        """
        log: RunLog | None = None
        try:
            log = RunLog(self._run())
            values = self.measure(model, tokenizer)
            self._note(log)
            log.metrics(values, step=step)
        except (McqError, MlflowException) as error:
            _log.warning("step %d is missing in the curves of mlflow_mcq: %s", step, error)
            if log is not None:
                _tagged(log, {"mcq.curve.error": f"step {step}: {type(error).__name__}"})
            return {}
        return values

    def _run(self) -> str:
        if self.run_id is None:
            run = mlflow.active_run()
            if run is None:
                raise SettingsError(
                    "run_id", "is not given, and no run is active", None, "mlflow.start_run()"
                )
            self.run_id = run.info.run_id
        return self.run_id

    def _graders(self, arm: Arm) -> list[Grader]:
        if self._plans is None:  # weights of a judge or an encoder are loaded once
            self._plans = [plan_of(name, _spared(self.settings)) for name in self.evaluators]
        found = {one.name: one for plan in self._plans for one in plan.graders(arm)}
        return list(found.values())

    def _note(self, log: RunLog) -> None:
        """Say once in each run what the curves are of."""
        if self._noted == log.run_id:
            return
        self._noted = log.run_id
        judge = self.settings.judge
        log.tags(
            {
                "mcq.curve.data_digest": data_digest(self.items),
                "mcq.curve.n_items": len(self.items),
                "mcq.curve.orientations": self.settings.orientations,
                "mcq.curve.settings": self.settings.fingerprint,
                "mcq.curve.judge": "none" if judge is None else judge.model,
            }
        )


def _spared(settings: Settings) -> Settings:
    """Without what measures the judge: that is for evaluations, and would cost at every point."""
    if settings.judge is None:
        return settings
    spared = {"check_rows": 0, "exam_replies": 0, "canaries": 0, "preflight": False}
    return settings.model_copy(update={"judge": settings.judge.model_copy(update=spared)})


def _numbers(grader: Grader, arm: Arm) -> dict[str, float]:
    grades = grade(grader, arm.answered)
    judged = isinstance(grader, JudgeGrader)
    summary = metrics.summarize(grades_frame(grades), judged=judged, replicates=_FEW_DRAWS)
    summary = without_places(summary, grades)
    return {
        f"mcq/{grader.name}/{name}": summary.values[name]
        for name in _CURVES
        if name in summary.values
    }


def _tagged(log: RunLog, tags: Mapping[str, object]) -> None:
    try:
        log.tags(tags)
    except MlflowException as error:
        _log.warning("run %s could not be tagged: %s", log.run_id, error)
