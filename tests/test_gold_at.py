"""Moving the right answer: to one slot, by a swap or by a rotation, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.orientations import check_scheme, gold_at, orientations_for, plan_for
from mlflow_mcq.records import Item

cases = st.integers(2, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.integers(0, n - 1))
)


def item_of(n: int, gold: int, same: bool = False) -> Item:
    texts = ("same",) * n if same else tuple(f"thing{i}" for i in range(n))
    return Item("i", "Which?", texts, gold)


@given(cases, st.sampled_from(["swap", "rotation"]), st.booleans())
def test_gold_comes_to_the_slot_by_index(case, how: str, same: bool) -> None:
    n, gold, slot = case
    (o,) = plan_for(item_of(n, gold, same), f"gold-at:{slot}:{how}")
    assert sorted(o.order) == list(range(n))
    assert o.order[slot] == gold
    assert (o.index, o.name) == (0, f"gold-at:{slot}:{how}")


@given(cases)
def test_a_swap_moves_two_options_and_no_more(case) -> None:
    n, gold, slot = case
    order = gold_at(item_of(n, gold), slot, "swap").order
    moved = [place for place in range(n) if order[place] != place]
    assert sorted(moved) == sorted({gold, slot} if gold != slot else set())


@given(cases)
def test_a_rotation_is_one_of_the_rotations(case) -> None:
    n, gold, slot = case
    order = gold_at(item_of(n, gold), slot, "rotation").order
    assert order in [o.order for o in orientations_for(n, "rotations")]


@pytest.mark.parametrize(
    ("how", "order"),
    [
        pytest.param("swap", (3, 1, 2, 0), id="swap"),
        pytest.param("rotation", (3, 0, 1, 2), id="rotation"),
    ],
)
def test_the_two_ways_differ_in_what_happens_to_the_others(how, order) -> None:
    assert gold_at(item_of(4, 3), 0, how).order == order


# Options that cannot move

LAST = ("oxygen", "nitrogen", "argon", "All of the above")


@pytest.mark.parametrize("how", ["swap", "rotation"])
@pytest.mark.parametrize(
    ("options", "gold", "slot"),
    [
        pytest.param(LAST, 3, 0, id="gold is pinned"),
        pytest.param(LAST, 0, 3, id="the slot is taken by a pinned option"),
        pytest.param(("x", "y", "Both A and B"), 0, 1, id="nothing may move"),
    ],
)
def test_a_pinned_option_in_the_way_is_refused_and_names_the_item(how, options, gold, slot) -> None:
    with pytest.raises(SettingsError, match=r"item 'q7'.*Leave the item out"):
        plan_for(Item("q7", "Which?", options, gold), f"gold-at:{slot}:{how}")


@pytest.mark.parametrize("how", ["swap", "rotation"])
def test_a_pinned_option_out_of_the_way_stays(how: str) -> None:
    (o,) = plan_for(Item("q", "Which?", LAST, 0), f"gold-at:2:{how}")
    assert o.order[3] == 3
    assert o.order[2] == 0


@pytest.mark.parametrize("how", ["swap", "rotation"])
def test_gold_that_is_there_already_needs_no_move(how: str) -> None:
    (o,) = plan_for(Item("q", "Which?", LAST, 3), f"gold-at:3:{how}")
    assert o.order == (0, 1, 2, 3)


def test_an_item_without_such_a_slot_is_refused() -> None:
    with pytest.raises(SettingsError, match="no slot 2"):
        plan_for(item_of(2, 0), "gold-at:2:swap")


# The scheme

ILLEGAL = [
    *("gold-at", "gold-at:0", "gold-at:A:swap", "gold-at:-1:swap", "gold-at:01:swap"),
    *("gold-at:0:swaps", "gold-at:0:shuffle", "gold-at::swap", "gold-at:1000:swap"),
]


@pytest.mark.parametrize("scheme", ILLEGAL)
def test_a_scheme_that_says_less_is_refused(scheme: str) -> None:
    with pytest.raises(SettingsError, match="gold-at:k:swap or gold-at:k:rotation"):
        check_scheme(scheme)


def test_without_an_item_nobody_knows_which_option_is_gold() -> None:
    with pytest.raises(SettingsError, match="plan_for"):
        orientations_for(4, "gold-at:0:swap")


def test_several_right_options_cannot_come_to_one_slot() -> None:
    with pytest.raises(SettingsError, match="several are right"):
        plan_for(Item("q", "?", ("x", "y", "z"), 0, also_right=(1,)), "gold-at:2:swap")
