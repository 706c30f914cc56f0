"""Rogan-Gladen where some rows need no judge: the two ends, the formula, laws."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.calibration import Calibration
from mlflow_mcq.corrected import Corrected, judged_accuracy, rogan_gladen
from mlflow_mcq.errors import DataError

KNOWN = 10**12
FAIR = Calibration(90, 10, 80, 20)
Z = NormalDist().inv_cdf(0.975)


def numbers(found: Corrected) -> tuple[float | None, float | None, float | None]:
    return found.estimate, found.low, found.high


def rows(n_items: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Said, exact and item of rows that hang together by item."""
    rng = np.random.default_rng(seed)
    said = rng.random((n_items, k)) < rng.beta(0.4, 0.3, (n_items, 1))
    exact = rng.random((n_items, k)) < rng.beta(0.5, 0.5, (n_items, 1))
    return said.ravel(), exact.ravel(), np.repeat(np.arange(n_items), k)


# ------------------------------------------------------------------- the two ends


@pytest.mark.parametrize("calibration", [FAIR, Calibration(5, 5, 5, 5), Calibration(0, 0, 0, 0)])
def test_without_judged_rows_it_is_the_plain_mean_whatever_the_judge(
    calibration: Calibration,
) -> None:
    said, _, items = rows(30, 4, seed=1)
    found = rogan_gladen(said, items, calibration, exact=[True] * len(said))
    assert numbers(found) == numbers(judged_accuracy(said, items))
    assert found.estimate == said.mean()
    assert found.reason == ""


def test_a_judge_that_never_errs_leaves_the_plain_mean() -> None:
    said, exact, items = rows(30, 4, seed=2)
    found = rogan_gladen(said, items, Calibration(KNOWN, 0, KNOWN, 0), exact=exact)
    assert found.estimate == pytest.approx(said.mean(), abs=1e-12)
    assert numbers(found) == pytest.approx(numbers(judged_accuracy(said, items)), abs=1e-5)


@pytest.mark.parametrize("exact", [[False] * 120, np.zeros(120, bool), None])
def test_with_all_rows_judged_it_is_the_usual_correction(exact: object) -> None:
    said, _, items = rows(30, 4, seed=3)
    found = rogan_gladen(said, items, FAIR, exact=exact)  # type: ignore[arg-type]
    p = said.mean()
    assert found.estimate == pytest.approx((p + 0.8 - 1) / 0.7)
    assert numbers(found) == numbers(rogan_gladen(said, items, FAIR))


# ------------------------------------------------------- against the plain formula


def test_the_estimate_by_hand() -> None:
    # 40 exact rows, 30 of them right; 60 judged rows, 33 called right: 0.55 -> 0.5.
    said = [True] * 30 + [False] * 10 + [True] * 33 + [False] * 27
    found = rogan_gladen(said, range(100), FAIR, exact=[True] * 40 + [False] * 60)
    assert found.estimate == pytest.approx((30 + 60 * 0.5) / 100)
    assert (found.n_items, found.n_calibration, found.clipped) == (100, 200, False)


def test_many_rows_have_the_delta_method_interval() -> None:
    said, exact, items = rows(40_000, 3, seed=4)
    calibration = Calibration(1800, 200, 1600, 400)
    se, sp, w = 0.9, 0.8, 1 - exact.mean()
    outcome = np.where(exact, said, (said + sp - 1) / (se + sp - 1)).reshape(-1, 3).mean(axis=1)
    theta = (said[~exact].mean() + sp - 1) / (se + sp - 1)
    variance = outcome.var(ddof=1) / len(outcome)
    added = theta**2 * se * (1 - se) / 2000 + (1 - theta) ** 2 * sp * (1 - sp) / 2000
    half = stats.norm.ppf(0.975) * sqrt(variance + w**2 * added / (se + sp - 1) ** 2)
    expected = (outcome.mean(), outcome.mean() - half, outcome.mean() + half)
    found = rogan_gladen(said, items, calibration, exact=exact)
    assert numbers(found) == pytest.approx(expected, abs=1e-3)
    assert half > 0.008  # far above the tolerance


def test_clustered_rows_and_pseudo_rows_against_loops() -> None:
    said, exact, items = rows(12, 4, seed=5)
    calibration, g, n = Calibration(40, 5, 60, 9), 12, 48
    se, sp = 41 / 47, 61 / 71
    v_se, v_sp, d = se * (1 - se) / 47, sp * (1 - sp) / 71, se + sp - 1
    value = [float(s) if e else (float(s) + sp - 1) / d for s, e in zip(said, exact, strict=True)]
    mean = sum(value) / n
    variance = 0.0
    for item in range(g):
        variance += sum(v - mean for v, i in zip(value, items, strict=True) if i == item) ** 2
    variance *= g / (g - 1) / n**2
    n_judged = sum(not e for e in exact)
    w, effective = n_judged / n, sum((v - mean) ** 2 for v in value) / n / variance
    # Effective rows of this spread, and z^2 pseudo-rows: of four kinds, each with its weight.
    weighted = [(v, effective / n) for v in value]
    weighted += [((c + sp - 1) / d, Z**2 * w / 2) for c in (0, 1)]
    weighted += [(c, Z**2 * (1 - w) / 2) for c in (0, 1)]
    total = sum(share for _, share in weighted)
    centre = sum(v * share for v, share in weighted) / total
    spread = sum(share * (v - centre) ** 2 for v, share in weighted) / total
    judged = sum(v for v, e in zip(value, exact, strict=True) if not e) * effective / n
    judged += Z**2 * w * (0.5 + sp - 1) / d
    theta = judged / (w * total)
    doubt = w**2 * (theta**2 * v_se + (1 - theta) ** 2 * v_sp) / d**2
    centre += w * 2 * Z**2 * (theta * v_se - (1 - theta) * v_sp)
    half = stats.t.ppf(0.975, g - 1) * sqrt(spread / total + doubt)
    found = rogan_gladen(said, items, calibration, exact=exact)
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half))


