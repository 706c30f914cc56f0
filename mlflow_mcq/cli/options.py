"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from mlflow_mcq.errors import SettingsError

__all__ = [
    "GATES",
    "OVERRIDES",
    "columns_of",
    "judge_of",
    "judge_options",
    "named_columns",
    "options",
    "over_the_recipe",
]

_C = TypeVar("_C", bound=Callable[..., Any])

_JUDGE = {
    "judge-model": "The judge's name at its server, or its weights for a local judge.",
    "judge-url": 'OpenAI-compatible server of the judge, or "local".',
    "judge-key-env": "Name of the environment variable that holds the judge's key.",
}

GATES = {"fail-if-worse": "Exit with 1 if an arm loses more accuracy than this, beyond chance."}

OVERRIDES = {
    "model": "Model of every arm: demo:smollm2, a folder, a hub name or a models:/ URI.",
    **_JUDGE,
    "data": "Data file (.jsonl, .json, .csv, .parquet) or a built set (nonsense:1000).",
    "limit": "Number of items, drawn with the recipe's seed.",
    "orientations": "as-is, swap, rotations, rotations:k, shuffles:k, gold-at:k:swap or "
    "gold-at:k:rotation.",
}
"""What may be put over a recipe; an empty value leaves the recipe as it is."""


def options(named: Mapping[str, str], metavar: str = "X") -> Callable[[_C], _C]:
    """Text options by name and help; left out they are empty, as MLproject passes them."""

    def decorate(command: _C) -> _C:
        for name, text in reversed(list(named.items())):
            command = click.option(f"--{name}", default="", metavar=metavar, help=text)(command)
        return command

    return decorate


over_the_recipe = options(OVERRIDES)
judge_options = options(_JUDGE)
named_columns = click.option(
    "--column",
    multiple=True,
    metavar="NOUN=NAME",
    help="Where a thing stands in the file, as in question=Frage, answer=richtig, "
    "options=opt1,opt2,opt3 or answer_as=number; once for each.",
)


def columns_of(given: Sequence[str]) -> dict[str, Any]:
    """The setting ``columns`` out of a command's options; nothing where none is given.

    Raises:
        SettingsError: A text is no pair.

    Example:
        >>> columns_of(["question=Frage", "options=opt1,opt2"])
        {'columns': {'question': 'Frage', 'options': ['opt1', 'opt2']}}
        >>> columns_of([])
        {}
    """
    found: dict[str, Any] = {}
    for pair in given:
        noun, sign, name = pair.partition("=")
        if not sign or not noun or not name:
            raise SettingsError("column", "must be NOUN=NAME", pair, "As in question=Frage.")
        if noun in found:
            raise SettingsError("column", "is given twice for one noun", noun)
        found[noun] = name.split(",") if noun == "options" and "," in name else name
    return {"columns": found} if found else {}


def judge_of(given: Mapping[str, str]) -> dict[str, str] | None:
    """The judge's three names out of a command's options; None where none is given.

    Example:
        >>> judge_of({"judge_model": "m", "judge_url": "", "judge_key_env": ""})
        {'model': 'm'}
    """
    from mlflow_mcq.judge_settings import JUDGE_WORDS

    return {name: given[key] for key, name in JUDGE_WORDS.items() if given.get(key)} or None
