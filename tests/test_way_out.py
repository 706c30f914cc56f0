"""Data that a newcomer has: each fault says what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.engines.pyfunc import CallableEngine
from mlflow_mcq.errors import DataError, JudgeNotConfigured, ModelError
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Decoding, Item
from mlflow_mcq.settings import Settings, read_settings

COLUMNS = {"question": "Frage", "options": "Auswahl", "answer": "richtig"}


def table(options: object, **names: str) -> pd.DataFrame:
    cells = {"Frage": "Welches Metall?", "Auswahl": options, "richtig": "A"}
    return pd.DataFrame([{names.get(name, name): cell for name, cell in cells.items()}])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(table("Zinn|Blei"), 'str.split("|")', id="parted by bars"),
        pytest.param(table("Zinn; Blei"), 'str.split(";")', id="by semicolons"),
        pytest.param(table("Zinn, Blei"), 'str.split(", ")', id="by commas"),
        pytest.param(table("Zinn\nBlei"), 'str.split("\\n")', id="by lines"),
        pytest.param(table("Zinn"), "a column for each option", id="one text"),
        pytest.param(
            table(["Zinn", "Blei"], richtig="Richtig"), 'Did you mean "Richtig"?', id="capital"
        ),
        pytest.param(
            table(["Zinn", "Blei"], Auswahl="Auswhal"), 'Did you mean "Auswhal"?', id="typing error"
        ),
        pytest.param(table(["Zinn", "Blei"], Frage="Punkte"), "Has ['Punkte'", id="nothing near"),
        pytest.param(
            pd.DataFrame([{"Frage": {"text": "Welches Metall?"}, "Auswahl": [], "richtig": "A"}]),
            "pandas.json_normalize(rows), whose columns are named like 'Frage.text'",
            id="a question inside a dict",
        ),
        pytest.param(
            table(["Zinn", "Blei"], richtig="x").assign(richtig=[{"label": "A"}]),
            "json_normalize",
            id="an answer inside a dict",
        ),
        pytest.param(table([{"text": "Zinn"}, {"text": "Blei"}]), 'o["text"]', id="dicts"),
        pytest.param(
            pd.DataFrame({"Frage;Auswahl;richtig": ["x;y;z"]}), 'sep=";"', id="another delimiter"
        ),
    ],
)
def test_odd_columns_and_cells(data: pd.DataFrame, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read_data(data, Settings(columns=COLUMNS))
    assert said in str(caught.value)


def test_a_name_that_leads_into_a_column_is_no_typing_error() -> None:
    data = pd.DataFrame([{"prompt": {"text": "Welches Metall?"}, "Auswahl": [], "richtig": "A"}])
    with pytest.raises(DataError, match=r"json_normalize\(rows\).*'prompt\.text'") as caught:
        read_data(data, Settings(columns={"question": "prompt.text"}))
    assert "Did you mean" not in str(caught.value)


def test_columns_that_nobody_named_are_shown_as_they_are_written() -> None:
    data = pd.DataFrame([{"Frage": "?", "Antwort A": "Zinn", "Antwort B": "Blei", "richtig": "A"}])
    with pytest.raises(DataError) as caught:
        read_data(data, Settings(columns={"question": "Frage"}))
    said = str(caught.value)
    assert 'columns = {"options": ["Antwort A", "Antwort B"], "answer": "..."}' in said
    assert '--column options="Antwort A,Antwort B" --column answer="..."' in said


def test_another_delimiter_without_a_word_about_columns() -> None:
    with pytest.raises(DataError, match=r'sep="\\t"'):
        read_data(pd.DataFrame({"Frage\tA\tB": ["x"]}), Settings())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        pytest.param("a.csv", "Frage\nfl\u00fcssig".encode("latin-1"), "encoding=", id="no UTF-8"),
        pytest.param("a.xlsx", b"", "pass the DataFrame", id="a sheet"),
        pytest.param(
            "a.jsonl", b"{", "line 1 is no JSON", id="broken, and no encoding is at fault"
        ),
    ],
)
def test_files(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        load_frame(tmp_path / name)
    assert ("latin-1" in str(caught.value)) is (name == "a.csv")


def test_half_a_judge_names_what_is_unknown_and_repeats_no_value() -> None:
    with pytest.raises(JudgeNotConfigured, match="without base_url, but with url") as caught:
        read_settings({"judge": {"model": "m", "url": "http://me:sesame@x/v1"}})
    assert "sesame" not in str(caught.value)


def test_a_function_of_one_prompt_is_told_what_it_is_given() -> None:
    one: Any = lambda prompt: "B"  # noqa: E731
    requests = requests_for([Item("q", "?", ("p", "q"), 0)], Settings(), chat=False)
    with pytest.raises(ModelError, match="called with a DataFrame of many prompts"):
        list(CallableEngine(one).generate(requests, Decoding()))
