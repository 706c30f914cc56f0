"""Figures of one run: where people would rather look than read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlflow_mcq.canvas import COLOURS, MARKS, empty_figure, interval_line, shade_cells
from mlflow_mcq.orientations import letters_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["confusion_figure", "orientation_figure", "temperature_figure"]


def confusion_figure(table: pd.DataFrame, title: str, slots: Sequence[str] | None = None) -> Figure:
    """The confusion matrix with counts: gold slot by picked slot, OTHER apart.

    Args:
        table: From `mlflow_mcq.metrics.confusion`.
        title: Shown above.
        slots: Names of the slots; None calls them A, B, C.
    """
    letters = slots or letters_for(len(table))
    names = [letters[c] if isinstance(c, int) else str(c).replace("_", " ") for c in table.columns]
    figure = empty_figure(1.6 + 0.8 * len(names), 1.6 + 0.62 * len(letters))
    axes = figure.add_subplot()
    shade_cells(axes, table.to_numpy())
    if len(names) > len(letters):  # what is no slot stands behind a line
        axes.axvline(len(letters) - 0.5, color="black", linewidth=1.2)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(letters)), letters)
    axes.set_xlabel("slot picked (rows of all orientations)")
    axes.set_ylabel("slot of the gold option")
    axes.set_title(title, fontsize=11)
    return figure


def orientation_figure(
    tables: Mapping[str, pd.DataFrame],
    title: str,
    bands: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Accuracy by orientation, one line a grader.

    Args:
        tables: By grader, from `mlflow_mcq.metrics.by_orientation`.
        title: Shown above.
        bands: By grader, what guessing comes to; of sets on which nobody can know better. The
            band is one of decided rows, so the lines are of these too.
    """
    figure = empty_figure(6.4, 3.8)
    axes = figure.add_subplot()
    steps: set[int] = set()
    column = "accuracy_decided" if bands else "accuracy"
    for place, (name, table) in enumerate(tables.items()):
        known = table[table[column].notna()]
        steps |= set(known["orientation"])
        axes.plot(
            known["orientation"],
            known[column].astype(float),
            color=COLOURS[place % len(COLOURS)],
            marker=MARKS[place % len(MARKS)],
            linewidth=2,
            label=name,
        )
    _shade_guessing(axes, list(tables), bands or {})
    axes.set_ylim(-0.02, 1.02)
    axes.set_xticks(sorted(steps))
    axes.set_xlabel("orientation (0 is the order of the data)")
    axes.set_ylabel(f"accuracy, {'decided' if bands else 'all'} rows (fraction)")
    axes.grid(axis="y", alpha=0.3)
    axes.set_title(title, fontsize=11)
    axes.legend(title="read by", frameon=False)
    return figure


def _shade_guessing(
    axes: Axes, graders: Sequence[str], bands: Mapping[str, tuple[float, float]]
) -> None:
    # Who refuses on other items is measured on other items: its band is in its own colour.
    for low, high in dict.fromkeys(bands.values()):
        own = [name for name in graders if bands.get(name) == (low, high)]
        alone = len(own) < len(bands)
        colour = COLOURS[graders.index(own[0]) % len(COLOURS)] if alone else "grey"
        whose = f" ({', '.join(own)})" if alone else ""
        label = f"guessing: {low:.3f} to {high:.3f}{whose}"
        axes.axhspan(low, high, color=colour, alpha=0.2, linewidth=0, label=label)


def temperature_figure(table: pd.DataFrame, title: str) -> Figure:
    """Accuracy against sampling temperature with intervals, one panel a variant.

    Panels stand side by side on one scale, since the question is how far apart they are.

    Args:
        table: One row an arm: ``temperature``, ``accuracy``, ``low`` and ``high`` (fractions;
            missing bounds draw no bar), and where there are several ``variant`` (``standard``,
            ``duplicate``: a panel each) and ``model`` (a line each). Rows without accuracy
            are left out.
        title: Shown above.
    """
    known = table[table["accuracy"].notna()].sort_values("temperature")
    known = known.assign(**{n: "" for n in ("variant", "model") if n not in known.columns})
    variants = sorted(known["variant"].unique(), reverse=True)  # standard before duplicate
    models = list(dict.fromkeys(table["model"])) if "model" in table.columns else [""]
    figure = empty_figure(1.2 + 3.6 * max(len(variants), 1), 3.8)
    panels = figure.subplots(1, max(len(variants), 1), sharex=True, sharey=True, squeeze=False)[0]
    for axes, variant in zip(panels, variants, strict=False):
        for place, model in enumerate(models):
            line = known[(known["variant"] == variant) & (known["model"] == model)]
            numbers = [line["accuracy"], line["low"], line["high"]]
            interval_line(axes, line["temperature"], numbers, place, str(model))
        axes.set_title(str(variant), fontsize=10)
    for axes in panels:
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("sampling temperature")
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("accuracy, all rows (fraction)")
    if len(models) > 1:
        panels[-1].legend(frameon=False)
    figure.suptitle(title, fontsize=11)
    return figure
