"""Our formulas against those of libraries that know nothing of us, to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from arms import answers, table
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from mlflow_mcq.clusters import item_codes, mean_over_items
from mlflow_mcq.reliability import kappa, wilson
from mlflow_mcq.statistics.paired import accuracy_shift
from mlflow_mcq.statistics.pairing import align
from mlflow_mcq.statistics.ranking import rank_agreement
from mlflow_mcq.statistics.significance import holm, mcnemar

CLOSE = {"abs": 1e-9, "rel": 1e-9}


def clustered_se(values: np.ndarray, items: np.ndarray) -> float:
    """Of a mean: least squares on a constant, with the sandwich grouped by item.

    Their factor is G / (G - 1) * (N - 1) / (N - 1) for one constant: the finite-cluster
    one alone.
    """
    fitted = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": items, "use_correction": True}
    )
    return float(fitted.bse[0])


@pytest.mark.parametrize("rows_an_item", [1, 2, 4])
def test_clustered_error_of_a_mean(rows_an_item: int) -> None:
    draw = np.random.default_rng(rows_an_item)
    items = np.repeat(np.arange(37), rows_an_item)
    values = (draw.random(len(items)) < draw.random(37)[items]).astype(float)
    found = mean_over_items(values, item_codes(items, len(items)))
    assert found.mean == pytest.approx(values.mean(), **CLOSE)
    assert found.variance**0.5 == pytest.approx(clustered_se(values, items), **CLOSE)


def test_clustered_error_with_items_of_unlike_size() -> None:
    draw = np.random.default_rng(3)
    items = np.repeat(np.arange(25), draw.integers(1, 7, 25))
    values = (draw.random(len(items)) < 0.4).astype(float)
    found = mean_over_items(values, item_codes(items, len(items)))
    assert found.variance**0.5 == pytest.approx(clustered_se(values, items), **CLOSE)


def test_paired_shift_is_the_clustered_mean_of_differences() -> None:
    gold = np.random.default_rng(8).integers(0, 4, 50)
    one, other = answers(gold, 0.4, seed=1), answers(gold, 0.6, seed=2)
    found = accuracy_shift(align(table(one, gold), table(other, gold)))
    moved = ((other == gold[:, None]).astype(float) - (one == gold[:, None])).ravel()
    error = clustered_se(moved, np.repeat(np.arange(50), 4))
    reach = stats.t.ppf(0.975, 49) * error
    assert found.value == pytest.approx(moved.mean(), **CLOSE)
    assert found.se == pytest.approx(error, **CLOSE)
    assert (found.low, found.high) == pytest.approx(
        (moved.mean() - reach, moved.mean() + reach), **CLOSE
    )


@pytest.mark.parametrize(("hits", "n"), [(0, 9), (3, 9), (9, 9), (77, 240)])
def test_wilson(hits: int, n: int) -> None:
    found = wilson(hits, n)
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(hits, n, method="wilson"), **CLOSE
    )


@pytest.mark.parametrize(("lost", "won"), [(15, 4), (0, 6), (31, 30), (1, 1)])
def test_mcnemar(lost: int, won: int) -> None:
    theirs = their_mcnemar([[120, lost], [won, 81]], exact=True)
    found = mcnemar(lost, won)
    assert found.exact_p == pytest.approx(min(1.0, theirs.pvalue), **CLOSE)
    tail = stats.binom(lost + won, 0.5)
    k = min(lost, won)
    assert found.mid_p == pytest.approx(2 * tail.cdf(k) - tail.pmf(k), **CLOSE)


def test_holm() -> None:
    raw = dict(zip("abcdefg", np.random.default_rng(0).random(7) ** 3, strict=True))
    theirs = multipletests(list(raw.values()), method="holm")[1]
    assert list(holm(raw).values()) == pytest.approx(list(theirs), **CLOSE)


def test_kappa() -> None:
    draw = np.random.default_rng(11)
    names = ["CORRECT", "INCORRECT", "OTHER"]
    truth = [names[i] for i in draw.integers(0, 3, 200)]
    said = [t if draw.random() < 0.7 else names[draw.integers(0, 3)] for t in truth]
    found = kappa(list(zip(truth, said, strict=True)))
    assert found.value == pytest.approx(cohen_kappa_score(truth, said), **CLOSE)


def test_kendall() -> None:
    draw = np.random.default_rng(2)
    one = {f"m{i}": float(draw.random()) for i in range(9)}
    other = {name: value + 0.3 * float(draw.random()) for name, value in one.items()}
    theirs = stats.kendalltau(list(one.values()), list(other.values())).statistic
    assert rank_agreement(one, other).value == pytest.approx(theirs, **CLOSE)
