"""What is put on record of a comparison, in a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import pandas as pd

from mlflow_mcq import plots
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.arm_rows import arm_numbers, arms_table
from mlflow_mcq.experiment.rankings import comparison_numbers
from mlflow_mcq.experiment.spec import Recipe
from mlflow_mcq.experiment.views import chosen_table, repeat_tables, temperature_table
from mlflow_mcq.forecast import Cost
from mlflow_mcq.tracking import RunLog

__all__ = ["record"]


def record(
    log: RunLog, recipe: Recipe, results: Sequence[ArmResult], costs: Sequence[Cost]
) -> None:
    """Log the table of arms, the numbers of the comparison, and what the recipe asks for.

    Args:
        log: The run of the comparison.
        recipe: What was run.
        results: Its arms.
        costs: What was said before the start.
    """
    log.table("mcq_arms", arms_table(results, recipe.baseline))
    summary = comparison_numbers(results)
    log.metrics(summary.values)
    reasons = {**summary.undefined, **summary.notes}
    lacking: dict[tuple[str, str], list[str]] = {}
    for name, numbers in arm_numbers(results, recipe.baseline).items():
        for key, why in numbers.undefined.items():
            lacking.setdefault((key, why), []).append(name)
    # One line for all arms of a sweep that lack a number for one reason.
    reasons |= {f"{key} of {', '.join(names)}": why for (key, why), names in lacking.items()}
    rows = [
        {"metric": name, "value": summary.values.get(name), "note": reasons.get(name, "")}
        for name in {**summary.values, **reasons}
    ]
    log.table("mcq_comparison", pd.DataFrame(rows, columns=["metric", "value", "note"]))
    if costs:
        shown = pd.DataFrame([asdict(cost) for cost in costs]).drop(columns="judge")
        log.table("mcq_cost", shown)
    for name in recipe.tables:
        _TABLES[name](log, results)
    for name in recipe.figures:
        _FIGURES[name](log, results)


def _repeats(log: RunLog, results: Sequence[ArmResult]) -> None:
    single, aggregate = repeat_tables(results)
    for number, table in enumerate(single):
        log.table(f"mcq_repeat_{number}", table)
    log.table("mcq_repeats", aggregate)


def _chosen(log: RunLog, results: Sequence[ArmResult]) -> None:
    log.table("mcq_chosen", chosen_table(results))


def _temperature(log: RunLog, results: Sequence[ArmResult]) -> None:
    points = temperature_table(results)
    log.table("mcq_temperature", points)
    log.figure("mcq_temperature_chart", plots.temperature_figure(points, "Accuracy by temperature"))


_Writer = Callable[[RunLog, Sequence[ArmResult]], None]
_TABLES: dict[str, _Writer] = {"repeats": _repeats, "chosen": _chosen}
_FIGURES: dict[str, _Writer] = {"temperature": _temperature}
