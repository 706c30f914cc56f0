"""A file of which rows are drawn: what comes of it is what comes of reading it whole."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mlflow.data.digest_utils import compute_pandas_digest
from native_rows import NATIVE

import mlflow_mcq
from mlflow_mcq.datasets import streaming
from mlflow_mcq.datasets.chunks import frame_chunks
from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.part import part_of
from mlflow_mcq.datasets.reading import Reading, read_data
from mlflow_mcq.datasets.sampling import Keys
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.errors import DataError, McqError
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Settings

Rows = list[dict[str, Any]]


def write(rows: Rows, path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path
    if path.suffix == ".csv":
        texts = [
            {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows
        ]
        pd.DataFrame(texts, dtype=object).to_csv(path, index=False)
    else:
        pd.DataFrame(rows, dtype=object).to_parquet(path)
    return path


def told(read: Any) -> Any:
    """All that a user can see of a reading, or of what it was refused with."""
    try:
        reading: Reading = read()
    except McqError as error:
        return type(error).__name__, str(error)
    rows = [(row.item, row.who, sorted(map(repr, row.cells.items()))) for row in reading.rows]
    bad = [(one.row, str(one.error)) for one in reading.bad]
    return rows, reading.layout, reading.said, bad, reading.n_read


def whole(path: Path, asked: Settings, split: str | None, targets: str | None) -> Reading:
    frame = load_data(path, split)
    if targets is None or targets not in frame.columns:
        return read_data(frame, asked)
    return read_data(frame.drop(columns=targets), asked, frame[targets].tolist(), targets)


def streamed(path: Path, asked: Settings, split: str | None, targets: str | None) -> Reading:
    frame = load_part(path, split, asked, targets)
    assert part_of(frame) is not None
    assert len(frame) <= len(load_data(path))
    if targets is None:
        return read_data(frame, asked)
    return read_data(frame.drop(columns=targets), asked, frame[targets].tolist(), targets)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows a part holds: a test may set another number."""
    size = [3]
    monkeypatch.setattr(streaming, "frame_chunks", lambda path: frame_chunks(path, n_rows=size[0]))
    return size


ITEM = {"question": "Which floats?", "options": ["lead", "cork", "iron"], "answer": "B"}
CHANGES: list[dict[str, Any]] = [
    {},
    {},
    {"options": ["lead", "cork"]},
    {"options": ["(A) lead", "(B) cork"]},
    {"subject": "physics"},
    {"subject": "water", "note": 7},
    {"topic": "a title of its own"},
    {"answer": "A"},
    {"answer": 1},
    {"answer": 2},
    {"answer": 0},
    {"answer": "3"},
    {"answer": ["A", "B"]},
    {"id": "seen before"},
    {"id": None},
    {"split": "test"},
    {"answer": "F"},
    {"question": None},
    {"stem": "another question"},
]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    n = draw(st.integers(1, 30))
    rare = draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4))
    numbered = draw(st.booleans())
    split = draw(st.booleans())
    rng = random.Random(draw(st.integers(0, 99)))
    rows = []
    for i in range(n):
        row = {**ITEM, **({"id": f"q{i}"} if numbered else {}), **rng.choice(rare)}
        rows.append({**row, "split": rng.choice(["test", "dev"])} if split else row)
    return rows


asks = st.builds(
    dict,
    limit=st.one_of(st.none(), st.integers(1, 12)),
    shard=st.sampled_from(["1/1", "1/2", "2/3"]),
    seed=st.integers(0, 3),
    on_bad_rows=st.sampled_from(["error", "skip", "skip"]),
    several_gold=st.sampled_from(["refuse", "any"]),
)


