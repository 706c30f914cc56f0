"""Alarms: what a reader must know before believing the numbers beside them.

``arm`` has the rules over one arm's numbers, ``pair`` those over two arms, ``outputs``
those over the texts themselves.
"""

from mlflow_mcq.diagnostics.arm import Alarm, Thresholds, alarms_for

__all__ = ["Alarm", "Thresholds", "alarms_for"]
