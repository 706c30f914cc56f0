"""Tables: fixed schemas, whatever was graded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mlflow_mcq.orientations import orientations_for
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Reply
from mlflow_mcq.table import first_rows, generations_frame, grades_frame, reading_frame, row_id
from mlflow_mcq.tracking import capped, joined

ITEM = Item("q", "Liquid?", ("copper", "mercury", "tin"), 1)


def generation(orientation: int, protocol: str = "letters", repeat: int = 0) -> Generation:
    order = orientations_for(3, "rotations")[orientation]
    prompt = prompt_family(protocol)(ITEM, order, chat=False)
    return Generation(prompt, repeat, Reply("mercury", finish_reason="eos", token_ids=(5, 6)))


def test_a_row_says_option_slot_and_letter_apart() -> None:
    (row,) = grades_frame([Grade.of_choice(generation(1), "judge", 1)]).to_dict("records")
    assert (row["choice"], row["slot"], row["shown_letter"]) == (1, 0, "A")
    assert (row["gold"], row["gold_slot"], row["verdict"]) == (1, 0, "CORRECT")


@pytest.mark.parametrize(
    ("grade", "verdict", "reason", "error"),
    [
        pytest.param(
            Grade.unread(generation(0), "judge", "empty"), "OTHER", "empty", "", id="other"
        ),
        pytest.param(
            Grade.failed(generation(0), "judge", "503"), None, "", "503", id="judge error"
        ),
    ],
)
def test_other_and_errors_name_no_option(
    grade: Grade, verdict: str | None, reason: str, error: str
) -> None:
    frame = grades_frame([grade])
    assert frame[["choice", "slot"]].isna().all(axis=None)
    row = frame.iloc[0]
    assert (row["reason"], row["error"]) == (reason, error)
    assert row["verdict"] == verdict or (verdict is None and pd.isna(row["verdict"]))


def test_a_protocol_without_letters_has_none_in_its_rows() -> None:
    (row,) = generations_frame([generation(0, "dashes")]).to_dict("records")
    assert row["gold_letter"] is None
    graded = grades_frame([Grade.of_choice(generation(0, "dashes"), "judge", 1)])
    assert graded["shown_letter"].isna().all()


def test_rows_have_short_names_that_differ() -> None:
    names = [row_id(generation(o, repeat=r)) for o in (0, 1) for r in (0, 1)]
    assert names == ["q/o0", "q/o0/r1", "q/o1", "q/o1/r1"]


def test_the_reading_table_shows_what_stood_on_the_page() -> None:
    rows = [generation(2)]
    graded = [Grade.of_choice(rows[0], name, 1) for name in ("judge", "regex_naive")]
    frame = reading_frame(graded, generations_frame(rows))
    assert frame["options_shown"].tolist() == [["tin", "copper", "mercury"]] * 2
    assert frame["grader"].tolist() == ["judge", "regex_naive"]


def test_empty_tables_keep_their_columns() -> None:
    assert list(grades_frame([]).columns) == list(
        grades_frame([Grade.unread(generation(0), "judge", "x")]).columns
    )


def test_a_capped_table_shows_the_telling_rows_first() -> None:
    frame = pd.DataFrame({"row": range(6)})
    telling = [False, False, False, True, False, True]
    assert capped(frame, 3, telling)["row"].tolist() == [3, 5, 0]


def test_of_many_rows_the_telling_ones_are_chosen_first() -> None:
    rows = [generation(turn) for turn in range(3)]
    telling = {row_id(rows[2])}
    assert first_rows(rows, 2, telling) == [rows[2], rows[0]]
    grades = [Grade.unread(row, "judge", "x") for row in rows]
    assert first_rows(iter(grades), 9, telling) == [grades[2], grades[0], grades[1]]


@pytest.mark.parametrize("empty", [0, 1], ids=["no tokens in the first part", "none later"])
def test_a_table_in_parts_is_the_table(empty: int, tmp_path: Path) -> None:
    rows = [generation(0), generation(1)]
    rows[empty] = replace(rows[empty], reply=Reply("tin"))
    generations_frame(rows).to_parquet(tmp_path / "whole.parquet", index=False)
    parts = joined(generations_frame([row]) for row in rows)
    pq.write_table(parts, tmp_path / "parts.parquet")
    whole, again = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(whole, again)
