"""What a person sees in the terminal at the end of a recipe."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import mlflow
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlflow_mcq.chance import chance_said
from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.forecast import Cost, said
from mlflow_mcq.generation import ArmRows
from mlflow_mcq.recipe import ArmResult

__all__ = ["show_comparison", "show_costs", "show_results", "show_rows", "ui_command"]

_COLUMNS = {
    "acc": "accuracy",
    "decided": "accuracy_decided",
    "OTHER": "other_rate",
    "errors": "judge_error_rate",
    "slot 1": "pick_rate_slot_1",
    "same": "consistency",
}
_LEGEND = (
    "Fractions. decided: accuracy without OTHER; errors: rows without a verdict; slot 1: how "
    "often the first slot is picked; same: items with one answer in every orientation; range: "
    "of accuracy over orientations."
)


def show_results(results: Sequence[ArmResult], console: Console | None = None) -> None:
    """Print the arms side by side, their alarms, their runs, and how to open the UI."""
    console = console or _plain()
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    # Where a page is narrow names go on in the next line: a number that is cut is no number.
    table.add_column("arm", overflow="fold")
    table.add_column("read by", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True, min_width=max(4, len(name)))
    table.add_column("range", justify="right", no_wrap=True, min_width=len("0.00-0.00"))
    for result in results:
        for grader in _graders(result):
            cells = [_cell(result.metrics.get(f"{grader}/{key}")) for key in _COLUMNS.values()]
            ends = [
                _cell(result.metrics.get(f"{grader}/accuracy_{end}"))
                for end in ("lowest", "highest")
            ]
            # One orientation has no range.
            shown = "-" if set(ends) == {"-"} else "-".join(ends)
            table.add_row(escape(result.name), grader, *cells, shown)
    console.print(table)
    console.print(_LEGEND, style="dim")
    for result in results:
        for line in chance_said(result.metrics):
            console.print(f"{escape(result.name)}: {escape(line)}", soft_wrap=True, highlight=False)
        if result.alarms != "none":
            console.print(f"[bold]alarms[/bold] of {escape(result.name)}: {result.alarms}")
    for result in results:
        line = f"run of {escape(result.name)}: {result.run_id}"
        console.print(line, soft_wrap=True, highlight=False)
    console.print(_ui_line(), soft_wrap=True)


def show_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print what a comparison has found, and where to read more."""
    console = console or _plain()
    for arm, line in found.headlines.items():
        console.print(escape(line), soft_wrap=True, highlight=False)
        if found.alarms[arm]:
            console.print(f"  [bold]alarms[/bold]: {', '.join(found.alarms[arm])}", soft_wrap=True)
    for line in _alarms_of_arms(found):
        console.print(f"[bold]alarms[/bold] of {escape(line)}", soft_wrap=True, highlight=False)
    console.print(
        f"Comparison: run {found.run_id}, read by {found.read_by}; open mcq_report.html",
        soft_wrap=True,
        highlight=False,
    )
    console.print(_ui_line(), soft_wrap=True)


def _alarms_of_arms(found: Comparison) -> list[str]:
    """What fired in the arms themselves, arms of the same alarms together."""
    fired: dict[tuple[str, ...], list[str]] = {}
    for arm, names in found.alarms_of_arms.items():
        if names:
            fired.setdefault(names, []).append(arm)
    n_arms = len(found.alarms_of_arms)
    whole = "both arms" if n_arms == 2 else f"all {n_arms} arms"
    return [
        f"{whole if len(arms) == n_arms else ', '.join(arms)}: {', '.join(names)}"
        for names, arms in fired.items()
    ]


def show_costs(costs: Sequence[Cost], console: Console | None = None) -> None:
    """Print what a recipe will ask for, then each arm in a row of a table."""
    console = console or _plain()
    console.print(escape(said(costs)[0]), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("arm", no_wrap=True)
    for name in ("prompts", "distinct", "tokens", "unique", "shared", "judge calls", "s", "GB"):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in costs:
        counts = (cost.n_prompts, cost.n_distinct, cost.n_tokens, cost.n_unique, cost.n_shared)
        ends = dict.fromkeys((f"{cost.n_judge_calls:,}", f"{cost.n_judge_calls_most:,}"))
        calls = "-".join(ends) if cost.judge else "-"
        seconds = "-" if cost.seconds is None else "-".join(f"{n:,.0f}" for n in cost.seconds)
        memory = "-" if cost.device_bytes is None else f"{cost.device_bytes / 1e9:.2g}"
        table.add_row(escape(cost.arm), *(f"{n:,}" for n in counts), calls, seconds, memory)
    console.print(table)
    if any(cost.n_probed for cost in costs):
        console.print("s, GB: estimates of generation, from a few prompts.", style="dim")


def show_rows(made: Sequence[ArmRows], console: Console | None = None) -> None:
    """Print for each arm how many rows were there, were made, and have no answer."""
    console = console or _plain()
    for one in made:
        name = escape(one.name)
        if one.skipped:
            console.print(f"{name}: nothing is generated ahead, since {one.skipped}")
            continue
        n_made = one.n_rows - one.n_found - one.n_missing
        lost = f", {one.n_missing} have no answer" if one.n_missing else ""
        console.print(f"{name}: {one.n_rows} rows, {one.n_found} found, {n_made} made{lost}")


def _graders(result: ArmResult) -> list[str]:
    # Every grader has one of these, also over one orientation, and where all its calls failed.
    told = ("/other_rate", "/judge_error_rate")
    names = dict.fromkeys(key.partition("/")[0] for key in result.metrics if key.endswith(told))
    return sorted(names, key=lambda name: name != "judge")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _plain() -> Console:
    # Without emoji: rich makes 🅰 of the ":A:" in an arm named `gold=all-at:A: as-is`.
    return Console(emoji=False)


def ui_command() -> str:
    """What opens MLflow's pages: an address, or the command that starts the server."""
    uri = mlflow.get_tracking_uri()
    return uri if uri.startswith("http") else f"mlflow ui --backend-store-uri {shlex.quote(uri)}"


def _ui_line() -> str:
    return f"Look at the arms: {ui_command()}"
