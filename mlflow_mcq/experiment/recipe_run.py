"""What became of a whole recipe: its arms, and what was found between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.experiment.arm_result import ArmResult

__all__ = ["RecipeRun"]


@dataclass(frozen=True, slots=True, eq=False)
class RecipeRun:
    """What became of a recipe.

    Attributes:
        arms: In order.
        comparison: Of these arms; None where there is none.
        not_compared: Why there is none; else empty.
    """

    arms: Sequence[ArmResult]
    comparison: Comparison | None = None
    not_compared: str = ""
