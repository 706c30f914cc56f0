"""Native layouts: each is recognised, alone, and read as its data set means it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from native_rows import METALS, NATIVE, Q1, RIVERS

from mlflow_mcq.datasets.layouts import LAYOUTS
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.settings import Settings


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, dtype=object)


def test_every_layout_has_items_of_ours() -> None:
    assert set(NATIVE) == set(LAYOUTS)


@pytest.mark.parametrize("name", NATIVE)
def test_exactly_one_layout_claims_an_item(name: str) -> None:
    rows, _ = NATIVE[name]
    columns = {column for row in rows for column in row}
    assert [x.name for x in LAYOUTS.values() if x.matches(columns, rows)] == [name]


@pytest.mark.parametrize("name", NATIVE)
def test_the_gold_is_the_one_that_the_data_set_means(name: str) -> None:
    rows, golds = NATIVE[name]
    reading = read_data(table(rows), Settings())
    assert reading.layout == name
    assert [row.item.gold for row in reading.rows] == golds


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_layout_survives_its_file(name: str, ending: str, tmp_path: Path) -> None:
    rows, golds = NATIVE[name]
    rows, golds = rows[:1], golds[:1]  # Parquet wants one type a column
    path = tmp_path / f"items{ending}"
    if ending == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    reading = read_data(load_data(path), Settings(layout=name))
    assert [row.item.gold for row in reading.rows] == golds
    assert all(isinstance(option, str) for row in reading.rows for option in row.item.options)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        pytest.param("belebele", f"Mercury melts early.\n\n{Q1}", id="passage above"),
        pytest.param("social_iqa", "Ada lent Bo a pen.\n\nWhat will Bo do?", id="context above"),
        pytest.param("xcopa", "The lamp went out.\n\nWhat was the cause of this?", id="composed"),
        pytest.param("analogy", "seed : tree", id="pair of words"),
        pytest.param("bbh", Q1, id="options cut from the text"),
        pytest.param("openai_evals", Q1, id="last turn of the user, without its tail"),
    ],
)
def test_the_question_as_it_is_shown(name: str, question: str) -> None:
    rows, _ = NATIVE[name]
    assert read_data(table(rows), Settings()).rows[0].item.question == question


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("truthfulqa-csv", ("Mercury", "Iron", "Tin"), id="empty pieces are none"),
        pytest.param("bbh", ("iron", "mercury", "tin"), id="labels belong to the page"),
        pytest.param("boolq", ("Yes", "No"), id="yes and no"),
        pytest.param("analogy", ("ink : sea", "egg : hen"), id="pairs"),
        pytest.param("mmlu", ("3", "1", "2", "0"), id="digits that are options, and an index"),
    ],
)
def test_the_options_as_they_are_shown(name: str, options: tuple[str, ...]) -> None:
    rows, _ = NATIVE[name]
    assert read_data(table(rows), Settings()).rows[0].item.options == options


def changed(name: str, **cells: Any) -> pd.DataFrame:
    return table([{**NATIVE[name][0][0], **cells}])


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        pytest.param("arc", {"answerKey": "E"}, r"row 0 \(id 'a'\), field 'answerKey'.*labels",
                     id="a label that no option carries"),
        pytest.param("commonsense_qa", {"answerKey": ""}, "holds no answer", id="hidden test"),
        pytest.param("medmcqa", {"cop": -1}, "'cop'.*holds no answer", id="-1 hides the answer"),
        pytest.param("medmcqa", {"cop": 7}, "from 0 to 3", id="beyond the options"),
        pytest.param("winogrande", {"answer": "0"}, "from 1 to 2", id="counts from one"),
        pytest.param("mmlu", {"answer": 4}, "from 0 to 3", id="counts from zero"),
        pytest.param("mmlu", {"answer": 1.5}, "whole number", id="half an index"),
        pytest.param("piqa", {"label": True}, "whole number", id="a bool is no index"),
        pytest.param("piqa", {"label": 10**400}, "whole number", id="no float is that large"),
        pytest.param("piqa", {"label": None}, "holds no answer", id="labels in another file"),
        pytest.param("mmlu_pro", {"answer_index": 2}, "different options", id="letter and index"),
        pytest.param("medqa", {"answer": "tin"}, "different options", id="letter and text"),
        pytest.param("lettered", {"B": None}, "without a gap", id="a gap shifts every option"),
        pytest.param("truthfulqa", {"mc1_targets": {"choices": METALS, "labels": [1, 1, 0, 0]}},
                     "exactly one", id="two right answers"),
        pytest.param("xcopa", {"question": "why"}, "cause or effect", id="neither"),
        pytest.param("bbh", {"input": f"{Q1}\nOptions:\n(A) iron\nand so on\n(B) tin"},
                     "no label in order", id="a line that may be either"),
        pytest.param("openai_evals", {"input": [{"role": "system", "content": "A) x\nB) y"}]},
                     "message of the user", id="nobody asks"),
        pytest.param("analogy", {"stem": ["seed"]}, "pair of words", id="half a pair"),
        pytest.param("hellaswag", {"endings": "iron"}, "must be a list", id="a text for a list"),
        pytest.param("hellaswag", {"ctx": " "}, "'ctx'.*not empty", id="no question"),
    ],
)  # fmt: skip
def test_doubt_names_row_and_field(name: str, cells: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_data(changed(name, **cells), Settings(layout=name))


def test_an_index_among_digits_is_refused_where_nobody_says_how_it_counts() -> None:
    rows = [{"question": "3 - 1?", "choices": list("2341"), "answer": 2}]
    with pytest.raises(DataError, match="more than one way"):
        read_data(table(rows), Settings())
    zero = {"question": Q1, "choices": METALS, "answer": 0}
    assert read_data(table([*rows, zero]), Settings()).layout == "mmlu"


def test_a_count_that_nothing_settles_is_named_and_left_to_the_user() -> None:
    data = changed("medmcqa", cop=2)
    with pytest.raises(DataError, match="medmcqa, medmcqa-original"):
        read_data(data, Settings())
    golds = [
        read_data(data, Settings(layout=name)).rows[0].item.gold
        for name in ("medmcqa", "medmcqa-original")
    ]
    assert golds == [2, 1]


def test_letters_that_are_always_options_too_stay_in_doubt() -> None:
    row = {"question": "Which letter?", "A": "B", "B": "A", "answer": "A"}
    with pytest.raises(DataError, match="more than one way"):
        read_data(table([row]), Settings())


def test_named_columns_and_targets_win_over_a_layout() -> None:
    row = {**NATIVE["piqa"][0][0], "choices": ["x", "y"], "mine": "y"}
    named = Settings.model_validate(
        {"columns": {"question": "goal", "options": "choices", "answer": "mine"}}
    )
    assert read_data(table([row]), named).rows[0].item.options == ("x", "y")
    plain = table([{**NATIVE["mmlu_pro"][0][0], "mine": "C"}])
    taken = plain.drop(columns="mine")
    reading = read_data(taken, Settings(), plain["mine"].to_numpy(), "mine")
    assert (reading.layout, reading.rows[0].item.gold) == ("plain", 2)


def test_a_target_that_mlflow_took_away_is_put_back() -> None:
    data = table(NATIVE["arc"][0])
    taken = data.drop(columns="answerKey")
    reading = read_data(taken, Settings(), data["answerKey"].to_numpy(), "answerKey")
    assert reading.layout == "arc"


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        pytest.param({"layout": "mmlu-pro"}, SettingsError, "mmlu_pro", id="nearest name"),
        pytest.param({"layout": "piqa"}, DataError, "goal", id="columns that are not there"),
    ],
)
def test_a_forced_layout_must_exist_and_fit(
    settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        read_data(table(NATIVE["arc"][0]), Settings(**settings))


def test_what_is_said() -> None:
    arc = read_data(table(NATIVE["arc"][0]), Settings())
    assert arc.said == "read as: ARC, 2 items, 4 options, labels 1-4 in 1, gold is option 2 in all"


def test_other_columns_become_meta_and_stay_cells() -> None:
    row = read_data(table(NATIVE["exams"][0]), Settings()).rows[0]
    assert row.item.meta["subject"] == "Chemistry"
    data = changed("piqa", generation="B", options="a column of that name")
    row = read_data(data, Settings()).rows[0]
    assert (row.cells["generation"], row.item.meta["options (data)"]) == (
        "B",
        "a column of that name",
    )


def test_documents_inside_a_log_of_lm_eval() -> None:
    rows = [
        {"doc_id": i, "doc": doc, "target": "?", "filter": name, "resps": [["B"]]}
        for name in ("none", "strict")
        for i, doc in enumerate(NATIVE["arc"][0])
    ]
    reading = read_data(table(rows), Settings())
    assert (reading.layout, [row.item.id for row in reading.rows]) == ("arc", ["a", "b"])
    assert "inside a log of lm-eval" in reading.said


def test_a_file_without_a_header_loses_no_item(tmp_path: Path) -> None:
    path = tmp_path / "metals_test.csv"
    path.write_text(f'"{Q1}\nThink.",None,NA,1e5,True,B\nNext?,a,b,c,d,D\n', encoding="utf-8")
    reading = read_data(load_data(path), Settings())
    assert reading.layout == "mmlu-headerless"
    assert reading.rows[0].item.options == ("None", "NA", "1e5", "True")
    assert [row.item.gold for row in reading.rows] == [1, 3]


def test_a_header_that_ends_in_a_letter_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("answer,question,A,B,C,D\nB,Next?,a,x,c,d\n", encoding="utf-8")
    assert read_data(load_data(path), Settings()).rows[0].item.gold == 1


def test_several_right_choices_are_read_where_that_is_allowed() -> None:
    data = changed("inspect", target=["D", "B"])
    with pytest.raises(DataError, match="row 0"):
        read_data(data, Settings())
    item = read_data(data, Settings(several_gold="any")).rows[0].item
    assert item.golds == (1, 3)


def test_rivers_are_read_alike_by_name_and_by_label() -> None:
    shuffled = {"C": RIVERS[2], "A": RIVERS[0], "B": RIVERS[1]}
    row = {"question": "Which?", "choices": shuffled, "answer": "B"}
    item = read_data(table([row]), Settings()).rows[0].item
    assert (item.options, item.gold) == (tuple(RIVERS[:3]), 1)
