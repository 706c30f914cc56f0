"""PPI++: against the published formulas, against loops, laws, and what is undefined."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.corrected import Corrected
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.ppi import power_lambda, ppi_mean
from mlflow_mcq.records import Verdict

Cell = tuple[Verdict | bool | None, Verdict | bool | None]


def numbers(found: Corrected) -> tuple[float | None, float | None, float | None]:
    return found.estimate, found.low, found.high


def independent(n: int, others: int, agree: float, seed: int) -> tuple[list[Cell], list[int]]:
    """One row an item; the first n carry a label, with which the judge often agrees."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n + others) < 0.6
    said = np.where(rng.random(n + others) < agree, truth, rng.random(n + others) < 0.5)
    cells: list[Cell] = [
        (bool(f), bool(y) if row < n else None)
        for row, (f, y) in enumerate(zip(said, truth, strict=True))
    ]
    return cells, list(range(n + others))


def split(cells: list[Cell]) -> tuple[list[Verdict | bool | None], list[Verdict | bool | None]]:
    return [f for f, _ in cells], [y for _, y in cells]


@pytest.mark.parametrize(("n", "others"), [(40, 200), (100, 60)])
def test_weight_one_is_classical_ppi(n: int, others: int) -> None:
    cells, items = independent(n, others, agree=0.7, seed=3)
    f, y = (np.array(column, dtype=float) for column in split(cells))
    rest = y[:n] - f[:n]
    centre = f[n:].mean() + rest.mean()
    variance = f[n:].var(ddof=1) / others + rest.var(ddof=1) / n
    half = stats.t.ppf(0.975, min(n, others) - 1) * sqrt(variance)
    found = ppi_mean(*split(cells), items, weight=1.0, pseudo_items=0.0)
    assert numbers(found) == pytest.approx((centre, centre - half, centre + half))
    smoothed = ppi_mean(*split(cells), items, weight=1.0)
    assert smoothed.estimate == pytest.approx(centre)


def test_weight_zero_is_the_mean_of_the_labels() -> None:
    cells, items = independent(50, 100, agree=0.7, seed=4)
    y = np.array(split(cells)[1][:50], dtype=float)
    half = stats.t.ppf(0.975, 49) * y.std(ddof=1) / sqrt(50)
    found = ppi_mean(*split(cells), items, weight=0.0, pseudo_items=0.0)
    assert numbers(found) == pytest.approx((y.mean(), y.mean() - half, y.mean() + half))


@pytest.mark.parametrize("agree", [0.2, 0.5, 0.9])
def test_the_tuned_weight_is_the_published_one(agree: float) -> None:
    n, others = 80, 240
    cells, items = independent(n, others, agree, seed=5)
    f, y = (np.array(column, dtype=float) for column in split(cells))
    covariance = np.cov(y[:n], f[:n])[0, 1]
    best = covariance / (f[:n].var(ddof=1) + n / others * f[n:].var(ddof=1))
    assert power_lambda(*split(cells), items, pseudo_items=0.0) == pytest.approx(
        min(max(best, 0), 1)
    )


def test_a_judge_that_knows_nothing_gets_no_weight_and_does_no_harm() -> None:
    cells, items = independent(2_000, 4_000, agree=0.0, seed=6)
    assert power_lambda(*split(cells), items) < 0.05
    tuned, bare = ppi_mean(*split(cells), items), ppi_mean(*split(cells), items, weight=0.0)
    assert numbers(tuned) == pytest.approx(numbers(bare), abs=2e-3)


def test_a_judge_against_the_truth_gets_weight_zero() -> None:
    cells = [(not y, y) for y in (True, False) * 20] + [(True, None), (False, None)] * 20
    assert power_lambda(*split(cells), range(80)) == 0


