"""What commands say of a comparison, and the gate that stops a pipeline."""

from __future__ import annotations

from typing import Any

__all__ = ["GATE", "comparison_data", "gate", "share_of"]

GATE = "--fail-if-worse"


def comparison_data(found: Any) -> dict[str, Any]:
    """A comparison as ``--json`` prints it."""
    return {
        "run_id": found.run_id,
        "baseline": found.baseline,
        "read_by": found.read_by,
        "headlines": {**found.headlines},
        "alarms": {arm: list(fired) for arm, fired in found.alarms.items()},
        "alarms_of_arms": {arm: list(fired) for arm, fired in found.alarms_of_arms.items()},
        "metrics": {**found.metrics},
    }


def share_of(text: str) -> float | None:
    """What may be lost; None where no gate is asked for.

    Raises:
        SettingsError: It is no share; said before hours of work, and under the flag's own name.
    """
    from mlflow_mcq.comparison.gate import allowed_loss

    return allowed_loss(text, GATE) if text else None


def gate(found: Any, by: float | None, not_compared: str = "") -> tuple[int, str]:
    """The exit code, and why it is not 0.

    Args:
        found: The comparison; None where there is none.
        by: From `share_of`.
        not_compared: Why there is none. A gate that nobody came to does not stand open.
    """
    from mlflow.exceptions import MlflowException

    from mlflow_mcq.comparison.gate import fail_if_worse

    if by is None:
        return 0, ""
    if found is None:
        return 1, f"{GATE}: the arms were not compared ({not_compared}), so no loss is ruled out"
    try:
        fail_if_worse(found, by)
    except MlflowException as error:
        return 1, f"{GATE}: {error}"
    return 0, ""
