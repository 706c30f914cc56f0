"""Grids: one arm for each combination of values, so that a sweep is a few lines.

A grid names what varies and its values, as a list or, for values too long to be part of a
name, as a mapping of short names to values::

    grid:
      temperature: [0.0, 0.6, 1.0]
      model: {base: my-org/base, tuned: out/checkpoint-900}
      few_shot.gold: [balanced, "all-at:A"]       # a part of a setting

In an arm it expands that arm; at the top of a recipe it expands every one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from mlflow_mcq.errors import SettingsError

__all__ = ["expanded"]

_LONGEST_LABEL = 40
_MOST_ARMS = 500
Axes = dict[str, dict[str, Any]]


def expanded(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without grids: every combination is an arm of its own.

    An arm that names its ``original`` inside a grid over the whole recipe means the one with
    the same values.

    Args:
        recipe: As read from its file.

    Raises:
        SettingsError: A grid is no mapping, has no values, or makes more than 500 arms.

    Example:
        >>> arms = expanded({"arms": [{"name": "a", "grid": {"seed": [1, 2]}}]})["arms"]
        >>> [(arm["name"], arm["seed"]) for arm in arms]
        [('a seed=1', 1), ('a seed=2', 2)]
    """
    whole = {name: value for name, value in recipe.items() if name != "grid"}
    arms = recipe.get("arms")
    if not isinstance(arms, list):
        return whole
    shared = _axes(recipe.get("grid"))
    found = []
    for chosen, suffix in _combinations(shared):
        for arm in arms:
            if not isinstance(arm, dict):
                found.append(arm)  # refused with the rest of the recipe
                continue
            for own, own_suffix in _combinations(_axes(arm.get("grid"))):
                found.append(_arm(arm, whole, {**chosen, **own}, (suffix, own_suffix)))
                if len(found) > _MOST_ARMS:
                    raise SettingsError("grid", f"makes more than {_MOST_ARMS} arms")
    return {**whole, "arms": found}


def _axes(grid: Any) -> Axes:
    if grid is None:
        return {}
    if not isinstance(grid, Mapping) or not grid:
        raise SettingsError("grid", "must be a mapping of what varies to its values", grid)
    return {str(name): _values(str(name), values) for name, values in grid.items()}


def _values(name: str, values: Any) -> dict[str, Any]:
    if isinstance(values, Mapping) and values:
        return {str(label): value for label, value in values.items()}
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise SettingsError(f"grid.{name}", "must be a list, or short names with values", values)
    labels = [str(value) for value in values]
    for label, value in zip(labels, values, strict=True):
        if isinstance(value, (Mapping, list)) or len(label) > _LONGEST_LABEL:
            raise SettingsError(
                f"grid.{name}",
                "holds a value too long to be part of a name",
                value,
                "Give names: {short: value, other: value}.",
            )
        if name == "data":
            raise SettingsError("grid.data", "must give each source a name", values)
    if len(set(labels)) < len(labels):
        raise SettingsError(f"grid.{name}", "holds a value twice", values)
    return dict(zip(labels, values, strict=True))


def _combinations(axes: Axes) -> Iterator[tuple[dict[str, Any], str]]:
    for labels in product(*axes.values()):
        chosen = {name: axes[name][label] for name, label in zip(axes, labels, strict=True)}
        named = [f"{name}={label}" for name, label in zip(axes, labels, strict=True)]
        yield chosen, "".join(f" {text}" for text in named)


def _arm(
    arm: Mapping[str, Any],
    recipe: Mapping[str, Any],
    chosen: Mapping[str, Any],
    suffixes: tuple[str, str],
) -> dict[str, Any]:
    shared, own = suffixes
    made = {name: value for name, value in arm.items() if name != "grid"}
    made["name"] = f"{arm.get('name', '')}{shared}{own}"
    if made.get("original"):
        made["original"] = f"{made['original']}{shared}"
    for name, value in chosen.items():
        head, _, part = name.partition(".")
        if part:
            # What the recipe sets for all arms stays as it is beside the part that varies.
            base = made.get(head, recipe.get(head))
            made[head] = {**(base if isinstance(base, Mapping) else {}), part: value}
        else:
            made[head] = value
    return made
