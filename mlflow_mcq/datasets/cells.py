"""One cell of a table: whether anything stands in it."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["is_missing"]


def is_missing(value: object) -> bool:
    """None, NaN of any width, NA or NaT: pandas has many words for nothing.

    Example:
        >>> is_missing(float("nan")), is_missing("NA"), is_missing([])
        (True, False, False)
    """
    scalar: Any = value
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(scalar)))
