"""The door: read arms, compare them, and put the comparison on record in a run of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.models.evaluation.base import EvaluationResult

from mlflow_mcq.comparison import deltas, figures
from mlflow_mcq.comparison.answers import headline
from mlflow_mcq.comparison.arms import TRACE_ROWS, StoredArm, find_arms, main_grader
from mlflow_mcq.comparison.contrasts import Contrast, contrasts
from mlflow_mcq.comparison.differing import differing_rows
from mlflow_mcq.comparison.notes import arm_note, comparison_note
from mlflow_mcq.comparison.page import PageData, render_page
from mlflow_mcq.comparison.traces import log_traces
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.keywords import known_keywords
from mlflow_mcq.run_note import NOTE, with_section
from mlflow_mcq.tracking import RunLog, capped, legal_names, run_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TRACE_ROWS", "Comparison", "compare", "compare_into"]

_TABLE_ROWS = 1000
_MOST_DRAWN = 12


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What a comparison has found.

    Attributes:
        run_id: The run that holds it.
        baseline: Name of the arm compared with.
        headlines: One line an arm.
        alarms: Names of the rules that fired over two arms, by arm.
        alarms_of_arms: Names of those that had fired in an arm itself, by arm; the baseline's,
            too.
        read_by: The grader whose reading the headlines and metrics are.
        tables: As they are logged, without the prefix ``mcq_``.
        metrics: Numbers as they are logged.
    """

    run_id: str
    baseline: str
    headlines: Mapping[str, str]
    alarms: Mapping[str, tuple[str, ...]]
    alarms_of_arms: Mapping[str, tuple[str, ...]]
    read_by: str
    tables: Mapping[str, pd.DataFrame] = field(repr=False)
    metrics: Mapping[str, float] = field(repr=False)

    @property
    def result(self) -> EvaluationResult:
        """The numbers as `mlflow.validate_evaluation_results` wants them."""
        return EvaluationResult(metrics=dict(self.metrics), artifacts={}, run_id=self.run_id)


@known_keywords
def compare(
    runs: Sequence[Any] | None = None,
    *,
    experiment: str | None = None,
    filter: str = "",
    baseline: str | None = None,
    force: bool = False,
    trace_rows: int = TRACE_ROWS,
) -> Comparison:
    """Compare arms that stand in MLflow, into a comparison run that points to them.

    Args:
        runs: Run ids, or results of `mlflow_mcq.evaluate`, of at least two arms.
        experiment: Instead of runs: name or id of an experiment, all of whose finished arms
            are compared.
        filter: MLflow filter over the runs of that experiment.
        baseline: Run id or name of the arm to compare with; None takes the first.
        force: Compare arms that different judges have read, and mark the comparison.
        trace_rows: Rows of each arm to log as traces, the same in all arms, for looking at
            them row by row in *Evaluation runs*; 0 logs none.

    Returns:
        Headlines, alarms, tables, and the run that holds them.

    Raises:
        SettingsError: Arms cannot be found, or were read by different judges.
        DataError: Arms share no graded row.

    Example:
        ``compare(experiment="my arms", baseline="letters").headlines``
    """
    if isinstance(trace_rows, bool) or trace_rows < 0:
        raise SettingsError("trace_rows", "must be 0 or more", trace_rows)
    arms = _baseline_first(find_arms(runs, experiment, filter), baseline)
    contrasted = _contrasted(arms, force)  # what is refused leaves no run
    with _own_run(arms[0]) as run_id:
        return _record(RunLog(run_id), arms, contrasted, trace_rows)


def compare_into(run_id: str, runs: Sequence[str], baseline: str, trace_rows: int) -> Comparison:
    """The same, into the run that holds the arms of a recipe.

    A recipe may hold arms of several data sets: those that share no row with the baseline
    are left out, with a warning.
    """
    arms = _baseline_first(find_arms(runs, None), baseline)
    contrasted = _contrasted(arms, force=False, skip=True)
    kept = [arms[0], *(one.treatment for one in contrasted.found)]
    return _record(RunLog(run_id), kept, contrasted, trace_rows)


