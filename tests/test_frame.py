"""Tables: every shape that options come in, any index, and doubt that names its row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.datasets.frame import as_frame, items_of, read_rows
from mlflow_mcq.datasets.stored import read_stored
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Columns

METALS = ("copper", "mercury", "tin")


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"question": ["Which metal is liquid?"], "answer": ["B"], **columns})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(options=[list(METALS)]), id="list column"),
        pytest.param(frame(choices=[METALS]), id="tuple column, other usual name"),
        pytest.param(frame(options=[np.array(METALS)]), id="array column"),
        pytest.param(frame(options=[json.dumps(METALS)]), id="JSON text"),
        pytest.param(frame(options=[{"A": "copper", "B": "mercury", "C": "tin"}]), id="dict"),
        pytest.param(
            frame(options=[{"C": "tin", "A": "copper", "B": "mercury"}]), id="dict out of order"
        ),
        pytest.param(
            frame(options=[{"b": "mercury", "c": "tin", "a": "copper"}]), id="dict in small letters"
        ),
        pytest.param(
            frame(choices=[{"text": list(METALS), "label": ["A", "B", "C"]}]), id="text and label"
        ),
        pytest.param(frame(A=["copper"], B=["mercury"], C=["tin"]), id="lettered columns"),
        pytest.param(
            frame(A=["copper"], B=["mercury"], C=["tin"], D=[None], E=[float("nan")]),
            id="lettered columns, some not used by this row",
        ),
    ],
)
def test_options_in_every_shape(data: pd.DataFrame) -> None:
    (row,) = read_rows(data, Columns())
    assert (row.item.options, row.item.gold) == (METALS, 1)


SPREAD = Columns(options=("opt1", "opt2", "opt3"))


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        pytest.param(("copper", "mercury", "tin"), METALS, id="all filled"),
        pytest.param(("copper", "mercury", None), METALS[:2], id="the last is empty"),
        pytest.param((29, 80, 50), ("29", "80", "50"), id="numbers"),
    ],
)
def test_options_in_columns_that_were_named(cells: tuple, options: tuple) -> None:
    columns = {f"opt{n}": [cell] for n, cell in enumerate(cells, 1)}
    (row,) = read_rows(frame(**columns, source=["quiz"]), SPREAD)
    assert (row.item.options, row.item.gold, row.item.meta) == (options, 1, {"source": "quiz"})


def test_an_answer_may_be_the_name_of_an_option_column() -> None:
    data = frame(opt1=["copper"], opt2=["tin"], opt3=["mercury"]).assign(answer="opt3")
    (row,) = read_rows(data, SPREAD)
    assert row.item.gold == 2


def test_named_columns_give_options_in_the_order_that_was_named() -> None:
    (row,) = read_rows(frame(x=["tin"], A=["gold"], D=["lead"]), Columns(options=("D", "A")))
    assert row.item.options == ("lead", "gold")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param({"opt1": ["x"], "opt2": [None], "opt3": ["z"]}, "row 0.*a gap", id="gap"),
        pytest.param({"opt1": ["x"], "opt2": ["y"]}, "columns.options.*'opt3'", id="not there"),
    ],
)
def test_named_option_columns_are_never_shifted(data: dict, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_rows(frame(**data), SPREAD)


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        pytest.param(
            ["Frage", "opt1", "opt2", "opt3", "richtig"],
            '{"question": "...", "options": ["opt1", "opt2", "opt3"], "answer": "..."}',
            id="numbered",
        ),
        pytest.param(
            ["question", "choice_a", "choice_b", "key"],
            '{"options": ["choice_a", "choice_b"], "answer": "..."}',
            id="lettered",
        ),
        pytest.param(["stem", "choices", "key"], '{"answer": "..."}', id="only the answer"),
    ],
)
def test_an_unknown_table_is_told_what_is_missing_and_how_to_name_it(names, hint) -> None:
    with pytest.raises(DataError) as caught:
        read_rows(pd.DataFrame([["x"] * len(names)], columns=names), Columns())
    assert f"columns = {hint}" in str(caught.value)


def test_missing_options_never_become_the_word_nan() -> None:
    (row,) = read_rows(frame(A=["sun"], B=["moon"], C=[None], D=[np.nan]), Columns())
    assert row.item.options == ("sun", "moon")


def test_words_that_pandas_reads_as_missing_stay_options(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("question,A,B,C,D,answer\nWhich?,None,NA,1e5,True,C\n", encoding="utf-8")
    (row,) = read_rows(load_frame(path), Columns())
    assert row.item.options == ("None", "NA", "1e5", "True")


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".parquet"])
def test_data_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"items{ending}"
    data = frame(options=[["007", "1e5"]], id=["0042"])
    if ending == ".parquet":
        data.to_parquet(path)
    else:
        data.to_json(path, orient="records", lines=ending == ".jsonl")
    (row,) = read_rows(load_frame(path), Columns())
    assert (row.item.options, row.item.id) == (("007", "1e5"), "0042")


@pytest.mark.parametrize(
    "index",
    [
        pytest.param([2, 1, 0], id="reversed"),
        pytest.param([0.5, 1.5, 2.5], id="floats"),
        pytest.param(["x", "x", "x"], id="all the same"),
        pytest.param(pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 2)]), id="two levels"),
    ],
)
def test_rows_go_by_position_whatever_the_index(index: object) -> None:
    data = pd.DataFrame(
        {"question": ["q0?", "q1?", "q2?"], "options": [["a", "b"]] * 3, "answer": ["A", "B", "A"]},
        index=index,  # type: ignore[arg-type]
    )
    items = items_of(read_rows(data, Columns()))
    assert [(i.id, i.question, i.gold) for i in items] == [
        ("0", "q0?", 0), ("1", "q1?", 1), ("2", "q2?", 0),
    ]  # fmt: skip


def test_targets_of_mlflow_win_and_go_by_position() -> None:
    data = frame(options=[list(METALS)]).drop(columns="answer")
    assert read_rows(data, Columns(), targets=np.array(["C"]))[0].item.gold == 2


def test_other_columns_are_kept_as_meta_and_are_no_options() -> None:
    data = frame(A=["copper"], B=["mercury"], id=["q-7"], domain=["Chemistry"], NO=[17])
    (row,) = read_rows(data, Columns())
    assert row.item.options == ("copper", "mercury")
    assert row.item.meta == {"domain": "Chemistry", "NO": "17"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(frame(), "needs a question, options", id="no options at all"),
        pytest.param(frame(options=["copper; mercury"]), "row 0.*JSON", id="text that is no JSON"),
        pytest.param(frame(options=[["only"]]), "row 0.*two options", id="one option"),
        pytest.param(frame(options=[["x", " "]]), "row 0.*option 1 is empty", id="empty option"),
        pytest.param(frame(options=[["x", None]]), "row 0.*option 1", id="missing option"),
        pytest.param(frame(A=["x"], B=[None], C=["z"]), "row 0.*without a gap", id="gap"),
        pytest.param(
            frame(options=[["x", "y"]], gold=[0]), "more than one column", id="two answers"
        ),
        pytest.param(frame(options=[["x", "y"]], id=[None]), "row 0.*id", id="missing id"),
        pytest.param(
            frame(options=[["x", "y"]]).assign(question=[3]), "row 0.*must be a text", id="question"
        ),
        pytest.param(frame(options=[["x", "y"]]).iloc[:0], "holds no rows", id="no rows"),
        pytest.param(frame(options=[[b"x", "y"]]), "row 0.*option 0", id="bytes"),
        pytest.param(frame(options=[["x", object()]]), "row 0.*option 1", id="an object"),
        pytest.param(
            frame(options=[["x", np.float32("nan")]]), "row 0.*option 1", id="float32 NaN"
        ),
        pytest.param(frame(options=['{"A": "x", "A": "y"}']), "row 0.*one label twice", id="twins"),
        pytest.param(frame(options=[["x", "y"]], id=[pd.NaT]), "row 0.*id", id="id without time"),
    ],
)
def test_what_cannot_be_read_is_refused(data: pd.DataFrame, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_rows(data, Columns())


def test_an_id_that_comes_twice_is_refused() -> None:
    data = pd.concat([frame(options=[["x", "y"]], id=["q1"])] * 2)
    with pytest.raises(DataError, match=r"row 1.*same id as row 0"):
        items_of(read_rows(data, Columns()))


def test_a_list_of_dicts_as_mlflow_wraps_it() -> None:
    rows = [{"question": "q?", "options": ["x", "y"], "answer": 1}]
    wrapped = np.array([[row] for row in rows])
    assert read_rows(as_frame(wrapped), Columns())[0].item.gold == 1
    with pytest.raises(DataError, match="named columns"):
        as_frame(np.array([[1.0, 2.0]]))


STORED = pd.DataFrame(
    {
        "id": ["q", "q", "q", "r"],
        "question": ["Which?"] * 3 + ["What?"],
        "options": [["x", "y", "z"]] * 3 + [["x", "y"]],
        "answer": ["y"] * 3 + ["x"],
        "order": [[0, 1, 2], "[2, 0, 1]", (0, 1, 2), [1, 0]],
    }
)


def test_stored_orders_are_taken_from_the_data() -> None:
    rows = read_rows(STORED, Columns(id="id"))
    answers = read_stored(rows, ["B", "C", None, "B"], "order")
    got = [(a.request.key[0], a.request.key[2:], a.request.prompt.gold_slot) for a in answers]
    assert got == [("q", (0, 0), 1), ("q", (1, 0), 2), ("q", (0, 1), 1), ("r", (0, 0), 1)]
    assert answers[2].text is None


@pytest.mark.parametrize(
    ("order", "said"),
    [
        pytest.param([0, 1, 1], "once each, by slot", id="not a permutation"),
        pytest.param([0, 1], "once each, by slot", id="too short"),
        pytest.param([0.9, 1.2, 2.0], "once each, by slot", id="fractions"),
        pytest.param("CBA", "once each, by slot", id="letters"),
        pytest.param(None, "once each, by slot", id="missing"),
    ],
)
def test_a_stored_order_must_be_a_permutation(order: object, said: str) -> None:
    data = STORED.iloc[:1].assign(order=[order])
    with pytest.raises(DataError, match=said):
        read_stored(read_rows(data, Columns(id="id")), ["B"], "order")


def test_rows_of_one_id_must_be_one_item() -> None:
    data = STORED.assign(answer=["y", "x", "y", "x"])
    with pytest.raises(DataError, match=r"row 1.*another item"):
        read_stored(read_rows(data, Columns(id="id")), ["B"] * 4, "order")


def test_two_columns_of_one_name_are_refused() -> None:
    data = frame(options=[["x", "y"]])
    data = pd.concat([data, data[["question"]]], axis=1)
    with pytest.raises(DataError, match="several columns of one name"):
        read_rows(data, Columns())


def test_more_letter_columns_than_the_alphabet() -> None:
    from mlflow_mcq.orientations import letters_for

    data = frame(**{letter: [f"option {letter}"] for letter in letters_for(28)})
    (row,) = read_rows(data, Columns())
    assert row.item.options[-1] == "option AB"


def test_a_row_longer_than_the_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("question,A,B,answer\nFruit?,apple,stone,A,B\n", encoding="utf-8")
    with pytest.raises(DataError, match="more fields than the header"):
        load_frame(path)


def test_json_cells_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    rows = [
        {"question": "q?", "options": [0.12345678901234568, "x"], "answer": 0, "id": 2**53 + 1},
        {"question": "r?", "options": ["x", "y"], "answer": 0, "id": "r"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    first, _ = read_rows(load_frame(path), Columns())
    assert (first.item.id, first.item.options[0]) == (str(2**53 + 1), "0.12345678901234568")
