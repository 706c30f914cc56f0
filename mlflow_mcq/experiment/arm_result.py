"""What became of one arm of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
from mlflow import MlflowClient

from mlflow_mcq.graders.belief import by_belief

__all__ = ["ArmResult"]


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

    @classmethod
    def of_run(cls, name: str, run_id: str, metrics: Mapping[str, float]) -> ArmResult:
        """A run that stands alone, with the alarms that it fired."""
        tags = MlflowClient().get_run(run_id).data.tags
        return cls(name, run_id, metrics, tags.get("mcq.alarms", "none"))

    @property
    def graders(self) -> list[str]:
        """Who read it, the most believed first."""
        return by_belief(dict.fromkeys(self.rows["grader"]) if "grader" in self.rows else ())

    @property
    def main_grader(self) -> str | None:
        """The one whose reading stands for the arm; None where nobody has read it."""
        return next(iter(self.graders), None)

    def read_by(self, grader: str) -> pd.DataFrame:
        """The rows of one grader."""
        return self.rows[self.rows["grader"] == grader]