@dataclass(frozen=True, slots=True)
class _Contrasted:
    """All arms against the baseline, and whether that was forced."""

    found: list[Contrast]
    forced: bool


def _contrasted(arms: Sequence[StoredArm], force: bool, skip: bool = False) -> _Contrasted:
    forced = _check_judges(arms, force)
    return _Contrasted(contrasts(arms, main_grader(arms), skip), forced)


@contextmanager
def _own_run(baseline: StoredArm) -> Iterator[str]:
    """A run beside the arms; under ``mlflow run`` the one that MLflow has opened."""
    home, name = baseline.run.info.experiment_id, f"comparison with {baseline.name}"
    in_project = "MLFLOW_RUN_ID" in os.environ
    with mlflow.start_run() if in_project else run_beside(home, name) as run:
        yield str(run.info.run_id)


def _baseline_first(arms: list[StoredArm], baseline: str | None) -> list[StoredArm]:
    if baseline is None:
        return arms
    mine = [arm for arm in arms if baseline in (arm.run_id, arm.name, arm.run.info.run_name)]
    if len(mine) != 1:
        names = ", ".join(f"{arm.name} ({arm.run_id})" for arm in arms)
        raise SettingsError("baseline", "must name one of the arms", baseline, f"Arms: {names}.")
    return mine + [arm for arm in arms if arm is not mine[0]]


def _check_judges(arms: Sequence[StoredArm], force: bool) -> bool:
    """Whether the arms have different judges, which the caller knows of."""
    judges = {arm.name: arm.facts.judge or "no judge" for arm in arms}
    if len(set(judges.values())) == 1:
        return False
    if force:
        return True
    raise SettingsError(
        "judge_mismatch",
        "arms read by different judges are not comparable: a difference may be the judges'",
        judges,
        "Regrade an arm with the other's judge (mlflow_mcq.regrade, mlflow-mcq regrade; no "
        "inference is needed), or pass force=True (--force yes) to compare them all the same, "
        "marked as such.",
    )


def _record(
    log: RunLog, arms: Sequence[StoredArm], contrasted: _Contrasted, trace_rows: int
) -> Comparison:
    """Put a comparison on record: tables, pictures, report, alarms, links both ways."""
    found, forced = contrasted.found, contrasted.forced
    tables = _tables(found, arms)
    drawn = _figures(tables, arms, found[0].grader)
    metrics = _metrics(found)
    log.metrics(metrics)
    for name, table in tables.items():
        log.table(f"mcq_{name}", capped(table, _TABLE_ROWS))
    log.parquet("mcq_differing_rows", tables["differing_rows"])
    for name, draw in drawn.items():
        log.figure(f"mcq_{name}", draw())
    page = PageData(
        _title(arms),
        found,
        [arm.name for arm in arms],
        {**tables, "differing": tables["differing_rows"]},
        list(drawn.values()),
        forced,
    )
    log.text("mcq_report.html", render_page(page))
    _link(log, found, arms, tables, forced)
    log_traces(arms, found[0].grader, list(tables["differing_rows"].index), trace_rows)
    return Comparison(
        log.run_id,
        arms[0].name,
        {one.treatment.name: headline(one) for one in found},
        {one.treatment.name: tuple(alarm.name for alarm in one.alarms) for one in found},
        {arm.name: tuple(alarm.name for alarm in arm.alarms) for arm in arms},
        found[0].grader,
        tables,
        metrics,
    )


def _title(arms: Sequence[StoredArm]) -> str:
    others = [arm.name for arm in arms[1:]]
    said = others[0] if len(others) == 1 else f"{len(others)} arms"
    return f"{said} against {arms[0].name}"


def _tables(found: Sequence[Contrast], arms: Sequence[StoredArm]) -> dict[str, pd.DataFrame]:
    grader = found[0].grader
    return {
        "deltas": deltas.deltas_table(found),
        "arms_compared": deltas.arms_table(arms, grader),
        "alarms": deltas.alarms_table(arms, found),
        "differing_rows": differing_rows(arms, grader),
        "transitions": deltas.transitions_table(found),
        "verdicts": deltas.verdicts_table(arms, grader),
        "by_orientation": deltas.orientations_table(arms, grader),
        "by_slot": deltas.slots_table(arms, grader),
        "chosen_shifts": deltas.chosen_table(found),
    }


