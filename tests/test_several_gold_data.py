"""Answer cells that list several right options, and rows that hold them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.datasets.answers import AnswerKey, read_answer
from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.datasets.frame import read_rows
from mlflow_mcq.datasets.several_gold import read_answers
from mlflow_mcq.datasets.stored import read_stored
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Columns

RIVERS = AnswerKey(["Rhine", "Danube", "Volga"], ["A", "B", "C"])
LONG = AnswerKey(
    [f"item {n}" for n in range(30)], [*map(chr, range(65, 91)), *("AA", "AB", "AC", "AD")]
)


@pytest.mark.parametrize(
    ("value", "mode", "golds"),
    [
        pytest.param("B", "auto", (1,), id="one letter"),
        pytest.param(["C", "A"], "auto", (0, 2), id="letters, in the order of the options"),
        pytest.param(["A"], "auto", (0,), id="a list of one"),
        pytest.param([0, 2], "auto", (0, 2), id="indices"),
        pytest.param(np.array([2, 1]), "auto", (1, 2), id="array"),
        pytest.param((np.int64(0), np.int64(1)), "auto", (0, 1), id="numpy ints"),
        pytest.param({"A", "C"}, "auto", (0, 2), id="set"),
        pytest.param(["Volga", "Rhine"], "auto", (0, 2), id="option texts"),
        pytest.param("[0, 2]", "auto", (0, 2), id="JSON indices"),
        pytest.param(' ["A", "C"] ', "auto", (0, 2), id="JSON letters"),
        pytest.param([1, 3], "number", (0, 2), id="numbers from one"),
        pytest.param([0, 1, 2], "auto", (0, 1, 2), id="all of them"),
        pytest.param("A,C", "letter", (0, 2), id="letters with a comma"),
        pytest.param("a; c", "letter", (0, 2), id="small letters with a semicolon"),
        pytest.param("A C", "letter", (0, 2), id="letters with a blank"),
        pytest.param("AC", "letter", (0, 2), id="letters without anything between"),
        pytest.param("CA", "letter", (0, 2), id="in any order"),
    ],
)
def test_lists_are_read(value: object, mode: str, golds: tuple[int, ...]) -> None:
    assert read_answers(value, RIVERS, mode) == golds


@pytest.mark.parametrize(
    ("value", "mode", "said"),
    [
        pytest.param([], "auto", "missing", id="empty list"),
        pytest.param("[]", "auto", "missing", id="empty JSON list"),
        pytest.param(["A", "A"], "auto", "twice", id="one option twice"),
        pytest.param(["A", "Rhine"], "auto", "twice", id="one option twice, said in two ways"),
        pytest.param(["A", "E"], "auto", "none of the options", id="a letter beyond the options"),
        pytest.param(["A", None], "auto", "missing", id="a gap in the list"),
        pytest.param([True, False, True], "auto", "letter, an index", id="a mask of bools"),
        pytest.param([1, 0, 1], "auto", "mask", id="a mask of numbers"),
        pytest.param(["1", "2"], "auto", "more than one way", id="digits from zero or from one"),
        pytest.param([["A"], ["C"]], "auto", "letter, an index", id="lists in a list"),
        pytest.param("A,C", "auto", "several letters", id="letters nobody announced"),
        pytest.param("AC", "auto", "several letters", id="glued letters nobody announced"),
        pytest.param("AE", "letter", "none of the options", id="glued, one beyond the options"),
        pytest.param("A or C", "letter", "none of the options", id="words between letters"),
        pytest.param("AA", "letter", "twice", id="a letter twice"),
        pytest.param("[0, 2", "auto", "none of the options", id="torn JSON"),
    ],
)
def test_what_may_mean_something_else_names_the_row(value: object, mode: str, said: str) -> None:
    with pytest.raises(DataError, match=rf"row r7.*{said}"):
        read_answers(value, RIVERS, mode, "row r7")


def test_two_options_make_a_mask_of_two_numbers_possible() -> None:
    pair = AnswerKey(["yes", "no"], ["A", "B"])
    for mask in ([1, 0], [0, 1], "[1, 0]", np.array([0.0, 1.0])):
        with pytest.raises(DataError, match="mask"):
            read_answers(mask, pair)
    assert read_answers([1, 0], pair, "index") == (0, 1)


@pytest.mark.parametrize(
    ("value", "key", "mode", "golds"),
    [
        pytest.param(
            "[0, 1]", AnswerKey(["[0, 1]", "(0, 1)"], ["A", "B"]), "auto", (0,), id="an interval"
        ),
        pytest.param("A, C", AnswerKey(["A, C", "B"], ["A", "B"]), "auto", (0,), id="vitamins"),
        pytest.param("AC", LONG, "letter", (28,), id="the 29th letter"),
        pytest.param("AB,C", LONG, "letter", (2, 27), id="with long letters"),
    ],
)
def test_an_option_or_a_label_is_no_list(value, key, mode, golds) -> None:
    assert read_answers(value, key, mode) == golds


@given(
    st.integers(2, 12).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))
    )
)
def test_every_way_to_write_a_list_says_the_same(case: tuple[int, set[int]]) -> None:
    n, golds = case
    labels = [chr(65 + place) for place in range(n)]
    key = AnswerKey([f"text {place}" for place in range(n)], labels)
    wanted = tuple(sorted(golds))
    letters = [labels[gold] for gold in wanted]
    assert read_answers(letters, key) == wanted
    assert read_answers(json.dumps(letters), key) == wanted
    assert read_answers("".join(letters), key, "letter") == wanted
    assert read_answers(", ".join(letters), key, "letter") == wanted
    assert read_answers([key.options[gold] for gold in wanted], key) == wanted
    assert read_answers(list(wanted), key, "index") == wanted
    assert read_answers([gold + 1 for gold in wanted], key, "number") == wanted


@given(st.one_of(st.text(max_size=6), st.integers(-2, 5), st.none(), st.floats()))
def test_a_single_answer_is_read_as_it_always_was(value: object) -> None:
    try:
        one = read_answer(value, RIVERS)
    except DataError:
        return  # what is refused may still be a list
    assert read_answers(value, RIVERS) == (one,)


FRAME = pd.DataFrame(
    {
        "question": ["Which end in the North Sea?", "Which is the longest?"],
        "options": [["Rhine", "Danube", "Elbe"], ["Rhine", "Volga"]],
        "answer": [["A", "C"], ["B"]],
        "id": ["north", "long"],
    }
)


def test_rows_with_several_golds_are_refused_by_name_with_both_policies() -> None:
    with pytest.raises(DataError) as caught:
        read_rows(FRAME, Columns())
    said = str(caught.value)
    assert "row 0 (id 'north')" in said
    assert "[0, 2]" in said
    assert '"any"' in said
    assert '"all"' in said


@pytest.mark.parametrize("policy", ["any", "all"])
def test_policies_reach_every_item(policy) -> None:
    items = [row.item for row in read_rows(FRAME, Columns(), None, policy)]
    assert [item.golds for item in items] == [(0, 2), (1,)]
    assert [item.policy for item in items] == [policy, policy]


def test_targets_may_be_lists() -> None:
    (row, _) = read_rows(FRAME, Columns(), [[0, 2], 1], "any")
    assert row.item.golds == (0, 2)


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "json"])
def test_lists_survive_files(tmp_path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    if ending == "parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_json(path, orient="records", lines=ending == "jsonl")
    golds = [row.item.golds for row in read_rows(load_frame(path), Columns(), None, "all")]
    assert golds == [(0, 2), (1,)]


def test_text_files_hold_lists_as_json_or_letters(tmp_path) -> None:
    head = "question,A,B,C,answer\n"
    for answer, how in (('"[""A"", ""C""]"', "auto"), ('"A,C"', "letter"), ("AC", "letter")):
        path = tmp_path / "data.csv"
        path.write_text(head + f"Which?,x,y,z,{answer}\n", encoding="utf-8")
        (row,) = read_rows(load_frame(path), Columns(answer_as=how), None, "any")
        assert row.item.golds == (0, 2)


def test_stored_rows_of_one_id_agree_in_every_gold() -> None:
    data = pd.concat([FRAME.iloc[[0]], FRAME.iloc[[0]].assign(answer=[["A"]])])
    rows = read_rows(data, Columns(id="id"), None, "any")
    with pytest.raises(DataError, match="another item"):
        read_stored(rows, ["A", "B"], None)
    same = pd.concat([FRAME.iloc[[0]], FRAME.iloc[[0]].assign(answer=[["C", "A"]])])
    rows = read_rows(same, Columns(id="id"), None, "any")
    assert [a.request.prompt.gold_slots for a in read_stored(rows, ["A", "B"], None)] == [
        (0, 2),
        (0, 2),
    ]
