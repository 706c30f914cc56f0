"""Numbers over grades: one grader of one arm at a time.

All rates are fractions in [0, 1]. A metric without rows behind it is *undefined*: it
gets a reason and no number, since a NaN breaks pages and a 0 is a lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

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


def summarize(grades: pd.DataFrame, *, judged: bool) -> Summary:
    """Every mean of one grader.

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
    * ``accuracy_lowest``, ``accuracy_highest``, ``accuracy_spread``: over orientations, on
      the same items in each: those with at least two orientations, in as many of the first
      ones as all of them have. (An orientation that only long items have would otherwise
      show how hard long items are.)

    Where a judge says whether an answer is right but not which option it names (shape
    ``direct``, more than two options or several right ones), picks and consistency are
    undefined.

    Args:
        grades: Rows of `mlflow_mcq.table.grades_frame`, one grader.
        judged: Whether the grader can fail on a row.

    Returns:
        The numbers; without graded rows most are undefined, with the reason.
    """
    summary = Summary()
    graded = grades[grades["verdict"].notna()]
    n_errors = len(grades) - len(graded)
    _add_accuracy(summary, graded)
    if judged:
        summary.rate("judge_error_rate", n_errors, len(grades), "rows")
        summary.values["n_judge_errors"] = float(n_errors)
    _add_consistency(summary, graded)
    _add_spread(summary, graded)
    _add_pick_rates(summary, graded)
    summary.values["n_rows"] = float(len(grades))
    summary.values["n_items"] = float(grades["item_id"].nunique())
    several = grades[~_one_gold(grades)]
    if len(several):
        summary.values["n_items_several_gold"] = float(several["item_id"].nunique())
    return summary


def by_orientation(grades: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and its companions for each orientation index of one grader.

    Returns:
        One row an orientation, in order: ``orientation``, ``n_rows``, ``n_judge_errors``,
        ``accuracy``, ``accuracy_decided``, ``other_rate``; None where undefined.
    """
    rows = []
    for index, part in grades.groupby("orientation", sort=True):
        graded = part[part["verdict"].notna()]
        summary = Summary()
        _add_accuracy(summary, graded)
        names = ("accuracy", "accuracy_decided", "other_rate")
        rows.append(
            {
                "orientation": index,
                "n_rows": len(part),
                "n_judge_errors": len(part) - len(graded),
                **{name: summary.values.get(name) for name in names},
            }
        )
    return pd.DataFrame(rows)


def confusion(grades: pd.DataFrame) -> pd.DataFrame:
    """Counts of gold slot (rows) by picked slot (columns), with what is no slot beside.

    Items with several right options have no single gold slot and are left out.

    Returns:
        Index: gold slot, from 0. Columns: picked slots from 0, then ``OTHER``; where it
        occurs also ``several`` (names more than one, where that is allowed), ``unnamed``
        (wrong, but the judge did not say which) and ``judge_error``. The sum of all cells
        is the number of rows of items with one right option.
    """
    n_slots = int(grades["n_options"].max()) if len(grades) else 0
    grades = grades[_one_gold(grades)]
    picked = grades["slot"].astype("object").where(grades["slot"].notna(), None)
    named = np.where(
        grades["verdict"].isna(),
        "judge_error",
        np.where(
            grades["verdict"] == "OTHER",
            "OTHER",
            np.where(grades["choices"].map(len) > 1, "several", "unnamed"),
        ),
    )
    column = [name if slot is None else int(slot) for slot, name in zip(picked, named, strict=True)]
    table = pd.crosstab(grades["gold_slot"], pd.Series(column, index=grades.index, dtype="object"))
    extra = [name for name in ("several", "unnamed", "judge_error") if name in table.columns]
    columns = [*range(n_slots), "OTHER", *extra]
    table = table.reindex(index=range(n_slots), columns=columns, fill_value=0).astype(int)
    return table.rename_axis(index="gold_slot", columns=None)


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


