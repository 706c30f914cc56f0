"""Commands that need no model: grade stored answers, examine a judge, lint items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from mlflow_mcq.cli.options import (
    columns_of,
    judge_of,
    judge_options,
    named_columns,
    options,
)
from mlflow_mcq.cli.said import Outcome, spoken
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.judge_settings import refuse_idle
from mlflow_mcq.nearest import known_names

__all__ = ["exam", "grade", "lint"]

_STORED_BY = ("lm-eval", "inspect", "twinkle")


@click.command()
@click.argument("file")
@named_columns
@judge_options
@options({
    "evaluators": "Names with commas between them; mcq_judge with a judge, else mcq_regex.",
    "stored-by": "The harness that wrote the file: lm-eval, inspect or twinkle.",
    "run-name": "Name of the run.",
})  # fmt: skip
@spoken
def grade(
    file: str, column: Sequence[str], evaluators: str, stored_by: str, run_name: str, **given: str
) -> Outcome:
    """Grade FILE: stored answers, with the columns question, options, answer, generation.

    The answers are read as they stand; no model is asked, except for the judge.

    \b
    mlflow-mcq grade answers.csv
    mlflow-mcq grade quiz.csv --column question=Frage --column options=opt1,opt2,opt3 \\
        --column answer=richtig --column answer_as=number --column generation=Antwort
    mlflow-mcq grade samples_arc_2026.jsonl --stored-by lm-eval \\
        --judge-model my-judge --judge-url http://localhost:8000/v1
    """
    import mlflow

    from mlflow_mcq.experiment.arm_result import ArmResult
    from mlflow_mcq.front import evaluate
    from mlflow_mcq.terminal import show_results

    judge = judge_of(given)
    names = [name.strip() for name in evaluators.split(",") if name.strip()]
    names = names or ["mcq_judge" if judge else "mcq_regex"]
    refuse_idle("judge-model", judge, names)
    columns = columns_of(column)
    data = _stored(file, stored_by)
    with mlflow.start_run(run_name=run_name or None) as opened:
        result = evaluate(None, data, judge, evaluators=names, **columns)
    arm = ArmResult.of_run(opened.info.run_id, result.metrics, run_name or file)
    said = {"run_id": arm.run_id, "alarms": arm.alarms, "metrics": {**arm.metrics}}
    return Outcome(said, lambda: show_results([arm]))


def _stored(file: str, by: str) -> Any:
    if not by:
        return file
    if by not in _STORED_BY:
        raise SettingsError("stored-by", "must name a harness", by, known_names(by, _STORED_BY))
    from mlflow_mcq.importers.inspect_log import from_inspect_log
    from mlflow_mcq.importers.lm_eval import from_lm_eval_samples
    from mlflow_mcq.importers.twinkle import from_twinkle

    readers: tuple[Callable[[str], Any], ...] = (
        from_lm_eval_samples, from_inspect_log, from_twinkle,
    )  # fmt: skip
    return readers[_STORED_BY.index(by)](file)


@click.command()
@judge_options
@options({"cache-dir": "Folder where the judge's answers are kept."})
@spoken
def exam(cache_dir: str, **given: str) -> Outcome:
    """Measure a judge on the shipped exam of labelled replies; exit with 1 if unreliable.

    \b
    mlflow-mcq exam --judge-model my-judge --judge-url http://localhost:8000/v1
    """
    from mlflow_mcq.exam_door import examine_judge

    judge = judge_of(given)
    if judge is None:
        raise JudgeNotConfigured
    report = examine_judge(judge, cache_dir=cache_dir or None)
    numbers = report.numbers()
    wide = max(map(len, (*numbers, *report.undefined())))
    lines = [f"{name:<{wide}}{value:8.3f}" for name, value in numbers.items()]
    lines += [f"{name:<{wide}}       -  {why}" for name, why in report.undefined().items()]
    lines += [f"not read: {n} of {report.n_replies}, {why}" for why, n in report.failures]
    lines += ["reliable" if report.reliable else "NOT RELIABLE: " + "; ".join(report.shortfalls)]
    data = {
        "reliable": report.reliable, "shortfalls": list(report.shortfalls), "numbers": numbers,
        "undefined": report.undefined(),
        "failures": [{"why": why, "n_replies": n} for why, n in report.failures],
    }  # fmt: skip
    return Outcome(data, lambda: click.echo("\n".join(lines)), 0 if report.reliable else 1)


@click.command()
@click.argument("data")
@options({"split": "Of a hub data set.", "layout": "A native layout; detected if left out."})
@named_columns
@spoken
def lint(data: str, column: Sequence[str], split: str, layout: str) -> Outcome:
    """Look for faults in the items of DATA; exit with 1 if there are any.

    \b
    mlflow-mcq lint items.csv
    mlflow-mcq lint quiz.csv --column question=Frage --column answer=richtig
    mlflow-mcq lint hf:allenai/ai2_arc:ARC-Challenge --split test
    """
    from mlflow_mcq.datasets.lint import lint_items

    asked = {**columns_of(column), **({"layout": layout} if layout else {})}
    report = lint_items(data, split=split or None, **asked)
    found = report.findings

    def show() -> None:
        click.echo(report.said)
        for one in found.itertuples(index=False):
            click.echo(f"{one.item}: {one.rule}: {one.detail}")
        click.echo(str(report))

    said = {
        "read_as": report.said, "findings": found.to_dict("records"),
        "numbers": report.numbers, "undefined": report.undefined,
    }  # fmt: skip
    return Outcome(said, show, 1 if len(found) else 0)
