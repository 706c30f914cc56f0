"""Commands over finished runs: compare arms, read their answers again, look at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from mlflow_mcq.cli.compared import comparison_data, gate, share_of
from mlflow_mcq.cli.options import GATES, judge_of, judge_options, options
from mlflow_mcq.cli.said import Outcome, spoken
from mlflow_mcq.errors import SettingsError

__all__ = ["compare", "regrade", "ui_hint"]

_N = TypeVar("_N", int, float)

_COMPARED = {
    "runs": "The same run ids, separated by commas.",
    "experiment": "Instead of runs: an experiment, all of whose finished arms are compared.",
    "filter": "MLflow filter over its runs.",
    "baseline": "Run id or name of the arm to compare with; the first one if left out.",
    "force": "yes: compare arms of different judges, marked as such.",
    "trace-rows": "Rows of each arm to log as traces; 0 for none.",
    **GATES,
}


@click.command()
@click.argument("run_ids", nargs=-1)
@options(_COMPARED)
@spoken
def compare(run_ids: tuple[str, ...], runs: str, **given: str) -> Outcome:
    """Compare finished arms, the runs RUN_IDS, with the first of them.

    \b
    mlflow-mcq compare 3f2a... 8c01... --fail-if-worse 0.02
    mlflow-mcq compare --experiment "my arms" --baseline base
    """
    from mlflow_mcq.comparison.compare import TRACE_ROWS
    from mlflow_mcq.comparison.compare import compare as compare_arms
    from mlflow_mcq.terminal import show_comparison

    loss = share_of(given["fail_if_worse"])
    named = [*run_ids, *filter(None, runs.split(","))]
    found = compare_arms(
        [run.strip() for run in named] or None,
        experiment=given["experiment"] or None,
        filter=given["filter"],
        baseline=given["baseline"] or None,
        force=_yes(given["force"]),
        trace_rows=_number(given["trace_rows"], "--trace-rows", int, TRACE_ROWS),
    )
    code, said = gate(found, loss)

    def show() -> None:
        show_comparison(found)
        if said:
            click.echo(f"error: {said}", err=True)

    return Outcome({**comparison_data(found), "failed": said}, show, code)


@click.command()
@click.argument("run_id")
@judge_options
@options({"only": "all, errors, or verdicts such as INCORRECT,OTHER."})
@spoken
def regrade(run_id: str, only: str, **given: str) -> Outcome:
    """Read the stored answers of RUN_ID again, without inference, into a new run.

    \b
    mlflow-mcq regrade 3f2a... --only errors \\
        --judge-model my-judge --judge-url http://localhost:8000/v1
    """
    from mlflow_mcq.experiment.arm_result import ArmResult
    from mlflow_mcq.regrading import regrade as read_again
    from mlflow_mcq.terminal import show_results

    result = read_again(run_id, judge_of(given), only=only or "all")
    # Where there was nothing to read the run is the old one.
    name = "as it was" if result.run_id == run_id else "regraded"
    arm = ArmResult.of_run(result.run_id, result.metrics, name)
    data = {"run_id": arm.run_id, "alarms": arm.alarms, "metrics": {**arm.metrics}}
    return Outcome(data, lambda: show_results([arm]))


@click.command(name="ui-hint")
@spoken
def ui_hint() -> Outcome:
    """Say how to open MLflow's pages here, and what to look at first."""
    import mlflow

    from mlflow_mcq.terminal import ui_command

    command = ui_command()
    pages = {
        "Runs, then Chart view": "one row an arm; <grader>/accuracy beside <grader>/other_rate",
        "Runs, columns": "params that differ between arms; tags mcq.alarms and mcq.status",
        "a run, Artifacts, mcq_grades": "every row, those on which graders differ first",
        "a comparison run, mcq_report.html": "which arm is better, by how much, and the alarms",
        "Evaluation runs, two arms selected": "the same rows side by side",
    }
    data = {"tracking_uri": mlflow.get_tracking_uri(), "open": command, "pages": pages}
    lines = [command, "", *(f"{page}\n    {what}" for page, what in pages.items())]
    return Outcome(data, lambda: click.echo("\n".join(lines)))


def _yes(text: str) -> bool:
    words = {"": False, "no": False, "false": False, "yes": True, "true": True}
    if text.lower() not in words:
        raise SettingsError("--force", "must be yes or no", text)
    return words[text.lower()]


def _number(text: str, name: str, kind: Callable[[str], _N], default: _N) -> _N:
    try:
        return kind(text) if text else default
    except ValueError:
        raise SettingsError(name, "must be a number", text) from None
