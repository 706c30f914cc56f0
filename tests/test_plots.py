"""Figures say what the tables say."""

from __future__ import annotations

import sys

import pandas as pd

from mlflow_mcq.plots import confusion_figure, orientation_figure


def test_the_confusion_figure_shows_every_count_and_other_apart() -> None:
    table = pd.DataFrame([[3, 1, 2], [0, 4, 5]], columns=[0, 1, "OTHER"])
    axes = confusion_figure(table, "t").axes[0]
    assert [t.get_text() for t in axes.texts] == ["3", "1", "2", "0", "4", "5"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["A", "B", "OTHER"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["A", "B"]


def test_the_orientation_figure_leaves_undefined_points_out() -> None:
    table = pd.DataFrame({"orientation": [0, 1, 2], "accuracy": [0.5, None, 1.0]})
    axes = orientation_figure({"judge": table}, "t").axes[0]
    assert list(axes.lines[0].get_xdata()) == [0, 2]
    assert axes.get_ylim()[0] <= 0 <= 1 <= axes.get_ylim()[1]


def test_pyplot_is_left_alone() -> None:
    before = "matplotlib.pyplot" in sys.modules
    confusion_figure(pd.DataFrame([[1]], columns=[0]), "t")
    assert ("matplotlib.pyplot" in sys.modules) == before
