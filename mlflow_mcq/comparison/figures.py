"""Pictures of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mlflow_mcq.canvas import COLOURS, empty_figure, error_bars, interval_line, shade_cells
from mlflow_mcq.comparison.arms import StoredArm
from mlflow_mcq.metrics import confusion
from mlflow_mcq.orientations import letters_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "confusions_figure",
    "forest_figure",
    "orientations_figure",
    "slots_figure",
    "transitions_figure",
    "verdicts_figure",
]

_VERDICT_COLOURS = {
    "CORRECT": "#009E73",
    "INCORRECT": "#D55E00",
    "OTHER": "#B3B3B3",
    "judge error": "#5C5C5C",
}
_LONGEST_NAME = 28
_MOST_IN_PARTS = 6
_MOST_SIDE_BY_SIDE = 3


def forest_figure(deltas: pd.DataFrame, baseline: str) -> Figure:
    """Differences in accuracy with their intervals: averaged, by orientation, by slot of gold.

    Args:
        deltas: From `mlflow_mcq.comparison.deltas.deltas_table`.
        baseline: Name of the arm compared with.
    """
    grader = deltas["read_by"].iloc[0]
    mine = deltas[(deltas["read_by"] == grader) & deltas["shift"].notna()]
    kept = mine[(mine["metric"] == "accuracy_shift") | (mine["metric"] == "accuracy_decided_shift")]
    if kept["arm"].nunique() > _MOST_IN_PARTS:
        kept = kept[kept["part"] == "all"]
    figure = empty_figure(8.2, 1.4 + 0.24 * (len(kept) + kept["arm"].nunique()))
    axes = figure.add_subplot()
    place, ticks = 0.0, {}
    # The first colour is the baseline's in every other picture.
    for k, (arm, rows) in enumerate(kept.groupby("arm", sort=False), start=1):
        for row in rows.to_dict("records"):
            _forest_row(axes, row, place, COLOURS[k % len(COLOURS)])
            ticks[place] = _forest_label(str(arm), row)
            place -= 1.0
        place -= 0.6
    axes.axvline(0, color=axes.spines["left"].get_edgecolor(), linewidth=1)
    axes.set_yticks(list(ticks), list(ticks.values()))
    for label, at in zip(axes.get_yticklabels(), ticks.values(), strict=True):
        label.set_fontweight("bold" if at.endswith("all rows") else "normal")
    axes.set_ylim(place + 0.8, 0.8)
    axes.set_xlabel(f"accuracy minus that of {_short(baseline)} (points), 95 % interval over items")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x * 100:+.0f}" if x else "0")
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(f"Differences in accuracy, read by {grader}", fontsize=11)
    return figure


def _forest_label(arm: str, row: dict[Any, Any]) -> str:
    if row["part"] != "all":
        return str(row["part"])
    rows = "all rows" if row["metric"] == "accuracy_shift" else "decided rows"
    return f"{_short(arm)}, {rows}"


def _forest_row(axes: Axes, row: dict[Any, Any], place: float, colour: str) -> None:
    whole = row["part"] == "all"
    if pd.notna(row["low"]) and pd.notna(row["high"]):
        width = 3 if whole else 1.5
        axes.hlines(place, row["low"], row["high"], color=colour, linewidth=width)
    mark, size = ("D", 7) if whole else ("o", 5)
    axes.plot([row["shift"]], [place], mark, color=colour, markersize=size)


def orientations_figure(table: pd.DataFrame) -> Figure:
    """Accuracy by orientation: a line an arm, with intervals."""
    figure = empty_figure(6.8, 3.9)
    axes = figure.add_subplot()
    arms = list(dict.fromkeys(table["arm"]))
    for k, arm in enumerate(arms):
        rows = table[(table["arm"] == arm) & table["accuracy"].notna()]
        # Beside each other: intervals on one line hide each other.
        at = rows["orientation"] + (k - (len(arms) - 1) / 2) * 0.06
        numbers = [rows["accuracy"], rows["accuracy_low"], rows["accuracy_high"]]
        interval_line(axes, at, numbers, k, _short(arm))
    axes.set_ylim(-0.02, 1.02)
    axes.set_xticks(sorted(set(table["orientation"])))
    axes.set_xlabel("orientation (0 is the order of the data)")
    axes.set_ylabel("accuracy, all rows (fraction)")
    axes.grid(axis="y", alpha=0.3)
    axes.set_title("Accuracy by orientation, 95 % interval over items", fontsize=11)
    _legend(axes)
    return figure


def slots_figure(table: pd.DataFrame) -> Figure:
    """How often each slot is picked by each arm, and how often gold stands there."""
    arms, slots = list(dict.fromkeys(table["arm"])), sorted(set(table["slot"]))
    figure = empty_figure(max(6.8, 0.9 * len(slots)), 3.9)
    axes = figure.add_subplot()
    width = 0.8 / len(arms)
    for k, arm in enumerate(arms):
        rows = table[(table["arm"] == arm) & table["pick_rate"].notna()]
        at = rows["slot"] + (k - (len(arms) - 1) / 2) * width
        rate = rows["pick_rate"].astype(float)
        axes.bar(
            at,
            rate,
            width * 0.92,
            yerr=error_bars(rate, rows["pick_rate_low"], rows["pick_rate_high"]),
            color=COLOURS[k % len(COLOURS)],
            error_kw={"capsize": 2, "linewidth": 1, "ecolor": axes.title.get_color()},
            label=_short(arm),
        )
        gold = rows["gold_rate"].astype(float)
        half, line = width * 0.46, axes.title.get_color()
        label = "gold stands there" if k == 0 else "_"
        axes.hlines(gold, at - half, at + half, color=line, linestyle=(0, (1, 1)), label=label)
    letters = dict(zip(table["slot"], table["letter"], strict=True))
    axes.set_xticks(slots, [f"{slot} ({letters[slot]})" for slot in slots])
    axes.set_xlabel("slot, 1 is the top (usual letter)")
    axes.set_ylabel("share of known picks (fraction)")
    axes.grid(axis="y", alpha=0.3)
    axes.set_title("Picks by slot, 95 % interval over items", fontsize=11)
    _legend(axes)
    return figure


def verdicts_figure(table: pd.DataFrame) -> Figure:
    """What the answers of each arm are worth, as shares of its rows."""
    figure = empty_figure(6.8, 1.5 + 0.42 * len(table))
    axes = figure.add_subplot()
    kinds = [name for name in _VERDICT_COLOURS if name in table]
    counts = table[kinds].to_numpy(dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    left = np.zeros(len(table))
    for k, kind in enumerate(kinds):
        axes.barh(range(len(table)), shares[:, k], left=left, color=_VERDICT_COLOURS[kind],
                  label=kind, height=0.7)  # fmt: skip
        for row, share in enumerate(shares[:, k]):
            if share >= 0.06:  # a number does not fit into less
                colour = "white" if kind in ("INCORRECT", "judge error") else "black"
                axes.text(left[row] + share / 2, row, f"{share:.0%}", ha="center", va="center",
                          color=colour, fontsize=9)  # fmt: skip
        left += shares[:, k]
    axes.set_yticks(range(len(table)), [_short(name) for name in table["arm"]])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of rows (fraction)")
    axes.set_title("Verdicts", fontsize=11)
    figure.legend(frameon=False, ncols=len(kinds), loc="outside lower center")
    return figure


def confusions_figure(arms: Sequence[StoredArm], grader: str) -> Figure:
    """Gold slot by picked slot, the arms side by side on one scale of shades."""
    tables = [confusion(arm.grades[grader]) for arm in arms]
    n_slots, n_columns = max(map(len, tables)), max(len(t.columns) for t in tables)
    across = min(len(arms), _MOST_SIDE_BY_SIDE)
    down = -(-len(arms) // across)
    width, height = 1.0 + 0.75 * n_columns, 1.2 + 0.6 * n_slots
    figure = empty_figure(0.4 + across * width, 0.5 + down * height)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    letters = letters_for(n_slots)
    for axes, arm, table in zip(panels, arms, tables, strict=False):
        names = [letters[c] if isinstance(c, int) else str(c) for c in table.columns]
        _heat(axes, table.to_numpy(), (list(letters[: len(table)]), names), _short(arm.name))
        axes.set_xlabel("slot picked")
    for axes in panels[::across]:
        axes.set_ylabel("slot of gold")
    for axes in panels[len(arms) :]:
        axes.set_axis_off()
    figure.suptitle(f"Gold slot by picked slot (rows), read by {grader}", fontsize=11)
    return figure


def transitions_figure(table: pd.DataFrame) -> Figure:
    """Rows by verdict in the baseline (down) and in each arm (across)."""
    arms = list(dict.fromkeys(table["arm"]))
    across = min(len(arms), _MOST_SIDE_BY_SIDE)
    down = -(-len(arms) // across)
    figure = empty_figure(1.0 + 3.9 * across, 0.6 + 2.9 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    names = ["CORRECT", "INCORRECT", "OTHER"]
    for axes, arm in zip(panels, arms, strict=False):
        rows = table[table["arm"] == arm]
        counts = rows.pivot(index="in_baseline", columns="in_arm", values="n_rows")
        _heat(axes, counts.loc[names, names].to_numpy(), (names, names), "")
        axes.set_xlabel(f"in {_short(arm)}")
        axes.set_ylabel(f"in {_short(str(rows['baseline'].iloc[0]))}")
    for axes in panels[len(arms) :]:
        axes.set_axis_off()
    figure.suptitle("What became of each row (number of rows)", fontsize=11)
    return figure


def _heat(axes: Axes, counts: Any, names: tuple[Sequence[str], Sequence[str]], title: str) -> None:
    shade_cells(axes, counts)
    axes.set_yticks(range(len(names[0])), names[0])
    axes.set_xticks(range(len(names[1])), names[1])
    axes.set_title(title, fontsize=10)


def _legend(axes: Axes) -> None:
    # Beside the picture: inside it hides the very lines it names.
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _short(name: str) -> str:
    # A dollar would start a formula.
    name = name.replace("$", r"\$")
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
