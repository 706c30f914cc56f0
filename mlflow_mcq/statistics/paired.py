"""Two arms on the rows they share: what changed, and by how much.

Every difference is treatment minus baseline on the same rows, with an interval over items.
What an item contributes to both arms cancels, so that far fewer items settle a question
than two separate intervals suggest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.statistics.intervals import Linear, Measured, difference, ratio, undefined
from mlflow_mcq.statistics.pairing import Pairs
from mlflow_mcq.statistics.rows import CORRECT, INCORRECT, NONE, OTHER, Rows

__all__ = [
    "By",
    "Effect",
    "accuracy_shift",
    "chosen_shifts",
    "equal_effects",
    "moved_by_grader",
    "shifts",
    "shifts_by",
    "transitions",
]

By = Literal["orientation", "gold_slot"]


def accuracy_shift(pairs: Pairs) -> Measured:
    """Accuracy of the treatment minus that of the baseline; OTHER counts as not correct."""
    return _accuracy(pairs).measured()


def _accuracy(pairs: Pairs) -> Linear:
    n = pairs.baseline.per_item()
    return ratio(_is(pairs.treatment, CORRECT), n) - ratio(_is(pairs.baseline, CORRECT), n)


def _is(rows: Rows, verdict: int) -> Floats:
    return rows.per_item(rows.verdict == verdict)


def _decided(rows: Rows) -> Linear:
    right = _is(rows, CORRECT)
    return ratio(right, right + _is(rows, INCORRECT), "decided rows")


def shifts(pairs: Pairs) -> dict[str, Measured]:
    """The differences that a comparison is reported by.

    * ``accuracy_shift``: over all pairs; OTHER counts as not correct. *Hides* refusals: an
      arm that refuses more loses accuracy without knowing less.
    * ``accuracy_decided_shift``: difference of the two arms' own CORRECT / (CORRECT +
      INCORRECT), each over the rows that it decided. *Hides* that the two may have decided
      different rows: an arm that refuses the hard ones gains.
    * ``accuracy_decided_both_shift``: over the pairs that *both* arms decided. *Hides* the
      rows on which one refused; it is the fairest of the three where refusals differ, and
      speaks of those rows only.
    * ``other_rate_shift``: share of OTHER.

    Returns:
        Fractions in [-1, 1], above 0 where the treatment has more; undefined without rows.
    """
    n, base, treat = pairs.baseline.per_item(), pairs.baseline, pairs.treatment
    both = pairs.keep((base.verdict != OTHER) & (treat.verdict != OTHER))
    other = ratio(_is(treat, OTHER), n) - ratio(_is(base, OTHER), n)
    return {
        "accuracy_shift": accuracy_shift(pairs),
        "accuracy_decided_shift": difference(_decided(treat), _decided(base)),
        "accuracy_decided_both_shift": accuracy_shift(both)
        if both.n_pairs
        else undefined("0 rows decided by both"),
        "other_rate_shift": other.measured(),
    }


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference of two arms in one part of the rows.

    Attributes:
        place: Orientation index, or gold slot from 0.
        shift: Of accuracy.
    """

    place: int
    shift: Measured


def shifts_by(pairs: Pairs, by: By) -> tuple[Effect, ...]:
    """`accuracy_shift` in each orientation, or for each slot in which gold stood.

    By orientation the parts are those of the baseline's plan. By gold slot a bias shows
    that orientations hide: with gold in every slot equally often in each orientation, a
    model that always says A has the same accuracy in all of them.
    """
    return tuple(Effect(int(p), accuracy_shift(part)) for p, part in _parts(pairs, by))


def _parts(pairs: Pairs, by: By) -> list[tuple[int, Pairs]]:
    column = _column(pairs, by)
    return [(int(p), pairs.keep(column == p)) for p in np.unique(column) if p != NONE]


def _column(pairs: Pairs, by: By) -> Codes:
    if by not in ("orientation", "gold_slot"):
        raise SettingsError("by", 'must be "orientation" or "gold_slot"', by)
    return pairs.baseline.orientation if by == "orientation" else pairs.baseline.gold_slot


def equal_effects(pairs: Pairs, by: By) -> float | None:
    """Test whether the difference of the arms is the same in all parts.

    A cluster-robust Wald test of equal effects, its statistic referred to Hotelling's
    F distribution: ``W (G - q) / ((G - 1) q)`` with q and G - q degrees of freedom, for G
    items and q parts less one.

    Returns:
        The p value; None with fewer than two parts, or too few items for the test.

    Raises:
        SettingsError: ``by`` is something else.
    """
    parts = [_accuracy(part) for _, part in _parts(pairs, by)]
    n_items, q = pairs.n_items, len(parts) - 1
    if q < 1 or n_items - q < 1 or n_items < 2:
        return None
    effects = np.array([part.value for part in parts])
    off = np.stack([part.off for part in parts], axis=1)
    contrast = np.diff(np.eye(q + 1), axis=0)
    gap = contrast @ effects
    spread = contrast @ (off.T @ off) @ contrast.T * n_items / (n_items - 1)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    if rank < q:  # some contrast does not vary: equal if it is 0, and different beyond doubt if not
        return 1.0 if np.allclose(gap, 0.0) else _p_of_rest(gap, spread, n_items, rank)
    wald = float(gap @ np.linalg.solve(spread, gap))
    return _p_of(wald, n_items, q)


