"""Patterns of items, and that drawing patterns is drawing items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.statistics import patterns as module
from mlflow_mcq.statistics.patterns import Number, bootstrap, bootstrapped, patterns_of

tables = st.integers(1, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.sampled_from([0, 1, 2, 0.5, 2.0**40, -3]), min_size=k, max_size=k),
        min_size=1,
        max_size=25,
    )
)


@given(tables)
def test_patterns_are_the_distinct_rows_with_their_counts(table: list[list[float]]) -> None:
    columns = np.array(table, dtype=float)
    found = patterns_of(list(columns.T))
    distinct, counts = np.unique(columns, axis=0, return_counts=True)
    order = np.lexsort(found.counts.T[::-1])
    assert found.counts[order].tolist() == distinct.tolist()
    assert found.n_items[order].tolist() == counts.tolist()
    assert found.totals.tolist() == pytest.approx(columns.sum(axis=0).tolist())


def test_very_many_columns_do_not_run_over() -> None:
    columns = np.random.default_rng(0).integers(0, 9, (40, 60))
    columns[20:] = columns[:20]
    found = patterns_of(list(columns.T))
    assert sorted(found.n_items.tolist()) == [2] * 20


def by_items(columns: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """The slow road: draw the numbers of items."""
    draw = np.random.default_rng(seed)
    n = len(columns)
    return np.stack([columns[draw.integers(0, n, n)].sum(axis=0) for _ in range(replicates)])


@pytest.mark.parametrize("most", [5_000, 1], ids=["multinomial", "normal limit"])
def test_drawing_patterns_is_drawing_items(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PATTERNS", most)
    draw = np.random.default_rng(3)
    n = draw.integers(1, 5, 300)
    columns = np.stack([draw.binomial(n, draw.beta(0.5, 0.5, 300)), n], axis=1).astype(float)
    slow = by_items(columns, 4_000, 1)
    fast = bootstrap(patterns_of(list(columns.T)), lambda sums: sums, 4_000, seed=2)
    assert fast.mean(axis=0) == pytest.approx(slow.mean(axis=0), rel=0.01)
    assert np.cov(fast.T) == pytest.approx(np.cov(slow.T), rel=0.1)
    quantiles = [np.quantile(a[:, 0] / a[:, 1], [0.025, 0.5, 0.975]) for a in (slow, fast)]
    assert quantiles[0] == pytest.approx(quantiles[1], abs=0.006)


def test_draws_are_repeatable_whatever_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = patterns_of([np.arange(10)])
    once = bootstrap(found, lambda sums: sums[:, 0], 100, seed=5)
    monkeypatch.setattr(module, "_DRAWS_AT_ONCE", 70)
    assert bootstrap(found, lambda sums: sums[:, 0], 100, seed=5).tolist() == once.tolist()
    assert bootstrap(found, lambda sums: sums[:, 0], 100, seed=6).tolist() != once.tolist()


def test_one_item_and_none_have_no_interval() -> None:
    mean = {"mean": Number(lambda sums: sums[:, 0] / sums[:, 1], 0.0, 1.0)}
    one = bootstrapped(patterns_of([np.array([1]), np.array([2])]), mean)["mean"]
    assert (one.value, one.low) == (0.5, None)
    assert "1 item" in one.reason
    none = bootstrapped(patterns_of([np.array([0, 0]), np.array([0, 0])]), mean)["mean"]
    assert none.value is None