def _figures(
    tables: Mapping[str, pd.DataFrame], arms: Sequence[StoredArm], grader: str
) -> dict[str, Callable[[], Figure]]:
    arms = arms[:_MOST_DRAWN]  # with more, nobody tells lines and bars apart
    names = [arm.name for arm in arms]
    tables = {k: t[t["arm"].isin(names)] for k, t in tables.items() if "arm" in t}
    drawn: dict[str, Callable[[], Figure]] = {
        "forest": partial(figures.forest_figure, tables["deltas"], arms[0].name),
        "accuracy_by_orientation": partial(figures.orientations_figure, tables["by_orientation"]),
        "verdict_shares": partial(figures.verdicts_figure, tables["verdicts"]),
        "row_transitions": partial(figures.transitions_figure, tables["transitions"]),
    }
    if tables["by_slot"]["pick_rate"].notna().any():  # no place, no picks by place
        drawn["pick_rates"] = partial(figures.slots_figure, tables["by_slot"])
        drawn["confusions"] = partial(figures.confusions_figure, arms, grader)
    return drawn


def _metrics(found: Sequence[Contrast]) -> dict[str, float]:
    """Differences, grouped by kind on MLflow's chart page: one bar an arm."""
    values: dict[str, float] = {}
    names = legal_names((one.treatment.name for one in found), flat=True)
    for one in found:
        arm = names[one.treatment.name]
        for name, shift in one.facts.shifts.items():
            values |= {f"{k}/{arm}": v for k, v in shift.numbers(name).items()}
        values[f"p_value/{arm}"] = one.settled.p_holm
        high = one.shift.high
        shown = high is not None and high < 0 and one.shift.value is not None
        values[f"shown_loss/{arm}"] = -(one.shift.value or 0.0) if shown else 0.0
        values[f"n_items/{arm}"] = float(one.main.n_items)
    return values


def _link(
    log: RunLog,
    found: Sequence[Contrast],
    arms: Sequence[StoredArm],
    tables: Mapping[str, pd.DataFrame],
    forced: bool,
) -> None:
    """Tags and descriptions that lead from the comparison to its arms and back."""
    client = MlflowClient()
    run = client.get_run(log.run_id)
    home = run.info.experiment_id
    fired = dict.fromkeys(alarm.name for one in found for alarm in one.alarms)
    own = dict.fromkeys(alarm.name for arm in arms for alarm in arm.alarms)
    note = comparison_note(found, tables["arms_compared"], tables["alarms"], home)
    tags: dict[str, object] = {
        "mcq.role": "comparison",
        "mcq.baseline": arms[0].run_id,
        "mcq.arms": ",".join(arm.run_id for arm in arms),
        "mcq.alarms": ", ".join(fired) or "none",
        "mcq.alarms_of_arms": ", ".join(own) or "none",
        "mcq.headline": " ".join(headline(one) for one in found)[:1000],
        NOTE: with_section(run.data.tags.get(NOTE), "mcq comparison", note),
    }
    if forced:
        tags["mcq.forced"] = "judge_mismatch"
    log.tags(tags)
    log.params({"mcq.baseline": arms[0].name, "mcq.read_by": found[0].grader})
    for arm in arms:
        said = [headline(one) for one in found if arm in (one.baseline, one.treatment)]
        theirs = client.get_run(arm.run_id).data.tags
        before = [one for one in theirs.get("mcq.compared_in", "").split(",") if one]
        text = arm_note(run.info.run_name or "comparison", log.run_id, home, said)
        RunLog(arm.run_id).tags(
            {
                "mcq.compared_in": ",".join(dict.fromkeys([*before, log.run_id])),
                NOTE: with_section(theirs.get(NOTE), "mcq comparison", text),
            }
        )
