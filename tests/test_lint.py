"""Lint: each rule finds its fault, and is silent where there is none."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mlflow_mcq
from mlflow_mcq.datasets.lint_set import choices_only, gold_position, longest_is_gold
from mlflow_mcq.records import Item

CLEAN = {"id": "c", "question": "Which floats?", "options": ["lead", "corks", "tin"], "answer": "B"}


def rules(*rows: dict[str, Any]) -> dict[str, list[str]]:
    report = mlflow_mcq.lint_items([{**CLEAN, **row} for row in rows])
    found: dict[str, list[str]] = {}
    for item, rule in report.findings[["item", "rule"]].itertuples(index=False):
        found.setdefault(rule, []).append(item)
    return found


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({}, {}, id="nothing wrong"),
        pytest.param({"options": ["Tin", "cork", " tin"]}, "duplicate_options", id="twins"),
        pytest.param(
            {"options": ["lead", "cork", "All of the above"]}, "position_dependent", id="above"
        ),
        pytest.param(
            {"options": ["lead", "cork", "Both A and B"]}, "position_dependent", id="both"
        ),
        pytest.param(
            {"options": ["lead", "cork", "lead oxide"]}, "option_inside_another", id="inside"
        ),
        pytest.param({"options": ["lead", "cork", "leader"]}, {}, id="part of a word is not"),
    ],
)
def test_faults_of_one_item(row: dict[str, Any], expected: Any) -> None:
    assert rules(row) == (expected or {} if not isinstance(expected, str) else {expected: ["c"]})


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        pytest.param({"options": ["lead", ""]}, "empty_option", id="empty option"),
        pytest.param({"answer": "F"}, "gold_outside", id="letter outside"),
        pytest.param({"answer": 9}, "gold_outside", id="index outside"),
        pytest.param({"answer": None}, "gold_outside", id="no answer"),
        pytest.param({"options": []}, "unreadable", id="no options"),
    ],
)
def test_rows_that_are_no_items_are_found_and_do_not_stop_the_rest(
    row: dict[str, Any], rule: str
) -> None:
    assert rules({"id": "x", "question": "Other?"}, row) == {rule: ["row 1"]}


@pytest.mark.parametrize(
    ("golds", "more", "found", "said"),
    [
        pytest.param(
            [2, 1, 2, 1], {}, ["counted_from"], "counting from 0, and none is 0", id="one"
        ),
        pytest.param([2, 0, 2, 1], {}, [], "answers counted from 0", id="a zero"),
        pytest.param([2, 1, 2, 1], {"answer_as": "index"}, [], "answers counted from 0", id="told"),
        pytest.param([2, 1, 2, 1], {"answer_as": "number"}, [], "counted from 1", id="from one"),
    ],
)
def test_how_answers_count_is_said(
    golds: list[int], more: dict[str, str], found: list[str], said: str
) -> None:
    rows = [
        {"question": f"Which is {i}?", "options": ["iron", "cork", "tin"], "answer": gold}
        for i, gold in enumerate(golds)
    ]
    report = mlflow_mcq.lint_items(rows, columns=more)
    assert report.findings["rule"].tolist() == found
    assert report.said.startswith("read as: plain columns, 4 items, 3 options")
    assert said in report.said


def test_items_that_are_the_same_again() -> None:
    assert rules({}, {}) == {"duplicate_id": ["c"], "identical_question": ["c"]}


def items(golds: list[int], texts: Any = None) -> list[Item]:
    return [
        Item(str(i), f"q{i}?", texts(i) if texts else ("aa", "bb", "cc", "dd"), gold)
        for i, gold in enumerate(golds)
    ]


def test_a_gold_that_moves_is_no_fault_and_one_that_stays_is() -> None:
    assert gold_position(items([0, 1, 2, 3] * 25)).value == pytest.approx(1.0)
    number = gold_position(items([0] * 60 + [1, 2, 3] * 14))
    assert number.value is not None
    assert number.value < 0.01
    assert number.fault.startswith("option 1 is gold in 60 of 102")


def test_the_test_of_positions_is_pearsons() -> None:
    # sum of (o - e)^2 / e = (100 + 0 + 0 + 100) / 25 = 8 with 3 degrees of freedom
    number = gold_position(items([0] * 35 + [1] * 25 + [2] * 25 + [3] * 15))
    assert number.value == pytest.approx(0.046012, abs=1e-6)


def test_few_items_prove_no_position() -> None:
    assert gold_position(items([0, 0, 0])).value is None


def test_options_of_different_number_expect_what_they_can_show() -> None:
    two = [Item(f"t{i}", "q?", ("x", "y"), i % 2) for i in range(100)]
    five = [Item(f"f{i}", "q?", tuple("vwxyz"), i % 5) for i in range(10)]
    assert gold_position(two + five).fault == ""


def test_the_longest_option_against_chance() -> None:
    def texts(i: int) -> tuple[str, ...]:
        return tuple("x" * (9 if slot == i % 4 else 3) + str(slot) for slot in range(4))

    always = longest_is_gold(items([i % 4 for i in range(40)], texts))
    assert (always.value, always.chance, always.n) == (1.0, 0.25, 40)
    assert always.fault
    apart = longest_is_gold(items([(i // 4) % 4 for i in range(64)], texts))
    assert (apart.value, apart.fault) == (0.25, "")
    assert longest_is_gold(items([0, 1])).note.startswith("undefined")


def test_golds_that_share_their_words_are_known_without_a_question() -> None:
    def texts(i: int) -> tuple[str, ...]:
        names = [f"thing{i}x{slot}" for slot in range(4)]
        names[i % 4] = f"certainly thing{i}"
        return tuple(names)

    number = choices_only(items([i % 4 for i in range(120)], texts))
    assert number.value == 1.0
    assert number.fault


def test_words_that_say_nothing_stay_at_chance() -> None:
    draw = random.Random(5)
    words = [f"w{i}" for i in range(300)]
    whole = items([draw.randrange(4) for _ in range(400)], lambda i: tuple(draw.sample(words, 4)))
    number = choices_only(whole, seed=1)
    assert number.fault == ""
    assert choices_only(whole, seed=1) == number


def test_below_a_hundred_items_a_classifier_is_not_asked() -> None:
    assert choices_only(items([0] * 99)).value is None


def test_the_summary_holds_every_number_or_a_reason() -> None:
    report = mlflow_mcq.lint_items([CLEAN])
    assert report.numbers["n_items_with_faults"] == 0
    assert set(report.undefined) == {"gold_position_p", "choices_only_accuracy"}
    assert str(report) == "no faults found"