# ------------------------------------------------------------- clipped, and doubts


@pytest.mark.parametrize(
    ("n_said", "estimate"),
    [pytest.param(1, 0.4, id="fewer than it invents"), pytest.param(50, 0.9, id="more than all")],
)
def test_no_more_than_all_of_the_judged_rows_can_be_right(n_said: int, estimate: float) -> None:
    # 50 exact rows, 40 right. Unclipped, the judged half would give or take more than it holds.
    said = [True] * 40 + [False] * 10 + [True] * n_said + [False] * (50 - n_said)
    found = rogan_gladen(said, range(100), FAIR, exact=[True] * 50 + [False] * 50)
    assert found.estimate == pytest.approx(estimate)
    assert found.clipped


def test_a_judge_hardly_told_from_chance_leaves_open_what_it_has_read() -> None:
    said = [True] * 540 + [False] * 360 + [True, False] * 50
    exact = [True] * 900 + [False] * 100
    found = rogan_gladen(said, range(1000), Calibration(6, 4, 6, 4), exact=exact)
    assert "chance" in found.reason
    assert found.low == pytest.approx(0.54, abs=0.04)  # no judged row is right
    assert found.high == pytest.approx(0.64, abs=0.04)  # every one is
    assert found.low < 0.54 < 0.64 < found.high


@pytest.mark.parametrize(
    ("calibration", "reason"),
    [
        pytest.param(Calibration(0, 0, 9, 1), "a right answer", id="no positives"),
        pytest.param(Calibration(5, 5, 5, 5), "chance", id="a coin"),
    ],
)
def test_one_judged_row_is_enough_to_need_a_usable_judge(
    calibration: Calibration, reason: str
) -> None:
    said, exact = [True, False, True, False], [True, True, True, False]
    found = rogan_gladen(said, range(4), calibration, exact=exact)
    assert numbers(found) == (None, None, None)
    assert found.reason.startswith("undefined: ")
    assert reason in found.reason
    # The judge failed there: nothing is left that it has read.
    without = rogan_gladen([True, False, True, None], range(4), calibration, exact=exact)
    assert without.estimate == pytest.approx(2 / 3)


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="exact: one a row"):
        rogan_gladen([True, False], ["a", "b"], FAIR, exact=[True])


# ---------------------------------------------------------------------------- laws

cells = st.tuples(st.sampled_from([True, False, None]), st.booleans())
tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(cells, min_size=k, max_size=k), min_size=1, max_size=8)
)
counts = st.integers(0, 60)
calibrations = st.builds(Calibration, counts, counts, counts, counts)
Table = list[list[tuple[bool | None, bool]]]


def estimated(table: Table, calibration: Calibration, level: float = 0.95) -> Corrected:
    flat = [(one, f"q{i}") for i, row in enumerate(table) for one in row]
    return rogan_gladen(
        [said for (said, _), _ in flat], [item for _, item in flat], calibration,
        exact=[exact for (_, exact), _ in flat], level=level,
    )  # fmt: skip


@given(tables, calibrations, st.floats(0.5, 0.999))
def test_numbers_stay_in_range_and_in_order_or_have_a_reason(
    table: Table, calibration: Calibration, level: float
) -> None:
    found = estimated(table, calibration, level)
    if found.estimate is None or found.low is None or found.high is None:
        assert found.low is found.high is None
        assert found.reason.startswith("undefined: " if found.estimate is None else "no interval: ")
    else:
        assert 0 <= found.low <= found.estimate <= found.high <= 1


@given(tables, calibrations)
def test_exact_rows_bound_what_a_correction_can_move(
    table: Table, calibration: Calibration
) -> None:
    found = estimated(table, calibration)
    known = [cell for row in table for cell in row if cell[0] is not None]
    if found.estimate is not None:
        sure = sum(said is True for said, exact in known if exact) / len(known)
        share = sum(not exact for _, exact in known) / len(known)
        assert sure - 1e-9 <= found.estimate <= sure + share + 1e-9


@given(tables, calibrations, st.integers(2, 3))
def test_copies_of_every_row_teach_nothing(
    table: Table, calibration: Calibration, times: int
) -> None:
    found = estimated(table, calibration)
    copied = estimated([row * times for row in table], calibration)
    assert numbers(copied) == pytest.approx(numbers(found), abs=1e-9)
    assert copied.reason == found.reason
