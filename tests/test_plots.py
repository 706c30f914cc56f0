"""Figures say what the tables say."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from mlflow_mcq.plots import confusion_figure, orientation_figure, temperature_figure


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


def sweep(*variants: str) -> pd.DataFrame:
    rows = [
        {"variant": v, "model": m, "temperature": t, "accuracy": a, "low": a - 0.1, "high": a + 0.2}
        for v in variants
        for m in ("base", "tuned")
        for t, a in ((1.0, 0.3), (0.0, 0.5))
    ]
    return pd.DataFrame(rows)


def test_temperatures_stand_in_order_with_a_panel_a_variant_and_a_line_a_model() -> None:
    panels = temperature_figure(sweep("duplicate", "standard"), "t").axes
    assert [axes.get_title() for axes in panels] == ["standard", "duplicate"]
    for axes in panels:
        assert [list(c.lines[0].get_xdata()) for c in axes.containers] == [[0.0, 1.0]] * 2
        assert axes.get_ylim() == panels[0].get_ylim()
    assert [t.get_text() for t in panels[-1].get_legend().get_texts()] == ["base", "tuned"]


def test_the_bars_of_a_temperature_are_its_interval() -> None:
    axes = temperature_figure(sweep("standard"), "t").axes[0]
    (bars,) = axes.containers[0].lines[2]
    ends = [sorted(segment[:, 1]) for segment in bars.get_segments()]
    assert ends == [pytest.approx([0.4, 0.7]), pytest.approx([0.2, 0.5])]


def test_unknown_accuracies_and_bounds_are_not_drawn_as_noughts() -> None:
    table = pd.DataFrame(
        {
            "temperature": [0.0, 0.5, 1.0],
            "accuracy": [0.5, None, 0.25],
            "low": [0.4, None, None],
            "high": [0.6, None, None],
        }
    )
    axes = temperature_figure(table, "t").axes[0]
    assert list(axes.containers[0].lines[0].get_xdata()) == [0.0, 1.0]
    (bars,) = axes.containers[0].lines[2]
    assert [float(np.ptp(s[:, 1])) for s in bars.get_segments()] == pytest.approx([0.2, 0.0])


def test_an_empty_sweep_is_an_empty_figure() -> None:
    assert len(temperature_figure(sweep("standard").iloc[:0], "t").axes) == 1
