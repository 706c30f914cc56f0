"""How far a grader can be trusted, from rows whose true label is known.

Pure functions over pairs of labels. Everything comes with an interval, and what is
undefined has a reason and no number. No interval here shrinks to a point on a perfect
score: 50 hits of 50 are not proof of a judge that never errs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = [
    "LEVEL",
    "Agreement",
    "ChiSquare",
    "ClassRates",
    "Estimate",
    "LetterBias",
    "SlotRead",
    "agreement",
    "kappa",
    "letter_bias",
    "paired_interval",
    "sensitivity",
    "slot_preference",
    "specificity",
    "wilson",
]

LEVEL = 0.95
"""Confidence level of every interval."""

Pair = tuple[str, str]
"""(true label, label that was read) of one row."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or the reason why there is none.

    Over single rows, each of them independent: `mlflow_mcq.statistics.intervals.Measured` is
    over items, whose orientations are not.

    Attributes:
        value: The estimate; None exactly when ``reason`` is set.
        low: Lower end of the 95 % interval.
        high: Upper end.
        n: Rows behind it.
        reason: Why it is undefined.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""

    def numbers(self, name: str) -> dict[str, float]:
        """``name``, ``name_low`` and ``name_high``; nothing where undefined."""
        if self.value is None or self.low is None or self.high is None:
            return {}
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def _undefined(reason: str, n: int = 0) -> Estimate:
    return Estimate(None, None, None, n, f"undefined: {reason}")


def wilson(n_hits: int, n_rows: int, of_what: str = "rows") -> Estimate:
    """A share with its Wilson score interval.

    Wilson (1927), JASA 22:209; keeps near-nominal coverage close to 0 and 1, where the
    usual plus-or-minus interval collapses (Brown, Cai and DasGupta 2001).

    Args:
        n_hits: Rows that count.
        n_rows: All rows; without any the share is undefined.
        of_what: What the rows are, for the reason.

    Returns:
        A share in [0, 1] with an interval inside [0, 1].

    Example:
        >>> share = wilson(8, 10)
        >>> share.value, round(share.low, 4), round(share.high, 4)
        (0.8, 0.4902, 0.9433)
        >>> wilson(0, 0).reason
        'undefined: 0 rows'
    """
    if not n_rows:
        return _undefined(f"0 {of_what}")
    interval = stats.binomtest(n_hits, n_rows).proportion_ci(LEVEL, method="wilson")
    return Estimate(n_hits / n_rows, float(interval.low), float(interval.high), n_rows)


def sensitivity(pairs: Sequence[Pair], label: str) -> Estimate:
    """Rows of a label that were read as it / rows of that label; in [0, 1], 1 is best.

    Example:
        >>> sensitivity([("yes", "yes"), ("yes", "no"), ("no", "no")], "yes").value
        0.5
    """
    read = [seen for true, seen in pairs if true == label]
    return wilson(read.count(label), len(read), f"rows that are {label}")


def specificity(pairs: Sequence[Pair], label: str) -> Estimate:
    """Rows of other labels that were not read as it / those rows; in [0, 1], 1 is best.

    Example:
        >>> specificity([("yes", "yes"), ("yes", "no"), ("no", "no")], "yes").value
        1.0
    """
    read = [seen for true, seen in pairs if true != label]
    n_not = len(read) - read.count(label)
    return wilson(n_not, len(read), f"rows that are not {label}")


