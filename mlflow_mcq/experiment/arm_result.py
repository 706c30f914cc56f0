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
    def of_run(cls, run_id: str, metrics: Mapping[str, float], name: str = "") -> ArmResult:
        """What became of a run, by its tags and params; its rows are left where they are.

        Args:
            run_id: The run.
            metrics: Its means.
            name: Of the arm; where it is left out the run says it.
        """
        data = MlflowClient().get_run(run_id).data
        return cls(
            name or data.tags.get("mcq.arm", run_id),
            run_id,
            metrics,
            data.tags.get("mcq.alarms", "none"),
            model=data.params.get("mcq.model", ""),
            protocol=data.params.get("mcq.protocol", ""),
            temperature=float(data.params.get("mcq.temperature", 0.0)),
            original=data.tags.get("mcq.original"),
            variant=data.tags.get("mcq.variant", ""),
        )

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
