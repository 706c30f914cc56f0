"""Alarms over two arms: is the difference what it looks like?

Pure rules over numbers. `judge_pair` gathers the numbers from the rows, `pair_alarms` looks
at them; either can be tested, and used, without the other.

A rule that needs a difference to be real asks for p < 0.01 and not 0.05: half a dozen rules
look at every comparison, and an alarm that fires by chance once in five is no alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.paired import (
    By,
    Effect,
    accuracy_shift,
    equal_effects,
    moved_by_grader,
    shifts,
    shifts_by,
)
from mlflow_mcq.statistics.pairing import Pairs, Unpaired
from mlflow_mcq.statistics.power import items_to_settle, minimum_detectable

__all__ = ["ArmFacts", "PairFacts", "PairThresholds", "Reading", "judge_pair", "pair_alarms"]


@dataclass(frozen=True, slots=True)
class PairThresholds:
    """When alarms over two arms fire.

    Attributes:
        sure: A difference counts as real below this p value.
        shrink: Share of the effect that must survive rotation.
        other_shift: A difference in the share of OTHER that is worth a word.
        parser_shift: An effect that moves by less with the grader is not worth a word.
        parser_share: It must also move by more than this share of itself.
        fewest_items: With fewer items no interval here is to be trusted: the t interval
            over items covers too little below some 30 (see the tests of coverage).
    """

    sure: float = 0.01
    shrink: float = 0.5
    other_shift: float = 0.02
    parser_shift: float = 0.02
    parser_share: float = 0.5
    fewest_items: int = 30


@dataclass(frozen=True, slots=True)
class ArmFacts:
    """What is known of an arm beside its rows.

    Attributes:
        name: For people.
        data_digest: Of its items; empty where unknown.
        judge: Fingerprint of its judge; empty where none read it.
    """

    name: str
    data_digest: str = ""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The same comparison as another grader reads it.

    Attributes:
        grader: Its name.
        shift: Difference of accuracies as it reads them.
        moved: How far the difference moves from this grader to the main one.
    """

    grader: str
    shift: Measured
    moved: Measured


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Every number that a rule over two arms looks at; what is unknown is left out.

    Attributes:
        baseline: The arm compared with.
        treatment: The arm compared.
        n_items: Shared items.
        unpaired: What the arms do not share.
        shifts: From `mlflow_mcq.statistics.paired.shifts`.
        as_is: Accuracy shift over the rows in the order of the data.
        as_is_moves: p value of that shift being the same in all orientations.
        effects: Accuracy shift in each part: ``orientation`` and ``gold_slot``.
        equal: p value of equal effects in all parts, by the same names; None where
            untested, and then signs alone decide.
        readings: The comparison as other graders read it.
    """

    baseline: ArmFacts
    treatment: ArmFacts
    n_items: int | None = None
    unpaired: Unpaired | None = None
    shifts: Mapping[str, Measured] = field(default_factory=dict)
    as_is: Measured | None = None
    as_is_moves: float | None = None
    effects: Mapping[By, Sequence[Effect]] = field(default_factory=dict)
    equal: Mapping[By, float | None] = field(default_factory=dict)
    readings: Sequence[Reading] = ()


def judge_pair(
    pairs: Pairs, baseline: ArmFacts, treatment: ArmFacts, parsed: Mapping[str, Pairs] | None = None
) -> PairFacts:
    """Gather what the rules need.

    Args:
        pairs: Rows of the two arms as the main grader (the judge) reads them.
        baseline: The arm compared with.
        treatment: The arm compared.
        parsed: The same arms as parsers read them, by grader. Leave out those that are wrong
            on purpose (``regex_naive``), or they will be found to be.
    """
    parts: tuple[By, ...] = ("orientation", "gold_slot")
    equal = {by: equal_effects(pairs, by) for by in parts}
    first = pairs.keep(pairs.as_is)
    return PairFacts(
        baseline,
        treatment,
        pairs.n_items,
        pairs.unpaired,
        shifts(pairs),
        accuracy_shift(first) if first.n_pairs and first.n_pairs < pairs.n_pairs else None,
        equal["orientation"],
        {by: shifts_by(pairs, by) for by in parts},
        equal,
        [
            Reading(name, accuracy_shift(other), moved_by_grader(other, pairs))
            for name, other in (parsed or {}).items()
        ],
    )


def pair_alarms(facts: PairFacts, limits: PairThresholds | None = None) -> list[Alarm]:
    """The alarms that a comparison fires.

    Args:
        facts: Numbers; a missing one fires nothing.
        limits: When to fire.

    Returns:
        Fired alarms, the gravest first.

    Example:
        >>> facts = PairFacts(ArmFacts("a", judge="1f"), ArmFacts("b", judge="2e"))
        >>> [alarm.name for alarm in pair_alarms(facts)]
        ['judge_mismatch']
    """
    limits = limits or PairThresholds()
    return [alarm for rule in _RULES if (alarm := rule(facts, limits)) is not None]


def _said(one: Measured | None) -> str:
    if one is None or one.value is None:
        return "undefined"
    if one.low is None or one.high is None:
        return f"{one.value:+.1%}"
    return f"{one.value:+.1%} [{one.low:+.1%}, {one.high:+.1%}]"


def _judge_mismatch(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    mine, theirs = facts.baseline.judge, facts.treatment.judge
    if mine == theirs:
        return None
    return Alarm(
        "judge_mismatch",
        "arms that are compared must be read by one judge, prompt and settings included",
        f"{facts.baseline.name}: {mine or 'no judge'}; {facts.treatment.name}: "
        f"{theirs or 'no judge'}",
        "Regrade one of them with the other's judge; the stored answers are enough for that.",
    )


def _data_changed(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    mine, theirs = facts.baseline.data_digest, facts.treatment.data_digest
    n_changed = facts.unpaired.n_changed if facts.unpaired else 0
    if (not mine or not theirs or mine == theirs) and not n_changed:
        return None
    return Alarm(
        "data_changed",
        "arms that are compared must have been asked the same items",
        f"digests {mine or 'unknown'} and {theirs or 'unknown'}; {n_changed} shared rows have "
        "another gold or number of options and were left out",
        "Compare the two files; evaluate the older arm again on the data of the newer one.",
    )


def _unpaired_items(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    lost = facts.unpaired
    if lost is None:
        return None
    items = lost.n_items_baseline + lost.n_items_treatment
    rows = lost.n_rows_baseline + lost.n_rows_treatment
    if not items and not rows:
        return None
    return Alarm(
        "unpaired_items",
        "every item must be in both arms, in the same orders and repeats",
        f"items in one arm only: {lost.n_items_baseline} in {facts.baseline.name}, "
        f"{lost.n_items_treatment} in {facts.treatment.name}; rows of shared items in one only: "
        f"{lost.n_rows_baseline} and {lost.n_rows_treatment}",
        "The difference is of the shared rows. Use the same data, limit, orientations, seed and "
        "repeats in both arms.",
    )


def _too_few_items(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    n = facts.n_items
    if n is None or n >= limits.fewest_items:
        return None
    shift = facts.shifts.get("accuracy_shift", Measured(None))
    seen, needed = minimum_detectable(shift), items_to_settle(shift)
    found = f"{n} shared items"
    if seen.value is not None:
        found += f"; only a difference above {seen.value:.0%} would have been seen"
    wanted = max(needed.value or 0.0, float(limits.fewest_items))
    return Alarm(
        "too_few_items",
        f"intervals need at least {limits.fewest_items} items; more rows an item do not help",
        found,
        f"Use more items: {wanted:,.0f} would settle a difference of the observed size.",
    )


def _orientation_sign_change(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    for by, effects in facts.effects.items():
        p = facts.equal.get(by)
        ends = _opposite(effects)
        if ends is None or (p is not None and p >= limits.sure):
            continue
        what, first = ("orientation", 0) if by == "orientation" else ("gold in slot", 1)
        sure = "untested" if p is None else f"p = {p:.1g} for equal effects"
        found = " and ".join(
            f"{_said(effect.shift)} with {what} {effect.place + first}" for effect in ends
        )
        return Alarm(
            "orientation_sign_change",
            "a real effect has one sign, wherever the right option stands",
            f"{found} ({sure})",
            "Do not report the average alone: the arms differ in which slot they favour. "
            "See accuracy by orientation, by gold slot, and the pick rates.",
        )
    return None


def _opposite(effects: Sequence[Effect]) -> tuple[Effect, Effect] | None:
    """The lowest and the highest effect, if one is below 0 and the other above.

    Each must exclude 0 by itself where it has an interval: an effect of twenty points in one
    slot and of none in another is uneven, but has no second sign.
    """
    below = [e for e in effects if (e.shift.high if e.shift.high is not None else _value(e)) < 0]
    above = [e for e in effects if (e.shift.low if e.shift.low is not None else _value(e)) > 0]
    if not below or not above:
        return None
    return min(below, key=_value), max(above, key=_value)


def _value(effect: Effect) -> float:
    return effect.shift.value or 0.0


def _orientation_shrink(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    first, average = facts.as_is, facts.shifts.get("accuracy_shift")
    if first is None or average is None or not first.value or average.value is None:
        return None
    sure = first.p_value is None or first.p_value < limits.sure
    moves = facts.as_is_moves is None or facts.as_is_moves < limits.sure
    kept = average.value / first.value
    if not sure or not moves or kept >= limits.shrink:
        return None
    return Alarm(
        "orientation_shrink",
        f"at least {limits.shrink:.0%} of an effect must survive rotation of the options",
        f"{_said(first)} in the order of the data, {_said(average)} over all orientations",
        "The effect belongs to the order of the data file: report the average over orientations.",
    )


def _other_rate_up(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    moved = facts.shifts.get("other_rate_shift")
    if moved is None or moved.value is None or abs(moved.value) < limits.other_shift:
        return None
    if moved.p_value is not None and moved.p_value >= limits.sure:
        return None
    more = facts.treatment if moved.value > 0 else facts.baseline
    said = {name: _said(shift) for name, shift in facts.shifts.items()}
    return Alarm(
        "other_rate_up",
        f"the share of OTHER may differ by less than {limits.other_shift:.0%} between arms",
        f"it is up in {more.name} (difference {said['other_rate_shift']}); accuracy moves by "
        f"{said.get('accuracy_shift', 'undefined')} over all rows, by "
        f"{said.get('accuracy_decided_shift', 'undefined')} over each arm's decided rows, by "
        f"{said.get('accuracy_decided_both_shift', 'undefined')} over rows that both decided",
        "Refusals and unreadable answers are not wrong answers: report both denominators, and "
        "see the column reason of mcq_grades for what OTHER is here.",
    )


def _parser_artifact(facts: PairFacts, limits: PairThresholds) -> Alarm | None:
    judged = facts.shifts.get("accuracy_shift")
    for reading in facts.readings:
        moved, parsed = reading.moved, reading.shift.value
        if moved.value is None or parsed is None or judged is None or judged.value is None:
            continue
        largest = max(abs(judged.value), abs(parsed))
        least = max(limits.parser_shift, limits.parser_share * largest)
        if abs(moved.value) < least or (moved.p_value or 0.0) >= limits.sure:
            continue
        return Alarm(
            "suspected_parser_artifact",
            "an effect, or its absence, must not depend on who reads the answers",
            f"{reading.grader} finds {_said(reading.shift)}, the judge {_said(judged)}; moved by "
            f"{_said(moved)}",
            f"Read the rows of mcq_grades that {reading.grader} and the judge read differently, "
            "in both arms; report the judged numbers if the judge is reliable.",
        )
    return None


_RULES: tuple[Callable[[PairFacts, PairThresholds], Alarm | None], ...] = (
    _judge_mismatch,
    _data_changed,
    _unpaired_items,
    _too_few_items,
    _orientation_sign_change,
    _orientation_shrink,
    _other_rate_up,
    _parser_artifact,
)
"""The gravest first."""
