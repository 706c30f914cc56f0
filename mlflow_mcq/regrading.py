"""Grade a finished run again: another judge, or only what went wrong. No inference.

The new run points to the old one, and the old one to it. The answers are read from the
table `mcq_generations` of the old run, exactly as they were stored.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mlflow import MlflowClient
from mlflow.models.evaluation.base import EvaluationResult
from mlflow.utils.logging_utils import eprint

from mlflow_mcq import judges
from mlflow_mcq.arm import Arm, count, put, read
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.graders import ALL_REGEX_GRADERS, JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.keywords import known_keywords
from mlflow_mcq.named_run import run_named
from mlflow_mcq.pipeline import grade
from mlflow_mcq.records import Generation, Grade, Verdict
from mlflow_mcq.report import report, save_answers
from mlflow_mcq.settings import Settings, read_settings
from mlflow_mcq.stored_run import stored_json, stored_table
from mlflow_mcq.table import generations_from, grades_from
from mlflow_mcq.tracking import RunLog, quiet, run_beside

__all__ = ["regrade"]

_INHERITED = (
    "mcq.arm", "mcq.comparison", "mcq.role", "mcq.prompts_digest", "mcq.original", "mcq.variant",
)  # fmt: skip
_WHAT = ("all", "errors", *(verdict.value for verdict in Verdict))


@known_keywords
def regrade(
    run_id: str,
    judge: Mapping[str, Any] | JudgeSettings | None = None,
    *,
    only: str | Sequence[str] = "all",
) -> EvaluationResult:
    """Let a judge read the stored answers of a run, into a new run linked to the old one.

    Args:
        run_id: A run that holds `mcq_generations`; also one whose judging broke.
        judge: Who judges.
        only: ``all`` rows, those with judge ``errors`` (or that no judge ever read), or those
            of given verdicts (``"OTHER"``, ``["INCORRECT", "OTHER"]``). The other rows keep their
            grades; if another judge gave those, the run is tagged as read by several.

    Returns:
        Metrics, artifacts and tables of the new run. Where ``only`` is true of no row nobody
        is asked and no run is made, which is said: the metrics are those of the old run.

    Raises:
        JudgeNotConfigured: Nobody is named.
        JudgeUnavailable: The judge answers nobody; no run was made.
        SettingsError: ``only`` is none of these, or there is no such run.
        DataError: The run holds no stored answers, or no grades to keep.
    """
    wanted = _wanted(only)
    if judge is None:
        raise JudgeNotConfigured
    given = judge.model_dump() if isinstance(judge, JudgeSettings) else judge
    old = run_named(run_id)
    settings = read_settings({**_stored_settings(run_id), "judge": given})
    if settings.judge is None:
        raise JudgeNotConfigured
    generations = generations_from(stored_table(run_id, "mcq_generations"))
    kept = _kept(run_id, generations, wanted)
    if _nothing_to_read(run_id, generations, kept, wanted):
        return EvaluationResult(metrics=_means(old), artifacts={}, run_id=run_id)
    grader = judges.judge_of(settings.judge)
    judges.ask_first(grader)
    with run_beside(old.info.experiment_id, f"{old.info.run_name} (regraded)") as run:
        arm = Arm(settings, generations, 0.0)
        count(arm)
        with quiet():
            start = time.monotonic()
            put(arm, grader, _grades(grader, arm.answered, kept))
            arm.stages["judging"] = time.monotonic() - start
            parsers = () if arm.takes_all else settings.regex.parsers
            read(arm, [ALL_REGEX_GRADERS[name] for name in parsers])
        log = RunLog(run.info.run_id)
        save_answers(arm, log)
        values = report(arm, log, list(arm.grades), None, means=True)
        _link(old, log, arm)
    return EvaluationResult(metrics=values, artifacts=log.artifacts, run_id=run.info.run_id)


def _wanted(only: str | Sequence[str]) -> tuple[str, ...]:
    words = tuple(only.split(",")) if isinstance(only, str) else tuple(only)
    if not words or any(word not in _WHAT for word in words):
        raise SettingsError("only", f"must be some of {', '.join(_WHAT)}", only)
    return words


def _kept(
    run_id: str, generations: Sequence[Generation], wanted: Sequence[str]
) -> dict[tuple[str, str, int, int], Grade]:
    if "all" in wanted:
        return {}
    grades = grades_from(stored_table(run_id, "mcq_grades"), generations)
    return {
        one.generation.key: one
        for one in grades
        if one.grader == "judge" and _word(one) not in wanted
    }


def _means(run: Any) -> dict[str, float]:
    """The means of a finished run, without the numbers that it holds for each orientation."""
    return {
        name: value
        for name, value in run.data.metrics.items()
        if not name.rpartition("/")[0].endswith("_by_orientation")
    }


def _nothing_to_read(
    run_id: str,
    generations: Sequence[Generation],
    kept: Mapping[tuple[str, str, int, int], Grade],
    wanted: Sequence[str],
) -> bool:
    """Say how many rows will be read; whether that is none."""
    if "all" in wanted:
        return False
    answered = [one.key for one in generations if one.reply.text is not None]
    n_left, words = sum(key not in kept for key in answered), " or ".join(wanted)
    if n_left or not answered:
        eprint(
            f"regrade: {n_left:,} of {len(answered):,} rows are read again ({words}, or not read)"
        )
        return False
    words = " or ".join("judge errors" if word == "errors" else word for word in wanted)
    there = Counter(map(_word, kept.values()))
    held = ", ".join(f"{n:,} {word}" for word, n in there.most_common())
    most = there.most_common(1)[0][0]
    eprint(
        f"regrade: nothing to do. Run {run_id} holds no {words} (its judge has read {held}), so "
        f"nobody was asked and no run was made. Name what there is (only={most!r}, --only {most}), "
        f"or all, which has every row read again."
    )
    return True


def _word(grade: Grade) -> str:
    return grade.verdict.value if grade.verdict else "errors"


def _grades(
    grader: JudgeGrader,
    generations: Sequence[Generation],
    kept: Mapping[tuple[str, str, int, int], Grade],
) -> tuple[Grade, ...]:
    again = [generation for generation in generations if generation.key not in kept]
    new = {one.generation.key: one for one in grade(grader, again)}
    return tuple({**kept, **new}[generation.key] for generation in generations)


def _link(old: Any, log: RunLog, arm: Arm) -> None:
    judges_used = {one.judge for one in arm.grades["judge"] if one.judge}
    judges_used |= {arm.judge.fingerprint} if arm.judge else set()
    tags = {"mcq.regraded_from": old.info.run_id}
    if len(judges_used) > 1:
        # Arms read by different judges are not comparable: one fingerprint would lie.
        tags["mcq.judge_fingerprint"] = "several: " + ", ".join(sorted(judges_used))
    # The rows hold the prompts as they were sent, with the model's own template around them.
    tags |= {name: old.data.tags[name] for name in _INHERITED if name in old.data.tags}
    log.tags(tags)
    RunLog(old.info.run_id).tags({"mcq.regraded_by": log.run_id})
    if old.inputs and old.inputs.dataset_inputs:
        MlflowClient().log_inputs(log.run_id, old.inputs.dataset_inputs)


def _stored_settings(run_id: str) -> dict[str, Any]:
    """The settings of the old run, as far as they concern the rows."""
    # Missing where judging broke before they were written; the rows say the rest.
    stored = stored_json(run_id, "mcq_settings.json", missing={})
    return {name: stored[name] for name in Settings.model_fields if name in stored}
