"""Reliability: rates, kappa and letter bias against numbers worked out by hand."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.reliability import (
    SlotRead,
    agreement,
    kappa,
    letter_bias,
    sensitivity,
    slot_preference,
    specificity,
    wilson,
)

LABELS = ("CORRECT", "INCORRECT", "OTHER")
some_pairs = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=60)
some_reads = st.lists(
    st.integers(2, 6).flatmap(
        lambda n: st.builds(
            SlotRead,
            st.just(n),
            st.none() | st.integers(0, n - 1),
            st.none() | st.integers(0, n - 1),
        )
    ),
    max_size=40,
)


def table(counts: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, n in counts.items() for _ in range(n)]


# Shares


def wilson_by_hand(hits: int, n: int) -> tuple[float, float]:
    z, p = 1.959963984540054, hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return middle - reach, middle + reach


@pytest.mark.parametrize(
    ("hits", "n"), [(8, 10), (0, 10), (10, 10), (1, 1), (37, 233), (60, 75)], ids=str
)
def test_wilson_is_the_closed_form(hits, n):
    share = wilson(hits, n)
    assert share.value == hits / n
    assert (share.low, share.high) == pytest.approx(wilson_by_hand(hits, n), abs=1e-9)
    assert share.n == n


def test_a_perfect_score_keeps_an_open_interval():
    share = wilson(50, 50)
    assert (share.value, share.high) == (1.0, 1.0)
    assert share.low == pytest.approx(50 / (50 + 1.959963984540054**2))


def test_what_has_no_rows_has_a_reason_and_no_number():
    share = wilson(0, 0, "rows that are OTHER")
    assert (share.value, share.low, share.high) == (None, None, None)
    assert share.reason == "undefined: 0 rows that are OTHER"
    assert share.numbers("x") == {}


def test_sensitivity_and_specificity_by_hand():
    pairs = table({("y", "y"): 6, ("y", "n"): 2, ("n", "n"): 9, ("n", "y"): 1})
    assert sensitivity(pairs, "y").value == 6 / 8
    assert specificity(pairs, "y").value == 9 / 10
    assert sensitivity(pairs, "n").value == 9 / 10
    assert specificity([("y", "y")], "y").reason == "undefined: 0 rows that are not y"


# Kappa


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param(
            {("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15}, 0.4, id="two labels"
        ),
        pytest.param(
            # p_o = 29/40; p_e = (15*13 + 15*16 + 10*11) / 1600
            {
                **{("C", "C"): 10, ("C", "I"): 4, ("C", "O"): 1},
                **{("I", "C"): 2, ("I", "I"): 11, ("I", "O"): 2},
                **{("O", "C"): 1, ("O", "I"): 1, ("O", "O"): 8},
            },
            (29 / 40 - 545 / 1600) / (1 - 545 / 1600),
            id="three labels",
        ),
        pytest.param({("y", "y"): 5, ("n", "n"): 7}, 1.0, id="full agreement"),
        pytest.param({("y", "n"): 5, ("n", "y"): 5}, -1.0, id="full disagreement"),
        pytest.param({("y", "y"): 30, ("n", "y"): 12}, 0.0, id="a reader with one word"),
    ],
)
def test_kappa_by_hand(counts, expected):
    assert kappa(table(counts)).value == pytest.approx(expected, abs=1e-12)


def test_kappa_of_a_reader_with_one_word_is_exactly_nothing():
    assert kappa(table({("C", "O"): 75, ("I", "O"): 84, ("O", "O"): 74})).value == 0


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        pytest.param([], "0 rows", id="no rows"),
        pytest.param([("y", "y")] * 3, "one label only", id="one label"),
    ],
)
def test_kappa_is_undefined_and_says_why(pairs, reason):
    found = kappa(pairs)
    assert found.value is None
    assert reason in found.reason


def test_the_interval_of_kappa_is_close_to_a_bootstrap_and_open_at_one():
    pairs = table({("y", "y"): 80, ("y", "n"): 15, ("n", "y"): 10, ("n", "n"): 95})
    draw = random.Random(7)
    again = sorted(kappa(draw.choices(pairs, k=len(pairs))).value for _ in range(400))
    found = kappa(pairs)
    assert found.low == pytest.approx(again[10], abs=0.04)
    assert found.high == pytest.approx(again[389], abs=0.04)
    perfect = kappa(table({("y", "y"): 50, ("n", "n"): 50}))
    assert perfect.high == 1.0
    assert 0.9 < perfect.low < 0.95


@given(some_pairs)
def test_agreement_lies_in_range_and_does_not_depend_on_order(pairs):
    found = agreement(pairs, LABELS)
    assert agreement(pairs[::-1], LABELS) == found
    for name, one in found.estimates().items():
        if one.value is None:
            assert one.reason.startswith("undefined: ")
            continue
        assert (-1 if name == "kappa" else 0) <= one.value <= 1
        assert one.low <= one.value + 1e-12
        assert one.value <= one.high + 1e-12


def test_agreement_gives_flat_numbers():
    numbers = agreement([("y", "y"), ("n", "n"), ("n", "y")], ("y", "n")).numbers()
    assert {"accuracy", "accuracy_low", "kappa_high", "sensitivity_y", "specificity_n_low"} <= set(
        numbers
    )
    assert numbers["accuracy"] == pytest.approx(2 / 3)


# Letters


def test_letter_bias_by_hand():
    reads = [SlotRead(4, 0, 0), SlotRead(4, 1, 0), SlotRead(4, None, 0), SlotRead(4, 3, None)]
    first, second, third, last = letter_bias(reads)
    assert (first.pick_rate, first.true_rate, first.bias.value) == (0.75, 0.25, 0.5)
    assert [one.bias.value for one in (second, third, last)] == [-0.25, 0.0, -0.25]
    # Agresti and Min: b = 2.5, c = 0.5, n = 6
    spread = math.sqrt(3 - 4 / 6) / 6
    assert first.bias.high == pytest.approx(2 / 6 + 1.959964 * spread, abs=1e-6)
    assert first.bias.low == pytest.approx(2 / 6 - 1.959964 * spread, abs=1e-6)


def test_a_slot_is_measured_on_the_rows_that_show_it():
    reads = [SlotRead(2, 0, 0)] * 8 + [SlotRead(3, 2, 2)] * 2
    assert [one.bias.n for one in letter_bias(reads)] == [10, 10, 2]
    assert letter_bias(reads)[2].pick_rate == 1.0
    assert letter_bias([]) == ()


@given(some_reads)
def test_biases_of_equal_pages_add_up_to_what_was_picked_too_often(reads):
    for one in letter_bias(reads):
        assert -1 <= one.bias.low <= one.bias.value <= one.bias.high <= 1
    alike = [SlotRead(6, one.true, one.read) for one in reads]
    extra = sum(one.read is not None for one in alike) - sum(one.true is not None for one in alike)
    total = sum(one.bias.value for one in letter_bias(alike))
    assert total == pytest.approx(extra / len(alike) if alike else 0, abs=1e-9)


def test_preference_is_pearsons_test_where_all_rows_are_alike():
    counts = [9, 4, 5, 6]  # nothing was chosen, so every slot is wrong and as likely
    reads = [SlotRead(4, None, slot) for slot, n in enumerate(counts) for _ in range(n)]
    found, pearson = slot_preference(reads), stats.chisquare(counts)
    assert found.statistic == pytest.approx(pearson.statistic)
    assert found.p_value == pytest.approx(pearson.pvalue)
    assert (found.dof, found.n) == (3, 24)


def test_preference_keeps_its_level_over_rows_of_different_sizes():
    draw = np.random.default_rng(3)
    p_values = []
    for _ in range(400):
        reads = []
        for n_options, true in [(3, 0), (4, 1), (4, None), (5, 4), (6, 2)] * 10:
            free = [slot for slot in range(n_options) if slot != true]
            reads.append(SlotRead(n_options, true, int(draw.choice(free))))
        p_values.append(slot_preference(reads).p_value)
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.09


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        pytest.param([SlotRead(4, 1, 1), SlotRead(4, 2, None)], "0 wrong slots", id="none wrong"),
        pytest.param([SlotRead(2, 1, 0)], "one wrong slot only", id="nothing to prefer"),
    ],
)
def test_preference_is_undefined_and_says_why(reads, reason):
    found = slot_preference(reads)
    assert (found.statistic, found.p_value) == (None, None)
    assert reason in found.reason