def _p_of_rest(gap: Floats, spread: Floats, n_items: int, rank: int) -> float:
    inverse = np.linalg.pinv(spread, hermitian=True)
    sure = gap - spread @ (inverse @ gap)
    if not np.allclose(sure, 0.0, atol=1e-9):
        return 0.0
    return _p_of(float(gap @ inverse @ gap), n_items, rank)


def _p_of(wald: float, n_items: int, q: int) -> float:
    return float(stats.f.sf(wald * (n_items - q) / ((n_items - 1) * q), q, n_items - q))


def transitions(pairs: Pairs) -> pd.DataFrame:
    """Rows by verdict of the baseline (down) and of the treatment (across).

    Two arms of equal accuracy may have no right answer in common; this shows it.

    Returns:
        Counts, 3 x 3, in the order CORRECT, INCORRECT, OTHER; their sum is the pairs.
    """
    names = {CORRECT: "CORRECT", INCORRECT: "INCORRECT", OTHER: "OTHER"}
    cell = pairs.baseline.verdict * 3 + pairs.treatment.verdict
    table = np.bincount(cell, minlength=9).reshape(3, 3)[np.ix_([*names], [*names])]
    index = pd.Index([*names.values()], name="baseline")
    return pd.DataFrame(table, index, pd.Index([*names.values()], name="treatment"))


def chosen_shifts(pairs: Pairs, by: Literal["option", "slot"]) -> pd.DataFrame:
    """How often each option (or slot) is chosen: the two arms and their difference.

    For preference tasks, where no option is right: P(chosen) with both denominators.
    ``shift`` is over all pairs, OTHER choosing nothing, so a refusal lowers every option;
    ``shift_named`` is over the pairs in which both arms name an option. Where the two
    differ, it is refusals that moved and not the preference.

    Args:
        pairs: Rows of two arms.
        by: ``option`` (its index in the data) or ``slot`` (its place on the page, and its
            letter in lettered prompts).

    Returns:
        One row an option or slot, from 1: ``place``, ``baseline``, ``treatment``, ``shift``,
        ``shift_named``, both with ``_low`` and ``_high``, ``n_rows``; None where undefined.

    Raises:
        SettingsError: ``by`` is something else.
    """
    if by not in ("option", "slot"):
        raise SettingsError("by", 'must be "option" or "slot"', by)
    name = "choice" if by == "option" else "slot"
    named = pairs.keep((pairs.baseline.choice != NONE) & (pairs.treatment.choice != NONE))
    table = []
    for place in range(int(pairs.baseline.n_options.max(initial=0))):
        everyone, some = (_chosen(part, name, place) for part in (pairs, named))
        row: dict[str, object] = {"place": place + 1}
        row |= {
            arm: share.value if share.n_items else None
            for arm, share in zip(("baseline", "treatment"), everyone, strict=True)
        }
        for column, (less, more) in (("shift", everyone), ("shift_named", some)):
            shift = _unnamed(pairs) or difference(more, less)
            row |= {column: shift.value, f"{column}_low": shift.low, f"{column}_high": shift.high}
        row["n_rows"] = int((pairs.baseline.n_options > place).sum())
        table.append(row)
    return pd.DataFrame(table)


def _chosen(pairs: Pairs, name: str, place: int) -> tuple[Linear, Linear]:
    shown = pairs.per_item(pairs.baseline.n_options > place)
    less, more = (
        ratio(pairs.per_item(getattr(rows, name) == place), shown)
        for rows in (pairs.baseline, pairs.treatment)
    )
    return less, more


def _unnamed(pairs: Pairs) -> Measured | None:
    why = pairs.baseline.nameless or pairs.treatment.nameless
    return Measured(None, reason=why) if why else None


def moved_by_grader(one: Pairs, other: Pairs) -> Measured:
    """How far the difference of two arms moves with the grader that reads them.

    ``accuracy_shift`` as one grader reads the pairs minus that of the other, with an
    interval over items: both read the same answers, so the items' own ups and downs cancel.

    Args:
        one: Pairs as one grader (the judge) reads them.
        other: The same arms as another (a regex) does; rows may be missing in either.

    Returns:
        A difference of differences, 0 where both graders tell the same story.
    """
    ids = sorted({*one.item_ids, *other.item_ids})
    place = {item: number for number, item in enumerate(ids)}
    mine, theirs = (_placed(pairs, place) for pairs in (one, other))
    return difference(mine, theirs)


def _placed(pairs: Pairs, place: dict[str, int]) -> Linear:
    shift = _accuracy(pairs)
    off, there = np.zeros(len(place)), np.zeros(len(place), dtype=np.bool_)
    where = np.array([place[item] for item in pairs.item_ids], dtype=np.intp)
    off[where], there[where] = shift.off, shift.there
    return Linear(shift.value, off, there, low=-1.0)
