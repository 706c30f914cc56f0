"""What one grader says about one arm: accuracy, consistency, and the spread over orientations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlflow_mcq.clusters import Floats
from mlflow_mcq.statistics.intervals import Measured, ratio, undefined
from mlflow_mcq.statistics.patterns import REPLICATES, Number, bootstrapped, patterns_of
from mlflow_mcq.statistics.rows import CORRECT, INCORRECT, NONE, OTHER, Rows

__all__ = ["Cells", "accuracies", "agreement", "cells_of", "spread"]


def accuracies(rows: Rows) -> dict[str, Measured]:
    """Accuracy with both denominators, and the share of OTHER.

    * ``accuracy``: CORRECT / graded rows. *Hides* whether what is lost was wrong or unread.
    * ``accuracy_decided``: CORRECT / (CORRECT + INCORRECT), a ratio of two sums that both
      vary. *Hides* refusals: an arm that answers one easy row in a hundred scores 1.
    * ``other_rate``: OTHER / graded rows. *Hides* why: see the reasons in ``mcq_grades``.

    Args:
        rows: Graded rows; several orientations and repeats an item.

    Returns:
        Fractions in [0, 1] with clustered intervals; undefined without rows.
    """
    right = rows.per_item(rows.verdict == CORRECT)
    wrong = rows.per_item(rows.verdict == INCORRECT)
    other = rows.per_item(rows.verdict == OTHER)
    graded = right + wrong + other
    return {
        "accuracy": ratio(right, graded, "graded rows").measured(),
        "accuracy_decided": ratio(right, right + wrong, "decided rows").measured(),
        "other_rate": ratio(other, graded, "graded rows").measured(),
    }


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows of one item and protocol, summed up."""

    several: npt.NDArray[np.bool_]
    same: npt.NDArray[np.bool_]
    right: npt.NDArray[np.bool_]


def agreement(rows: Rows) -> dict[str, Measured]:
    """Whether an item is read the same way in all its orientations.

    * ``consistency``: items with one and the same option picked in every graded
      orientation / items with at least two. Any OTHER breaks it; 0 for a model that always
      says A. *Hides* how far from agreement the rest is (see ``pair_consistency``), and
      falls with the number of orientations: compare arms with equally many only.
    * ``circular_accuracy``: items that are right in every graded orientation / items with
      at least two (the circular evaluation of Liu et al., MMBench, arXiv 2307.06281). A
      model that always says A scores 0, a guesser ``(1 / n) ** orientations``. *Hides*
      whether the others are wrong or unstable.

    Args:
        rows: Graded rows.

    Returns:
        Fractions in [0, 1], intervals over items; undefined without items that have two
        orientations, ``consistency`` also where wrong answers name no option.
    """
    groups = _groups(rows)
    several = rows.items_of_groups(groups.several)
    of_what = "items with two graded orientations"
    right = ratio(rows.items_of_groups(groups.several & groups.right), several, of_what)
    same = ratio(rows.items_of_groups(groups.several & groups.same), several, of_what).measured()
    why = rows.nameless
    return {
        "consistency": Measured(None, reason=why) if why else same,
        "circular_accuracy": right.measured(),
    }


