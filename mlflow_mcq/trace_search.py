"""Where traces are looked for, in the words of the MLflow that is installed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["in_experiment"]


def in_experiment(search: Callable[..., Any], experiment: str) -> dict[str, list[str]]:
    """The argument of a search for traces that names an experiment.

    MLflow has given it another name on the way, and warns of the old one.

    Args:
        search: MLflow's ``search_traces``, of the module or of a client.
        experiment: Id.

    Example:
        >>> in_experiment(lambda experiment_ids: None, "1")
        {'experiment_ids': ['1']}
        >>> in_experiment(lambda experiment_ids=None, locations=None: None, "1")
        {'locations': ['1']}
    """
    return {_name(getattr(search, "__func__", search)): [experiment]}


@lru_cache(maxsize=8)
def _name(search: Callable[..., Any]) -> str:
    known = inspect.signature(search).parameters
    return "locations" if "locations" in known else "experiment_ids"
