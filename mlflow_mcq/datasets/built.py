"""Built data sets: sources that are made instead of read.

A recipe names one where it would name a file, as a short text or with its arguments:

====================================  =================================================
``nonsense``, ``nonsense:200``        `nonsense_items`, with its number of items
``analogy:questions-words.txt``       `analogy_items`, with its pairs file
``{nonsense: {n: 200, words: f}}``    any argument by name
``{analogy: {pairs: f, seed: 1}}``    the same
====================================  =================================================
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.analogies import analogy_items
from mlflow_mcq.datasets.nonsense import nonsense_items
from mlflow_mcq.datasets.scheme import SCHEME
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.given_path import home_path, is_address
from mlflow_mcq.nearest import known_names

__all__ = ["BUILDERS", "built_frame", "built_name", "located"]

BUILDERS: dict[str, Callable[..., pd.DataFrame]] = {
    "nonsense": nonsense_items,
    "analogy": analogy_items,
}
"""What makes a data set, by name."""

_FILES = {"nonsense": "words", "analogy": "pairs"}
"""The argument of each that may be a path."""


def built_name(source: object) -> str | None:
    """The builder that a source names; None for anything that is no built set.

    Example:
        >>> built_name("nonsense:200"), built_name({"analogy": {}}), built_name("items.jsonl")
        ('nonsense', 'analogy', None)
    """
    if isinstance(source, Mapping):
        (name,) = source if len(source) == 1 else ("",)
        return name if name in BUILDERS else None
    name = source.partition(":")[0] if isinstance(source, str) else ""
    return name if name in BUILDERS else None


def built_frame(source: object) -> pd.DataFrame:
    """Make a built data set.

    Raises:
        SettingsError: There is no such builder, or an argument is not one of its own.
        DataError: Its words or pairs cannot be read.

    Example:
        >>> len(built_frame({"nonsense": {"n": 5}}))
        5
    """
    name, arguments = _call(source)
    legal = inspect.signature(BUILDERS[name]).parameters
    for word in arguments:
        if word not in legal:
            raise SettingsError(
                f"data.{name}.{word}", "is unknown", possible=known_names(word, legal)
            )
    if name == "analogy" and not arguments.get("pairs"):
        raise SettingsError(
            "data.analogy.pairs", "must name a pairs file", possible='As "analogy:pairs.txt".'
        )
    return BUILDERS[name](**arguments)


def located(source: Any, folder: Path) -> Any:
    """A source with the path in it taken as relative to a folder.

    Args:
        source: A text or mapping, as in a recipe.
        folder: That of the recipe.

    Example:
        >>> located("nonsense:20", Path("recipes"))
        {'nonsense': {'n': 20}}
    """
    if isinstance(source, str) and (source.startswith(SCHEME) or is_address(source)):
        return source  # the latter is refused where it is read, as it was written
    if built_name(source) is None:
        if not isinstance(source, str):
            return source
        return str(folder / home_path(source, "data", DataError))
    name, arguments = _call(source)
    file = arguments.get(_FILES[name])
    if isinstance(file, str) and file:
        arguments = {**arguments, _FILES[name]: str(folder / file)}
    return {name: arguments}


def _call(source: Any) -> tuple[str, dict[str, Any]]:
    name = built_name(source)
    if name is None:
        raise SettingsError("data", f"must be a file, or one of {', '.join(BUILDERS)}", source)
    if isinstance(source, Mapping):
        given = source[name]
        if given is not None and not isinstance(given, Mapping):
            raise SettingsError(f"data.{name}", "must be a mapping of names to values", given)
        return name, {str(word): value for word, value in (given or {}).items()}
    rest = source.partition(":")[2]
    if name == "nonsense" and rest:
        if not re.fullmatch(r"[1-9][0-9]{0,6}", rest):
            raise SettingsError("data", "must name a number of items", source, 'As "nonsense:200".')
        return name, {"n": int(rest)}
    return name, {_FILES[name]: rest} if rest else {}
