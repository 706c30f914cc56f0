"""Misspelt arguments of what users call: met with the nearest name, as misspelt settings are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names

__all__ = ["known_keywords"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def known_keywords(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function say which argument was meant, where it is called with one it does not take.

    Python only says which one it does not take. The signature stays as it is, for editors,
    ``help`` and type checkers.

    Raises:
        SettingsError: From the function, at such a call.

    Example:
        >>> @known_keywords
        ... def model(base_url: str, timeout_s: float = 1.0) -> str:
        ...     return base_url
        >>> model("http://here", timeout=2)
        Traceback (most recent call last):
        ...
        mlflow_mcq.errors.SettingsError: model: takes no argument of this name; got 'timeout'. \
Did you mean "timeout_s"? Known: base_url, timeout_s.
    """
    taken = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def called(*args: _P.args, **given: _P.kwargs) -> _T:
        for name in given:
            if name not in taken:
                raise SettingsError(
                    function.__name__,
                    "takes no argument of this name",
                    name,
                    known_names(name, taken),
                )
        return function(*args, **given)

    return called
