"""Tables that a recipe asks for, and the points of its plots."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.statistics.intervals import Measured, ratio
from mlflow_mcq.statistics.one_arm import accuracies
from mlflow_mcq.statistics.rows import NONE, Rows, rows_of

__all__ = ["chosen_table", "repeat_tables", "temperature_table"]

_NAMES = ("accuracy", "accuracy_decided", "other_rate")


def repeat_tables(arms: Sequence[ArmResult]) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """One table for each repeat, as if it had been run alone, and the aggregate of all.

    A repeat is one orientation (a seeded shuffle, say) in one sample.

    Returns:
        Tables with one row for each arm and grader: ``repeat``, ``orientation``, ``sample``,
        ``arm``, ``grader``, ``n_items``, ``n_rows``, ``accuracy`` with its interval over items,
        ``accuracy_decided``, ``other_rate``; and the aggregate with ``n_repeats`` and, over
        the repeats, ``accuracy_mean``, ``accuracy_std`` (population, a fraction),
        ``accuracy_lowest``, ``accuracy_highest``. An item with two options has two orders
        only: ``n_items`` falls in later repeats of a data set that holds such items.
    """
    whole = pd.DataFrame(
        [row for arm in arms for grader in arm.graders for row in _repeats(arm, grader)]
    )
    if not len(whole):
        return [], whole
    single = [part.reset_index(drop=True) for _, part in whole.groupby("repeat")]
    grouped = whole.groupby(["arm", "grader"], sort=False)["accuracy"]
    aggregate = pd.DataFrame(
        {
            "n_repeats": grouped.count(),
            "accuracy_mean": grouped.mean(),
            "accuracy_std": grouped.std(ddof=0),
            "accuracy_lowest": grouped.min(),
            "accuracy_highest": grouped.max(),
        }
    )
    return single, aggregate.reset_index()


def _repeats(arm: ArmResult, grader: str) -> list[dict[str, object]]:
    table = arm.read_by(grader)
    found: list[dict[str, object]] = []
    parts = table.groupby(["orientation", "repeat"], sort=True)
    for number, ((orientation, sample), part) in enumerate(parts):
        graded = rows_of(part).graded
        row: dict[str, object] = {
            "repeat": number,
            "orientation": orientation,
            "sample": sample,
            "arm": arm.name,
            "grader": grader,
            "n_items": part["item_id"].nunique(),
            "n_rows": len(part),
        }
        numbers = accuracies(graded)
        row |= {name: numbers[name].value for name in _NAMES}
        row |= {"accuracy_low": numbers["accuracy"].low, "accuracy_high": numbers["accuracy"].high}
        found.append(row)
    return found


def chosen_table(arms: Sequence[ArmResult]) -> pd.DataFrame:
    """How often each option and each slot is chosen: P(chosen), with both denominators.

    For preferences, where ``answer`` names the option that is asked about and no option is
    right. With every item in both orders a taste for a place takes nothing from P(option).

    Returns:
        One row for each arm, grader and thing chosen (``answer``; ``option 1``, ``option 2`` in
        the order of the data; ``slot 1``, ... on the page): ``p_chosen`` over all graded rows,
        where a refusal chooses nothing, and ``p_chosen_named`` over those that name an
        option, each with its interval over items; None where undefined.
    """
    return pd.DataFrame(
        [
            {"arm": arm.name, "grader": grader, **row}
            for arm in arms
            for grader in arm.graders
            for row in _chosen(rows_of(arm.read_by(grader)).graded)
        ]
    )


def _chosen(rows: Rows) -> list[dict[str, object]]:
    n_options = int(rows.n_options.max(initial=0))
    things = {"answer": (rows.slot == rows.gold_slot) & (rows.slot != NONE)}
    things |= {f"option {place + 1}": rows.choice == place for place in range(n_options)}
    things |= {f"slot {place + 1}": rows.slot == place for place in range(n_options)}
    everyone, named = rows.per_item(), rows.per_item(rows.choice != NONE)
    table = []
    for what, chosen in things.items():
        part = rows.per_item(chosen)
        row: dict[str, object] = {"chosen": what}
        for column, whole in (("p_chosen", everyone), ("p_chosen_named", named)):
            # A judge that names no option says nothing about which one was chosen.
            unnamed = Measured(None, reason=rows.nameless)
            share = unnamed if rows.nameless else ratio(part, whole).measured()
            row |= {column: share.value, f"{column}_low": share.low, f"{column}_high": share.high}
        table.append(row)
    return table


def temperature_table(arms: Sequence[ArmResult]) -> pd.DataFrame:
    """One point for each arm: accuracy with its interval, as the most believed grader has it.

    Returns:
        ``arm``, ``model``, ``variant``, ``temperature``, ``read_by``, ``accuracy``, ``low``,
        ``high``; as `mlflow_mcq.plots.temperature_figure` takes them.
    """
    points = []
    for arm in arms:
        grader = arm.main_grader
        point: dict[str, object] = {
            "arm": arm.name,
            "model": arm.model,
            "variant": arm.variant,
            "temperature": arm.temperature,
            "read_by": grader,
        }
        ends = {"accuracy": "", "low": "_low", "high": "_high"}
        point |= {name: arm.metrics.get(f"{grader}/accuracy{end}") for name, end in ends.items()}
        points.append(point)
    return pd.DataFrame(points)
