"""A recipe's file: YAML, loaded safely and only as far as a person could have written it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mlflow_mcq.errors import SettingsError

__all__ = ["read_recipe_file"]

_MOST_BYTES = 2**22
_MOST_VALUES = 1_000_000
# PyYAML raises nearly anything for a value that its tag does not fit, as "!!timestamp x".
_BROKEN = (
    yaml.YAMLError,
    ValueError,
    RecursionError,
    TypeError,
    AttributeError,
    LookupError,
)


def read_recipe_file(path: Path) -> dict[str, Any]:
    """The mapping that a recipe's file holds.

    Args:
        path: YAML. No tag of it makes anything but plain values.

    Raises:
        SettingsError: It cannot be read, is no mapping, is over 4 MiB, or its aliases make it
            hold itself or more than a million values: a few lines of them fill any memory.
    """
    given: Any
    who = f"recipe {str(path)!r}"
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise SettingsError(who, f"is larger than {_MOST_BYTES // 2**20} MiB", size)
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        said = f"{type(error).__name__}: {error.strerror}"  # its whole text repeats the path
        raise SettingsError(who, f"cannot be read ({said})") from None
    except yaml.MarkedYAMLError as error:
        # Not PyYAML's own message, which quotes the line: somebody's key may stand in it.
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise SettingsError(who, f"cannot be read ({where}{error.problem})") from None
    except _BROKEN as error:
        raise SettingsError(who, f"cannot be read ({type(error).__name__})") from None
    if _n_values(given) > _MOST_VALUES:
        raise SettingsError(who, "repeats itself by aliases to more than a million values")
    if not isinstance(given, dict):
        raise SettingsError(f"recipe {path.name!r}", "must be a mapping of names to values", given)
    return given


def _n_values(root: Any) -> float:
    """How many values there are, each counted wherever an alias repeats it.

    Returns:
        Infinity where a value holds itself.
    """
    known: dict[int, float] = {}
    stack = [(root, False)]
    while stack:
        value, seen = stack.pop()
        inside = _inside(value)
        if seen:
            known[id(value)] = 1 + sum(known[id(one)] for one in inside)
        elif id(value) not in known:
            known[id(value)] = float("inf")  # until it is counted: met again, it holds itself
            stack.append((value, True))
            stack += [(one, False) for one in inside]
    return known[id(root)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return [*value] if isinstance(value, (list, set, tuple)) else []