def _add_accuracy(summary: Summary, graded: pd.DataFrame) -> None:
    counts = graded["verdict"].value_counts()
    right, wrong = int(counts.get("CORRECT", 0)), int(counts.get("INCORRECT", 0))
    summary.rate("accuracy", right, len(graded), "graded rows")
    summary.rate("accuracy_decided", right, right + wrong, "decided rows")
    summary.rate("other_rate", int(counts.get("OTHER", 0)), len(graded), "graded rows")


def _add_pick_rates(summary: Summary, graded: pd.DataFrame) -> None:
    named = graded[graded["slot"].notna()]
    n_slots = int(graded["n_options"].max()) if len(graded) else 0
    left_out = graded[~_one_gold(graded)]
    n_left_out = int(left_out["item_id"].nunique())
    named = named[_one_gold(named)]
    unknown = _unnamed(graded)
    if len(graded) and len(left_out) == len(graded):
        unknown = f"undefined: all {n_left_out} items have several right options"
    for slot in range(min(n_slots, MOST_SLOT_METRICS)):
        name = f"pick_rate_slot_{slot + 1}"
        if unknown:
            summary.undefined[name] = unknown
            continue
        shown = named[named["n_options"] > slot]
        hits = int((shown["slot"] == slot).sum())
        summary.rate(name, hits, len(shown), "rows with a known pick that show this slot")
        if n_left_out and len(shown):
            summary.notes[name] = f"without {n_left_out} items that have several right options"


def _unnamed(graded: pd.DataFrame) -> str:
    """Why picks are unknown, or nothing: right answers alone would hide every bias."""
    unknown = graded["verdict"].isin(["CORRECT", "INCORRECT"]) & (_said(graded["choices"]) == "")
    n_unknown = int(unknown.sum())
    return f"undefined: {n_unknown} answers without the option they name" if n_unknown else ""


def _one_gold(grades: pd.DataFrame) -> pd.Series[bool]:
    """Rows of items with one right option."""
    return grades["golds"].map(len).astype(int) == 1


def _said(choices: pd.Series) -> pd.Series[str]:
    """Each set of options as a text; empty where none was named."""
    return choices.map(lambda options: ",".join(map(str, options))).astype(object)


def _add_consistency(summary: Summary, graded: pd.DataFrame) -> None:
    unknown = _unnamed(graded)
    if unknown:
        summary.undefined["consistency"] = unknown
        return
    said = _said(graded["choices"])
    items = graded.assign(said=said, named=said != "").groupby(["item_id", "protocol"])
    several = items["orientation"].nunique() >= 2
    # An answer that names no option is never consistent, not even with itself.
    same = (items["said"].nunique() == 1) & items["named"].all()
    n_several = int(several.sum())
    hits = int((same & several).sum())
    summary.rate("consistency", hits, n_several, "items with two graded orientations")


def _add_spread(summary: Summary, graded: pd.DataFrame) -> None:
    known = _by_shared_orientation(graded)
    for name, value in (("lowest", known.min()), ("highest", known.max())):
        if len(known):
            summary.values[f"accuracy_{name}"] = float(value)
        else:
            summary.undefined[f"accuracy_{name}"] = "undefined: 0 items graded in each orientation"
    if len(known) >= 2:
        summary.values["accuracy_spread"] = float(known.max() - known.min())
    else:
        summary.undefined["accuracy_spread"] = "undefined: fewer than 2 orientations"


def _by_shared_orientation(graded: pd.DataFrame) -> pd.Series:
    """Accuracy by orientation index, over the items that are in each of them."""
    right = graded.assign(right=(graded["verdict"] == "CORRECT").astype(float))
    cells = right.pivot_table(
        index=["item_id", "protocol"], columns="orientation", values="right", aggfunc="mean"
    )
    n_orientations = cells.notna().sum(axis=1)
    rotated = cells[n_orientations >= 2]
    if not len(rotated):
        return cells.mean().dropna()
    n_shared = int(n_orientations[n_orientations >= 2].min())
    return rotated.iloc[:, :n_shared].dropna().mean().dropna()
