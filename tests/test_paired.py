"""Two arms on shared rows: pairing, differences, tests."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from arms import FAILED, answers, replaced, rotations, rows, table
from arms import OTHER as UNREAD
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.errors import DataError
from mlflow_mcq.statistics.paired import (
    accuracy_shift,
    chosen_shifts,
    equal_effects,
    moved_by_grader,
    shifts,
    shifts_by,
    transitions,
)
from mlflow_mcq.statistics.pairing import Pairs, Unpaired, align, with_order
from mlflow_mcq.statistics.power import items_to_settle, minimum_detectable
from mlflow_mcq.statistics.ranking import rank_agreement
from mlflow_mcq.statistics.significance import (
    holm,
    mcnemar,
    mcnemar_of,
    paired_bootstrap,
    sign_flip,
)

GOLD = np.random.default_rng(5).integers(0, 4, 40)


def pairs_of(baseline: np.ndarray, treatment: np.ndarray) -> Pairs:
    """Straight from verdict codes (items x rows)."""
    one, other = rows(baseline), rows(treatment)
    n = one.item.size
    ids = tuple(f"q{i}" for i in range(one.n_items))
    nothing = Unpaired(0, 0, 0, 0, 0, 0)
    places = np.tile(np.arange(n), (2, 1))
    return Pairs(one, other, ids, np.ones(n, dtype=bool), places, nothing)


def test_rows_are_paired_by_what_was_shown_and_never_by_position() -> None:
    base, treat = (table(answers(GOLD, 0.5, seed), GOLD) for seed in (1, 2))
    straight = align(base, treat)
    shuffled = align(base, treat.sample(frac=1, random_state=3).reset_index(drop=True))
    assert shifts(straight) == shifts(shuffled)
    assert transitions(straight).equals(transitions(shuffled))


def test_an_index_of_an_orientation_is_not_an_order() -> None:
    """Two plans number the same orders differently: shuffles of two seeds, say."""
    base = table(answers(GOLD, 0.5, 1), GOLD)
    treat = base.copy()
    treat["orientation"] = (treat["orientation"] + 1) % 4
    found = align(base, treat)
    assert found.n_pairs == len(base)
    assert shifts(found)["accuracy_shift"].value == 0
    assert transitions(found).to_numpy().sum() == np.trace(transitions(found).to_numpy())


def test_what_is_not_shared_is_counted_and_left_out() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD)
    treat = table(replaced(answers(GOLD, 0.5, 2), 0.1, FAILED, 3), GOLD)
    treat = treat[
        (treat["item_id"] != "q7") & ~((treat["item_id"] == "q3") & (treat["orientation"] == 2))
    ]
    extra = table(answers(GOLD[:1], 0.5, 1), GOLD[:1], ids=["new"])
    changed = treat["item_id"] == "q9"
    treat.loc[changed, "gold_slot"] = (treat.loc[changed, "gold_slot"] + 1) % 4
    n_failed = int((treat["verdict"].isna() & ~changed).sum())
    found = align(base, pd.concat([treat, extra], ignore_index=True))
    assert found.unpaired == Unpaired(1, 1, 1, 0, 4, n_failed)
    assert found.n_pairs == 160 - 4 - 1 - 4 - n_failed
    assert found.n_items == 38


def test_ids_are_the_same_as_text_and_as_number() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD, ids=[str(i) for i in range(40)])
    treat = base.assign(item_id=base["item_id"].astype(int), order=[list(o) for o in base["order"]])
    assert align(base, treat).n_pairs == 160


def test_a_row_that_is_there_twice_is_refused() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD)
    with pytest.raises(DataError, match=r"^treatment: an item is shown twice .* 'q0'"):
        align(base, pd.concat([base, base.head(1)], ignore_index=True))


def test_repeats_are_rows_of_their_own() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD)
    twice = pd.concat([base, base.assign(repeat=1)], ignore_index=True)
    assert align(twice, twice).n_pairs == 320
    assert align(base, twice).unpaired.n_rows_treatment == 160


def test_orders_come_from_the_generations() -> None:
    grades = table(answers(GOLD, 0.5, 1), GOLD)
    generations = grades[["row_id", "order"]].sample(frac=1, random_state=0)
    bare = grades.drop(columns="order")
    assert with_order(bare, generations)["order"].tolist() == grades["order"].tolist()
    with pytest.raises(DataError, match="order shown"):
        align(bare, bare)
    with pytest.raises(DataError, match="no generation"):
        with_order(bare, generations.iloc[1:])


def test_several_graders_are_not_one_arm() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD)
    with pytest.raises(DataError, match="one grader"):
        align(pd.concat([base, base.assign(grader="regex")], ignore_index=True), base)


def test_both_denominators_when_refusals_go_up() -> None:
    """A phantom effect: all of the loss is refusals, and what is decided is no worse."""
    base = np.array([[1]] * 50 + [[0]] * 50)
    treat = np.array([[1]] * 40 + [[2]] * 10 + [[0]] * 30 + [[2]] * 20)
    found = shifts(pairs_of(base, treat))
    assert found["accuracy_shift"].value == pytest.approx(0.40 - 0.50)
    assert found["accuracy_decided_shift"].value == pytest.approx(40 / 70 - 0.5)
    assert found["accuracy_decided_both_shift"].value == 0
    assert found["other_rate_shift"].value == pytest.approx(0.30)


verdicts = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=n, max_size=n)] * 2
    )
)


@given(verdicts)
def test_swapping_the_arms_turns_every_sign(both: tuple[list[list[int]], list[list[int]]]) -> None:
    one, other = map(np.array, both)
    there, back = shifts(pairs_of(one, other)), shifts(pairs_of(other, one))
    for name, shift in there.items():
        if shift.value is None:
            assert back[name].value is None
            continue
        assert shift.value == pytest.approx(-back[name].value, abs=1e-12)
        if shift.low is not None:
            assert shift.low == pytest.approx(-back[name].high, abs=1e-9)
    assert transitions(pairs_of(one, other)).to_numpy().T.tolist() == (
        transitions(pairs_of(other, one)).to_numpy().tolist()
    )
    assert sign_flip(pairs_of(one, other)) == sign_flip(pairs_of(other, one))


@given(verdicts)
def test_a_difference_is_a_paired_t_interval_of_item_means(
    both: tuple[list[list[int]], list[list[int]]],
) -> None:
    one, other = map(np.array, both)
    moved = (other == 1).mean(axis=1) - (one == 1).mean(axis=1)
    found = shifts(pairs_of(one, other))["accuracy_shift"]
    assert found.value == pytest.approx(moved.mean(), abs=1e-12)
    if moved.std() > 1e-9:
        test = stats.ttest_rel((other == 1).mean(axis=1), (one == 1).mean(axis=1))
        assert found.p_value == pytest.approx(test.pvalue, abs=1e-9)
        low, high = test.confidence_interval(0.95)
        assert (found.low, found.high) == (
            pytest.approx(max(low, -1), abs=1e-9), pytest.approx(min(high, 1), abs=1e-9),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "won"), [(0, 0), (1, 0), (3, 3), (2, 9), (12, 1), (30, 45)], ids=str
)
def test_mcnemar_by_counting(lost: int, won: int) -> None:
    n, k = lost + won, min(lost, won)
    tail = sum(comb(n, i) for i in range(k + 1)) / 2**n
    found = mcnemar(lost, won)
    assert found.exact_p == pytest.approx(min(1, 2 * tail), abs=1e-9)
    assert found.exact_p == pytest.approx(stats.binomtest(k, n).pvalue if n else 1, abs=1e-9)
    assert found.mid_p == pytest.approx(min(1, 2 * tail - comb(n, k) / 2**n), abs=1e-9)


def test_pairing_finds_what_two_separate_samples_do_not() -> None:
    """Most items are alike in both arms: only the few that differ speak."""
    base = np.array([[1]] * 130 + [[1]] * 14 + [[0]] * 3 + [[0]] * 73)
    treat = np.array([[1]] * 130 + [[0]] * 14 + [[1]] * 3 + [[0]] * 73)
    found = mcnemar_of(pairs_of(base, treat))
    assert (found.n_baseline, found.n_treatment) == (14, 3)
    assert found.exact_p < 0.02
    separate = stats.ttest_ind((base == 1).ravel(), (treat == 1).ravel()).pvalue
    assert separate > 0.25


def test_mcnemar_is_refused_where_rows_hang_together() -> None:
    found = mcnemar_of(pairs_of(np.array([[1, 1]]), np.array([[0, 1]])))
    assert found.exact_p is None
    assert "not independent" in found.reason


@given(st.lists(st.lists(st.sampled_from([0, 1]), min_size=2, max_size=2), min_size=1, max_size=8))
def test_all_sign_flips_one_by_one(treated: list[list[int]]) -> None:
    base, treat = np.tile([[0, 1]], (len(treated), 1)), np.array(treated)
    moved = (treat - base).sum(axis=1)
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(moved))).reshape(len(moved), -1)
    p = (np.abs(moved @ signs) >= abs(moved.sum())).mean()
    found = sign_flip(pairs_of(base, treat))
    assert found.exact
    assert found.p_value == pytest.approx(p, abs=1e-9)


def test_one_row_an_item_is_mcnemars_exact_test() -> None:
    draw = np.random.default_rng(0)
    base, treat = draw.integers(0, 2, (2, 200, 1))
    pairs = pairs_of(base, treat)
    assert sign_flip(pairs).p_value == pytest.approx(mcnemar_of(pairs).exact_p, abs=1e-9)


def test_many_rows_are_flipped_at_random_and_agree_with_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow_mcq.statistics import significance

    draw = np.random.default_rng(1)
    base, treat = draw.integers(0, 2, (2, 300, 4))
    treat[:24] = 1
    exact = sign_flip(pairs_of(base, treat))
    monkeypatch.setattr(significance, "_MOST_EXACT", 0)
    drawn = sign_flip(pairs_of(base, treat), seed=4)
    assert exact.exact
    assert not drawn.exact
    assert 0.001 < exact.p_value < 0.3
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.005)
    assert drawn == sign_flip(pairs_of(base, treat), seed=4)


def test_the_bootstrap_agrees_with_the_formula() -> None:
    draw = np.random.default_rng(2)
    base, treat = draw.integers(0, 3, (2, 400, 3))
    pairs = pairs_of(base, treat)
    formula, drawn = shifts(pairs), paired_bootstrap(pairs, 4_000)
    for name, found in drawn.items():
        assert found.value == pytest.approx(formula[name].value, abs=1e-12)
        assert found.low == pytest.approx(formula[name].low, abs=0.004)
        assert found.high == pytest.approx(formula[name].high, abs=0.004)


@pytest.mark.parametrize(
    ("raw", "adjusted"),
    [
        # Worked by hand: sorted p times 4, 3, 2, 1, then the running maximum, at most 1.
        pytest.param([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06], id="rising"),
        pytest.param([0.04, 0.01, 0.5, 0.005], [0.08, 0.03, 0.5, 0.02], id="any order"),
        pytest.param([0.4, 0.6, 0.9], [1.0, 1.0, 1.0], id="never above 1"),
        pytest.param([0.02, 0.02], [0.04, 0.04], id="ties"),
        pytest.param([0.3], [0.3], id="a single arm pays nothing"),
        pytest.param([], [], id="none"),
    ],
)
def test_holm_by_hand(raw: list[float], adjusted: list[float]) -> None:
    found = holm({f"arm{i}": p for i, p in enumerate(raw)})
    assert list(found.values()) == pytest.approx(adjusted)
    assert list(found) == [f"arm{i}" for i in range(len(raw))]


def test_holm_refuses_what_is_no_p_value() -> None:
    with pytest.raises(DataError, match="holm"):
        holm({"a": float("nan")})


def test_chosen_options_of_a_preference_task() -> None:
    """No option is right; refusals must not read as a preference for the others."""
    base = table(np.array([[0, 0]] * 6 + [[1, 1]] * 4), np.zeros(10, dtype=int), n_options=2)
    treat = table(
        np.array([[0, 0]] * 3 + [[UNREAD] * 2] * 3 + [[1, 1]] * 4), np.zeros(10, int), n_options=2
    )
    found = chosen_shifts(align(base, treat), "option").set_index("place")
    assert found.loc[1, ["baseline", "treatment", "shift"]].tolist() == pytest.approx(
        [0.6, 0.3, -0.3]
    )
    assert found.loc[2, "shift"] == 0
    assert found["shift_named"].tolist() == [0, 0]
    slots = chosen_shifts(align(base, treat), "slot")
    assert slots["baseline"].tolist() == [0.5, 0.5]


def test_effects_by_part_and_whether_they_are_equal() -> None:
    gold = np.zeros(200, dtype=np.int64)
    base = table(answers(gold, 0.4, 1), gold)
    same = align(base, table(answers(gold, 0.6, 2), gold))
    biased = answers(gold, 0.4, 3)
    biased[:, 0] = 0
    uneven = align(base, table(biased, gold))
    by = shifts_by(uneven, "orientation")
    assert [effect.place for effect in by] == [0, 1, 2, 3]
    assert by[0].shift.low > 0.2
    assert equal_effects(same, "orientation") > 0.01
    assert equal_effects(uneven, "orientation") < 1e-6
    assert equal_effects(align(base, base), "orientation") == 1.0


def test_equal_effects_of_two_parts_is_a_paired_t_test() -> None:
    draw = np.random.default_rng(7)
    base, treat = draw.integers(0, 2, (2, 50, 2))
    moved = treat - base
    other = stats.ttest_rel(moved[:, 0], moved[:, 1]).pvalue
    assert equal_effects(pairs_of(base, treat), "orientation") == pytest.approx(other, abs=1e-9)


def test_a_grader_that_reads_alike_moves_nothing() -> None:
    base, treat = (table(answers(GOLD, k, 1), GOLD) for k in (0.3, 0.7))
    judged = align(base, treat)
    assert moved_by_grader(judged, judged).value == 0
    blind = align(base, base)
    moved = moved_by_grader(blind, judged)
    assert moved.value == pytest.approx(-shifts(judged)["accuracy_shift"].value)


def test_power_and_what_would_settle_it() -> None:
    draw = np.random.default_rng(0)
    base = draw.integers(0, 2, (100, 4))
    treat = np.where(draw.random((100, 4)) < 0.1, 1, base)
    shift = shifts(pairs_of(base, treat))["accuracy_shift"]
    seen = minimum_detectable(shift)
    t = stats.t.ppf(0.975, 99)
    assert seen.value == pytest.approx((t + stats.norm.ppf(0.8)) * shift.se, abs=1e-9)
    needed = items_to_settle(shift)
    sd = shift.se * 10
    for n, enough in ((needed.value, True), (needed.value - 1, False)):
        reach = (stats.t.ppf(0.975, n - 1) + stats.norm.ppf(0.8)) * sd / np.sqrt(n)
        assert bool(reach <= abs(shift.value) + 1e-9) is enough
    assert items_to_settle(shifts(pairs_of(base, base))["accuracy_shift"]).value is None


def test_power_is_the_rate_of_detection() -> None:
    """A true difference of the detectable size is found in four comparisons of five."""
    draw = np.random.default_rng(9)
    n, runs = 100, 1_500
    moved = draw.normal(0, 1, (runs, n))
    se = 1 / np.sqrt(n)
    size = (stats.t.ppf(0.975, n - 1) + stats.norm.ppf(0.8)) * se
    found = stats.ttest_1samp(moved + size, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_rankings_of_arms() -> None:
    one = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    assert rank_agreement(one, one).value == pytest.approx(1)
    assert rank_agreement(one, {k: -v for k, v in one.items()}).value == pytest.approx(-1)
    assert "tied" in rank_agreement(one, dict.fromkeys(one, 0.5)).reason
    assert rank_agreement(one, {"a": 1.0}).value is None


RUNS = 3_000


def test_arms_without_a_difference_are_significant_in_one_of_twenty() -> None:
    """Strong item effects: an arm knows an item in nearly all orientations or in none."""
    draw = np.random.default_rng(21)
    n, k = 50, 4
    hard = draw.beta(0.6, 0.6, (RUNS, n, 1))
    known = draw.random((2, RUNS, n, 1)) < hard  # each arm for itself
    verdict = (draw.random((2, RUNS, n, k)) < np.where(known, 0.95, 0.1)).astype(np.int64)
    clustered = by_flips = 0
    for base, treat in zip(*verdict, strict=True):
        pairs = pairs_of(base, treat)
        clustered += accuracy_shift(pairs).excludes_zero
        by_flips += sign_flip(pairs).p_value < 0.05
    moved = (verdict[1] - verdict[0]).reshape(RUNS, -1)
    naive = stats.ttest_1samp(moved, 0, axis=1).pvalue < 0.05  # paired, row by row
    assert 0.04 <= clustered / RUNS <= 0.06
    assert 0.035 <= by_flips / RUNS <= 0.06  # exact, on whole numbers: never above by much
    assert naive.mean() > 0.2


def test_unequal_orders_are_not_paired() -> None:
    base = table(answers(GOLD, 0.5, 1), GOLD)
    other = [tuple(reversed(order)) for order in rotations(4)]
    treat = table(answers(GOLD, 0.5, 1), GOLD, orders=other)
    assert align(base, treat).n_pairs == 0
    assert shifts(align(base, treat))["accuracy_shift"].value is None
