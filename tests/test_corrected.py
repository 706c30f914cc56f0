"""Rogan-Gladen: closed forms, the published interval, laws, and what is undefined."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.corrected import Calibration, Corrected, judged_accuracy, rogan_gladen
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Verdict

KNOWN = 10**12  # calibration rows that leave no doubt
INFALLIBLE = Calibration(KNOWN, 0, KNOWN, 0)
Z = NormalDist().inv_cdf(0.975)


def grid(rights: list[int], k: int) -> tuple[list[bool], list[int]]:
    """Items with k rows each, of which so many are right."""
    said = [slot < right for right in rights for slot in range(k)]
    return said, [item for item in range(len(rights)) for _ in range(k)]


def numbers(found: Corrected) -> tuple[float | None, float | None, float | None]:
    return found.estimate, found.low, found.high


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize(
    ("right", "calibration", "theta", "clipped"),
    [
        pytest.param(75, Calibration(90, 10, 80, 20), 0.55 / 0.7, False, id="both err"),
        pytest.param(50, Calibration(9, 1, 9, 1), 0.5, False, id="errors that cancel"),
        pytest.param(40, Calibration(50, 0, 40, 10), 0.25, False, id="lenient judge"),
        pytest.param(40, Calibration(40, 10, 50, 0), 0.5, False, id="harsh judge"),
        pytest.param(10, Calibration(50, 0, 40, 10), 0.0, True, id="fewer than it invents"),
        pytest.param(95, Calibration(40, 10, 50, 0), 1.0, True, id="more than it can find"),
        pytest.param(20, Calibration(50, 0, 40, 10), 0.0, False, id="exactly none: not clipped"),
    ],
)
def test_estimates_by_hand(
    right: int, calibration: Calibration, theta: float, clipped: bool
) -> None:
    found = rogan_gladen([True] * right + [False] * (100 - right), range(100), calibration)
    assert found.estimate == pytest.approx(theta, abs=1e-12)
    assert found.clipped is clipped
    assert (found.n_items, found.n_calibration) == (100, calibration.n)


@pytest.mark.parametrize("rights", [[4, 0, 3, 1, 4, 2], [4, 4, 4, 4], [0, 0, 0], [2, 2, 2, 2]])
def test_a_judge_that_never_errs_changes_nothing(rights: list[int]) -> None:
    said, items = grid(rights, 4)
    raw, found = judged_accuracy(said, items), rogan_gladen(said, items, INFALLIBLE)
    assert found.estimate == raw.estimate == sum(rights) / (4 * len(rights))
    assert numbers(found) == pytest.approx(numbers(raw), abs=1e-5)


def test_the_interval_over_many_items_is_the_clustered_one() -> None:
    rng = np.random.default_rng(5)
    said, items = grid(rng.integers(0, 5, 20_000).tolist(), 4)
    means = np.reshape(said, (-1, 4)).mean(axis=1)
    half = stats.t.ppf(0.975, 19_999) * sqrt(means.var(ddof=1) / 20_000)
    found = rogan_gladen(said, items, INFALLIBLE)
    assert numbers(found) == pytest.approx(
        (means.mean(), means.mean() - half, means.mean() + half), abs=2e-5
    )


def test_a_judge_known_exactly_only_stretches_the_raw_interval() -> None:
    said, items = grid([4, 0, 3, 1, 4, 2, 3, 4, 2, 3], 4)
    raw = judged_accuracy(said, items)
    known = Calibration(KNOWN * 9, KNOWN, KNOWN * 8, KNOWN * 2)
    found = rogan_gladen(said, items, known)
    stretched = [min(max((end + 0.8 - 1) / 0.7, 0), 1) for end in numbers(raw) if end is not None]
    assert numbers(found) == pytest.approx(stretched, abs=1e-5)


def test_more_calibration_rows_narrow_the_interval_down_to_that_of_a_known_judge() -> None:
    said, items = grid([4, 0, 3, 1, 4, 2, 3, 4, 2, 3] * 5, 4)
    widths = []
    for n in (10, 40, 160, 640, KNOWN):
        found = rogan_gladen(said, items, Calibration(9 * n, n, 8 * n, 2 * n))
        assert found.high is not None
        assert found.low is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-2] == pytest.approx(widths[-1], rel=0.02)


# ------------------------------------------------- against plain recomputations


def published(p: float, calibration: Calibration, n: float, t: float = Z) -> tuple[float, float]:
    """The adjusted interval of arXiv 2511.21140 for n independent rows (t = Z there)."""
    m1, m0 = calibration.tp + calibration.fn, calibration.tn + calibration.fp
    q1, q0 = (calibration.tp + 1) / (m1 + 2), (calibration.tn + 1) / (m0 + 2)
    p, n = (n * p + Z**2 / 2) / (n + Z**2), n + Z**2
    v1, v0 = q1 * (1 - q1) / (m1 + 2), q0 * (1 - q0) / (m0 + 2)
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    centre = theta + 2 * Z**2 * (theta * v1 - (1 - theta) * v0)
    half = t * sqrt(p * (1 - p) / n + (1 - theta) ** 2 * v0 + theta**2 * v1) / (q0 + q1 - 1)
    return max(0, centre - half), min(1, centre + half)


@pytest.mark.parametrize("right", [3_000, 10_000, 17_000])
@pytest.mark.parametrize("calibration", [Calibration(90, 10, 80, 20), Calibration(29, 1, 150, 5)])
def test_many_items_of_one_row_have_the_published_interval(
    right: int, calibration: Calibration
) -> None:
    n = 20_000
    found = rogan_gladen(np.arange(n) < right, range(n), calibration)
    assert (found.low, found.high) == pytest.approx(published(right / n, calibration, n), abs=1e-4)


def test_clustered_rows_against_loops() -> None:
    rights, k = [4, 0, 3, 1, 4, 2, 0, 4], 4
    said, items = grid(rights, k)
    calibration = Calibration(70, 5, 60, 9)
    g, p = len(rights), sum(rights) / (len(rights) * k)
    variance = 0.0
    for right in rights:
        variance += (right / k - p) ** 2 / (g - 1) / g
    effective = p * (1 - p) / variance
    expected = published(p, calibration, effective, float(stats.t.ppf(0.975, g - 1)))
    found = rogan_gladen(said, items, calibration)
    assert (found.low, found.high) == pytest.approx(expected)
    assert effective < g * k / 2  # strong item effects: far fewer rows than it looks


# ------------------------------------------------------------------------- laws

verdicts = st.sampled_from([*Verdict, None])
counts = st.integers(0, 60)
tables = st.integers(1, 5).flatmap(
    lambda k: st.lists(st.lists(verdicts, min_size=k, max_size=k), min_size=1, max_size=9)
)
calibrations = st.builds(Calibration, counts, counts, counts, counts)


def flat(table: list[list[Verdict | None]]) -> tuple[list[Verdict | None], list[str]]:
    cells = [(one, f"q{i}") for i, row in enumerate(table) for one in row]
    return [one for one, _ in cells], [item for _, item in cells]


def close(one: Corrected, other: Corrected) -> bool:
    bare = replace(one, estimate=None, low=None, high=None)
    same = bare == replace(other, estimate=None, low=None, high=None)
    return same and numbers(one) == pytest.approx(numbers(other), abs=1e-9)


@given(tables, calibrations, st.floats(0.5, 0.999))
def test_numbers_stay_in_range_and_in_order_or_have_a_reason(
    table: list[list[Verdict | None]], calibration: Calibration, level: float
) -> None:
    said, items = flat(table)
    for found in (
        rogan_gladen(said, items, calibration, level=level),
        judged_accuracy(said, items, level=level),
    ):
        if found.estimate is None or found.low is None or found.high is None:
            assert found.low is found.high is None
            assert found.reason.startswith(
                "undefined: " if found.estimate is None else "no interval: "
            )
        else:
            assert 0 <= found.low <= found.estimate <= found.high <= 1


@given(tables, calibrations, st.randoms())
def test_the_order_of_rows_and_the_names_of_items_do_not_matter(
    table: list[list[Verdict | None]], calibration: Calibration, random: object
) -> None:
    said, items = flat(table)
    rows = list(zip(said, items, strict=True))
    random.shuffle(rows)  # type: ignore[attr-defined]
    shuffled = rogan_gladen([s for s, _ in rows], [f"new-{i}" for _, i in rows], calibration)
    assert close(rogan_gladen(said, items, calibration), shuffled)


@given(tables, calibrations, st.integers(2, 4))
def test_copies_of_every_orientation_teach_nothing(
    table: list[list[Verdict | None]], calibration: Calibration, times: int
) -> None:
    said, items = flat(table)
    copied = rogan_gladen(*flat([row * times for row in table]), calibration)
    assert close(rogan_gladen(said, items, calibration), copied)


@given(st.integers(0, 20), st.integers(0, 20), calibrations)
def test_a_row_without_a_verdict_is_no_row(right: int, wrong: int, c: Calibration) -> None:
    said: list[bool | None] = [True] * right + [False] * wrong
    failed = [*said, None, None]
    assert rogan_gladen(said, range(len(said)), c) == rogan_gladen(failed, range(len(failed)), c)


# -------------------------------------------------------- undefined, and doubts


@pytest.mark.parametrize(
    ("said", "calibration", "reason"),
    [
        pytest.param([], INFALLIBLE, "0 judged rows", id="no rows"),
        pytest.param([None, None], INFALLIBLE, "0 judged rows", id="every row failed"),
        pytest.param([True, False], Calibration(0, 0, 9, 1), "a right answer", id="no positives"),
        pytest.param([True, False], Calibration(9, 1, 0, 0), "not right", id="no negatives"),
        pytest.param([True, False], Calibration(5, 5, 5, 5), "chance", id="a coin"),
        pytest.param([True, False], Calibration(1, 9, 2, 8), "chance", id="worse than a coin"),
        pytest.param([True, False], Calibration(1, 48, 48, 1), "chance", id="a lazy coin, 1/49"),
    ],
)
def test_no_number_where_there_can_be_none(
    said: list[bool | None], calibration: Calibration, reason: str
) -> None:
    found = rogan_gladen(said, range(len(said)), calibration)
    assert numbers(found) == (None, None, None)
    assert found.reason.startswith("undefined: ")
    assert reason in found.reason


def test_one_item_has_an_estimate_and_no_interval() -> None:
    for found in (
        rogan_gladen([True, False], ["a", "a"], INFALLIBLE),
        judged_accuracy([True, False], ["a", "a"]),
    ):
        assert numbers(found) == (0.5, None, None)
        assert found.reason == "no interval: fewer than 2 items"


def test_a_judge_hardly_told_from_chance_leaves_everything_possible() -> None:
    found = rogan_gladen([True, False] * 50, range(100), Calibration(6, 4, 6, 4))
    assert found.estimate == pytest.approx(0.5)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "chance" in found.reason


def test_an_interval_outside_the_possible_is_called_out() -> None:
    found = rogan_gladen([True] * 1000, range(1000), Calibration(8000, 2000, 10_000, 0))
    assert found.estimate == found.low == found.high == 1
    assert found.clipped
    assert "outside [0, 1]" in found.reason


@pytest.mark.parametrize("right", [0, 20])
def test_all_alike_is_no_proof_of_certainty(right: int) -> None:
    found = judged_accuracy([i < right for i in range(20)], range(20))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.1


def test_a_calibration_counts_rows_with_both_labels() -> None:
    judged = ["CORRECT", "CORRECT", "INCORRECT", "OTHER", "OTHER", None, "CORRECT"]
    human = [True, "OTHER", "CORRECT", "INCORRECT", "OTHER", True, None]
    found = Calibration.of_rows(judged, human)
    assert found == Calibration(tp=1, fn=1, tn=2, fp=1)
    assert (found.sensitivity, found.specificity, found.n) == (0.5, 2 / 3, 5)
    assert Calibration(0, 0, 0, 0).sensitivity is Calibration(0, 0, 0, 0).specificity is None


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_a_count_that_is_none_is_refused(count: float) -> None:
    with pytest.raises(DataError, match="calibration fn"):
        Calibration(3, count, 3, 0)  # type: ignore[arg-type]


def test_columns_of_unequal_length_and_odd_levels_are_refused() -> None:
    with pytest.raises(DataError, match="human_label"):
        Calibration.of_rows([True], [True, False])
    with pytest.raises(DataError, match="items"):
        rogan_gladen([True], ["a", "b"], INFALLIBLE)
    with pytest.raises(SettingsError, match="level"):
        rogan_gladen([True, False], ["a", "b"], INFALLIBLE, level=95)
