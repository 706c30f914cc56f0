"""A nominal 95 % interval covers the truth in 93 to 97 % of seeded runs, item effects and all.

Each run draws items anew: how likely an item is answered rightly varies from item to item
(most are nearly always right or nearly always wrong), its rows are draws from that.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlflow_mcq.corrected import Calibration, Corrected, rogan_gladen
from mlflow_mcq.ppi import ppi_mean

Bools = npt.NDArray[np.bool_]
RUNS = 1_500


def beta(rng: np.random.Generator, mean: float, strength: float, shape: Any) -> Any:
    return rng.beta(mean * strength, (1 - mean) * strength, shape)


def answers(rng: np.random.Generator, theta: float, shape: tuple[int, int, int]) -> Bools:
    """Runs x items x orientations: strong item effects (intraclass correlation 0.6)."""
    runs, items, _ = shape
    return rng.random(shape) < beta(rng, theta, 0.6, (runs, items, 1))


def share_covering(theta: float, found: list[Corrected]) -> float:
    return sum(f.low <= theta <= f.high for f in found) / len(found)  # type: ignore[operator]


def judged_runs(
    theta: float, items: int, se: float, sp: float, m: tuple[int, int]
) -> tuple[Bools, list[Calibration]]:
    rng = np.random.default_rng(20)
    right = answers(rng, theta, (RUNS, items, 4))
    said = rng.random(right.shape) < np.where(right, se, 1 - sp)
    tp, tn = rng.binomial(m[0], se, RUNS), rng.binomial(m[1], sp, RUNS)
    pairs = zip(tp.tolist(), tn.tolist(), strict=True)
    return said.reshape(RUNS, -1), [Calibration(a, m[0] - a, b, m[1] - b) for a, b in pairs]


@pytest.mark.parametrize(
    ("theta", "items", "se", "sp", "m"),
    [
        pytest.param(0.7, 100, 0.9, 0.85, (100, 100), id="a fair judge"),
        pytest.param(0.4, 60, 0.95, 0.8, (70, 130), id="a lenient judge, few items"),
        pytest.param(0.9, 120, 0.95, 0.9, (120, 80), id="a strong model"),
    ],
)
def test_rogan_gladen_covers_where_the_naive_intervals_fail(
    theta: float, items: int, se: float, sp: float, m: tuple[int, int]
) -> None:
    runs, calibrations = judged_runs(theta, items, se, sp, m)
    codes, rows = np.repeat(np.arange(items), 4), np.arange(4 * items)
    pairs = list(zip(runs, calibrations, strict=True))
    assert 0.93 <= share_covering(theta, [rogan_gladen(s, codes, c) for s, c in pairs]) <= 0.97

    # What most papers print: rows counted as independent, the judge believed.
    p = runs.mean(axis=1)
    naive = np.abs(p - theta) <= 1.96 * np.sqrt(p * (1 - p) / (4 * items))
    assert naive.mean() < 0.85
    # The correction alone, with rows still counted as independent, is not enough either.
    assert share_covering(theta, [rogan_gladen(s, rows, c) for s, c in pairs]) < 0.925


@pytest.mark.parametrize(
    ("theta", "items", "se", "sp", "m", "plain"),
    [
        pytest.param(0.7, 100, 0.9, 0.85, (100, 100), (0.6, 0.3), id="half of the rows exact"),
        pytest.param(0.6, 200, 0.85, 0.95, (75, 158), (0.9, 0.8), id="most rows exact"),
        pytest.param(0.9, 120, 0.95, 0.9, (75, 158), (0.3, 0.1), id="a strong model, few exact"),
        pytest.param(0.6, 80, 0.85, 0.95, (20, 20), (0.5, 0.3), id="a short exam"),
    ],
)
def test_exact_rows_are_not_corrected_and_judged_ones_are(
    theta: float, items: int, se: float, sp: float, m: tuple[int, int], plain: tuple[float, float]
) -> None:
    """Whether a row needs a judge is a habit of its item, and commoner among right answers."""
    rng = np.random.default_rng(22)
    right = answers(rng, theta, (RUNS, items, 4))
    habits = [beta(rng, share, 1.0, (RUNS, items, 1)) for share in plain]
    exact = rng.random(right.shape) < np.where(right, *habits)
    judge = rng.random(right.shape) < np.where(right, se, 1 - sp)
    said, sure = (a.reshape(RUNS, -1) for a in (np.where(exact, right, judge), exact))
    tp, tn = rng.binomial(m[0], se, RUNS).tolist(), rng.binomial(m[1], sp, RUNS).tolist()
    exams = [Calibration(a, m[0] - a, b, m[1] - b) for a, b in zip(tp, tn, strict=True)]
    codes = np.repeat(np.arange(items), 4)
    runs = list(zip(said, sure, exams, strict=True))
    found = [rogan_gladen(s, codes, c, exact=e) for s, e, c in runs]
    assert 0.93 <= share_covering(theta, found) <= 0.97
    assert np.mean([f.estimate for f in found]) == pytest.approx(theta, abs=0.01)


def test_correcting_exact_rows_as_well_is_wrong() -> None:
    rng = np.random.default_rng(23)
    theta, exam, codes = 0.6, Calibration(64, 11, 150, 8), np.repeat(np.arange(200), 4)
    right = answers(rng, theta, (300, 200, 4)).reshape(300, -1)
    exact = rng.random(right.shape) < 0.85
    judge = rng.random(right.shape) < np.where(right, 64 / 75, 8 / 158)
    runs = list(zip(np.where(exact, right, judge), exact, strict=True))
    assert share_covering(theta, [rogan_gladen(s, codes, exam) for s, _ in runs]) < 0.8
    assert share_covering(theta, [rogan_gladen(s, codes, exam, exact=e) for s, e in runs]) > 0.92


def labelled_runs(
    theta: float, labelled: int, whole: bool
) -> tuple[Bools, npt.NDArray[np.object_]]:
    """A judge whose errors hang together by item, and the human labels of some rows."""
    rng = np.random.default_rng(21)
    items = 200
    right = answers(rng, theta, (RUNS, items, 4))
    se, sp = (beta(rng, mean, 2.0, (RUNS, items, 1)) for mean in (0.9, 0.85))
    said = rng.random(right.shape) < np.where(right, se, 1 - sp)
    chosen = rng.random((RUNS, items)).argsort(axis=1) < labelled
    seen = chosen[:, :, None] & (whole | (rng.integers(0, 4, (RUNS, items, 1)) == np.arange(4)))
    human = np.where(seen, right.astype(object), None)
    return said.reshape(RUNS, -1), human.reshape(RUNS, -1)


@pytest.mark.parametrize(
    ("theta", "labelled", "whole"),
    [
        pytest.param(0.7, 40, True, id="every row of 40 items"),
        pytest.param(0.85, 80, False, id="one row of each of 80 items"),
        pytest.param(0.5, 200, False, id="one row of every item"),
    ],
)
def test_ppi_covers_where_the_naive_interval_fails(
    theta: float, labelled: int, whole: bool
) -> None:
    said, human = labelled_runs(theta, labelled, whole)
    codes = np.repeat(np.arange(200), 4)
    found = [ppi_mean(s, h, codes) for s, h in zip(said, human, strict=True)]
    assert 0.93 <= share_covering(theta, found) <= 0.97
    p = said.mean(axis=1)
    half = 1.96 * np.sqrt(p * (1 - p) / said.shape[1])
    assert (np.abs(p - theta) <= half).mean() < 0.85


def test_ppi_is_right_where_an_exam_misleads_rogan_gladen() -> None:
    # The exam's replies are harder than these rows: it sees the judge err three times as often.
    theta, exam = 0.7, Calibration(700, 300, 550, 450)
    said, human = labelled_runs(theta, 80, whole=False)
    codes = np.repeat(np.arange(200), 4)
    pairs = list(zip(said[:300], human[:300], strict=True))
    assert share_covering(theta, [rogan_gladen(s, codes, exam) for s, _ in pairs]) < 0.7
    assert share_covering(theta, [ppi_mean(s, h, codes) for s, h in pairs]) > 0.9


def test_a_wider_level_covers_more() -> None:
    runs, calibrations = judged_runs(0.7, 40, 0.9, 0.85, (100, 100))
    codes = np.repeat(np.arange(40), 4)
    shares = [
        share_covering(
            0.7,
            [
                rogan_gladen(s, codes, c, level=level)
                for s, c in zip(runs[:400], calibrations, strict=False)
            ],
        )
        for level in (0.5, 0.8, 0.99)
    ]
    for share, level in zip(shares, (0.5, 0.8, 0.99), strict=True):
        assert share == pytest.approx(level, abs=4 * sqrt(level * (1 - level) / 400) + 0.01)
