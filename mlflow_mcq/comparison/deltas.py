"""The numbers of a comparison as tables, for the browser and for code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mlflow_mcq import metrics
from mlflow_mcq.comparison.arms import StoredArm
from mlflow_mcq.comparison.contrasts import Contrast
from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.one_arm import accuracies
from mlflow_mcq.statistics.paired import By, chosen_shifts, shifts, shifts_by, transitions
from mlflow_mcq.statistics.pairing import Pairs
from mlflow_mcq.statistics.rows import rows_of
from mlflow_mcq.statistics.selection_bias import by_slot

__all__ = [
    "ALARM_COLUMNS",
    "alarms_table",
    "arms_table",
    "chosen_table",
    "deltas_table",
    "differing_params",
    "orientations_table",
    "slots_table",
    "transitions_table",
    "verdicts_table",
]

ALARM_COLUMNS = ("alarm", "arm", "baseline", "rule", "found", "next_step")
_COLUMNS = (
    "arm", "metric", "part", "read_by", "baseline", "value_baseline", "value_arm", "shift", "low",
    "high", "p_value", "p_holm", "test", "n_items", "n_rows", "bootstrap_low", "bootstrap_high",
    "detectable", "items_to_settle", "note",
)  # fmt: skip
_PARTS: Mapping[By, tuple[str, int]] = {
    "orientation": ("orientation", 0),
    "gold_slot": ("gold in slot", 1),
}
_MEASURES = {
    "accuracy_shift": "accuracy",
    "accuracy_decided_shift": "accuracy_decided",
    "other_rate_shift": "other_rate",
}
_ARM_NUMBERS = (
    "accuracy", "accuracy_low", "accuracy_high", "accuracy_decided", "other_rate", "consistency",
    "slot_shift", "n_items", "n_rows",
)  # fmt: skip
_NOT_TELLING = {"arm", "judge_fingerprint"}


def deltas_table(found: Sequence[Contrast]) -> pd.DataFrame:
    """Every difference: treatment minus baseline on the rows that both have.

    Returns:
        One row a metric, part of the rows (``all``, an orientation, a slot of gold) and
        grader. Rates and differences are fractions; slots count from 1.
    """
    rows: list[dict[str, object]] = []
    for one in found:
        for grader, pairs in one.pairs.items():
            rows += [_named(one, grader) | row for row in _overall(one, grader, pairs)]
            if grader == one.grader:
                rows += [_named(one, grader) | row for row in _by_parts(pairs)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _named(one: Contrast, grader: str) -> dict[str, object]:
    return {"arm": one.treatment.name, "baseline": one.baseline.name, "read_by": grader}


def _overall(one: Contrast, grader: str, pairs: Pairs) -> list[dict[str, object]]:
    values = accuracies(pairs.baseline), accuracies(pairs.treatment)
    rows = []
    for metric, shift in shifts(pairs).items():
        row = _row(metric, "all", shift, pairs.n_pairs)
        if metric in _MEASURES:
            row |= _values(values, _MEASURES[metric])
        if metric == "accuracy_shift" and grader == one.grader:
            row |= _tested(one)
        rows.append(row)
    return rows


def _row(metric: str, part: str, shift: Measured, n_rows: int) -> dict[str, object]:
    return {
        "metric": metric,
        "part": part,
        "shift": shift.value,
        "low": shift.low,
        "high": shift.high,
        "p_value": shift.p_value,
        "test": "" if shift.p_value is None else "t over items",
        "n_items": shift.n_items,
        "n_rows": n_rows,
        "note": shift.reason,
    }


def _values(
    values: tuple[dict[str, Measured], dict[str, Measured]], name: str
) -> dict[str, object]:
    return {"value_baseline": values[0][name].value, "value_arm": values[1][name].value}


def _tested(one: Contrast) -> dict[str, object]:
    settled = one.settled
    return {
        "p_value": settled.p_value,
        "p_holm": settled.p_holm,
        "test": settled.test,
        "bootstrap_low": settled.bootstrap.low,
        "bootstrap_high": settled.bootstrap.high,
        "detectable": settled.detectable.value,
        "items_to_settle": settled.items_needed.value,
    }


def _by_parts(pairs: Pairs) -> list[dict[str, object]]:
    rows = []
    for by, (what, first) in _PARTS.items():
        column = pairs.baseline.orientation if by == "orientation" else pairs.baseline.gold_slot
        for effect in shifts_by(pairs, by):
            part = pairs.keep(column == effect.place)
            values = accuracies(part.baseline), accuracies(part.treatment)
            row = _row(
                "accuracy_shift", f"{what} {effect.place + first}", effect.shift, part.n_pairs
            )
            rows.append(row | _values(values, "accuracy"))
    return rows


def arms_table(arms: Sequence[StoredArm], grader: str) -> pd.DataFrame:
    """One row an arm: its numbers as logged in its run, and the settings that differ."""
    params = differing_params(arms)
    rows = []
    for arm in arms:
        row: dict[str, object] = {"arm": arm.name, "role": "baseline" if arm is arms[0] else "arm"}
        row |= {name: arm.run.data.metrics.get(f"{grader}/{name}") for name in _ARM_NUMBERS}
        row |= {name: arm.params.get(name, "") for name in params}
        row |= {"alarms": ", ".join(alarm.name for alarm in arm.alarms) or "none"}
        rows.append(row | {"run_id": arm.run_id})
    return pd.DataFrame(rows)


def differing_params(arms: Sequence[StoredArm]) -> list[str]:
    """Settings that are not the same in all arms."""
    names = dict.fromkeys(name for arm in arms for name in arm.params)
    told = [name for name in names if name not in _NOT_TELLING]
    return [name for name in told if len({arm.params.get(name) for arm in arms}) > 1]


def alarms_table(arms: Sequence[StoredArm], found: Sequence[Contrast]) -> pd.DataFrame:
    """What fired over two arms, then what fired in single ones."""
    pairs = [
        (alarm, one.treatment.name, one.baseline.name) for one in found for alarm in one.alarms
    ]
    alone = [(alarm, arm.name, "") for arm in arms for alarm in arm.alarms]
    rows = [_alarm_row(*fired) for fired in (*pairs, *alone)]
    return pd.DataFrame(rows, columns=list(ALARM_COLUMNS))


def _alarm_row(alarm: Alarm, arm: str, baseline: str) -> dict[str, str]:
    said = {"rule": alarm.rule, "found": alarm.found, "next_step": alarm.next_step}
    return {"alarm": alarm.name, "arm": arm, "baseline": baseline, **said}


def transitions_table(found: Sequence[Contrast]) -> pd.DataFrame:
    """Rows by verdict in the baseline and in the arm."""
    parts = []
    for one in found:
        long = transitions(one.main).reset_index().melt("baseline", value_name="n_rows")
        verdicts = long.rename(columns={"baseline": "in_baseline", "treatment": "in_arm"})
        parts.append(verdicts.assign(arm=one.treatment.name, baseline=one.baseline.name))
    return pd.concat(parts)[["arm", "in_baseline", "in_arm", "n_rows", "baseline"]]


def chosen_table(found: Sequence[Contrast]) -> pd.DataFrame:
    """How often each option and slot is chosen, for tasks without a right answer."""
    parts = [
        chosen_shifts(one.main, by).assign(arm=one.treatment.name, by=by)
        for one in found
        for by in ("option", "slot")
    ]
    table = pd.concat(parts)
    return table[["arm", "by", *(c for c in table.columns if c not in ("arm", "by"))]]


def slots_table(arms: Sequence[StoredArm], grader: str) -> pd.DataFrame:
    """Picks by slot of each arm; none where no answer has a place."""
    parts = [by_slot(rows_of(arm.grades[grader]).graded).assign(arm=arm.name) for arm in arms]
    table = pd.concat(parts)
    return table[["arm", *(c for c in table.columns if c != "arm")]]


def orientations_table(arms: Sequence[StoredArm], grader: str) -> pd.DataFrame:
    """Accuracy by orientation of each arm."""
    parts = [metrics.by_orientation(arm.grades[grader]).assign(arm=arm.name) for arm in arms]
    return pd.concat(parts)


def verdicts_table(arms: Sequence[StoredArm], grader: str) -> pd.DataFrame:
    """Rows by verdict: one row an arm, counts."""
    names = ["CORRECT", "INCORRECT", "OTHER", "judge error"]
    rows = []
    for arm in arms:
        verdict = arm.grades[grader]["verdict"].fillna(names[-1])
        counts = verdict.value_counts()
        rows.append({"arm": arm.name, **{name: int(counts.get(name, 0)) for name in names}})
    table = pd.DataFrame(rows)
    return table if np.any(table[names[-1]]) else table.drop(columns=names[-1])
