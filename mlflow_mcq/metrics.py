"""Numbers over grades: one grader of one arm at a time.

All rates are fractions in [0, 1]. A metric without rows behind it is *undefined*: it
gets a reason and no number, since a NaN breaks pages and a 0 is a lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mlflow_mcq.statistics.flips import pair_consistency
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.one_arm import accuracies, agreement, spread
from mlflow_mcq.statistics.rows import NONE, OTHER, SEVERAL, Rows, rows_of
from mlflow_mcq.statistics.selection_bias import pick_rates, slot_bias

__all__ = [
    "MOST_SLOT_METRICS",
    "Summary",
    "by_orientation",
    "confusion",
    "disagreement",
    "summarize",
]

MOST_SLOT_METRICS = 10
"""Beyond this many slots the pick rates stand in the confusion table only."""


@dataclass
class Summary:
    """Named numbers, and the reasons for those that do not exist.

    Attributes:
        values: Number by name.
        undefined: Reason by name.
        notes: What to know about a number that does exist, by name.
    """

    values: dict[str, float] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def rate(self, name: str, part: float, whole: float, of_what: str) -> None:
        """Add ``part / whole``, or the reason why there is none."""
        if whole:
            self.values[name] = float(part) / float(whole)
        else:
            self.undefined[name] = f"undefined: 0 {of_what}"

    def measured(self, numbers: Mapping[str, Measured]) -> None:
        """Add numbers with their intervals, or the reasons why there are none."""
        for name, one in numbers.items():
            self.values |= one.numbers(name)
            self.undefined |= one.reasons(name)

    def add(self, other: Summary) -> None:
        """Take over what another one holds."""
        self.values |= other.values
        self.undefined |= other.undefined
        self.notes |= other.notes

    def renamed(self, names: Mapping[str, str]) -> Summary:
        """The numbers that have a new name, under it."""
        return Summary(
            {names[k]: v for k, v in self.values.items() if k in names},
            {names[k]: v for k, v in self.undefined.items() if k in names},
        )


def summarize(grades: pd.DataFrame, *, judged: bool, replicates: int = 2_000) -> Summary:
    """Every number of one grader.

    Beside a number stand ``<name>_low`` and ``<name>_high``, its 95 % interval over items
    (see `mlflow_mcq.statistics`), where one exists; a reason stands under ``<name>_low``
    where there are too few items.

    * ``accuracy``: CORRECT / graded rows; OTHER counts as not correct.
    * ``accuracy_decided``: CORRECT / (CORRECT + INCORRECT). Hides refusals: a model that
      answers one easy row in a hundred scores 1.
    * ``other_rate``: OTHER / graded rows.
    * ``judge_error_rate``: rows without a verdict / all rows (judged graders only).
    * ``n_rows``, ``n_items``, ``n_judge_errors``: counts; ``n_items_several_gold`` where there
      are items with several right options.
    * ``pick_rate_slot_k``: rows that picked slot k (1 is the top) / rows with a known pick
      whose item has a slot k. Without position bias it equals the gold rate there when
      all answers are right; a model that always says A has 1 at slot 1. Items with several
      right options are left out, since there that rate has no such meaning.
    * ``consistency``: items whose every graded orientation names the same option (or, where
      all right ones are asked for, the same set) / items with at least two graded
      orientations. Any OTHER among them breaks it. 0 for a model that always says A.
    * ``circular_accuracy``: items right in every graded orientation / the same items.
    * ``pair_consistency``: pairs of orientations that name the same option / pairs.
    * ``accuracy_lowest``, ``accuracy_highest``, ``accuracy_spread``, ``accuracy_variation``:
      over orientations, on the same items in each: those with at least two orientations, in
      as many of the first ones as all of them have. (An orientation that only long items
      have would otherwise show how hard long items are.)
    * ``slot_shift``, ``choice_kl``, ``recall_std``: see
      `mlflow_mcq.statistics.selection_bias.slot_bias`.

    Where a judge says whether an answer is right but not which option it names (shape
    ``direct``, more than two options or several right ones), picks and consistency are
    undefined.

    Args:
        grades: Rows of `mlflow_mcq.table.grades_frame`, one grader.
        judged: Whether the grader can fail on a row.
        replicates: Draws of the bootstrap, for the numbers that are no simple ratio.

    Returns:
        The numbers; without graded rows most are undefined, with the reason.
    """
    summary = Summary()
    rows = rows_of(grades)
    graded = rows.graded
    n_errors = len(grades) - len(graded.item)
    summary.measured(accuracies(graded))
    if judged:
        summary.rate("judge_error_rate", n_errors, len(grades), "rows")
        summary.values["n_judge_errors"] = float(n_errors)
    summary.measured(agreement(graded) | {"pair_consistency": pair_consistency(graded)})
    summary.measured(spread(graded, replicates))
    _add_pick_rates(summary, graded)
    summary.measured(slot_bias(graded, replicates))
    summary.values["n_rows"] = float(len(grades))
    summary.values["n_items"] = float(rows.n_items)
    if rows.n_items_several_gold:
        summary.values["n_items_several_gold"] = float(rows.n_items_several_gold)
    return summary


def _add_pick_rates(summary: Summary, graded: Rows) -> None:
    n_left_out = graded.n_items_several_gold
    for slot, picked in enumerate(pick_rates(graded)[:MOST_SLOT_METRICS], start=1):
        name = f"pick_rate_slot_{slot}"
        # With its ends a pick rate would be three columns a slot: those stand in `by_slot`.
        shown = Measured(picked.value, reason=picked.reason if picked.value is None else "")
        summary.measured({name: shown})
        if n_left_out and picked.value is not None:
            summary.notes[name] = f"without {n_left_out} items that have several right options"


def by_orientation(grades: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and its companions for each orientation index of one grader.

    Returns:
        One row an orientation, in order: ``orientation``, ``n_rows``, ``n_judge_errors``,
        ``accuracy`` with ``_low`` and ``_high``, ``accuracy_decided``, ``other_rate``; None
        where undefined.
    """
    rows, table = rows_of(grades), []
    for index in np.unique(rows.orientation):
        part = rows.keep(rows.orientation == index)
        summary = Summary()
        summary.measured(accuracies(part.graded))
        names = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_decided", "other_rate")
        table.append(
            {
                "orientation": int(index),
                "n_rows": len(part.item),
                "n_judge_errors": len(part.item) - len(part.graded.item),
                **{name: summary.values.get(name) for name in names},
            }
        )
    return pd.DataFrame(table)