def kappa(pairs: Sequence[Pair]) -> Estimate:
    """Cohen's kappa: agreement beyond what the two label frequencies give by chance.

    ``(p_o - p_e) / (1 - p_e)``, Cohen (1960), Educ. Psychol. Meas. 20:37; in [-1, 1], 1
    is best, 0 is chance. The interval takes ``p_e`` as fixed, as Cohen's own standard
    error does, and puts Wilson's limits of ``p_o`` through the same formula, so that it
    stays open at full agreement, where asymptotic and bootstrap intervals are a point.
    It leaves out that ``p_e`` is estimated too (Fleiss, Cohen and Everitt 1969), which
    moves an end by a few hundredths at these sizes.

    Returns:
        Undefined without rows, and where both sides use one same label throughout.

    Example:
        >>> kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")]).value
        0.5
        >>> kappa([("a", "a"), ("a", "a")]).reason
        'undefined: both sides use one label only, so chance alone gives full agreement'
    """
    n = len(pairs)
    if not n:
        return _undefined("0 rows")
    true, read = Counter(t for t, _ in pairs), Counter(s for _, s in pairs)
    # Whole numbers as long as possible: kappa of a parrot is 0, not 1e-17.
    by_chance = sum(true[label] * read[label] for label in true)
    if by_chance == n * n:
        return _undefined("both sides use one label only, so chance alone gives full agreement", n)
    n_same = sum(t == s for t, s in pairs)
    observed = wilson(n_same, n)
    chance = by_chance / n**2
    low, high = (
        (end - chance) / (1 - chance) for end in (observed.low or 0.0, observed.high or 0.0)
    )
    return Estimate((n_same * n - by_chance) / (n * n - by_chance), low, high, n)


@dataclass(frozen=True, slots=True)
class ClassRates:
    """One label's sensitivity and specificity."""

    label: str
    sensitivity: Estimate
    specificity: Estimate


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well labels were read.

    Attributes:
        accuracy: Rows read as they are / rows.
        kappa: Agreement beyond chance.
        classes: Rates of each label, in the order asked for.
    """

    accuracy: Estimate
    kappa: Estimate
    classes: tuple[ClassRates, ...]

    def estimates(self) -> dict[str, Estimate]:
        """Every estimate by name: ``accuracy``, ``kappa``, ``sensitivity_<label>``, ..."""
        named = {"accuracy": self.accuracy, "kappa": self.kappa}
        for one in self.classes:
            named[f"sensitivity_{one.label.lower()}"] = one.sensitivity
            named[f"specificity_{one.label.lower()}"] = one.specificity
        return named

    def numbers(self) -> dict[str, float]:
        """Every defined number with its interval, flat."""
        return {
            k: v for name, one in self.estimates().items() for k, v in one.numbers(name).items()
        }


def agreement(pairs: Sequence[Pair], labels: Sequence[str]) -> Agreement:
    """Accuracy, kappa and the rates of each label.

    Args:
        pairs: One for each row that was read; the order of rows does not matter.
        labels: The labels to report.

    Example:
        >>> found = agreement([("yes", "yes"), ("no", "yes")], ("yes", "no"))
        >>> found.numbers()["sensitivity_yes"], found.numbers()["sensitivity_no"]
        (1.0, 0.0)
    """
    classes = tuple(
        ClassRates(label, sensitivity(pairs, label), specificity(pairs, label)) for label in labels
    )
    accuracy = wilson(sum(t == s for t, s in pairs), len(pairs))
    return Agreement(accuracy, kappa(pairs), classes)


@dataclass(frozen=True, slots=True)
class SlotRead:
    """One row by slots.

    Attributes:
        n_options: Slots that the row shows.
        true: Slot that the reply chose; None where it chose none.
        read: Slot that the judge named; None where it named none.
    """

    n_options: int
    true: int | None
    read: int | None


@dataclass(frozen=True, slots=True)
class LetterBias:
    """Whether one slot is named more often than it should be.

    Attributes:
        slot: Place on the page, 0 at the top.
        pick_rate: Rows read as this slot / rows that show it.
        true_rate: Rows that chose this slot / rows that show it.
        bias: Their difference; in [-1, 1], above 0 is named too often.
    """

    slot: int
    pick_rate: float
    true_rate: float
    bias: Estimate


def paired_interval(
    more: float, less: float, n: int, quantile: float, least: float = -1.0
) -> tuple[float, float]:
    """Ends of the interval of ``(more - less) / n``, a difference of two shares of the same rows.

    Agresti and Min's (2005, Stat. Med. 24:729): half a row is added to each of the four
    cells, so that it is no point where all rows agree.

    Args:
        more: Rows that count in the first share alone.
        less: Rows that count in the second alone.
        n: All rows, at least 1.
        quantile: How many standard errors it reaches to each side.
        least: The least difference there can be.

    Returns:
        Two fractions from ``least`` to 1, with the difference between them.

    Example:
        >>> [round(end, 3) for end in paired_interval(0, 0, 8, 1.96)]
        [-0.196, 0.196]
    """
    value = (more - less) / n
    more, less = more + 0.5, less + 0.5
    middle = (more - less) / (n + 2)
    spread = math.sqrt(max(more + less - (more - less) ** 2 / (n + 2), 0.0)) / (n + 2)
    reach = quantile * spread
    # Adding rows pulls the middle to 0: an extreme value would lie outside its interval.
    return min(value, max(middle - reach, least)), max(value, min(middle + reach, 1.0))


def letter_bias(reads: Sequence[SlotRead]) -> tuple[LetterBias, ...]:
    """Pick rate minus true rate of each slot.

    The two rates are of the same rows, so the interval is that of a difference of
    paired shares: Agresti and Min (2005), Stat. Med. 24:729, which adds half a row to
    each cell of the two by two table and so stays open where nothing disagrees.

    Returns:
        One for each slot that any row shows, from the top.

    Example:
        >>> says_a = [SlotRead(2, true, 0) for true in (0, 1, 0, 1)]
        >>> [one.bias.value for one in letter_bias(says_a)]
        [0.5, -0.5]
    """
    n_slots = max((one.n_options for one in reads), default=0)
    return tuple(
        _bias_of(slot, [one for one in reads if one.n_options > slot]) for slot in range(n_slots)
    )


def _bias_of(slot: int, shown: Sequence[SlotRead]) -> LetterBias:
    n = len(shown)
    n_picked = sum(one.read == slot for one in shown)
    n_true = sum(one.true == slot for one in shown)
    more = sum(one.read == slot != one.true for one in shown)
    less = sum(one.true == slot != one.read for one in shown)
    value = (n_picked - n_true) / n
    low, high = paired_interval(more, less, n, float(stats.norm.ppf(0.5 + LEVEL / 2)))
    return LetterBias(slot, n_picked / n, n_true / n, Estimate(value, low, high, n))


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A chi-square test.

    Attributes:
        statistic: Its value; None exactly when ``reason`` is set.
        dof: Degrees of freedom.
        p_value: Chance of a statistic this large without the effect.
        n: Rows behind it.
        reason: Why it is undefined.
    """

    statistic: float | None
    dof: int
    p_value: float | None
    n: int
    reason: str = ""


