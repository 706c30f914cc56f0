"""What every picture is drawn on and with: an empty figure, colours, marks, shaded cells.

Figures are made without pyplot: its global state would leak into a user's notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "MARKS", "empty_figure", "error_bars", "interval_line", "shade_cells"]

# Okabe and Ito (2008): told apart by colour-blind readers and in grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "P")
_MOST_NUMBERED = 12
_LONGEST_SIDE = 24.0


def empty_figure(width: float, height: float) -> Figure:
    """A figure of its own, in inches; a side stops at 24, beyond which no viewer shows it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (min(width, _LONGEST_SIDE), min(height, _LONGEST_SIDE))
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def error_bars(values: pd.Series, low: pd.Series, high: pd.Series) -> list[pd.Series]:
    """How far error bars reach below and above each value, for ``yerr``.

    Where an end is missing no bar is drawn on that side.

    Example:
        >>> import pandas as pd
        >>> below, above = error_bars(pd.Series([0.5]), pd.Series([0.25]), pd.Series([None]))
        >>> below.tolist(), above.tolist()
        ([0.25], [0.0])
    """
    value = values.astype(float)
    bottom, top = (end.astype(float).fillna(value) for end in (low, high))
    # An interval that is clipped to [0, 1] may end on the wrong side by a rounding error.
    return [(value - bottom).clip(lower=0), (top - value).clip(lower=0)]


def interval_line(
    axes: Axes, at: pd.Series, numbers: Sequence[pd.Series], place: int, name: str
) -> None:
    """One line of points with their intervals.

    Args:
        axes: Drawn on.
        at: Where the points stand.
        numbers: Their values, lower and upper ends.
        place: Of the line among all, from 0: its colour and mark.
        name: In the legend.
    """
    values, low, high = numbers
    axes.errorbar(
        at.astype(float),
        values.astype(float),
        yerr=error_bars(values, low, high),
        color=COLOURS[place % len(COLOURS)],
        marker=MARKS[place % len(MARKS)],
        linewidth=2,
        capsize=3,
        label=name,
    )


def shade_cells(axes: Axes, counts: Any) -> None:
    """Counts as cells with their numbers, each shaded by its share of its row.

    By share, so that a rare row is as readable as a common one.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    # Beyond this nobody reads numbers in cells, and drawing them takes a minute.
    for row, column in np.ndindex(counts.shape) if len(counts) <= _MOST_NUMBERED else ():
        colour = "white" if shares[row, column] > 0.55 else "black"
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=colour)
