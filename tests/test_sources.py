"""Sources: files, folders of `datasets`, tables and lists, each as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from datasets import Dataset, DatasetDict

from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.errors import DataError
from mlflow_mcq.settings import Settings

ROWS = [
    {"question": "Which floats?", "options": ["lead", "cork"], "answer": 1},
    {"question": "Which sinks?", "options": ["None", "lead"], "answer": 1},
]


def ids(frame: pd.DataFrame) -> list[tuple[str, tuple[str, ...], int]]:
    rows = read_data(frame, Settings()).rows
    return [(row.item.question, row.item.options, row.item.gold) for row in rows]


EXPECTED = [(r["question"], tuple(r["options"]), r["answer"]) for r in ROWS]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ROWS, id="list of dicts"),
        pytest.param({n: [row[n] for row in ROWS] for n in ROWS[0]}, id="dict of columns"),
        pytest.param(pd.DataFrame(ROWS), id="DataFrame"),
        pytest.param(Dataset.from_list(ROWS), id="Dataset"),
        pytest.param(DatasetDict({"test": Dataset.from_list(ROWS)}), id="one split"),
        pytest.param(mlflow.data.from_pandas(pd.DataFrame(ROWS)), id="MLflow dataset"),
    ],
)
def test_tables_in_memory(data: object) -> None:
    assert ids(load_data(data)) == EXPECTED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, rows in (("train", ROWS[:1]), ("test", ROWS)):
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_folder_of_splits_is_read_as_the_hub_is(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    assert ids(load_data(f"hf:{folder}", split="test")) == EXPECTED
    with pytest.raises(DataError, match=r"none is named.*train, test"):
        load_data(f"hf:{folder}")
    with pytest.raises(DataError, match="has no split"):
        load_data(f"hf:{folder}", split="dev")


def test_what_save_to_disk_wrote(tmp_path: Path) -> None:
    DatasetDict({"a": Dataset.from_list(ROWS)}).save_to_disk(tmp_path / "saved")
    frame = load_data(f"hf:{tmp_path / 'saved'}")
    assert ids(frame) == EXPECTED
    assert str(frame.attrs["source"]).startswith("hf:")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        pytest.param("hf:nobody-here/no-such-set", "cache", id="not in the cache, and offline"),
        pytest.param("hf:", "owner/name", id="no name"),
    ],
)
def test_what_is_not_there_says_what_to_do(address: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        load_data(address)


def test_a_column_of_splits(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "split": "dev"}, {**ROWS[1], "split": "test"}]
    assert ids(load_data(rows, split="test")) == EXPECTED[1:]
    with pytest.raises(DataError, match="dev, test"):
        load_data(rows, split="train")
    with pytest.raises(DataError, match="no column"):
        load_data(ROWS, split="test")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + "\n".join(map(json.dumps, ROWS)) + "\n\n", id="mark and blanks"),
        pytest.param("\n\n".join(map(json.dumps, ROWS)), id="blank lines between"),
    ],
)
def test_json_lines_with_something_around_them(text: str, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(text, encoding="utf-8")
    assert ids(load_data(path)) == EXPECTED


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(ROWS[0]) + '\n{"question": ', encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        load_data(path)


def test_rows_kept_under_a_name_beside_a_remark(tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"canary": "x", "examples": ROWS}), encoding="utf-8")
    assert ids(load_data(path)) == EXPECTED


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(3, "must be", id="number"),
        pytest.param(["a", "b"], "must be", id="texts"),
        pytest.param(ROWS[0], r"One item is a list of one: \[item\]", id="one item"),
        pytest.param({"question": ["a?"], "options": ["x", "y"]}, "one length.*'options': 2",
                     id="columns of two lengths"),
        pytest.param({}, "holds no rows", id="empty dict"),
    ],
)  # fmt: skip
def test_what_holds_no_items_is_refused(data: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        load_data(data)
