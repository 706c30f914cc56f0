"""What a reader of a comparison wants to know, in words."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_mcq.comparison.contrasts import Contrast
from mlflow_mcq.statistics.intervals import Measured

__all__ = ["SURE", "answers", "headline", "points"]

_UNEVEN = 0.01
_PART_NAMES = {"orientation": "orientation", "gold_slot": "slot of gold"}
SURE = 0.05
"""A difference is called real below this adjusted p value, where its interval agrees."""


def points(one: Measured) -> str:
    """A difference in points, with its interval.

    Example:
        >>> points(Measured(0.034, 0.012, 0.056))
        '+3.4 points [+1.2, +5.6]'
    """
    if one.value is None:
        return "undefined"
    if one.low is None or one.high is None:
        return f"{one.value * 100:+.1f} points (no interval)"
    return f"{one.value * 100:+.1f} points [{one.low * 100:+.1f}, {one.high * 100:+.1f}]"


def headline(one: Contrast) -> str:
    """The comparison in one line: which arm, by how much, and whether to believe it."""
    shift, p = one.shift, one.settled.p_holm
    names = f"{one.treatment.name} against {one.baseline.name}"
    said = f"{names}: accuracy {points(shift)}, {_p(p)}, read by {one.grader}"
    if not _real(one):
        return said + ": no difference shown."
    better = "better" if (shift.value or 0.0) > 0 else "worse"
    if one.alarms:
        return said + f": {better}, but see the alarms."
    return said + f": {better}."


def answers(one: Contrast) -> list[tuple[str, str]]:
    """Questions of a reader, each with its answer."""
    return [
        ("Which arm is better, and by how much?", _which(one)),
        ("Is it real?", _real_or_not(one)),
        ("Is it position bias?", _bias(one)),
        ("Is it the parser?", _parser(one)),
        ("Is it refusals?", _refusals(one)),
        ("Who was the judge?", _judge(one)),
    ]


def _real(one: Contrast) -> bool:
    return one.settled.p_holm < SURE and one.shift.excludes_zero


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _which(one: Contrast) -> str:
    shift = one.shift
    if shift.value is None or not shift.value:
        return f"Neither: {points(shift)} over {one.main.n_items:,} items."
    ahead = one.treatment if shift.value > 0 else one.baseline
    sure = "is better" if _real(one) else "is ahead"
    return (
        f"{ahead.name} {sure}: {one.treatment.name} minus {one.baseline.name} is {points(shift)} "
        f"over {one.main.n_items:,} items and {one.main.n_pairs:,} rows, read by {one.grader}."
    )


def _real_or_not(one: Contrast) -> str:
    settled = one.settled
    text = f"{_p(settled.p_value)} ({settled.test})"
    if settled.p_holm != settled.p_value:
        text += f", {_p(settled.p_holm)} adjusted for several arms"
    if _real(one):
        return f"Yes, as far as chance goes: {text}."
    seen = settled.detectable.value
    if seen is None:
        return f"Not shown: {text}."
    text = f"Not shown: {text}. A difference above {seen * 100:.1f} points would have been seen"
    needed = settled.items_needed.value
    if needed is None:
        return text + "."
    return text + f"; about {needed:,.0f} items would settle one of the observed size."


def _fired(one: Contrast, names: Sequence[str]) -> list[str]:
    return [f"{alarm.name}: {alarm.found}." for alarm in one.alarms if alarm.name in names]


def _bias(one: Contrast) -> str:
    fired = _fired(one, ("orientation_sign_change", "orientation_shrink"))
    if fired:
        return "Suspected. " + " ".join(fired)
    equal = {by: p for by, p in one.facts.equal.items() if p is not None}
    if not any(len(effects) > 1 for effects in one.facts.effects.values()):
        return "Cannot be told: options were shown in one order, with gold in one slot."
    uneven = [f"{_p(p)} by {_PART_NAMES[by]}" for by, p in equal.items() if p < _UNEVEN]
    if uneven:
        said = " and ".join(uneven)
        return f"It is uneven ({said} for equal effects), but nowhere turned round: see the forest."
    return "No sign of it: the difference has no second sign by orientation or slot of gold."


def _parser(one: Contrast) -> str:
    fired = _fired(one, ("suspected_parser_artifact",))
    if fired:
        return "Suspected. " + " ".join(fired)
    if not one.facts.readings:
        return f"Cannot be told: nobody but {one.grader} counts here."
    said = "; ".join(f"{r.grader} finds {points(r.shift)}" for r in one.facts.readings)
    return f"No sign of it: {said}."


def _refusals(one: Contrast) -> str:
    fired = _fired(one, ("other_rate_up",))
    if fired:
        return "Look at both denominators. " + " ".join(fired)
    shifts = one.facts.shifts
    return (
        f"No sign of it: the share of OTHER moves by {points(shifts['other_rate_shift'])}; over "
        f"rows that both decided accuracy moves by {points(shifts['accuracy_decided_both_shift'])}."
    )


def _judge(one: Contrast) -> str:
    fired = _fired(one, ("judge_mismatch",))
    if fired:
        return "Not the same one: the comparison was forced. " + " ".join(fired)
    fingerprint = one.baseline.facts.judge
    if one.grader != "judge" or not fingerprint:
        return f"Nobody: the answers were read by {one.grader}."
    model = one.baseline.params.get("judge_model", "unknown")
    numbers = one.baseline.run.data.metrics
    kappa, agreement = (numbers.get(f"judge/{k}") for k in ("exam_kappa", "strict_agreement"))
    text = f"{model} (fingerprint {fingerprint}) in both arms"
    if kappa is not None:
        text += f"; kappa {kappa:.2f} in its exam"
    if agreement is not None:
        text += f"; {agreement:.0%} of plain labels read right"
    return text + "."