def slot_preference(reads: Sequence[SlotRead]) -> ChiSquare:
    """Test whether wrongly named slots prefer a place.

    Without a preference, a wrong slot is equally likely to be any slot of its row but
    the true one. Rows show different numbers of slots, so the usual expected counts do
    not hold; the statistic is ``d' V+ d`` with ``d`` the counts minus their expectation
    and ``V`` the sum of the rows' own multinomial covariances (Pearson's statistic
    where all rows are alike). An approximation for large counts: below about 20 wrong
    slots read it as a hint.

    Returns:
        Undefined where no wrong slot was named, or no row left a choice.

    Example:
        >>> slot_preference([SlotRead(4, 3, 0)] * 30).p_value < 1e-6
        True
        >>> slot_preference([SlotRead(4, 3, 3)]).reason
        'undefined: 0 wrong slots'
    """
    wrong = [one for one in reads if one.read is not None and one.read != one.true]
    if not wrong:
        return ChiSquare(None, 0, None, 0, "undefined: 0 wrong slots")
    n_slots = max(one.n_options for one in wrong)
    off = np.zeros(n_slots)
    spread = np.zeros((n_slots, n_slots))
    for one in wrong:
        free = np.array([s < one.n_options and s != one.true for s in range(n_slots)], float)
        chance = free / free.sum()
        off -= chance
        off[one.read] += 1
        spread += np.diag(chance) - np.outer(chance, chance)
    dof = int(np.linalg.matrix_rank(spread, hermitian=True))
    if not dof:
        return ChiSquare(None, 0, None, len(wrong), "undefined: every row had one wrong slot only")
    statistic = float(off @ np.linalg.pinv(spread, hermitian=True) @ off)
    return ChiSquare(statistic, dof, float(stats.chi2.sf(statistic, dof)), len(wrong))
