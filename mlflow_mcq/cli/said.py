"""What a command says at its end: lines for people, or one JSON document for machines."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["Outcome", "spoken"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command.

    Attributes:
        data: As ``--json`` prints it.
        show: Prints the same for a person.
        code: Exit code: 0 for success, 1 for a finding that should stop a pipeline.
    """

    data: Any
    show: Callable[[], None]
    code: int = 0


def spoken(command: Callable[..., Outcome]) -> Callable[..., None]:
    """Give a command ``--json``, and let it speak in one place only.

    With ``--json`` standard output is one document and nothing else: what libraries print
    on the way goes to standard error.
    """

    @click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
    @functools.wraps(command)
    def speaking(as_json: bool, **given: Any) -> None:
        if not as_json:
            outcome = command(**given)
            outcome.show()
        else:
            with contextlib.redirect_stdout(sys.stderr):
                outcome = command(**given)
            # NaN is not JSON: a number that does not exist is left out, never written.
            click.echo(json.dumps(outcome.data, ensure_ascii=False, indent=1, allow_nan=False))
        if outcome.code:
            raise click.exceptions.Exit(outcome.code)

    return speaking
