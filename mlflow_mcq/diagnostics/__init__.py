"""Alarms: what a reader must know before believing the numbers beside them.

============  ==================================
``arm``       rules over one arm's numbers
``pair``      rules over two arms
``outputs``   damage in the answers themselves
``steering``  answers that speak to the judge
============  ==================================
"""

from mlflow_mcq.diagnostics.arm import Alarm, Thresholds, alarms_for

__all__ = ["Alarm", "Thresholds", "alarms_for"]
