"""Labels as numbers, and the variance of a mean over items."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mlflow_mcq.clusters import correctness, item_codes, mean_over_items, quantiles
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Verdict


@pytest.mark.parametrize(
    ("label", "worth"),
    [
        pytest.param(Verdict.CORRECT, 1.0, id="verdict"),
        pytest.param(Verdict.OTHER, 0.0, id="OTHER is not correct"),
        pytest.param("INCORRECT", 0.0, id="name of a verdict"),
        pytest.param(" correct ", 1.0, id="typed by hand"),
        pytest.param(True, 1.0, id="bool"),
        pytest.param(np.False_, 0.0, id="numpy's bool"),
        pytest.param(None, np.nan, id="no label"),
        pytest.param(float("nan"), np.nan, id="empty cell of a frame"),
        pytest.param(pd.NA, np.nan, id="empty cell of a nullable frame"),
        pytest.param("", np.nan, id="empty cell of a file"),
    ],
)
def test_a_label_is_worth_one_nothing_or_is_absent(label: object, worth: float) -> None:
    assert np.array_equal(correctness([label], "human_label"), [worth], equal_nan=True)  # type: ignore[list-item]


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(1, id="could be an option index"),
        pytest.param(0.0, id="could be a score"),
        pytest.param("B", id="a letter"),
        pytest.param("yes", id="another word"),
    ],
)
def test_a_label_that_could_mean_something_else_is_refused(label: object) -> None:
    with pytest.raises(DataError, match=r"human_label, row 1: .*CORRECT, INCORRECT, OTHER"):
        correctness([True, label], "human_label")  # type: ignore[list-item]


def test_columns_of_a_frame_are_read_as_they_are() -> None:
    frame = pd.DataFrame({"verdict": ["CORRECT", None, "OTHER"], "flag": [True, False, True]})
    assert np.array_equal(correctness(frame["verdict"], "x"), [1, np.nan, 0], equal_nan=True)
    assert correctness(frame["flag"], "x").tolist() == [1, 0, 1]
    assert correctness(np.array([True, False]), "x").tolist() == [1, 0]


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(["a", "b"], id="too few"),
        pytest.param(["a", None, "b"], id="missing"),
        pytest.param(["a", float("nan"), "b"], id="not a number"),
    ],
)
def test_rows_without_an_item_are_refused(ids: list[object]) -> None:
    with pytest.raises(DataError, match=r"^items: "):
        item_codes(ids, 3)  # type: ignore[arg-type]


def test_ids_of_mixed_kinds_stay_apart() -> None:
    assert item_codes([1, "1", (1,), 1], 4).tolist() == [0, 1, 2, 0]


def test_equal_rows_an_item_give_the_textbook_variance_of_item_means() -> None:
    rows = np.array([[1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0]], dtype=float)
    found = mean_over_items(rows.ravel(), np.repeat(np.arange(4), 3))
    assert found.mean == pytest.approx(rows.mean())
    assert found.variance == pytest.approx(rows.mean(axis=1).var(ddof=1) / 4)


def test_unequal_rows_by_hand() -> None:
    # Mean 3/4. Item a: (1/4 + 1/4 + 1/4); item b: -3/4. Squares 9/16 each, / 16 * 2 / 1.
    found = mean_over_items(np.array([1.0, 1, 1, 0]), np.array([0, 0, 0, 1]))
    assert (found.mean, found.n_items, found.n_rows) == (0.75, 2, 4)
    assert found.variance == pytest.approx((9 / 16 + 9 / 16) / 16 * 2)


def test_one_item_has_a_mean_and_no_variance_and_no_rows_have_neither() -> None:
    one = mean_over_items(np.array([1.0, 0.0]), np.array([3, 3]))
    assert one.mean == 0.5
    assert np.isnan(one.variance)
    assert np.isnan(mean_over_items(np.array([]), np.array([], dtype=np.intp)).mean)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, float("nan")])
def test_a_level_that_is_no_fraction_is_refused(level: float) -> None:
    with pytest.raises(SettingsError, match="level"):
        quantiles(level, 5)
