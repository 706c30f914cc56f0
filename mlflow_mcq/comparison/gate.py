"""A gate for continuous integration: an arm may lose this much, and no more, for sure."""

from __future__ import annotations

import numbers

from mlflow.models import MetricThreshold
from mlflow.models.evaluation.validation import ModelValidationFailedException

from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.keywords import known_keywords

__all__ = ["allowed_loss", "fail_if_worse", "loss_thresholds"]

_LOSS = "shown_loss/"


@known_keywords
def loss_thresholds(comparison: Comparison, by: float) -> dict[str, MetricThreshold]:
    """Thresholds for `mlflow.validate_evaluation_results` on ``comparison.result``.

    ``shown_loss`` is the loss in accuracy where its interval excludes 0, and 0 elsewhere: a
    gate on the bare difference would fail by chance on every second change of nothing.

    Args:
        comparison: From `mlflow_mcq.compare`.
        by: Largest loss to let pass, a fraction in [0, 1).

    Raises:
        SettingsError: ``by`` is out of range, or it is no comparison.
    """
    by = allowed_loss(by)
    # MLflow passes what equals the threshold, and refuses one of exactly 0 for no metric.
    return {
        name: MetricThreshold(threshold=by, greater_is_better=False)
        for name in _compared(comparison, "loss_thresholds").metrics
        if name.startswith(_LOSS)
    }


@known_keywords
def fail_if_worse(comparison: Comparison, by: float = 0.0) -> None:
    """Fail if some arm's accuracy is lower by more than ``by`` and its interval excludes 0.

    Args:
        comparison: From `mlflow_mcq.compare`.
        by: Largest loss to let pass, a fraction in [0, 1).

    Raises:
        ModelValidationFailedException: MLflow's own, naming each arm and its loss.
        SettingsError: ``by`` is out of range, or it is no comparison.
    """
    by = allowed_loss(by)
    shown = _compared(comparison, "fail_if_worse").metrics
    lost = {name: loss for name, loss in shown.items() if name.startswith(_LOSS) and loss > by}
    if lost:
        said = "; ".join(f"{n.removeprefix(_LOSS)}: {loss:.3f}" for n, loss in lost.items())
        raise ModelValidationFailedException(
            f"accuracy is lower than that of {comparison.baseline} by more than the {by:g} that "
            f"may be lost, and its interval excludes 0 ({said}). Read mcq_report.html of run "
            f"{comparison.run_id}."
        )


def allowed_loss(by: object, name: str = "by") -> float:
    """The largest loss to let pass, out of a number or its text.

    Args:
        by: As it was given.
        name: What its giver calls it.

    Raises:
        SettingsError: It is no fraction in [0, 1).

    Example:
        >>> allowed_loss("0.02", "--fail-if-worse")
        0.02
    """
    told = isinstance(by, (str, numbers.Real)) and not isinstance(by, bool)
    try:
        found = float(by) if told else -1.0  # type: ignore[arg-type]
    except ValueError:
        found = -1.0
    if not 0.0 <= found < 1.0:
        raise SettingsError(
            name,
            "must be a fraction from 0 to below 1",
            by,
            "0.02 lets a loss of two points of accuracy pass.",
        )
    return found


def _compared(comparison: object, who: str) -> Comparison:
    if isinstance(comparison, Comparison):
        return comparison
    raise SettingsError(
        who,
        "takes what mlflow_mcq.compare returns",
        type(comparison).__name__,
        "Compare the arms first: mlflow_mcq.compare([one, other]).",
    )
