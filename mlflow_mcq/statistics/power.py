"""What a comparison could have seen, and how many items would settle it."""

from __future__ import annotations

import math

from scipy import optimize, special, stats

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.reliability import LEVEL
from mlflow_mcq.statistics.intervals import Measured, undefined

__all__ = ["POWER", "items_to_settle", "minimum_detectable"]

POWER = 0.8
"""Chance of seeing an effect that is there."""

_MOST_ITEMS = 10**9


def minimum_detectable(shift: Measured, power: float = POWER) -> Measured:
    """The smallest true difference that a comparison like this one finds significant.

    ``(t(97.5 %) + z(power)) * se`` with G - 1 degrees of freedom (Miller, arXiv 2411.00640,
    section 5; t where he has the normal, for few items). An observed difference says
    nothing about power: look at this number *before* calling a null result a null.

    Args:
        shift: A paired difference with its standard error.
        power: Chance of finding it, in (0.5, 1).

    Returns:
        A fraction above 0, without interval; undefined without a standard error, or where
        it is 0 (the arms differ alike on every item).

    Raises:
        SettingsError: ``power`` is out of range.

    Example:
        >>> round(minimum_detectable(Measured(0.01, se=0.02, n_items=200)).value, 4)
        0.0563
    """
    if not 0.5 < power < 1.0:
        raise SettingsError("power", "must lie between 0.5 and 1", power, "Use 0.8.")
    if not shift.se or math.isnan(shift.se):
        return undefined("no standard error above 0", shift.n_items)
    return Measured(_reach(shift.n_items, power) * shift.se, n_items=shift.n_items)


def items_to_settle(shift: Measured, power: float = POWER) -> Measured:
    """Items that would find a difference of the observed size significant.

    The least G with ``(t(97.5 %, G - 1) + z(power)) * sd / sqrt(G) <= |shift|``, where
    ``sd = se * sqrt(items now)``: as many rows an item as now. The observed size is itself
    uncertain, so read it as an order of magnitude; it is never more than 10 ** 9.

    Args:
        shift: A paired difference with its standard error.
        power: Chance of finding it, in (0.5, 1).

    Returns:
        A number of items; undefined for a difference of exactly 0, which no number settles.

    Raises:
        SettingsError: ``power`` is out of range.

    Example:
        >>> items_to_settle(Measured(0.05, se=0.05, n_items=100)).value
        787.0
    """
    needed = minimum_detectable(shift, power)
    if needed.value is None:
        return needed
    if not shift.value:
        return undefined("the observed difference is 0", shift.n_items)
    spread, size = (shift.se or 0.0) * math.sqrt(shift.n_items), abs(shift.value)

    def lacking(n_items: float) -> float:
        return _reach(n_items, power) * spread / math.sqrt(n_items) - size

    if lacking(_MOST_ITEMS) > 0:
        return Measured(float(_MOST_ITEMS), n_items=shift.n_items)
    least = 2.0 if lacking(2.0) <= 0 else float(optimize.brentq(lacking, 2.0, _MOST_ITEMS))
    return Measured(float(math.ceil(least - 1e-9)), n_items=shift.n_items)


def _reach(n_items: float, power: float) -> float:
    tail = float(stats.t.ppf(0.5 + LEVEL / 2, n_items - 1))
    return tail + float(special.ndtri(power))
