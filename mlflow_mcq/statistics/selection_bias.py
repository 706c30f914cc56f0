"""Selection bias: does the place of an option decide whether it is picked?

A slot is a place on the page, 0 at the top. In prompts with letters the letter goes with
the slot, so what is said of slot 1 holds for A; `mlflow_mcq.statistics.labels` tells the
two apart where rows with shuffled labels exist.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.statistics.intervals import Measured, difference, ratio, undefined
from mlflow_mcq.statistics.patterns import REPLICATES, Number, Patterns, bootstrapped, patterns_of
from mlflow_mcq.statistics.rows import CORRECT, NONE, Rows

__all__ = ["SMOOTHING", "by_slot", "counts_by_item", "pick_rates", "slot_bias"]

SMOOTHING = 0.5
"""Rows added to each slot before a divergence: Jeffreys' prior; without it one slot that
nobody picks makes the divergence infinite."""


def counts_by_item(rows: Rows, column: Codes, n_slots: int) -> Floats:
    """How often each item has each value of a column of slots: items x slots."""
    cells = np.bincount(rows.item * n_slots + column, minlength=rows.n_items * n_slots)
    return cells.reshape(rows.n_items, n_slots).astype(np.float64)


def _named(rows: Rows) -> Rows:
    return rows.keep((rows.slot != NONE) & (rows.gold_slot != NONE))


def _n_slots(rows: Rows) -> int:
    return int(rows.n_options.max()) if len(rows.n_options) else 0


def pick_rates(rows: Rows) -> list[Measured]:
    """Rows that picked slot k / rows with a known pick that show slot k, for each slot.

    Without position bias it is the gold rate there if all answers are right, and 1 / n for
    a guesser. Items with several right options are left out: there the rate has no such
    meaning. *Hides* refusals (in no denominator), and a bias in one direction that a gold
    skewed to the other side makes up for: see ``gold_rate`` in `by_slot`.

    Args:
        rows: Graded rows.
    """
    named = _named(rows)
    of_what = "rows with a known pick that show this slot"
    found: list[Measured] = []
    if len(rows.item) and not (rows.gold_slot != NONE).any():
        why = f"all {rows.n_items_several_gold} items have several right options"
        return [undefined(why)] * _n_slots(rows)
    for slot in range(_n_slots(rows)):
        if rows.nameless:
            found.append(Measured(None, reason=rows.nameless))
            continue
        shown = named.per_item(named.n_options > slot)
        found.append(ratio(named.per_item(named.slot == slot), shown, of_what).measured())
    return found


def by_slot(rows: Rows) -> pd.DataFrame:
    """Picks and hits of each slot beside what they would be without bias.

    * ``pick_rate``: see `pick_rates`; ``uniform_rate``: mean of 1 / number of options over
      the same rows; ``gold_rate``: rows among them with gold in this slot.
    * ``shift``: ``pick_rate - gold_rate``, with interval; above 0 is picked too often.
    * ``recall``: accuracy over the graded rows with gold in this slot, OTHER counting as
      not correct. *Hides* how hard the items are whose gold stands there: look at it only
      where every item was shown in every rotation, or gold was placed at random.

    Rows without a single gold slot are left out.

    Args:
        rows: Graded rows.

    Returns:
        One row a slot: ``slot`` (1 is the top), ``letter``, the numbers above with ``_low``
        and ``_high``, and ``n_rows``, ``n_gold_rows``; None where undefined.
    """
    named, letters = _named(rows), letters_for(_n_slots(rows))
    table = []
    for slot, (letter, picked) in enumerate(zip(letters, pick_rates(rows), strict=True)):
        shown = named.per_item(named.n_options > slot)
        pick = ratio(named.per_item(named.slot == slot), shown)
        gold = ratio(named.per_item(named.gold_slot == slot), shown)
        shift = difference(pick, gold) if not rows.nameless else undefined("picks are unknown")
        at_gold = rows.per_item(rows.gold_slot == slot)
        hits = rows.per_item((rows.gold_slot == slot) & (rows.verdict == CORRECT))
        recall = ratio(hits, at_gold).measured()
        here = named.n_options > slot
        uniform = float((1 / named.n_options[here]).mean()) if here.any() else None
        row: dict[str, object] = {"slot": slot + 1, "letter": letter}
        row |= _columns("pick_rate", picked) | {"uniform_rate": uniform}
        row |= {"gold_rate": gold.value if gold.n_items else None}
        row |= _columns("shift", shift) | _columns("recall", recall)
        row |= {"n_rows": int(here.sum()), "n_gold_rows": int(at_gold.sum())}
        table.append(row)
    return pd.DataFrame(table)


def _columns(name: str, one: Measured) -> dict[str, object]:
    return {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}


def _moved(sums: Floats, added: float = 0.0) -> tuple[Floats, Floats]:
    """Pick rate minus gold rate of each slot, and the gold rate."""
    p, q = (block + added for block in np.split(sums, 2, axis=1))
    p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
    return p - q, q


def _recalls(sums: Floats) -> Floats:
    hits, golds = np.split(sums, 2, axis=1)
    return np.asarray(np.where(golds > 0, hits / golds, np.nan))


def _half_sum(moved: Floats) -> Floats:
    return np.asarray(np.abs(moved).sum(axis=1) / 2)


def _divergence(sums: Floats) -> Floats:
    moved, q = _moved(sums, SMOOTHING)
    return np.asarray(((moved + q) * np.log1p(moved / q)).sum(axis=1))


def _divergence_of_noise(sums: Floats, seen: Floats) -> Floats:
    moved, q = _moved(sums, SMOOTHING)
    # Near 0 the divergence is half of this chi-square distance.
    return np.asarray(((moved - _moved(seen, SMOOTHING)[0]) ** 2 / (2 * q)).sum(axis=1))


_LYING = {
    "slot_shift": Number(
        lambda sums: _half_sum(_moved(sums)[0]),
        0.0,
        1.0,
        lambda sums, seen: _half_sum(_moved(sums)[0] - _moved(seen)[0]),
    ),
    "choice_kl": Number(_divergence, 0.0, np.inf, _divergence_of_noise),
}
_RECALLED = {
    "recall_std": Number(
        lambda sums: np.asarray(np.nanstd(_recalls(sums), axis=1)),
        0.0,
        0.5,
        lambda sums, seen: np.asarray(np.nanstd(_recalls(sums) - _recalls(seen), axis=1)),
    )
}


def slot_bias(rows: Rows, replicates: int = REPLICATES, seed: int = 0) -> dict[str, Measured]:
    """Selection bias in one number, three ways. All are 0 without bias, and above 0 by noise.

    * ``slot_shift``: half the sum over slots of \\|pick rate - gold rate\\|, over rows with a
      known pick and one gold: the share of picks that would have to move for them to lie as
      the gold does. In [0, 1]; always A with four rotated options is 0.75. *Hides* which
      slot, and a bias that only shows on items the model does not know.
    * ``recall_std``: RStd of Zheng et al. (arXiv 2309.03882): population standard deviation
      over slots of the recall (accuracy on rows with gold there). A fraction in [0, 0.5];
      theirs is in percentage points: times 100. *Hides* picks: a model that refuses only
      when gold is last has one, too.
    * ``choice_kl``: ``sum p ln(p / q)`` in nats, p the picks and q the gold by slot, with
      half a row added to each slot. From 0 without bound. *Hides* more than the other two:
      it is quadratic in small shifts, and its size depends on the smoothing where slots are
      never picked.

    Args:
        rows: Graded rows.
        replicates: Draws for the intervals, over items.
        seed: Of the draws.

    Returns:
        Undefined without picks, or where wrong answers name no option (``recall_std`` needs
        no picks, but gold in two slots).
    """
    n_slots = _n_slots(rows)
    named = _named(rows)
    golden = rows.keep(rows.gold_slot != NONE)
    picks = counts_by_item(named, named.slot, n_slots)
    golds = counts_by_item(named, named.gold_slot, n_slots)
    right = golden.keep(golden.verdict == CORRECT)
    hits = counts_by_item(right, right.gold_slot, n_slots)
    graded = counts_by_item(golden, golden.gold_slot, n_slots)
    found: dict[str, Measured] = {}
    if rows.nameless or not len(named.slot):
        why = rows.nameless or "undefined: 0 rows with a known pick and one gold"
        found |= dict.fromkeys(("slot_shift", "choice_kl"), Measured(None, reason=why))
    else:
        found |= bootstrapped(_patterns(picks, golds), _LYING, replicates, seed)
    if np.count_nonzero(graded.sum(axis=0)) < 2:
        found["recall_std"] = undefined("gold stands in fewer than 2 slots")
    else:
        found |= bootstrapped(_patterns(hits, graded), _RECALLED, replicates, seed)
    return found


def _patterns(one: Floats, other: Floats) -> Patterns:
    there = other.any(axis=1)
    return patterns_of([*one[there].T, *other[there].T])
