"""Command line: ``python -m mlflow_mcq run recipe.yaml``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mlflow_mcq.errors import McqError

_OVERRIDES = {
    "model": "model of every arm: demo:smollm2, a folder, a hub name or a models:/ URI",
    "judge-model": "the judge's name at its server, or its weights for a local judge",
    "judge-url": 'OpenAI-compatible server of the judge, or "local"',
    "judge-key-env": "name of the environment variable that holds the judge's key",
    "data": "data file (.jsonl, .json, .csv, .parquet)",
    "limit": "number of items, drawn with the recipe's seed",
    "orientations": "as-is, swap, rotations, rotations:k or shuffles:k",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 is success, 1 a failed evaluation, 2 unusable arguments."""
    parser = argparse.ArgumentParser(prog="python -m mlflow_mcq", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run every arm of a recipe")
    run.add_argument("recipe", help="a YAML file, such as recipes/demo.yaml")
    for name, text in _OVERRIDES.items():
        run.add_argument(f"--{name}", default="", metavar="X", help=text)
    given = vars(parser.parse_args(arguments))
    del given["command"]
    return _run(given.pop("recipe"), given)


def _run(recipe: str, overrides: dict[str, str]) -> int:
    from mlflow.exceptions import MlflowException

    from mlflow_mcq.recipe import run_recipe
    from mlflow_mcq.terminal import show_results

    try:
        results = run_recipe(recipe, overrides)
    except (McqError, MlflowException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, McqError) else 1
    show_results(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
