"""Intervals over items: formulas by other roads, what has none, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from arms import OTHER as UNREAD
from arms import answers, replaced, rows, table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.clusters import mean_over_items
from mlflow_mcq.metrics import summarize
from mlflow_mcq.statistics.intervals import difference, ratio
from mlflow_mcq.statistics.one_arm import accuracies
from mlflow_mcq.statistics.rows import CORRECT, OTHER, rows_of

counts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30)


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    right, wrong = np.array(pairs, dtype=float).T
    return right, right + wrong


@given(counts)
def test_a_share_is_the_clustered_mean_over_rows(pairs: list[tuple[int, int]]) -> None:
    right, n = split(pairs)
    codes = np.repeat(np.arange(len(n)), n.astype(int))
    values = np.concatenate(
        [[1.0] * int(r) + [0.0] * int(k - r) for r, k in zip(right, n, strict=True)] or [[]]
    )
    other, mine = mean_over_items(values, codes), ratio(right, n)
    if not len(values):
        assert mine.measured().reason == "undefined: 0 rows"
        return
    assert mine.value == pytest.approx(other.mean, abs=1e-12)
    assert mine.n_items == other.n_items
    assert mine.se**2 == pytest.approx(other.variance, abs=1e-12, nan_ok=True)


def test_equal_rows_an_item_are_a_t_interval_of_item_means() -> None:
    right = np.array([4.0, 0, 3, 1, 2, 4, 4])
    found = ratio(right, np.full(7, 4.0)).measured()
    means = right / 4
    low, high = stats.t.interval(0.95, 6, means.mean(), stats.sem(means))
    assert (found.low, found.high) == (
        pytest.approx(low, abs=1e-9), pytest.approx(min(high, 1.0), abs=1e-9),
    )  # fmt: skip


def test_two_items_that_agree_with_themselves_are_two_observations() -> None:
    """Eight rows in two clusters: half of them right says next to nothing."""
    found = ratio(np.array([3.0, 0.0]), np.array([3.0, 3.0])).measured()
    assert found.se == pytest.approx(0.5)  # the row-wise error would be 0.2
    assert (found.low, found.high) == (0.0, 1.0)


def test_a_ratio_by_the_jackknife() -> None:
    """The delta method by a road of its own: leave out one item at a time."""
    draw = np.random.default_rng(0)
    right, n = draw.integers(0, 4, 400).astype(float), draw.integers(0, 4, 400).astype(float)
    n += right
    left_out = np.array([np.delete(right, i).sum() / np.delete(n, i).sum() for i in range(400)])
    jackknife = np.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    assert ratio(right, n).se == pytest.approx(jackknife, rel=0.01)


def test_one_row_an_item_has_wilsons_interval() -> None:
    right = np.array([1.0] * 9 + [0.0])
    found = ratio(right, np.ones(10)).measured()
    other = stats.binomtest(9, 10).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == (pytest.approx(other.low), pytest.approx(other.high))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_perfect_score_is_no_proof(value: float) -> None:
    found = ratio(np.full(10, 4 * value), np.full(10, 4.0)).measured()
    other = stats.binomtest(int(10 * value), 10).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == (pytest.approx(other.low), pytest.approx(other.high))


def test_agreement_on_five_items_is_no_proof_of_equality() -> None:
    same = ratio(np.array([4.0, 0, 4, 4, 0]), np.full(5, 4.0))
    found = difference(same, same)
    assert found.value == 0
    assert found.low is not None
    assert found.low < -0.2 < 0.2 < found.high  # type: ignore[operator]
    assert not found.excludes_zero
    assert found.p_value is None


def test_a_single_item_says_why_it_has_no_interval() -> None:
    found = ratio(np.array([3.0]), np.array([4.0])).measured()
    assert (found.value, found.low, found.se) == (0.75, None, None)
    assert "1 item" in found.reasons("accuracy")["accuracy_low"]
    assert found.numbers("accuracy") == {"accuracy": 0.75}


def test_no_number_of_a_summary_is_nan() -> None:
    gold = np.array([0])
    for choice in ([[0, 0, 1, 0]], [[UNREAD] * 4], [[-2] * 4]):
        summary = summarize(table(np.array(choice), gold), judged=True, replicates=50)
        assert not any(np.isnan(value) for value in summary.values.values())
        assert "accuracy_low" in summary.undefined or "accuracy" in summary.undefined


def test_a_summary_has_intervals_around_its_numbers() -> None:
    gold = np.random.default_rng(1).integers(0, 4, 60)
    values = summarize(table(answers(gold, 0.5, 2), gold), judged=True).values
    for name in (
        "accuracy", "accuracy_decided", "other_rate", "consistency", "circular_accuracy",
        "pair_consistency", "slot_shift", "choice_kl", "recall_std", "accuracy_spread",
    ):  # fmt: skip
        assert values[f"{name}_low"] <= values[name] <= values[f"{name}_high"], name


RUNS = 2_000


def known_items(seed: int, n_items: int, n_rows: int) -> np.ndarray:
    """Verdicts of runs x items x rows; most items are nearly always right or always wrong."""
    draw = np.random.default_rng(seed)
    known = draw.beta(0.4, 0.3, (RUNS, n_items, 1))
    return (draw.random((RUNS, n_items, n_rows)) < known).astype(np.int64)


TRUTH = 0.4 / 0.7


def test_95_percent_cover_95_percent_and_rows_as_if_independent_do_not() -> None:
    verdict = known_items(11, 60, 4)
    covered = naive = 0
    for one in verdict:
        found = accuracies(rows(one))["accuracy"]
        covered += found.low <= TRUTH <= found.high  # type: ignore[operator]
        naive += abs(one.mean() - TRUTH) <= 1.96 * one.std() / np.sqrt(one.size)
    assert 0.94 <= covered / RUNS <= 0.96
    assert naive / RUNS < 0.80


def test_coverage_of_a_share_of_decided_rows() -> None:
    """Hard items are refused more often, so numerator and denominator go together."""
    verdict = known_items(12, 80, 4)
    draw = np.random.default_rng(13)
    hard = (verdict.mean(axis=2, keepdims=True) < 0.5) * 0.4 + 0.1
    verdict = np.where(draw.random(verdict.shape) < hard, OTHER, verdict)
    right, decided = (verdict == CORRECT).sum(), (verdict != OTHER).sum()
    truth = right / decided  # over all runs
    found = [accuracies(rows(one))["accuracy_decided"] for one in verdict]
    covered = np.mean([f.low <= truth <= f.high for f in found])  # type: ignore[operator]
    assert 0.94 <= covered <= 0.96


def test_other_is_never_wrong_and_never_a_share_of_a_chance() -> None:
    gold = np.zeros(8, dtype=np.int64)
    choice = np.array([[0], [0], [0], [1], [UNREAD], [UNREAD], [0], [2]])
    found = accuracies(rows_of(table(choice, gold)))
    values = [found[n].value for n in ("accuracy", "accuracy_decided", "other_rate")]
    assert values == [4 / 8, 4 / 6, 2 / 8]


def test_failed_calls_are_counted_and_in_no_denominator() -> None:
    gold = np.zeros(50, dtype=np.int64)
    choice = replaced(answers(gold, 0.5, 0), 0.2, -2, 1)
    summary = summarize(table(choice, gold), judged=True, replicates=50)
    n_failed = int((choice == -2).sum())
    assert summary.values["n_judge_errors"] == n_failed > 0
    assert summary.values["accuracy"] == (choice == 0).sum() / (choice.size - n_failed)
