"""Human labels of stored answers: read strictly, kept with the answer, stored and read back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.datasets.frame import read_rows
from mlflow_mcq.datasets.human_label import (
    read_human_label,
    refuse_human_labels,
    say_labels_alone,
)
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Decoding, Generation, Verdict
from mlflow_mcq.settings import Columns, Settings
from mlflow_mcq.table import generations_frame, generations_from
from mlflow_mcq.unwrap import stored_answers

DATA = pd.DataFrame(
    {
        "id": ["river", "river", "peak"],
        "question": ["Longest river?", "Longest river?", "Highest peak?"],
        "options": [["Nile", "Rhine"]] * 2 + [["Everest", "Etna", "Elbrus"]],
        "answer": [0, 0, 0],
        "order": [[0, 1], [1, 0], [2, 0, 1]],
        "generation": ["The Nile", "A", "no idea"],
    }
)


def generations(data: pd.DataFrame, **columns: Any) -> list[Generation]:
    settings = Settings(columns=Columns(**columns))
    engine, answers = stored_answers(read_rows(data, settings.columns), None, settings)
    return [*engine.generate([answer.request for answer in answers], Decoding())]


def labels(data: pd.DataFrame, **columns: Any) -> list[Verdict | None]:
    return [one.human_label for one in generations(data, **columns)]


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        pytest.param("CORRECT", Verdict.CORRECT, id="as written in tables"),
        pytest.param("incorrect", Verdict.INCORRECT, id="lower case"),
        pytest.param(" Other\n", Verdict.OTHER, id="with space around it"),
        pytest.param(Verdict.OTHER, Verdict.OTHER, id="a verdict"),
        *(
            pytest.param(cell, None, id=f"nothing: {cell!r}")
            for cell in ("", "  ", None, float("nan"), np.float32("nan"), pd.NA, pd.NaT)
        ),
    ],
)
def test_cells(cell: object, label: Verdict | None) -> None:
    assert read_human_label(cell, "row 0") is label


@pytest.mark.parametrize(
    "cell",
    [
        "B",
        "yes",
        "right",
        "CORRECT?",
        "CORRECT, INCORRECT",
        "nan",
        1,
        0.0,
        True,
        np.False_,
        ["OTHER"],
    ],
    ids=repr,
)
def test_what_is_no_verdict_is_refused_and_named(cell: object) -> None:
    with pytest.raises(DataError, match=r"row 7.*CORRECT, INCORRECT, OTHER") as error:
        read_human_label(cell, "row 7")
    assert repr(cell) in str(error.value)


@given(st.text(max_size=12))
def test_a_text_is_a_verdict_a_blank_or_refused(text: str) -> None:
    try:
        label = read_human_label(text, "row 0")
    except DataError:
        assert text.strip().upper() not in (*Verdict.__members__, "")
    else:
        assert (label.value if label else "") == text.strip().upper()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        pytest.param("human_label", {}, id="by its usual name"),
        pytest.param("checked", {"human_label": "checked"}, id="by its setting"),
    ],
)
def test_each_label_goes_with_its_own_answer(name: str, columns: dict[str, str]) -> None:
    # Two rows of one item, in two orders: neither takes the other's label.
    found = labels(DATA.assign(**{name: [None, "Correct", "other"]}), **columns)
    assert found == [None, Verdict.CORRECT, Verdict.OTHER]


def test_repeats_of_one_prompt_keep_their_labels_apart() -> None:
    twice = pd.concat([DATA.iloc[:1]] * 2).assign(human_label=["CORRECT", "OTHER"])
    assert labels(twice) == [Verdict.CORRECT, Verdict.OTHER]


def test_no_column_is_no_label_and_a_taken_column_is_none_either() -> None:
    assert labels(DATA) == [None] * 3
    # Somebody's name for the right answer: "0" is no verdict, and is not taken for one.
    renamed = DATA.rename(columns={"answer": "human_label"})
    assert labels(renamed, answer="human_label") == [None] * 3


def test_faults_name_the_row_or_the_setting() -> None:
    with pytest.raises(DataError, match=r"row 2 \(id 'peak'\): a human label"):
        labels(DATA.assign(human_label=["CORRECT", "", "A"]))
    with pytest.raises(DataError, match=r"columns\.human_label: is not a column.*'checkd'"):
        labels(DATA.assign(checked="OTHER"), human_label="checkd")


@pytest.mark.parametrize(
    ("column", "columns", "refused"),
    [
        pytest.param({"human_label": ["OTHER", "", ""]}, {}, True, id="a label"),
        pytest.param({"human_label": ["B", None, None]}, {}, True, id="no verdict, and no blank"),
        pytest.param({"human_label": ["", None, pd.NA]}, {}, False, id="blanks"),
        pytest.param({"x": ["", "", ""]}, {"human_label": "x"}, True, id="asked for, and blank"),
        pytest.param({}, {}, False, id="no column"),
    ],
)
def test_labels_are_refused_where_a_model_answers_afresh(
    column: dict[str, Any], columns: dict[str, str], refused: bool
) -> None:
    rows = read_rows(DATA.assign(**column), Columns(**columns))
    if not refused:
        refuse_human_labels(rows, Columns(**columns))
        return
    with pytest.raises(SettingsError, match=r"columns\.human_label.*a model gives new ones"):
        refuse_human_labels(rows, Columns(**columns))


@pytest.mark.parametrize("n", [0, 2])
def test_labels_that_nobody_is_held_against_are_said(
    n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    say_labels_alone(n)
    said = capsys.readouterr().err
    assert ("2 of the stored answers" in said and "only mcq_judge" in said) if n else not said


@pytest.mark.parametrize("marks", [["correct", "", "OTHER"], ["", "", ""]])
def test_tables_carry_labels_there_and_back(tmp_path: Any, marks: list[str]) -> None:
    rows = generations(DATA.assign(human_label=marks))
    frame = generations_frame(rows)
    assert frame["human_label"].tolist() == [mark.upper() for mark in marks]
    frame.to_parquet(tmp_path / "g.parquet")
    back = generations_from(pd.read_parquet(tmp_path / "g.parquet"))
    assert [one.human_label for one in back] == [one.human_label for one in rows]


def test_a_table_from_before_there_were_labels_has_none() -> None:
    frame = generations_frame(generations(DATA)).drop(columns="human_label")
    assert [one.human_label for one in generations_from(frame)] == [None] * 3
    with pytest.raises(DataError, match=r"lacks columns.*engine"):
        generations_from(frame.drop(columns="engine"))
