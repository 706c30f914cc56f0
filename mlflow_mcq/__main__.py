"""Command line: ``python -m mlflow_mcq run recipe.yaml``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlflow_mcq.errors import McqError, SettingsError

_N = TypeVar("_N", int, float)

_OVERRIDES = {
    "model": "model of every arm: demo:smollm2, a folder, a hub name or a models:/ URI",
    "judge-model": "the judge's name at its server, or its weights for a local judge",
    "judge-url": 'OpenAI-compatible server of the judge, or "local"',
    "judge-key-env": "name of the environment variable that holds the judge's key",
    "data": "data file (.jsonl, .json, .csv, .parquet) or a built set (nonsense:1000)",
    "limit": "number of items, drawn with the recipe's seed",
    "orientations": "as-is, swap, rotations, rotations:k or shuffles:k",
}


_COMPARED = {
    "runs": "the same run ids, separated by commas",
    "experiment": "instead of runs: an experiment, all of whose finished arms are compared",
    "filter": "MLflow filter over its runs",
    "baseline": "run id or name of the arm to compare with; the first one if left out",
    "force": "yes: compare arms of different judges, marked as such",
    "trace-rows": "rows of each arm to log as traces; 0 for none",
    "fail-if-worse": "fail if an arm loses more accuracy than this fraction, beyond chance",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 is success, 1 a failed evaluation, 2 unusable arguments, 130 Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m mlflow_mcq", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run every arm of a recipe")
    run.add_argument("recipe", help="a YAML file, such as recipes/demo.yaml")
    ahead = commands.add_parser("generate", help="make the rows of a recipe ahead of its run")
    ahead.add_argument(
        "recipe", help="the same; under torchrun or accelerate launch all ranks help"
    )
    for name, text in _OVERRIDES.items():
        run.add_argument(f"--{name}", default="", metavar="X", help=text)
        ahead.add_argument(f"--{name}", default="", metavar="X", help=text)
    text = "processes that generate: a number, or auto for one on each GPU"
    run.add_argument("--num-processes", default="", metavar="N", help=text)
    again = commands.add_parser("regrade", help="read the stored answers of a run again")
    again.add_argument("run_id", help="a run of one of our evaluators")
    for name in ("judge-model", "judge-url", "judge-key-env"):
        again.add_argument(f"--{name}", default="", metavar="X", help=_OVERRIDES[name])
    text = "all, errors, or verdicts such as INCORRECT,OTHER"
    again.add_argument("--only", default="all", metavar="X", help=text)
    _add_compare(commands.add_parser("compare", help="compare finished arms"))
    given = vars(parser.parse_args(arguments))
    command = given.pop("command")
    try:
        return _reported(_COMMANDS[command], given)
    except KeyboardInterrupt:
        words = sys.argv[1:] if arguments is None else arguments
        same = shlex.join([sys.executable, "-m", "mlflow_mcq", *words])
        print(f"interrupted; to go on, run the same again:\n  {same}", file=sys.stderr)
        return 130


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_ids", nargs="*", help="runs of our evaluators, the baseline first")
    for name, text in _COMPARED.items():
        parser.add_argument(f"--{name}", default="", metavar="X", help=text)


def _reported(command: Callable[[dict[str, Any]], None], given: dict[str, Any]) -> int:
    from mlflow.exceptions import MlflowException

    try:
        command(given)
    except (McqError, MlflowException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, McqError) else 1
    return 0


def _generate(given: dict[str, str]) -> None:
    _make_rows(given.pop("recipe"), given)


def _make_rows(recipe: str, given: dict[str, str]) -> bool:
    """Make all rows, with every process that was launched; whether this is the main one."""
    from mlflow_mcq.generation import generate_recipe
    from mlflow_mcq.ranks import leave_ranks, present_ranks
    from mlflow_mcq.terminal import show_rows

    made = generate_recipe(recipe, given)
    is_main = present_ranks().is_main
    if is_main:
        show_rows(made)
    leave_ranks()
    return is_main


def _run(given: dict[str, str]) -> None:
    from mlflow_mcq.launch import launch_generation, number_of_processes
    from mlflow_mcq.ranks import launched_ranks
    from mlflow_mcq.recipe import load_recipe, run_recipe
    from mlflow_mcq.terminal import show_results

    n_processes = number_of_processes(given.pop("num_processes"))
    recipe = given.pop("recipe")
    if n_processes > 1:
        load_recipe(recipe, given)  # refused once, and not by every process
        launch_generation(recipe, given, n_processes)
    elif launched_ranks() > 1 and not _make_rows(recipe, given):
        return  # grading and MLflow are the main process's
    show_results(run_recipe(recipe, given))


def _regrade(given: dict[str, str]) -> None:
    from mlflow_mcq.recipe import JUDGE_WORDS, ArmResult
    from mlflow_mcq.regrading import regrade
    from mlflow_mcq.terminal import show_results

    judge = {name: given[key] for key, name in JUDGE_WORDS.items() if given[key]}
    result = regrade(given["run_id"], judge or None, only=given["only"])
    show_results([ArmResult("regraded", result.run_id, result.metrics, "none")])


def _compare(given: dict[str, Any]) -> None:
    from mlflow_mcq.comparison.compare import TRACE_ROWS, compare
    from mlflow_mcq.comparison.gate import fail_if_worse
    from mlflow_mcq.terminal import show_comparison

    runs = [*given["run_ids"], *filter(None, given["runs"].split(","))]
    found = compare(
        [run.strip() for run in runs] or None,
        experiment=given["experiment"] or None,
        filter=given["filter"],
        baseline=given["baseline"] or None,
        force=_yes(given["force"]),
        trace_rows=_number(given["trace_rows"], "trace-rows", int, TRACE_ROWS),
    )
    show_comparison(found)
    if given["fail_if_worse"]:
        fail_if_worse(found, _number(given["fail_if_worse"], "fail-if-worse", float, 0.0))


def _yes(text: str) -> bool:
    words = {"": False, "no": False, "false": False, "yes": True, "true": True}
    if text.lower() not in words:
        raise SettingsError("force", "must be yes or no", text)
    return words[text.lower()]


def _number(text: str, name: str, kind: Callable[[str], _N], default: _N) -> _N:
    try:
        return kind(text) if text else default
    except ValueError:
        raise SettingsError(name, "must be a number", text) from None


_COMMANDS = {"run": _run, "generate": _generate, "regrade": _regrade, "compare": _compare}


if __name__ == "__main__":
    sys.exit(main())
