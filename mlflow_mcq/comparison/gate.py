"""A gate for continuous integration: an arm may lose this much, and no more, for sure."""

from __future__ import annotations

import mlflow
from mlflow.models import MetricThreshold

from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.errors import SettingsError

__all__ = ["fail_if_worse", "loss_thresholds"]


def loss_thresholds(comparison: Comparison, by: float) -> dict[str, MetricThreshold]:
    """Thresholds for `mlflow.validate_evaluation_results` on ``comparison.result``.

    ``shown_loss`` is the loss in accuracy where its interval excludes 0, and 0 elsewhere: a
    gate on the bare difference would fail by chance on every second change of nothing.

    Args:
        comparison: From `mlflow_mcq.compare`.
        by: Largest loss to let pass, a fraction in [0, 1).

    Raises:
        SettingsError: ``by`` is out of range.
    """
    if not 0.0 <= by < 1.0:
        raise SettingsError("by", "must be a fraction from 0 to below 1", by, "Use by=0.02.")
    # MLflow passes what equals the threshold, and refuses one of exactly 0 for no metric.
    return {
        name: MetricThreshold(threshold=by, greater_is_better=False)
        for name in comparison.metrics
        if name.startswith("shown_loss/")
    }


def fail_if_worse(comparison: Comparison, by: float = 0.0) -> None:
    """Fail if some arm's accuracy is lower by more than ``by`` and its interval excludes 0.

    Args:
        comparison: From `mlflow_mcq.compare`.
        by: Largest loss to let pass, a fraction.

    Raises:
        ModelValidationFailedException: MLflow's own, naming arm and loss.
        SettingsError: ``by`` is out of range.
    """
    mlflow.validate_evaluation_results(loss_thresholds(comparison, by), comparison.result)