def test_a_good_judge_narrows_the_interval() -> None:
    cells, items = independent(60, 3_000, agree=0.95, seed=7)
    tuned, bare = ppi_mean(*split(cells), items), ppi_mean(*split(cells), items, weight=0.0)
    assert None not in numbers(tuned) + numbers(bare)
    assert tuned.high - tuned.low < 0.7 * (bare.high - bare.low)  # type: ignore[operator]


def by_loops(cells: list[Cell], items: list[str], weight: float) -> tuple[float, float]:
    """Estimate and variance, row by row and item by item, one pseudo-item a side."""
    labelled = [
        (float(f), float(y), i) for (f, y), i in zip(cells, items, strict=True) if y is not None
    ]
    others = [(float(f), i) for (f, y), i in zip(cells, items, strict=True) if y is None]
    estimate = sum(f for f, _ in others) / len(others) * weight
    estimate += sum(y - weight * f for f, y, _ in labelled) / len(labelled)
    g_there, g_else = len({i for *_, i in labelled}), len({i for _, i in others})
    size_there, size_else = len(labelled) / g_there, len(others) / g_else
    n_there, n_else = len(labelled) + size_there, len(others) + size_else
    rest = (sum(y - weight * f for f, y, _ in labelled) + size_there * (1 - weight) / 2) / n_there
    mean = (sum(f for f, _ in others) + size_else / 2) / n_else
    k_there, k_else = sqrt((g_there + 1) / g_there), sqrt((g_else + 1) / g_else)
    variance = 0.0
    for item in sorted(set(items)):
        off = 0.0
        for f, y, i in labelled:
            off += k_there * (y - weight * f - rest) / n_there if i == item else 0.0
        for f, i in others:
            off += k_else * weight * (f - mean) / n_else if i == item else 0.0
        variance += off**2
    for y in (0, 1):
        for f in (0, 1):
            variance += (k_there * size_there * (y - weight * f - rest) / n_there) ** 2 / 4
    for f in (0, 1):
        variance += (k_else * weight * size_else * (f - mean) / n_else) ** 2 / 2
    return estimate, variance


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_items_on_both_sides_against_loops(weight: float) -> None:
    rng = np.random.default_rng(8)
    items = [f"q{i}" for i in rng.integers(0, 12, 70)]
    cells: list[Cell] = [
        (bool(f), bool(y) if known else None)
        for f, y, known in zip(
            rng.random(70) < 0.6, rng.random(70) < 0.5, rng.random(70) < 0.3, strict=True
        )
    ]
    labelled = {i for (_, y), i in zip(cells, items, strict=True) if y is not None}
    others = {i for (_, y), i in zip(cells, items, strict=True) if y is None}
    assert labelled & others
    estimate, variance = by_loops(cells, items, weight)
    fewest = min(len(labelled), len(others)) if weight else len(labelled)
    half = stats.t.ppf(0.975, fewest - 1) * sqrt(variance)
    expected = (estimate, max(0, estimate - half), min(1, estimate + half))
    assert numbers(ppi_mean(*split(cells), items, weight=weight)) == pytest.approx(expected)
    best = power_lambda(*split(cells), items)
    smallest = by_loops(cells, items, best)[1]
    assert all(smallest <= by_loops(cells, items, w)[1] + 1e-12 for w in np.linspace(0, 1, 21))


def test_labels_that_all_agree_do_not_prove_the_judge_infallible() -> None:
    cells: list[Cell] = [(y, y) for y in (True, True, False, True, False)]
    cells += [(bool(i % 2), None) for i in range(1_000)]
    naive = ppi_mean(*split(cells), range(1_005), weight=1.0, pseudo_items=0.0)
    ours = ppi_mean(*split(cells), range(1_005), weight=1.0)
    assert naive.low is not None
    assert naive.low > 0.45  # as if five labels had settled it
    assert ours.low is not None
    assert ours.low < 0.3


# ------------------------------------------------------------------------- laws

cell = st.tuples(st.sampled_from([*Verdict, None]), st.sampled_from([*Verdict, None, None]))
tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(cell, min_size=k, max_size=k), min_size=1, max_size=10)
)