def _groups(rows: Rows) -> _Groups:
    n_groups = len(rows.group_item)
    none = np.zeros(n_groups, dtype=np.bool_)
    if not len(rows.group):
        return _Groups(none, none, none)
    order = np.argsort(rows.group, kind="stable")
    group = rows.group[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    present = group[starts]

    def spread_of(column: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], ...]:
        ordered = column[order]
        return np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)

    first, last = spread_of(rows.orientation)
    least, most = spread_of(rows.choice)
    worst, _ = spread_of((rows.verdict == CORRECT).astype(np.intp))
    several, same, right = none.copy(), none.copy(), none.copy()
    several[present] = first != last
    # `NONE` stands for "no option named": it is never consistent, not even with itself.
    same[present] = (least == most) & (least != NONE)
    right[present] = worst == 1
    return _Groups(several, same, right)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Accuracy of each item in each orientation, where all items have all of them.

    Attributes:
        orientations: Their indices.
        right: Items x orientations: sums over the item's protocols of the mean over repeats.
        n: Protocols of each item that are counted; 0 leaves an item out.
    """

    orientations: tuple[int, ...]
    right: Floats
    n: Floats

    @property
    def accuracy(self) -> Floats:
        """By orientation; empty without items."""
        total = self.n.sum()
        return self.right.sum(axis=0) / total if total else np.zeros(0)


def cells_of(rows: Rows) -> Cells:
    """The items that can be compared over orientations, in the orientations they share.

    Items with at least two orientations, in as many of the first ones as all of them have:
    an orientation that only long items have would otherwise show how hard long items are.
    Where no item has two, the orientations as they are.

    Args:
        rows: Graded rows.
    """
    seen, place = np.unique(rows.orientation, return_inverse=True)
    n_groups, n_seen = len(rows.group_item), len(seen)
    cell = rows.group * n_seen + place
    size = n_groups * n_seen
    n_rows = np.bincount(cell, minlength=size).reshape(n_groups, n_seen)
    right = np.bincount(cell, rows.verdict == CORRECT, size).reshape(n_groups, n_seen)
    n_orientations = (n_rows > 0).sum(axis=1)
    rotated = n_orientations >= 2
    if rotated.any():
        n_shared = int(n_orientations[rotated].min())
        n_rows, right, seen = n_rows[:, :n_shared], right[:, :n_shared], seen[:n_shared]
        kept = rotated & (n_rows > 0).all(axis=1)
    else:
        n_rows, right, seen = n_rows[:, :1], right[:, :1], seen[:1]
        kept = n_rows[:, 0] > 0 if len(seen) else np.zeros(n_groups, dtype=np.bool_)
    mean = np.where(kept[:, None], right / np.maximum(n_rows, 1), 0.0)
    columns = [rows.items_of_groups(column) for column in mean.T]
    table = np.stack(columns, axis=1) if columns else np.zeros((rows.n_items, 0))
    return Cells(tuple(map(int, seen)), table, rows.items_of_groups(kept))


def spread(rows: Rows, replicates: int = REPLICATES, seed: int = 0) -> dict[str, Measured]:
    """How much accuracy depends on the order of options.

    * ``accuracy_lowest``, ``accuracy_highest``: of the orientations, on the same items. Each
      is chosen for being extreme, so neither has an interval.
    * ``accuracy_spread``: their difference; above 0 by noise alone, so look at its lower end.
    * ``accuracy_variation``: standard deviation over orientations (population), steadier
      than the spread where there are many.

    *Hides* a bias that hits every orientation alike: with gold in every slot equally often
    in each orientation, a model that always says A has a spread of 0. See `selection_bias`.

    Args:
        rows: Graded rows.
        replicates: Draws for the intervals, over items.
        seed: Of the draws.

    Returns:
        Fractions in [0, 1]; all undefined with fewer than two orientations.
    """
    cells = cells_of(rows)
    by_orientation = cells.accuracy
    if len(by_orientation) < 2:
        # The lowest of one would stand as a range that nobody has measured.
        none = "0 items graded in each orientation"
        few = "fewer than 2 orientations" if len(by_orientation) else none
        names = ("lowest", "highest", "spread", "variation")
        return {f"accuracy_{name}": undefined(few) for name in names}
    n_items = int((cells.n > 0).sum())
    named = {
        f"accuracy_{name}": Measured(float(pick(by_orientation)), n_items=n_items)
        for name, pick in (("lowest", np.min), ("highest", np.max))
    }
    there = cells.n > 0
    patterns = patterns_of([*cells.right[there].T, cells.n[there]])

    return named | bootstrapped(
        patterns,
        {
            "accuracy_spread": _of_means(lambda means: np.ptp(means, axis=1), 1.0),
            "accuracy_variation": _of_means(lambda means: means.std(axis=1), 0.5),
        },
        replicates,
        seed,
    )


def _of_means(size: Callable[[Floats], Floats], high: float) -> Number:
    """How far the means by orientation lie apart; the last column counts."""

    def means(sums: Floats) -> Floats:
        return sums[:, :-1] / sums[:, -1:]

    return Number(
        lambda sums: size(means(sums)),
        0.0,
        high,
        lambda sums, seen: size(means(sums) - means(seen)),
    )
