"""Misspelt arguments are met with the nearest name, and signatures stay what they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import mlflow_mcq
from mlflow_mcq.errors import SettingsError

CASES: dict[str, tuple[Callable[..., object], dict[str, Any], str]] = {
    "remote_model": (mlflow_mcq.remote_model, {"url": "http://x/v1", "model": "m"}, "base_url"),
    "compare": (mlflow_mcq.compare, {"run": ["a", "b"]}, "runs"),
    "regrade": (mlflow_mcq.regrade, {"run_id": "a", "ony": "errors"}, "only"),
    "fail_if_worse": (mlflow_mcq.fail_if_worse, {"comparision": None}, "comparison"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_nearest_argument_is_named(name: str) -> None:
    function, given, meant = CASES[name]
    with pytest.raises(SettingsError, match=f'{name}: takes no.*Did you mean "{meant}"'):
        function(**given)


@pytest.mark.parametrize("name", CASES)
def test_the_signature_is_still_there_for_an_editor(name: str) -> None:
    function, _, meant = CASES[name]
    assert meant in inspect.signature(function).parameters
    assert function.__name__ == name
    assert function.__doc__


def test_what_is_missing_or_too_much_is_still_pythons_to_say() -> None:
    with pytest.raises(TypeError, match="base_url"):
        mlflow_mcq.remote_model(model="m")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        mlflow_mcq.compare(["a"], "b")  # type: ignore[misc]
