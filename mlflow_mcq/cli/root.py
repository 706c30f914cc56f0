"""The group of all commands, and what their errors look like."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import click

from mlflow_mcq.cli import arms, recipes, texts
from mlflow_mcq.errors import McqError

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = (
    recipes.run, recipes.cost, recipes.generate, recipes.recipes,
    arms.compare, arms.regrade, arms.ui_hint,
    texts.grade, texts.exam, texts.lint,
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mlflow-mcq")
def cli() -> None:
    """Multiple-choice evaluation for MLflow that you can trust.

    \b
    mlflow-mcq recipes                    what can be run
    mlflow-mcq run demo                   two arms of a small model, on a CPU
    mlflow-mcq grade answers.csv          read answers that you have
    mlflow-mcq compare RUN_ID RUN_ID      which arm is better, and is it real
    mlflow-mcq ui-hint                    where to look

    Exit codes: 0 success; 1 a failed evaluation, a gate, an unreliable judge or faults in
    items; 2 arguments, data, a model or a judge that cannot be used; 130 interrupted.
    Completion in bash:
    eval "$(_MLFLOW_MCQ_COMPLETE=bash_source mlflow-mcq)", and so in zsh and fish.
    """


for _command in COMMANDS:
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(args=args, prog_name="mlflow-mcq", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"interrupted; {_go_on(args)}", err=True)
        return 130
    except McqError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except Exception as error:
        if not _of_mlflow(error):
            raise
        click.echo(f"error: {error}", err=True)
        if isinstance(error.__cause__, McqError):  # ours, in MLflow's clothes
            return 2
        # A store that is away, and not a wrong setting.
        click.echo(f"once that is mended, {_go_on(args)}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _go_on(args: Sequence[str]) -> str:
    same = shlex.join([sys.executable, "-m", "mlflow_mcq", *args])
    return f"to go on, run the same again:\n  {same}"


def _of_mlflow(error: Exception) -> bool:
    # Imported here: MLflow takes seconds to load, and `--help` must not wait for it.
    from mlflow.exceptions import MlflowException

    return isinstance(error, MlflowException)
