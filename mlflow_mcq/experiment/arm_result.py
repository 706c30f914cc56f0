"""What became of one arm of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

__all__ = ["ArmResult", "headline"]

_FIRST = ("judge", "similarity", "analogy", "regex_bounded")


@dataclass(frozen=True, eq=False)
class ArmResult:
    """What became of one arm.

    Attributes:
        name: Of the arm.
        run_id: Its run.
        metrics: Its means.
        alarms: Names of fired alarms.
        model: What its model is called.
        protocol: Of its prompts.
        temperature: Of its sampling.
        original: The arm that it attacks; None for any other.
        variant: Of its data.
        rows: Its grades with the order shown, one row a grade.
    """

    name: str
    run_id: str
    metrics: Mapping[str, float]
    alarms: str
    model: str = ""
    protocol: str = ""
    temperature: float = 0.0
    original: str | None = None
    variant: str = ""
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def graders(self) -> list[str]:
        """Who read it, the most believed first."""
        found = list(dict.fromkeys(self.rows["grader"])) if "grader" in self.rows else []
        return sorted(found, key=lambda n: _FIRST.index(n) if n in _FIRST else len(_FIRST))

    def read_by(self, grader: str) -> pd.DataFrame:
        """The rows of one grader."""
        return self.rows[self.rows["grader"] == grader]


def headline(arm: ArmResult) -> str | None:
    """The reader whose number stands for an arm: the judge where there is one.

    Where there is none: similarity, then the analogy match, then the regex that knows where
    a letter stands alone.
    """
    return next(iter(arm.graders), None)