def confusion(grades: pd.DataFrame) -> pd.DataFrame:
    """Counts of gold slot (rows) by picked slot (columns), with what is no slot beside.

    Items with several right options have no single gold slot and are left out.

    Returns:
        Index: gold slot, from 0. Columns: picked slots from 0, then ``OTHER``; where it
        occurs also ``several`` (names more than one, where that is allowed), ``unnamed``
        (wrong, but the judge did not say which) and ``judge_error``. The sum of all cells
        is the number of rows of items with one right option.
    """
    rows = rows_of(grades)
    n_slots = int(rows.n_options.max(initial=0))
    extra = ["several", "unnamed", "judge_error"]
    names = [*range(n_slots), "OTHER", *extra]
    states = [rows.verdict == NONE, rows.verdict == OTHER, rows.choice >= SEVERAL]
    beside = np.select(states, [3, 0, 1], 2)
    column = np.where(rows.slot == NONE, n_slots + beside, rows.slot)
    placed = rows.gold_slot != NONE
    cell = rows.gold_slot[placed] * len(names) + column[placed]
    counts = np.bincount(cell, minlength=n_slots * len(names)).reshape(n_slots, len(names))
    table = pd.DataFrame(counts, columns=pd.Index(names, dtype="object"))
    empty = [name for name in extra if not table[name].any()]
    return table.drop(columns=empty).rename_axis(index="gold_slot", columns=None)


def disagreement(one: pd.DataFrame, other: pd.DataFrame) -> Summary:
    """Share of rows that two graders read differently.

    Rows where either has no verdict are left out. Two readings are the same if the
    verdicts are equal and, where both name options, the options are.

    Returns:
        ``disagreement`` and ``n_compared``; undefined without common rows.
    """
    keys = ["item_id", "protocol", "orientation", "repeat"]
    both = one.merge(other, on=keys, suffixes=("", "_2"), validate="one_to_one")
    both = both[both["verdict"].notna() & both["verdict_2"].notna()]
    one_said, other_said = _said(both["choices"]), _said(both["choices_2"])
    named = (one_said != "") & (other_said != "")
    differ = (both["verdict"] != both["verdict_2"]) | (named & (one_said != other_said))
    summary = Summary({"n_compared": float(len(both))})
    summary.rate("disagreement", int(differ.sum()), len(both), "rows read by both")
    return summary


def _said(choices: pd.Series) -> pd.Series[str]:
    """Each set of options as a text; empty where none was named."""
    return choices.map(lambda options: ",".join(map(str, options))).astype(object)