ELSEWHERE = {**ITEM, "split": "dev", "subject": "physics"}
ALL = {"limit": None, "shard": "1/1", "seed": 0, "on_bad_rows": "error", "several_gold": "refuse"}


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
# A column that rows of another split alone have, before and behind those of the split.
@example(
    rows=[{**ITEM, "split": "test"}, ELSEWHERE],
    ask=ALL,
    size=1,
    split="test",
    targets=None,
    ending=".jsonl",
)
@example(
    rows=[ELSEWHERE, {**ITEM, "split": "test"}],
    ask=ALL,
    size=1,
    split="test",
    targets=None,
    ending=".jsonl",
)
@given(
    rows=tables(),
    ask=asks,
    size=st.integers(1, 9),
    split=st.sampled_from([None, None, "test"]),
    targets=st.sampled_from([None, None, "answer"]),
    ending=st.sampled_from([".jsonl", ".jsonl", ".csv"]),
)
def test_the_rows_drawn_are_those_of_the_whole_file(
    rows: Rows,
    ask: dict[str, Any],
    size: int,
    split: str | None,
    targets: str | None,
    ending: str,
    in_parts: list[int],
    tmp_path: Path,
) -> None:
    in_parts[0] = size
    path, asked = write(rows, tmp_path / f"items{ending}"), Settings(**ask)
    expected = told(partial(whole, path, asked, split, targets))
    assert told(partial(streamed, path, asked, split, targets)) == expected


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("size", [1, 2])
def test_every_layout_is_seen_in_parts(
    name: str, size: int, in_parts: list[int], tmp_path: Path
) -> None:
    in_parts[0] = size
    rows = NATIVE[name][0] * 2
    ids = {column for row in rows for column in row if column in ("id", "question_id", "q_id")}
    rows = [{**row, **dict.fromkeys(ids, f"{n}")} for n, row in enumerate(rows)]
    path, asked = write(rows, tmp_path / "items.jsonl"), Settings(limit=1)
    expected = told(partial(whole, path, asked, None, None))
    assert expected[1] == name
    assert told(partial(streamed, path, asked, None, None)) == expected


ARC = NATIVE["arc"][0]
TURNS: dict[str, tuple[Rows, dict[str, Any]]] = {
    "ids from the fourth row on": (
        [*({k: v for k, v in ARC[0].items() if k != "id"} for _ in range(3)), *ARC],
        {"on_bad_rows": "skip"},
    ),
    "ids that are all null": ([{**ARC[0], "id": None}] * 5, {}),
    "a column that decides the layout, in the last row": (
        [*[{**ITEM, "answer": 1}] * 4, {**ITEM, "answer": 1, "answer_index": 1}],
        {},
    ),
    "a zero that decides the layout, in the last row": (
        [{"question": "3 - 1?", "choices": list("2341"), "answer": 2}] * 6
        + [{"question": "Next?", "choices": list("abcd"), "answer": 0}],
        {},
    ),
    "a word among whole answers": (
        [{"question": "q?", "option_a": "x", "option_b": "y", "answer": 0}] * 5
        + [{"question": "q?", "option_a": "x", "option_b": "y", "answer": "x"}],
        {},
    ),
    "a log of lm-eval": (
        [
            {"doc_id": i, "doc": doc, "target": "?", "filter": name, "resps": [["B"]]}
            for name in ("none", "strict")
            for i, doc in enumerate([*ARC, {**ARC[0], "grade": 8}])
        ],
        {},
    ),
    "a log until the last row": (
        [
            *({"doc_id": i, "doc": doc, "resps": []} for i, doc in enumerate(ARC)),
            {"doc_id": 9, "doc": "no document", "resps": []},
        ],
        {},
    ),
    "a log from the fifth row on": (
        [*ARC, *ARC, {"doc_id": 9, "doc": ARC[0], "resps": []}],
        {"on_bad_rows": "skip"},
    ),
    "a log without a first filter": (
        [{"doc_id": 0, "doc": ARC[0], "filter": None, "resps": []}] * 3,
        {},
    ),
    "a layout that lacks a column": ([ITEM] * 4, {"layout": "piqa"}),
    "a layout that is named": (ARC * 3, {"layout": "arc", "on_bad_rows": "skip"}),
    "numbers that may count from one": ([{**ITEM, "answer": 1 + i % 2} for i in range(9)], {}),
    "options in one row alone": (
        [{k: v for k, v in ITEM.items() if k != "options"}] * 4 + [ITEM],
        {"on_bad_rows": "skip"},
    ),
    "no row that can be read": ([{**ITEM, "answer": "?"}] * 7, {"on_bad_rows": "skip"}),
}


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("size", [1, 4])
def test_what_a_later_row_says_of_the_table_holds_for_the_first(
    name: str, size: int, in_parts: list[int], tmp_path: Path
) -> None:
    in_parts[0] = size
    rows, more = TURNS[name]
    path, asked = write(rows, tmp_path / "items.jsonl"), Settings(limit=1, **more)
    expected = told(partial(whole, path, asked, None, None))
    assert told(partial(streamed, path, asked, None, None)) == expected


LINES = '{"question": "q?", "options": ["x", "y"], "answer": "A"}\n'
TABLE = "question,A,B,answer\n"


