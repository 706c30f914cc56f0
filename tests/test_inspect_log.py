"""Logs of inspect_ai: raw answers, the order as sent, and nothing that was rewritten."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mlflow_mcq
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.importers import log_file
from mlflow_mcq.importers.inspect_log import from_inspect_log

METALS = ["iron", "mercury", "tin"]
ASKED = "Answer with 'ANSWER: $LETTER'.\n\nWhich is liquid?\n\nA) iron\nB) mercury\nC) tin"
TURNED = ASKED.replace("A) iron\nB) mercury\nC) tin", "A) tin\nB) iron\nC) mercury")


def sample(**changes: Any) -> dict[str, Any]:
    asked, text = changes.pop("asked", ASKED), changes.pop("text", "ANSWER: B")
    held = {
        "id": "metal",
        "epoch": 1,
        "input": "Which is liquid?",
        "choices": METALS,
        "target": "B",
        "messages": [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": text},
        ],
        "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": text}}]},
        "scores": {"choice": {"value": "C", "explanation": "ANSWER: B"}},
        "metadata": {},
    }
    return {**held, **changes}


def log_of(folder: Path, *samples: dict[str, Any], **head: Any) -> Path:
    path = folder / "run.json"
    whole = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}
    path.write_text(json.dumps({**whole, **head}), encoding="utf-8")
    return path


def zip_of(folder: Path, *samples: dict[str, Any], **head: Any) -> Path:
    path = folder / "run.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"plan": {}, **head}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("summaries.json", "[]")
        archive.writestr("header.json", json.dumps({"version": 2, **head}))
    return path


def in_zstandard(path: Path) -> Path:
    """The same archive packed as new versions do, which zipfile cannot write before 3.14."""
    codec = pa.Codec("zstd")
    parts, directory, offset = [], [], 0
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            data, name = archive.read(info), info.filename.encode()
            half = len(data) // 2  # two frames, as large members have
            packed = b"".join(bytes(codec.compress(part)) for part in (data[:half], data[half:]))
            sizes = (info.CRC, len(packed), len(data), len(name), 0)
            local = struct.pack("<4s5H3I2H", b"PK\3\4", 63, 0, 93, 0, 33, *sizes) + name
            parts += [local, packed]
            directory.append(
                struct.pack("<4s6H3I5H2I", b"PK\1\2", 63, 63, 0, 93, 0, 33, *sizes[:4],
                            0, 0, 0, 0, 0, offset) + name
            )  # fmt: skip
            offset += len(local) + len(packed)
    listing = b"".join(directory)
    n = len(directory)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(listing), offset, 0)
    path.write_bytes(b"".join(parts) + listing + end)
    return path


@pytest.mark.parametrize("kind", ["json", "eval", "eval in zstandard"])
def test_every_form_of_a_log_reads_the_same(tmp_path: Path, kind: str) -> None:
    samples = [
        sample(),
        sample(epoch=2, asked=TURNED, text="  ANSWER: C\n"),
        sample(id=7, input="How many?", choices=["1", "2"], target=["A"],
               asked="How many?\n\nA) 1\nB) 2"),
    ]  # fmt: skip
    path = log_of(tmp_path, *samples) if kind == "json" else zip_of(tmp_path, *samples)
    frame = from_inspect_log(in_zstandard(path) if "zstandard" in kind else path)
    assert frame["id"].tolist() == ["metal", "metal", "7"]
    assert frame["order"].tolist() == [[0, 1, 2], [2, 0, 1], [0, 1]]
    assert frame["answer"].tolist() == ["B", "B", "A"]
    assert frame["generation"].tolist() == ["ANSWER: B", "  ANSWER: C\n", "ANSWER: B"]
    assert frame["epoch"].tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"choices": None}, "no multiple-choice sample", id="no choices"),
        pytest.param({"target": ["A", "B"]}, "more than one right", id="two right ones"),
        pytest.param({"target": "E"}, "must name one option", id="a letter too far"),
        pytest.param({"target": "1"}, "must name one option", id="a number"),
        pytest.param({"asked": "Which is liquid?"}, "order is not known", id="no list"),
        pytest.param({"messages": []}, "order is not known", id="no prompt kept"),
        pytest.param({"input": []}, "no question", id="no question"),
        pytest.param(
            {"choices": ["tin", "iron", "tin"], "target": "A",
             "asked": "Q\nA) tin\nB) iron\nC) tin"},
            "text of the gold", id="gold twice",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_and_named(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        from_inspect_log(log_of(tmp_path, sample(), sample(id="odd", **changes)))
    assert "sample 'odd' (epoch 1)" in str(caught.value)


def test_bad_rows_can_be_left_out_and_are_counted(tmp_path: Path) -> None:
    path = log_of(tmp_path, sample(), sample(id="odd", target="E"))
    with pytest.warns(UserWarning, match="1 row left out"):
        frame = from_inspect_log(path, on_bad_rows="skip")
    assert frame["id"].tolist() == ["metal"]
    assert len(frame.attrs["skipped"]) == 1
    with pytest.raises(DataError, match="no answer that can be read; first reason"):
        from_inspect_log(log_of(tmp_path, sample(target="E")), on_bad_rows="skip")


SAID = {"choice": {"explanation": "Choices were shuffled before generating a response, the ..."}}
PLAN = {"steps": [{"solver": "multiple_choice", "params": {"shuffle": True}}]}


@pytest.mark.parametrize("write", [log_of, zip_of])
@pytest.mark.parametrize(
    ("changes", "head"),
    [
        pytest.param({"scores": SAID}, {}, id="the score says so"),
        pytest.param({"scores": {}}, {"plan": PLAN}, id="the plan says so"),
        pytest.param(
            {"scores": None},
            {"plan": {"steps": [{"params": {"kwargs": {"shuffle": True}}}]}},
            id="the plan says so, nested",
        ),
    ],
)
def test_an_answer_that_was_written_over_is_refused(
    tmp_path: Path, changes: dict[str, Any], head: dict[str, Any], write: Any
) -> None:
    with pytest.raises(DataError, match="wrote over the model's words"):
        from_inspect_log(write(tmp_path, sample(**changes), **head))
    # where it named no option the words and the prompt were left as they are
    kept = sample(**changes, asked=TURNED, text="I would rather not.")
    frame = from_inspect_log(write(tmp_path, kept, **head))
    assert frame["order"].tolist() == [[2, 0, 1]]


def test_a_letter_is_a_letter_where_the_scorer_reads_letters(tmp_path: Path) -> None:
    blood = {"choices": ["B", "A", "O"], "asked": "Q\nA) B\nB) A\nC) O", "target": "A"}
    assert from_inspect_log(log_of(tmp_path, sample(**blood)))["answer"].tolist() == ["A"]
    with pytest.raises(DataError, match="must name one option"):
        from_inspect_log(log_of(tmp_path, sample(**blood, scores={"match": {}})))
    by_text = sample(target="mercury", scores={"match": {}})
    assert from_inspect_log(log_of(tmp_path, by_text))["answer"].tolist() == ["B"]


def test_reasoning_and_pictures_are_no_part_of_the_answer(tmp_path: Path) -> None:
    blocks = [
        {"type": "reasoning", "reasoning": "Is it A?"},
        {"type": "text", "text": "It is B."},
        {"type": "image", "image": "x"},
        {"type": "text", "text": "Surely."},
    ]
    assert from_inspect_log(log_of(tmp_path, sample(text=blocks)))["generation"].tolist() == [
        "It is B.\nSurely."
    ]


@pytest.mark.parametrize(
    "output", [{}, {"choices": []}, None, {"choices": [{"message": {"content": None}}]}]
)
def test_a_sample_without_output_has_no_generation(tmp_path: Path, output: Any) -> None:
    frame = from_inspect_log(log_of(tmp_path, sample(output=output, error={"message": "x"})))
    assert frame["generation"].tolist() == [None]


def test_long_texts_are_fetched_from_the_attachments(tmp_path: Path) -> None:
    held = sample(asked="attachment://abc", attachments={"abc": TURNED})
    assert from_inspect_log(log_of(tmp_path, held))["order"].tolist() == [[2, 0, 1]]


def test_who_knows_the_order_may_say_so(tmp_path: Path) -> None:
    path = log_of(tmp_path, sample(asked="Which is liquid?"))
    assert from_inspect_log(path, order="as-is")["order"].tolist() == [[0, 1, 2]]
    with pytest.raises(SettingsError, match="order"):
        from_inspect_log(path, order="shuffled")
    with pytest.raises(SettingsError, match="on_bad_rows"):
        from_inspect_log(path, on_bad_rows="ignore")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"{", "is no JSON", id="torn"),
        pytest.param(b"[" * 100_000, "is no JSON", id="nested without end"),
        pytest.param(b"\xff\xfe", "is no JSON", id="not UTF-8"),
        pytest.param(b"[1]", "holds no samples", id="a list"),
        pytest.param(b'{"eval": {}}', "holds no samples", id="only the head"),
        pytest.param(b"PK\3\4 and nothing else", "cannot be unpacked", id="torn zip"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        from_inspect_log(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        from_inspect_log(tmp_path / "none.eval")


@pytest.mark.parametrize("packed", ["deflate", "zstandard"])
def test_a_member_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    path = zip_of(tmp_path, sample(text="x" * 20_000))
    if packed == "zstandard":
        in_zstandard(path)
    monkeypatch.setattr(log_file, "MOST_BYTES", 10_000)
    with pytest.raises(DataError, match="is larger than"):
        from_inspect_log(path)
    # also where the archive lies about the size
    lying = path.read_bytes().replace(struct.pack("<I", len(json.dumps(
        sample(text="x" * 20_000)))), struct.pack("<I", 100))  # fmt: skip
    path.write_bytes(lying)
    with pytest.raises(DataError):
        from_inspect_log(path)


@pytest.mark.parametrize("packed", ["deflate", "zstandard"])
def test_damaged_bytes_are_a_fault_of_the_file(tmp_path: Path, packed: str) -> None:
    path = zip_of(tmp_path, sample())
    if packed == "zstandard":
        in_zstandard(path)
    whole = path.read_bytes()
    place = whole.index(b"samples/")
    path.write_bytes(whole[: place + 60] + b"\0" * 40 + whole[place + 100 :])
    with pytest.raises(DataError):
        from_inspect_log(path)


def test_the_table_is_read_as_stored_answers(store: None, tmp_path: Path) -> None:
    answers = [("B", ASKED), ("B", TURNED), ("C", TURNED)]
    samples = [
        sample(epoch=i, asked=asked, text=f"ANSWER: {letter}")
        for i, (letter, asked) in enumerate(answers, start=1)
    ]
    frame = from_inspect_log(zip_of(tmp_path, *samples))
    found = mlflow_mcq.evaluate(None, frame, evaluators="mcq_regex").metrics
    assert found["regex_bounded/n_items"] == 1
    assert found["regex_bounded/accuracy"] == pytest.approx(2 / 3)
