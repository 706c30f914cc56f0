"""Grids: an arm for each combination of values."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.experiment.grid import expanded


def arms_of(**recipe: Any) -> list[dict[str, Any]]:
    arms: list[dict[str, Any]] = expanded({"arms": [{"name": "a"}], **recipe})["arms"]
    return arms


def test_a_grid_in_an_arm_expands_that_arm_only() -> None:
    arms = arms_of(arms=[{"name": "a", "grid": {"seed": [1, 2]}}, {"name": "b"}])
    assert [(arm["name"], arm.get("seed")) for arm in arms] == [
        ("a seed=1", 1), ("a seed=2", 2), ("b", None),
    ]  # fmt: skip
    assert not any("grid" in arm for arm in arms)


def test_an_original_is_the_one_with_the_same_values() -> None:
    attacked = {"name": "attacked", "original": "plain", "grid": {"orientations": ["as-is"]}}
    arms = arms_of(arms=[{"name": "plain"}, attacked], grid={"model": {"one": "m/1", "two": "m/2"}})
    assert {arm["name"]: (arm.get("original"), arm["model"]) for arm in arms} == {
        "plain model=one": (None, "m/1"),
        "attacked model=one orientations=as-is": ("plain model=one", "m/1"),
        "plain model=two": (None, "m/2"),
        "attacked model=two orientations=as-is": ("plain model=two", "m/2"),
    }


def test_a_part_of_a_setting_varies_and_the_rest_stays() -> None:
    shots = {"k": 2, "path": "f"}
    arms = arms_of(few_shot=shots, grid={"few_shot.gold": ["balanced", "as-is"]})
    assert [arm["few_shot"] for arm in arms] == [
        {**shots, "gold": "balanced"}, {**shots, "gold": "as-is"},
    ]  # fmt: skip
    assert shots == {"k": 2, "path": "f"}


@given(st.lists(st.integers(1, 4), max_size=3), st.integers(1, 3))
def test_every_combination_is_there_once_under_its_own_name(sizes: list[int], n: int) -> None:
    grid = {f"axis{i}": list(range(size)) for i, size in enumerate(sizes)} or None
    arms = arms_of(arms=[{"name": f"arm{i}"} for i in range(n)], grid=grid)
    assert len(arms) == len({arm["name"] for arm in arms}) == n * prod(sizes)
    assert len({tuple(sorted(arm.items())) for arm in arms}) == len(arms)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        pytest.param([1, 2], "mapping", id="no names"),
        pytest.param({"seed": []}, "grid.seed", id="no values"),
        pytest.param({"seed": "12"}, "grid.seed", id="a text is no list"),
        pytest.param({"seed": [1, 1]}, "twice", id="a value twice"),
        pytest.param({"template": ["long " * 20]}, "Give names", id="a value too long for a name"),
        pytest.param({"data": ["a.jsonl"]}, "name", id="sources need names"),
        pytest.param({"seed": list(range(501))}, "500", id="more arms than anybody looks at"),
    ],
)
def test_what_is_no_grid_is_refused(grid: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        arms_of(grid=grid)
