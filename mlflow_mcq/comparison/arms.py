"""Arms read back from MLflow: their rows, facts and alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from mlflow import MlflowClient

from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.diagnostics.pair import ArmFacts
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.graders.belief import by_belief
from mlflow_mcq.named_run import experiment_named, run_named
from mlflow_mcq.statistics.pairing import with_order
from mlflow_mcq.stored_run import stored_json, stored_table

__all__ = ["TRACE_ROWS", "StoredArm", "find_arms", "main_grader"]

_GENERATION_COLUMNS = (
    "row_id", "item_id", "orientation", "orientation_name", "repeat", "order", "question",
    "options", "gold_letter", "labels", "generation",
)  # fmt: skip
_MOST_ARMS = 100
TRACE_ROWS = 50
"""Rows of each arm that a comparison logs as traces, unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredArm:
    """One arm of a comparison, as its run holds it.

    Attributes:
        name: For people; different in all arms of a comparison.
        run: The MLflow run.
        generations: What was shown and said, one row a generation.
        grades: Grades with the order shown, by grader.
        alarms: What fired in the arm itself.
    """

    name: str
    run: Any
    generations: pd.DataFrame
    grades: Mapping[str, pd.DataFrame]
    alarms: tuple[Alarm, ...]

    @property
    def run_id(self) -> str:
        """Of its run."""
        return str(self.run.info.run_id)

    @property
    def facts(self) -> ArmFacts:
        """What the rules over two arms need to know beside the rows."""
        tags = self.run.data.tags
        digest, judge = tags.get("mcq.data_digest", ""), tags.get("mcq.judge_fingerprint", "")
        return ArmFacts(self.name, digest, judge)

    @property
    def params(self) -> dict[str, str]:
        """What was set, without the prefix that all names share."""
        params = self.run.data.params.items()
        return {k.removeprefix("mcq."): v for k, v in params if k.startswith("mcq.")}


def find_arms(
    runs: Sequence[Any] | None, experiment: str | None, filter: str = ""
) -> list[StoredArm]:
    """The arms that a caller names.

    Args:
        runs: Run ids, or results of `evaluate`; None looks into an experiment.
        experiment: Name or id of an experiment whose finished arms are meant.
        filter: MLflow filter over its runs.

    Returns:
        At least two arms with different names; those of an experiment the oldest first.

    Raises:
        SettingsError: Both or neither are given, or fewer than two arms are there.
        DataError: A run holds no graded rows.
    """
    if (runs is None) == (experiment is None):
        raise SettingsError(
            "compare",
            "takes either runs or an experiment",
            "neither" if runs is None else "both",
            "Name two or more runs by their ids, or an experiment whose arms are meant.",
        )
    found = [_run(one) for one in runs] if runs is not None else _search(str(experiment), filter)
    ids = [run.info.run_id for run in found]
    if len(set(ids)) < 2 or len(set(ids)) < len(ids):
        raise SettingsError("runs", "must be at least two different finished arms", ids)
    return _told_apart([_read(run) for run in found])


def main_grader(arms: Sequence[StoredArm]) -> str:
    """The grader whose reading counts: of those that have read all arms the most believed.

    Raises:
        DataError: No grader has read all of them.
    """
    common = [name for name in arms[0].grades if all(name in arm.grades for arm in arms)]
    if not common:
        read = {arm.name: ", ".join(arm.grades) for arm in arms}
        raise DataError("compare", "arms need a grader in common", read, "Regrade one of them.")
    return by_belief(common)[0]


def _run(one: Any) -> Any:
    run_id = one if isinstance(one, str) else getattr(one, "run_id", None)
    run_id = run_id or getattr(getattr(one, "info", None), "run_id", None)
    if not run_id:
        raise SettingsError("runs", "must be run ids or results of evaluate", one)
    return run_named(run_id, "runs")


def _search(experiment: str, filter: str) -> list[Any]:
    found = experiment_named(experiment)
    finished = "tags.`mcq.status` = 'finished'"
    runs = MlflowClient().search_runs(
        [found.experiment_id],
        f"{finished} and {filter}" if filter else finished,
        max_results=_MOST_ARMS,
        order_by=["attributes.start_time ASC"],
    )
    return list(runs)


def _read(run: Any) -> StoredArm:
    run_id = run.info.run_id
    generations = stored_table(run_id, "mcq_generations", _GENERATION_COLUMNS)
    grades = with_order(stored_table(run_id, "mcq_grades"), generations)
    if not len(grades):
        raise DataError(f"run {run_id}", "holds no graded rows")
    parts = {str(name): part for name, part in grades.groupby("grader", sort=False)}
    by_grader = {name: part.reset_index(drop=True) for name, part in parts.items()}
    return StoredArm(run.info.run_name or run_id, run, generations, by_grader, _alarms(run_id))


def _alarms(run_id: str) -> tuple[Alarm, ...]:
    table = stored_json(run_id, "mcq_alarms.json", missing={"columns": [], "data": []})
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    names = ("name", "rule", "found", "next_step")
    return tuple(Alarm(*(str(row.get(name) or "") for name in names)) for row in rows)


def _told_apart(arms: Sequence[StoredArm]) -> list[StoredArm]:
    """Runs may share a name; a table with two rows of one name is of no use."""
    times = Counter(arm.name for arm in arms)
    return [
        replace(arm, name=f"{arm.name} ({arm.run_id[:6]})") if times[arm.name] > 1 else arm
        for arm in arms
    ]
