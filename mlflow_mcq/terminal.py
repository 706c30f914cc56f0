"""What a person sees in the terminal at the end of a recipe."""

from __future__ import annotations

from collections.abc import Sequence

import mlflow
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlflow_mcq.recipe import ArmResult

__all__ = ["show_results"]

_COLUMNS = {
    "accuracy": "accuracy",
    "decided": "accuracy_decided",
    "OTHER": "other_rate",
    "judge errors": "judge_error_rate",
    "lowest": "accuracy_lowest",
    "highest": "accuracy_highest",
    "consistent": "consistency",
    "slot 1": "pick_rate_slot_1",
}


def show_results(results: Sequence[ArmResult], console: Console | None = None) -> None:
    """Print the arms side by side, their alarms, and how to open the UI."""
    console = console or Console()
    table = Table(title="Arms, by grader (fractions; lowest and highest over orientations)")
    table.add_column("arm")
    table.add_column("read by")
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for result in results:
        for grader in _graders(result):
            cells = [_cell(result.metrics.get(f"{grader}/{key}")) for key in _COLUMNS.values()]
            table.add_row(escape(result.name), grader, *cells)
    console.print(table)
    for result in results:
        if result.alarms != "none":
            console.print(f"[bold]alarms[/bold] of {escape(result.name)}: {result.alarms}")
    console.print(_ui_line(), soft_wrap=True)


def _graders(result: ArmResult) -> list[str]:
    names = [key.partition("/")[0] for key in result.metrics if key.endswith("/accuracy_lowest")]
    return sorted(names, key=lambda name: name != "judge")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ui_line() -> str:
    uri = mlflow.get_tracking_uri()
    if uri.startswith("http"):
        return f"Look at the arms: {uri}"
    return f"Look at the arms: mlflow ui --backend-store-uri {uri}"
