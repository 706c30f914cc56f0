"""Records: frozen nouns that refuse what cannot be true."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import fixed_options
from mlflow_mcq.records import (
    Generation,
    Grade,
    Item,
    Orientation,
    Prompt,
    Reply,
    Request,
    Verdict,
)

TWINS = Item("twins", "Which 7 is meant?", ("7", "5", "7"), gold=2)
TURNED = Orientation(1, "rot1", (1, 2, 0))
PROMPT = Prompt(TWINS, TURNED, "letters", "…", ("A", "B", "C"))
ANSWER = Generation(PROMPT, 0, Reply("B"))


@pytest.mark.parametrize(
    ("options", "gold"),
    [
        pytest.param((), 0, id="no options"),
        pytest.param(("alone",), 0, id="one option"),
        pytest.param(("a", ""), 0, id="empty option"),
        pytest.param(("a", " \t\n"), 0, id="blank option"),
        pytest.param(("a", None), 0, id="missing option"),
        pytest.param(("a", float("nan")), 0, id="option read as nan"),
        pytest.param(("a", 4), 0, id="option that is a number"),
        pytest.param(("a", "b"), 2, id="gold just past the end"),
        pytest.param(("a", "b"), -1, id="gold from the end"),
        pytest.param(("a", "b"), True, id="gold True is not option 1"),
        pytest.param(("a", "b"), False, id="gold False is not option 0"),
        pytest.param(("a", "b"), "A", id="gold as a letter"),
        pytest.param(("a", "b"), "1", id="gold as digits"),
        pytest.param(("a", "b"), 1.0, id="gold as a float"),
        pytest.param(("a", "b"), 0.5, id="gold between options"),
        pytest.param(("a", "b"), float("nan"), id="gold missing"),
        pytest.param(("a", "b"), None, id="gold None"),
    ],
)
def test_an_item_that_needs_guessing_is_refused_by_name(options, gold) -> None:
    with pytest.raises(DataError, match="'q-17'"):
        Item("q-17", "?", options, gold)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param((0, 0), id="twice the same"),
        pytest.param((1, 2), id="from 1"),
        pytest.param((0, 2), id="gap"),
        pytest.param((-1, 0), id="negative"),
    ],
)
def test_an_order_is_a_permutation(order: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="permutation"):
        Orientation(0, "bad", order)


@given(st.permutations(range(6)))
def test_slot_of_is_the_inverse_of_order(order: list[int]) -> None:
    orientation = Orientation(0, "any", tuple(order))
    assert [orientation.order[orientation.slot_of(o)] for o in range(6)] == list(range(6))


def test_gold_is_followed_by_index_where_texts_repeat() -> None:
    assert PROMPT.shown == ("5", "7", "7")
    assert PROMPT.gold_slot == 1  # the first 7 on this page; the other one is option 0


@pytest.mark.parametrize(
    ("choice", "verdict", "slot"),
    [
        pytest.param(2, Verdict.CORRECT, 1, id="gold"),
        pytest.param(0, Verdict.INCORRECT, 2, id="same text as gold, another option"),
        pytest.param(1, Verdict.INCORRECT, 0, id="another text"),
    ],
)
def test_a_choice_is_compared_by_index(choice: int, verdict: Verdict, slot: int) -> None:
    grade = Grade.of_choice(ANSWER, "regex", choice, "letter")
    assert (grade.verdict, grade.choice, grade.slot) == (verdict, choice, slot)
    assert grade.error == ""


@pytest.mark.parametrize(
    ("verdict", "choice", "reason"),
    [
        pytest.param(Verdict.CORRECT, 2, "judge", id="correct names gold"),
        pytest.param(Verdict.INCORRECT, None, "judge", id="incorrect names nothing"),
        pytest.param(Verdict.OTHER, None, "judge_other", id="other names nothing"),
    ],
)
def test_a_bare_verdict_never_invents_a_choice(verdict, choice, reason) -> None:
    grade = Grade.of_verdict(ANSWER, "judge", verdict, evidence=verdict.value)
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)


def test_an_unread_answer_is_other_and_takes_no_slot() -> None:
    grade = Grade.unread(ANSWER, "regex", "refusal")
    assert (grade.verdict, grade.choice, grade.slot) == (Verdict.OTHER, None, None)
    assert grade.reason == "refusal"


@pytest.mark.parametrize("error", ["timed out", ""])
def test_a_failed_grade_has_no_verdict_and_always_a_reason(error: str) -> None:
    grade = Grade.failed(ANSWER, "judge", error)
    assert grade.verdict is None
    assert grade.slot is None
    assert grade.error


def test_there_are_three_verdicts_and_each_is_spelt_out() -> None:
    assert [v.value for v in Verdict] == ["CORRECT", "INCORRECT", "OTHER"]
    assert json.dumps(list(Verdict)) == '["CORRECT", "INCORRECT", "OTHER"]'


@pytest.mark.parametrize("record", [TWINS, TURNED, PROMPT, ANSWER, Reply("x"), Request(PROMPT)])
def test_records_are_frozen_and_travel_by_pickle(record) -> None:
    name = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, "changed")
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize(
    "raw", ["  B\n", "", "\u2028B", "<think>A</think>B", "B\r\n", "\ufeffB"], ids=ascii
)
def test_a_generation_is_never_rewritten(raw: str) -> None:
    assert Generation(PROMPT, 0, Reply(raw)).text == raw


def test_a_reply_without_text_reads_as_empty() -> None:
    assert Generation(PROMPT, 0, Reply(None, error="refused connection")).text == ""


def test_the_key_of_an_answer_is_the_key_of_its_request() -> None:
    assert Request(PROMPT, 3).key == Generation(PROMPT, 3, Reply("B")).key
    assert Request(PROMPT, 3).key == ("twins", "letters", 1, 3)


def test_the_seed_of_a_row_is_the_same_on_every_machine() -> None:
    assert Request(PROMPT).seed(0) == 108_085_130_338_231_983
    assert 0 <= Request(PROMPT).seed(0) < 2**63


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Request(PROMPT, 1).seed(0), id="repeat"),
        pytest.param(Request(PROMPT).seed(1), id="base seed"),
        pytest.param(Request(dataclasses.replace(PROMPT, protocol="x")).seed(0), id="protocol"),
        pytest.param(
            Request(dataclasses.replace(PROMPT, orientation=Orientation(1, "r", (2, 0, 1)))).seed(
                0
            ),
            id="order",
        ),
        pytest.param(
            Request(dataclasses.replace(PROMPT, item=dataclasses.replace(TWINS, id="t"))).seed(0),
            id="item",
        ),
    ],
)
def test_the_seed_of_a_row_changes_with_each_part_of_its_key(other: int) -> None:
    assert other != Request(PROMPT).seed(0)


# The demo items are read as data here, so that no loader can hide a fault in them.
DEMO = Path(__file__).parent.parent / "recipes" / "demo_items.jsonl"


@pytest.fixture(scope="module")
def demo_items() -> list[Item]:
    rows = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
    return [
        Item(r["id"], r["question"], tuple(r["options"]), r["answer"], {"domain": r["domain"]})
        for r in rows
    ]


def test_the_demo_items_have_unique_readable_ids(demo_items: list[Item]) -> None:
    ids = [item.id for item in demo_items]
    assert len(set(ids)) == len(ids) == 30
    assert all(item.id.startswith(item.meta["domain"] + "-") for item in demo_items)
    assert len({item.meta["domain"] for item in demo_items}) >= 12


def test_the_demo_items_spread_gold_evenly(demo_items: list[Item]) -> None:
    by_size = Counter(len(item.options) for item in demo_items)
    assert by_size == {2: 5, 3: 5, 4: 14, 5: 6}
    golds = Counter((len(item.options), item.gold) for item in demo_items)
    for size, n_items in by_size.items():
        for slot in range(size):
            assert golds[size, slot] in (n_items // size, -(-n_items // size)), (size, slot)


def test_the_demo_items_hold_one_option_that_cannot_move(demo_items: list[Item]) -> None:
    fixed = {item.id: fixed_options(item.options) for item in demo_items}
    assert {k: sorted(v) for k, v in fixed.items() if v} == {"biology-milk": [3]}
