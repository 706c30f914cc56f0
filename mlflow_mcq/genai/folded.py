"""Rows of `mlflow.genai.evaluate` folded back: one arm, with all the numbers of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlflow.models.evaluation.base import EvaluationResult

from mlflow_mcq import metrics
from mlflow_mcq.arm import Arm, count
from mlflow_mcq.errors import DataError, StoreError
from mlflow_mcq.extras import parser_numbers
from mlflow_mcq.genai.measured import measure_reader
from mlflow_mcq.genai.scorer import McqScorer
from mlflow_mcq.genai.stored import StoredRow, stored_rows
from mlflow_mcq.records import Grade
from mlflow_mcq.report import report, save_answers
from mlflow_mcq.settings import Settings, read_settings
from mlflow_mcq.table import grades_frame
from mlflow_mcq.tracking import RunLog, quiet, refuse_used

__all__ = ["folded"]


def folded(
    result: Any, n_rows: int | None = None, *, scorers: Sequence[Any] = ()
) -> EvaluationResult:
    """Put the numbers of an arm into a run of `mlflow.genai.evaluate`.

    MLflow averages rows, and knows nothing of items and their orientations. Here rows of one
    item come together again: the run gets the same metrics, tables and pictures as one of
    `mlflow_mcq.evaluate` (``judge/accuracy`` with its interval, ``judge/consistency``,
    ``judge/slot_shift``, ``judge_by_orientation/...``), and can be compared with it and
    regraded.

    Args:
        result: What `mlflow.genai.evaluate` returned, or the id of its run.
        n_rows: How many rows went in; None does not check that all came out.
        scorers: Those that read the run. A judge among them sits its exam now, and
            ``judge/accuracy_corrected`` is the accuracy without its errors; without them
            nobody is here who could.

    Returns:
        The numbers by name, and the artifacts.

    Raises:
        StoreError: Rows were lost on the way.
        DataError: No scorer of ours has read this run, or a row lacks options or gold.
        SettingsError: A judge among the scorers is not the one that read the run.
        RunInUse: The run holds such numbers already.
    """
    run_id = str(getattr(result, "run_id", result))
    refuse_used(run_id)
    rows = stored_rows(run_id)
    if not rows:
        raise DataError(f"run {run_id}", "holds no rows that scorers of mlflow_mcq have read")
    names = list(dict.fromkeys(name for row in rows for name in row.grades))
    log = RunLog(run_id)
    _check_whole(log, rows, names, n_rows)
    arm = _arm(rows, names)
    save_answers(arm, log)
    known = {one.name: one for one in scorers if isinstance(one, McqScorer) and one.name in names}
    with quiet():
        for name in names:
            measure_reader(arm, name, known.get(name))
        for judge in _judges(rows):
            _compare(arm, judge)
    values = report(arm, log, names, None, means=True)
    _log_judges(log, rows)
    return EvaluationResult(metrics=values, artifacts=log.artifacts, run_id=run_id)


def _check_whole(
    log: RunLog, rows: Sequence[StoredRow], names: Sequence[str], n_rows: int | None
) -> None:
    wanted = len(rows) if n_rows is None else n_rows
    found = {name: sum(name in row.grades for row in rows) for name in names}
    lost = {name: wanted - n for name, n in found.items() if n != wanted}
    if not lost:
        return
    log.tags({"mcq.status": "failed", "mcq.error": "rows were lost"})
    raise StoreError(
        f"run {log.run_id}",
        f"MLflow kept {min(found.values())} of {wanted} rows: its store could not keep up with "
        "its threads, and every number would be over the rows that happened to be left",
        lost,
        "Set MLFLOW_GENAI_EVAL_MAX_WORKERS=4, use mlflow_mcq.genai_evaluate (which does so on "
        "SQLite), or a tracking server.",
    )


def _arm(rows: Sequence[StoredRow], names: Sequence[str]) -> Arm:
    arm = Arm(_settings(rows[0].settings), tuple(row.generation for row in rows), 0.0)
    count(arm)
    judges = _judges(rows)
    for name in names:
        # A row without an answer is counted with the answers, and no grader has failed on it.
        grades = tuple(r.grades[name] for r in rows if r.generation.reply.error is None)
        if not grades:
            raise DataError("predict_fn", "gave no answer to any row")
        arm.grades[name] = grades
        arm.frames[name] = grades_frame(grades)
        arm.summaries[name] = metrics.summarize(arm.frames[name], judged=name in judges)
    return arm


def _judges(rows: Sequence[StoredRow]) -> frozenset[str]:
    return frozenset(name for row in rows for name in row.judged)


def _compare(arm: Arm, judge: str) -> None:
    """Enter how far other readings differ from a judge's."""
    for name in arm.grades.keys() - {judge}:
        found = metrics.disagreement(arm.frames[judge], arm.frames[name])
        arm.summaries[judge].add(found.renamed({"disagreement": f"{name}_disagreement"}))
        if name.startswith("regex_") and judge == "judge":
            numbers = parser_numbers(arm.grades[judge], arm.grades[name], arm.settings.seed)
            arm.summaries[name].add(numbers)


def _settings(told: Mapping[str, Any]) -> Settings:
    return read_settings(dict(told))


def _log_judges(log: RunLog, rows: Sequence[StoredRow]) -> None:
    """Name the judge as other runs do: arms of different judges are not to be compared."""
    grades: list[Grade] = [row.grades[name] for row in rows for name in row.judged]
    prints = sorted({grade.judge for grade in grades if grade.judge})
    if prints:
        one = prints[0] if len(prints) == 1 else "several: " + ", ".join(prints)
        log.tags({"mcq.judge_fingerprint": one})
        log.params({"mcq.judge_fingerprint": one})