@pytest.mark.parametrize(
    ("name", "text", "split", "said"),
    [
        pytest.param("a.jsonl", f"\n{LINES * 4}\n{{]\n", None, "line 7", id="a broken line"),
        pytest.param("a.jsonl", LINES * 4 + "[1]\n", None, "named fields", id="no object"),
        pytest.param("a.jsonl", "\n \n", None, "holds no rows", id="no rows"),
        pytest.param("a.jsonl", LINES * 4, "test", "no splits", id="no splits"),
        pytest.param(
            "a.jsonl", '{"split": "dev"}\n{"split": 3}\n', "test", "Has 3, dev", id="no such split"
        ),
        pytest.param("a.csv", TABLE, None, "holds no rows", id="a header alone"),
        pytest.param("a.csv", "", None, "cannot be read", id="nothing"),
        pytest.param("a.csv", TABLE + "q?,x,y,A\n" * 5 + "q?,x,y,A,z\n", None, "more fields|saw 5",
                     id="a field too many, later"),
        pytest.param("a.csv", TABLE + "q?,x,y,A,z\n" * 5, None, "more fields|saw 5",
                     id="a field too many, always"),
        pytest.param("a.csv", TABLE + 'q?,x,y,A\n"q?,x,y,A\n' * 3, None, "", id="an open quote"),
        pytest.param("a.csv", "q?,x,y,A\nq?,x,y,B\nq?,x,y,C\n", None, "", id="no header"),
        pytest.param("a.csv", "q?,x,y,A\nq?,x,y,z,B\n", None, "", id="no header, a field too many"),
        pytest.param("a.csv", TABLE + "q?,x,y,A\nq?,x\n\nq?,x,y,B\n", None, "", id="a short row"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_broken_file_is_refused_as_if_read_whole(
    name: str,
    text: str,
    split: str | None,
    said: str,
    size: int,
    in_parts: list[int],
    tmp_path: Path,
) -> None:
    in_parts[0] = size
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    asked = Settings(limit=1)
    expected = told(partial(whole, path, asked, split, None))
    found = told(lambda: read_data(load_part(path, split, asked), asked))
    assert found == expected
    if said:
        with pytest.raises(McqError, match=said):
            read_data(load_part(path, split, asked), asked)


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("n_options", [[3], [2, 3]], ids=["even", "uneven"])
def test_cells_do_not_depend_on_the_rows_they_are_read_with(
    ending: str, n_options: list[int], in_parts: list[int], tmp_path: Path
) -> None:
    rows: Rows = [
        {
            "id": None if i == 7 else 2**53 + i,
            "question": f"question {i}?",
            "options": [f"{i}", f"{i + 1}", "iron"][: n_options[i % len(n_options)]],
            "answer": "AB"[i % 2],
            "grade": None if i == 5 else i,
        }
        for i in range(10)
    ]
    path, asked = write(rows, tmp_path / f"items{ending}"), Settings(limit=6, on_bad_rows="skip")
    expected = told(partial(whole, path, asked, None, None))
    assert len(expected[0]) == 6
    assert {item.id for item, _, _ in expected[0]} <= {str(2**53 + i) for i in range(10)}
    assert told(partial(streamed, path, asked, None, None)) == expected


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("split", [None, "test"])
def test_the_digest_is_that_of_the_whole_file(
    ending: str, split: str | None, in_parts: list[int], tmp_path: Path
) -> None:
    rows = [
        {**ITEM, "question": f"{i}?", "split": ["test", "dev"][i % 3 % 2], "n": i}
        for i in range(40)
    ] + [{**ITEM, "split": "test", "late": "x"}]
    path = write(rows, tmp_path / f"items{ending}")
    part = part_of(load_part(path, split, Settings(limit=2)))
    frame = load_data(path, split)
    assert part is not None
    assert (part.n_rows, part.digest) == (len(frame), compute_pandas_digest(frame))


def test_a_table_drawn_under_other_settings_is_refused(tmp_path: Path) -> None:
    path = write([{**ITEM, "id": f"{i}"} for i in range(9)], tmp_path / "items.jsonl")
    frame = load_part(path, None, Settings(limit=4))
    assert len(read_data(frame, Settings(limit=4)).rows) == 4
    for other, asked in ((frame, Settings(limit=3)), (frame[:2], Settings(limit=4))):
        with pytest.raises(DataError, match="under other settings"):
            read_data(other, asked)


def _rewritten(path: Path) -> None:
    path.write_text(path.read_text().replace("e?", "e!"))


def _appended(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: path.write_text(""), id="emptied"),
        pytest.param(Path.unlink, id="removed"),
        pytest.param(_appended, id="added to"),
        pytest.param(_rewritten, id="other questions"),
    ],
)
def test_a_file_that_changes_between_draw_and_reading_is_refused(
    ending: str, change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows read would be others than those drawn, under the digest of what is gone."""
    rows = [{"question": f"Is it {i}, here?", "A": "x", "B": "y", "answer": "A"} for i in range(9)]
    path = write(rows, tmp_path / f"items{ending}")
    picked = streaming.picked_rows

    def late(path: Path, places: Any) -> pd.DataFrame:
        change(path)
        os.utime(path, ns=(1, 1)) if path.exists() else None  # clocks of file systems are coarse
        return picked(path, places)

    monkeypatch.setattr(streaming, "picked_rows", late)
    with pytest.raises(DataError, match=rf"items\{ending}': changed while it was read"):
        load_part(path, None, Settings(limit=4))


def test_without_a_limit_all_is_read(tmp_path: Path) -> None:
    path = write([ITEM], tmp_path / "items.jsonl")
    assert part_of(load_part(path, None, Settings())) is None
    (tmp_path / "items.json").write_text(json.dumps([ITEM]))
    assert part_of(load_part(tmp_path / "items.json", None, Settings(limit=1))) is None


def peak_of(n_rows: int, tmp_path: Path) -> tuple[int, int]:
    """Bytes of a file, and bytes that were alive at once while a few rows were drawn from it."""
    rows = [
        {**ITEM, "id": f"q{i}", "question": f"{i}? " + "long " * 150, "subject": "ab"[i % 2]}
        for i in range(n_rows)
    ]
    path = write(rows, tmp_path / f"{n_rows}.jsonl")
    del rows
    tracemalloc.start()
    try:
        load_part(path, None, Settings(limit=20))
        return path.stat().st_size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_alive_at_once_does_not_grow_with_the_file(tmp_path: Path) -> None:
    load_part(write([ITEM] * 2, tmp_path / "first.jsonl"), None, Settings(limit=1))  # imports
    (small, at_small), (large, at_large) = (peak_of(n, tmp_path) for n in (3_000, 12_000))
    # Read whole, each byte of the file takes more than one; each row may leave a hundred here.
    assert at_large - at_small < 0.15 * (large - small)


def test_a_run_says_of_its_data_what_it_would_say_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    rows = [{**ITEM, "id": f"q{i}", "question": f"{i}?", "n": i} for i in range(30)]
    path = write(rows, tmp_path / "items.jsonl")
    said = []
    for data in (path, load_data(path)):  # a table in memory is never drawn from in parts
        with mlflow.start_run() as run:
            mlflow_mcq.evaluate(
                lambda frame: ["B"] * len(frame),
                data,
                evaluators="mcq_regex",
                targets="answer",
                limit=7,
                orientations="as-is",
            )
        found = mlflow.get_run(run.info.run_id)
        (given,) = found.inputs.dataset_inputs
        tags = {k: v for k, v in found.data.tags.items() if k in ("mcq.data", "mcq.data_digest")}
        one = given.dataset
        said.append((tags, one.name, one.digest, one.profile, one.source_type))
    assert said[0] == said[1]
    assert "30 items" in said[0][0]["mcq.data"]
    assert "7 of them are measured" in said[0][0]["mcq.data"]


def test_targets_that_are_no_column_are_refused_before_a_run_is_opened(tmp_path: Path) -> None:
    path = write([ITEM] * 5, tmp_path / "items.jsonl")
    with pytest.raises(McqError, match=r"targets: is not a column.*'gold'"):
        mlflow_mcq.evaluate(lambda frame: [], path, evaluators="mcq_regex", targets="gold", limit=2)
    assert mlflow.active_run() is None


@pytest.mark.parametrize(
    "n_ids", [pytest.param(30_000, id="ids of their own"), pytest.param(15_000, id="twice each")]
)
def test_a_draw_takes_few_bytes_of_each_row(n_ids: int) -> None:
    """A file may have many millions of rows, and all of them are put in order at once."""
    keys = Keys(0, n_rows := 30_000)
    for i in range(n_rows):
        item = Item(f"q{i % n_ids}", "?", ("x", "y"), i % 2, meta={"subject": "ab"[i % 2]})
        keys.add(Row(item, {}, ""))
    tracemalloc.start()
    try:
        assert len(keys.kinds()) == 2
        assert keys.n_ids_of(keys.taken(100)) == 100
        assert tracemalloc.get_traced_memory()[1] < 60 * n_rows
    finally:
        tracemalloc.stop()
