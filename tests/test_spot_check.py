"""The spot check: what a regex made of rows that the judge has read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.spot_check import SpotCheck, spot_check
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply, Verdict


def generation(name: str) -> Generation:
    item = Item(name, "Which?", ("w", "x", "y"), gold=0)
    prompt = Prompt(item, Orientation(0, "as-is", (0, 1, 2)), "letters", "", tuple("ABC"))
    return Generation(prompt, 0, Reply("..."))


def read(choices: list[int | None], grader: str) -> list[Grade]:
    return [
        Grade.unread(generation(f"q{n}"), grader, "none")
        if choice is None
        else Grade.of_choice(generation(f"q{n}"), grader, choice)
        for n, choice in enumerate(choices)
    ]


def test_the_three_ways_to_differ():
    judged = read([0, 1, None, None, 2, 2], "judge")
    matched = read([0, 2, 1, None, None, 2], "regex_naive")
    check = spot_check(judged, matched)
    assert check == SpotCheck(n=6, n_wrong_letter=1, n_coerced_other=1, n_missed=1)
    assert check.rate == pytest.approx(2 / 6)


def test_a_missed_row_is_no_misread_row():
    check = spot_check(read([0, 1], "judge"), read([None, None], "r"))
    assert (check.n_missed, check.rate) == (2, 0.0)


def test_without_rows_there_is_no_rate():
    check = spot_check([], [])
    assert (check.n, check.rate) == (0, None)


def test_rows_that_cannot_be_compared_are_not_drawn():
    row = generation("q0")
    errors = [Grade.failed(row, "judge", "timeout")]
    direct = [Grade.of_verdict(row, "judge", Verdict.INCORRECT)]  # names no option
    matched = read([1], "r")
    assert spot_check(errors, matched).n == 0
    assert spot_check(direct, matched).n == 0
    assert spot_check(read([1], "judge"), [Grade.failed(row, "r", "no text")]).n == 0
    assert spot_check(read([1, 1], "judge"), matched).n == 1


choices = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.integers(0, 2)), max_size=30
)


@given(choices, st.randoms(), st.integers(0, 40), st.integers(0, 9))
def test_law_the_order_of_rows_does_not_matter(pairs, random, n, seed):
    judged = read([judge for judge, _ in pairs], "judge")
    matched = read([regex for _, regex in pairs], "r")
    check = spot_check(judged, matched, n, seed)
    random.shuffle(judged)
    random.shuffle(matched)
    assert spot_check(judged, matched, n, seed) == check
    assert check.n == min(n, len(pairs))
    assert check.n_wrong_letter + check.n_coerced_other + check.n_missed <= check.n


def test_seeds_draw_different_samples():
    judged = read([0] * 200, "judge")
    matched = read([n % 2 for n in range(200)], "r")
    drawn = {spot_check(judged, matched, 20, seed).n_wrong_letter for seed in range(12)}
    assert len(drawn) > 1
