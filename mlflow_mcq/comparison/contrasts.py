"""One arm against the baseline: the rows they share, what differs, and what to distrust."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlflow_mcq.comparison.arms import StoredArm
from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.diagnostics.pair import PairFacts, judge_pair, pair_alarms
from mlflow_mcq.errors import DataError
from mlflow_mcq.graders.belief import WRONG_ON_PURPOSE
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.pairing import Pairs, align
from mlflow_mcq.statistics.power import items_to_settle, minimum_detectable
from mlflow_mcq.statistics.significance import holm, paired_bootstrap, significance

__all__ = ["Contrast", "Settled", "contrast", "contrasts"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settled:
    """Whether the difference in accuracy is real.

    Attributes:
        p_value: Of the test.
        p_holm: The same, adjusted for the number of arms.
        test: Which one it was.
        bootstrap: The difference with its bootstrap interval.
        detectable: The least difference that would have been seen.
        items_needed: Items that would settle a difference of the observed size.
    """

    p_value: float
    p_holm: float
    test: str
    bootstrap: Measured
    detectable: Measured
    items_needed: Measured


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """One arm against the baseline.

    Attributes:
        baseline: The arm compared with.
        treatment: The arm compared.
        grader: The one whose word counts.
        pairs: Shared rows by grader; the main one first.
        facts: The numbers that alarms look at.
        alarms: Those that fired.
        settled: Whether the difference is real.
    """

    baseline: StoredArm
    treatment: StoredArm
    grader: str
    pairs: Mapping[str, Pairs]
    facts: PairFacts
    alarms: tuple[Alarm, ...]
    settled: Settled

    @property
    def main(self) -> Pairs:
        """The rows as the main grader reads them."""
        return self.pairs[self.grader]

    @property
    def shift(self) -> Measured:
        """The difference in accuracy over all shared rows."""
        return self.facts.shifts["accuracy_shift"]


def contrasts(arms: Sequence[StoredArm], grader: str, skip: bool = False) -> list[Contrast]:
    """Every arm but the first against the first.

    Args:
        arms: The baseline, then the others.
        grader: The one whose word counts.
        skip: Leave out arms that share no graded row with the baseline (arms of other data),
            with a warning.

    Raises:
        DataError: An arm shares no graded row with the baseline; with ``skip``, all of them.
    """
    found = []
    for arm in arms[1:]:
        try:
            found.append(contrast(arms[0], arm, grader))
        except DataError as error:
            if not skip:
                raise
            _log.warning("left out of the comparison: %s", error)
    if not found:
        raise DataError("compare", f"no arm shares a graded row with {arms[0].name}")
    adjusted = holm({str(k): one.settled.p_value for k, one in enumerate(found)})
    return [_adjusted(one, adjusted[str(k)]) for k, one in enumerate(found)]


def contrast(baseline: StoredArm, treatment: StoredArm, grader: str) -> Contrast:
    """One arm against another, by every grader that has read both.

    Raises:
        DataError: They share no graded row.
    """
    common = [name for name in baseline.grades if name in treatment.grades]
    names = sorted(common, key=lambda name: name != grader)
    pairs = {name: align(baseline.grades[name], treatment.grades[name]) for name in names}
    main = pairs[grader]
    if not main.n_pairs:
        raise DataError(
            f"arms {baseline.name!r} and {treatment.name!r}",
            "share no graded row: rows are paired by item id, order shown and repeat",
            possible="Evaluate both on the same data, orientations and seed.",
        )
    parsed = {
        name: other
        for name, other in pairs.items()
        if name != grader and name.startswith("regex_") and name != WRONG_ON_PURPOSE
    }
    facts = judge_pair(main, baseline.facts, treatment.facts, parsed if grader == "judge" else {})
    alarms = tuple(pair_alarms(facts))
    shift = facts.shifts["accuracy_shift"]
    return Contrast(baseline, treatment, grader, pairs, facts, alarms, _settled(main, shift))


def _settled(pairs: Pairs, shift: Measured) -> Settled:
    bootstrap = paired_bootstrap(pairs)["accuracy_shift"]
    detectable, needed = minimum_detectable(shift), items_to_settle(shift)
    one = significance(pairs)
    return Settled(one.p_value, one.p_value, one.test, bootstrap, detectable, needed)


def _adjusted(one: Contrast, p_holm: float) -> Contrast:
    return replace(one, settled=replace(one.settled, p_holm=p_holm))
