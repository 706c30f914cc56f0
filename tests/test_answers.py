"""Answer cells: read when there is one reading, refused when there are two."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mlflow_mcq.datasets.answers import AnswerKey, Counting, read_answer
from mlflow_mcq.datasets.one_pass import OnePass
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.shape import HowRead
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Settings

RIVERS = AnswerKey(["Rhine", "Danube", "Volga"], ["A", "B", "C"])
NUMBERS = AnswerKey(["2", "3", "1"], ["A", "B", "C"])


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        pytest.param("B", 1, id="letter"),
        pytest.param(" b ", 1, id="letter, lower case with spaces"),
        pytest.param(2, 2, id="int counts from zero"),
        pytest.param(np.int64(0), 0, id="numpy int"),
        pytest.param(1.0, 1, id="int that a gap in the column made a float"),
        pytest.param("Volga", 2, id="option text"),
        pytest.param("0", 0, id="digit text that is no number from one"),
    ],
)
def test_one_reading_is_taken(value: object, gold: int) -> None:
    assert read_answer(value, RIVERS) == gold


@pytest.mark.parametrize(
    ("value", "key", "said"),
    [
        pytest.param("1", RIVERS, "more than one way", id="digit text: from zero or from one"),
        pytest.param(1, NUMBERS, "more than one way", id="int that is also an option text"),
        pytest.param(
            "A", AnswerKey(["B", "A"], ["A", "B"]), "more than one way", id="options named A and B"
        ),
        pytest.param(
            "4",
            AnswerKey(["4", "6", "4", "9", "7"], list("ABCDE")),
            "more than one way",
            id="duplicate text",
        ),
        pytest.param("E", RIVERS, "none of the options", id="letter beyond the options"),
        pytest.param(3, RIVERS, "none of the options", id="index beyond the options"),
        pytest.param(-1, RIVERS, "none of the options", id="negative index"),
        pytest.param(True, RIVERS, "letter, an index", id="bool is no index"),
        pytest.param(np.True_, RIVERS, "letter, an index", id="numpy bool is no index"),
        pytest.param(None, RIVERS, "missing", id="None"),
        pytest.param(float("nan"), RIVERS, "missing", id="NaN"),
        pytest.param(["A"], RIVERS, "letter, an index", id="a list"),
        pytest.param(
            1.0,
            AnswerKey(["1.0", "2.0", "3.0"], list("ABC")),
            "more than one way",
            id="number that is also an option, written otherwise",
        ),
        pytest.param(
            2,
            AnswerKey(["01", "02", "03"], list("ABC")),
            "more than one way",
            id="number with leading zeros in the options",
        ),
        pytest.param("", RIVERS, "none of the options", id="empty text"),
    ],
)
def test_doubt_is_an_error_that_names_the_row(value: object, key: AnswerKey, said: str) -> None:
    with pytest.raises(DataError, match=said) as error:
        read_answer(value, key, who="row 17")
    assert "row 17" in str(error.value)


COLOURS = AnswerKey(["Rot", "Lilac", "rosé"], ["A", "B", "C"])


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        pytest.param("B)", "B", id="a letter with a bracket"),
        pytest.param("(c).", "C", id="in brackets, small"),
        pytest.param("rot", "Rot", id="an option in small letters"),
        pytest.param("Lilca", "Lilac", id="a typing error"),
        pytest.param("D", None, id="no such letter"),
        pytest.param("Green", None, id="nothing near"),
        pytest.param("", None, id="empty"),
        pytest.param("?", None, id="a mark alone"),
    ],
)
def test_an_answer_that_is_nearly_one_is_refused_with_a_question(
    value: str, meant: str | None
) -> None:
    with pytest.raises(DataError, match="none of the options") as error:
        read_answer(value, COLOURS)
    asked = f'Did you mean "{meant}"?'
    assert (asked in str(error.value)) if meant else ("Did you mean" not in str(error.value))


@pytest.mark.parametrize(
    ("mode", "gold"),
    [
        pytest.param("index", 1, id="from zero"),
        pytest.param("number", 0, id="from one"),
        pytest.param("text", 2, id="option text"),
    ],
)
def test_a_named_reading_settles_the_doubt(mode: str, gold: int) -> None:
    assert read_answer("1", NUMBERS, mode) == gold


def test_the_datas_own_labels_are_letters_too() -> None:
    key = AnswerKey(["ice", "steam", "water"], ["1", "2", "3"])
    with pytest.raises(DataError, match="more than one way"):
        read_answer("2", key)
    assert read_answer("2", key, "letter") == 1


def test_a_column_counts_in_one_way() -> None:
    counting = Counting()
    key = AnswerKey(["x", "y"], ["A", "B"])
    assert read_answer("0", key, who="row 0", counting=counting) == 0
    assert read_answer("A", key, who="row 1", counting=counting) == 0
    with pytest.raises(DataError, match=r"row 2.*counting from one, that of row 0 .* from zero"):
        read_answer("2", key, who="row 2", counting=counting)


@pytest.mark.parametrize("answer", [2, 2.0, np.int64(2)], ids=["int", "float", "numpy"])
def test_a_number_just_beyond_the_options_counts_from_one(answer: object) -> None:
    counting = Counting()
    key = AnswerKey(["x", "y"], ["A", "B"])
    with pytest.raises(DataError, match=r"none of the options.*number counts from one"):
        read_answer(answer, key, who="row 0", counting=counting)
    with pytest.raises(DataError, match=r"row 1.*counting from zero, that of row 0 .* from one"):
        read_answer(1, key, who="row 1", counting=counting)


def quiz(answers: list[object], options: list[str] | None = None) -> pd.DataFrame:
    rows = [
        {"question": f"Which is {i}?", "options": options or ["iron", "cork", "tin"], "answer": one}
        for i, one in enumerate(answers)
    ]
    return pd.DataFrame(rows, dtype=object)


@pytest.mark.parametrize(
    ("answers", "options", "golds"),
    [
        pytest.param(["2", "1", "0"], None, [2, 1, 0], id="a zero settles it"),
        pytest.param(["0", "1"], ["0", "1", "7"], [0, 1], id="texts agree"),
        pytest.param(["2", "1"], None, "more than one way", id="no zero"),
        pytest.param(["1", "0", "B"], None, "more than one way", id="a letter as well"),
        pytest.param(["1", "0", "01.5"], None, "more than one way", id="no whole number"),
        pytest.param(["0", "1"], ["7", "0", "1"], "more than one way", id="texts that are numbers"),
        pytest.param(["0", "1", "9"], ["7", "8", "9"], "more than one way", id="a text alone"),
        pytest.param(["0", "9", "1"], ["7", "8", "9"], "more than one way", id="a text before"),
        pytest.param(["0", "3"], None, "counting from one", id="one too many"),
    ],
)
@pytest.mark.parametrize("n_in_part", [1, 2, 9])
def test_a_zero_settles_how_a_column_of_texts_counts(
    answers: list[object], options: list[str] | None, golds: list[int] | str, n_in_part: int
) -> None:
    table, asked = quiz(answers, options), HowRead(Settings())
    went, settled = OnePass(asked), False
    for _ in range(3):
        parts = [table[i : i + n_in_part] for i in range(0, len(table), n_in_part)]
        rows = [row for part in parts for row in went.take(part)]
        settled = went.settled()
        if settled:
            break
        went = OnePass(asked, went.shape)
    assert settled
    if isinstance(golds, str):
        with pytest.raises(DataError, match=golds):
            read_data(table, Settings())
        assert golds in str(went.error or went.faults.rows[min(went.faults.rows)])
        return
    assert [row.item.gold for row in rows] == golds
    assert [row.item.gold for row in read_data(table, Settings()).rows] == golds
    assert [row.item.gold for row in OnePass(asked, went.shape).take(table[:2])] == golds[:2]