def flat(table: list[list[Cell]]) -> tuple[list[Cell], list[str]]:
    cells = [(one, f"q{i}") for i, row in enumerate(table) for one in row]
    return [one for one, _ in cells], [item for _, item in cells]


@given(tables, st.floats(0.5, 0.999), st.sampled_from([0.0, 1.0, 2.0]))
def test_numbers_stay_in_range_and_in_order_or_have_a_reason(
    table: list[list[Cell]], level: float, pseudo_items: float
) -> None:
    cells, items = flat(table)
    found = ppi_mean(*split(cells), items, level=level, pseudo_items=pseudo_items)
    assert 0 <= power_lambda(*split(cells), items, pseudo_items=pseudo_items) <= 1
    if found.estimate is None or found.low is None or found.high is None:
        assert numbers(found) == (None, None, None)
        assert found.reason.startswith("undefined: ")
    else:
        assert 0 <= found.low <= found.estimate <= found.high <= 1


@given(tables, st.randoms())
def test_the_order_of_rows_and_the_names_of_items_do_not_matter(
    table: list[list[Cell]], random: object
) -> None:
    cells, items = flat(table)
    rows = list(zip(cells, items, strict=True))
    random.shuffle(rows)  # type: ignore[attr-defined]
    shuffled = ppi_mean(*split([c for c, _ in rows]), [f"new-{i}" for _, i in rows])
    found = ppi_mean(*split(cells), items)
    assert numbers(shuffled) == pytest.approx(numbers(found), abs=1e-9)
    assert (shuffled.n_items, shuffled.reason) == (found.n_items, found.reason)


@given(tables, st.integers(2, 3))
def test_copies_of_every_orientation_teach_nothing(table: list[list[Cell]], times: int) -> None:
    cells, items = flat(table)
    copied, copied_items = flat([row * times for row in table])
    found, twice = ppi_mean(*split(cells), items), ppi_mean(*split(copied), copied_items)
    assert numbers(twice) == pytest.approx(numbers(found), abs=1e-9)


# ------------------------------------------------------------------- undefined


@pytest.mark.parametrize(
    ("cells", "items"),
    [
        pytest.param([], "", id="no rows"),
        pytest.param([(True, None)] * 4, "abcd", id="no labels"),
        pytest.param([(True, True), (False, True), (True, None)], "aab", id="labels of one item"),
        pytest.param([(None, True), (None, False), (True, True)], "abc", id="judge failed there"),
    ],
)
def test_no_number_with_fewer_than_two_labelled_items(cells: list[Cell], items: str) -> None:
    found = ppi_mean(*split(cells), list(items))
    assert numbers(found) == (None, None, None)
    assert "at least 2 needed" in found.reason
    assert power_lambda(*split(cells), list(items)) == 0


def test_labels_everywhere_need_no_judge_and_say_so() -> None:
    found = ppi_mean([False] * 8, [True, False] * 4, list("abcdefgh"))
    assert found.estimate == 0.5
    assert found.reason.startswith("human labels alone")
    assert (found.n_items, found.n_calibration) == (8, 8)


def test_an_estimate_beyond_one_is_clipped_and_says_so() -> None:
    cells: list[Cell] = [(False, True), (True, True)] * 3 + [(True, None)] * 40
    found = ppi_mean(*split(cells), range(46), weight=1.0)
    assert found.estimate == 1
    assert found.clipped


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"weight": 1.5}, "weight", id="weight"),
        pytest.param({"weight": float("nan")}, "weight", id="weight is no number"),
        pytest.param({"pseudo_items": -1.0}, "pseudo_items", id="pseudo-items"),
        pytest.param({"level": 95.0}, "level", id="level in percent"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        ppi_mean([True, False], [True, False], ["a", "b"], **settings)


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="human_label"):
        ppi_mean([True, False], [True], ["a", "b"])
