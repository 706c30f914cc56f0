"""Figures say what the tables say."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

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


def on_nonsense(*decided: float) -> pd.DataFrame:
    return pd.DataFrame({"orientation": [0, 1], "accuracy": 0.1, "accuracy_decided": decided})


def test_guessing_is_a_band_and_the_line_over_it_is_of_decided_rows() -> None:
    tables = {"judge": on_nonsense(0.25, 0.3), "regex_naive": on_nonsense(0.2, 0.9)}
    axes = orientation_figure(tables, "t", dict.fromkeys(tables, (0.215, 0.286))).axes[0]
    (band,) = axes.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.215, 0.286))
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.25, 0.3], [0.2, 0.9]]
    assert "decided" in axes.get_ylabel()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["judge", "regex_naive", "guessing: 0.215 to 0.286"]


def test_readers_that_decide_on_other_items_have_bands_of_their_own() -> None:
    tables = {"judge": on_nonsense(0.25, 0.3), "regex_naive": on_nonsense(0.2, 0.9)}
    bands = {"judge": (0.1, 0.4), "regex_naive": (0.2, 0.3)}
    axes = orientation_figure(tables, "t", bands).axes[0]
    assert [p.get_facecolor()[:3] for p in axes.patches] == [
        to_rgb(line.get_color()) for line in axes.lines
    ]
    assert axes.get_legend().get_texts()[-1].get_text().endswith("(regex_naive)")


def test_ordinary_items_have_no_band_and_lines_of_all_rows() -> None:
    axes = orientation_figure({"judge": on_nonsense(0.9, 0.9)}, "t").axes[0]
    assert not axes.patches
    assert list(axes.lines[0].get_ydata()) == [0.1, 0.1]


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
