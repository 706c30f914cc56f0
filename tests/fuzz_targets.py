"""Every door through which a stranger's bytes come in.

A target takes bytes and hands them to one reader. Our own errors are a right answer;
anything else that is raised is a fault.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.files import load_frame
from mlflow_mcq.datasets.reading import Reading, read_data
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.errors import McqError
from mlflow_mcq.graders.judge_cache import JudgeCache
from mlflow_mcq.graders.judge_reply import parse_judge_reply
from mlflow_mcq.graders.spans import extract_span
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.importers.inspect_log import from_inspect_log
from mlflow_mcq.importers.lm_eval import from_lm_eval_samples
from mlflow_mcq.importers.twinkle import from_twinkle
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.settings import Settings
from mlflow_mcq.store.row_store import RowStore

_OPTIONS = ("iron", "tin")
Target = Callable[[bytes], object]


def _file(ending: str, read: Callable[[Path], object]) -> Target:
    def target(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"given{ending}"
            path.write_bytes(data)
            return read(path)

    return target


def _data(path: Path) -> object:
    """All rows; and one of them, drawn from the file in parts and from all of it."""
    asked = Settings(on_bad_rows="skip", limit=1)
    drawn = _drawn(lambda: read_data(load_part(path, None, asked), asked))
    whole = _drawn(lambda: read_data(load_data(path), asked))
    assert drawn == whole
    return read_data(load_frame(path), Settings(on_bad_rows="skip"))


def _drawn(read: Callable[[], Reading]) -> object:
    try:
        found = read()
    except McqError:
        return None  # of a file with two faults each way may meet the other one first
    return found.said, [row.item for row in found.rows]


def _judge_reply(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    return [
        parse_judge_reply(text, "direct"),
        parse_judge_reply(text, options=_OPTIONS),
        parse_judge_reply(text, several=True),
    ]


def _answer(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    return read_strict(text, _OPTIONS), extract_span(text, _OPTIONS)


def _rows(path: Path) -> object:
    with RowStore(path.parent) as rows:
        return [rows.get(key) for key in rows]


def _judge_cache(path: Path) -> object:
    path.rename(path.parent / "judge_abc.jsonl")
    return len(JudgeCache(path.parent, "abc"))


def _own_errors_only(target: Target) -> Target:
    def guarded(data: bytes) -> object:
        try:
            return target(data)
        except McqError as error:
            return str(error)

    return guarded


TARGETS: dict[str, Target] = {
    name: _own_errors_only(target)
    for name, target in {
        "data.jsonl": _file(".jsonl", _data),
        "data.json": _file(".json", _data),
        "data.csv": _file(".csv", _data),
        "data.parquet": _file(".parquet", _data),
        "recipe": _file(".yaml", load_recipe),
        "rows": _file(".rows", _rows),
        "judge cache": _file(".jsonl", _judge_cache),
        "judge reply": _judge_reply,
        "answer": _answer,
        "lm-eval": _file(".jsonl", from_lm_eval_samples),
        "inspect": _file(".json", from_inspect_log),
        "inspect archive": _file(".eval", from_inspect_log),
        "twinkle": _file(".jsonl", from_twinkle),
        "twinkle results": _file(".json", from_twinkle),
    }.items()
}


def _parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


SEEDS: dict[str, tuple[bytes, ...]] = {
    "data.jsonl": (
        b'{"id": 1, "question": "q?", "options": ["x", "y"], "answer": "A"}\n',
        b'{"goal": "g", "sol1": "a", "sol2": "b", "label": 1}\n',
        b'{"question": {"stem": "q", "choices": [{"label": "A", "text": "x"}]}, "answerKey": "A"}',
        b'{"doc": {"question": "q", "choices": ["a", "b"], "answer": 1}, "doc_id": 0, "resps": []}',
    ),
    "data.json": (
        b'{"examples": [{"input": "q", "target_scores": {"a": 1, "b": 0}}]}',
        b'[{"question": "q?", "options": "[\\"x\\", \\"y\\"]", "answer": 1}]',
        b'{"question": {"0": "q"}, "options": {"0": ["x", "y"]}, "answer": {"0": "B"}}',
    ),
    "data.csv": (b"question,A,B,answer\nq?,x,y,A\n", b"What?,x,y,z,w,C\nWho?,x,y,z,w,A\n"),
    "data.parquet": (_parquet(question=["q"], options=[["x", "y"]], answer=["A"]),),
    "recipe": (
        b"name: r\nmodel: m\ndata: d.jsonl\narms:\n  - {name: a, seed: 1}\n  - name: b\n",
        b"a: &a [1, 1]\nb: &b [*a, *a]\narms: [*b, *a]\ngrid: {seed: [1, 2]}\n",
        b"llm_api: {base_url: u}\nmodel: {name: m}\nevaluation: {dataset_paths: [x]}\n",
    ),
    "rows": (b"0" * 32 + b" 00000000 [null]\n",),
    "judge cache": (b'{"key": "k", "text": "A", "finish_reason": "", "n_prompt_tokens": 1}\n',),
    "judge reply": (b'```json\n{"verdict": "CORRECT"}\n```', b"Final verdict: **B**", b"OTHER - x"),
    "answer": (b"<think>A</think>The answer is: **B) tin**.", b"\\boxed{\\text{A}}"),
    "lm-eval": (
        b'{"doc_id": 0, "doc": {"question": "q", "choices": ["a", "b"]}, "target": "A",'
        b' "arguments": {"gen_args_0": {"arg_0": "q\\nA. a\\nB. b"}}, "resps": [["A"]],'
        b' "filtered_resps": ["A"], "filter": "none"}\n',
    ),
    "inspect": (
        b'{"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [{"id": 1,'
        b' "epoch": 1, "input": "q", "choices": ["a", "b"], "target": "A",'
        b' "output": {"choices": [{"message": {"content": "A"}}]}, "messages": []}]}',
    ),
    "inspect archive": (b"PK\x05\x06" + b"\x00" * 18,),
    "twinkle": (
        b'{"question_id": 0, "question": "q\\nA: a\\nB: b", "correct_answer": "A",'
        b' "llm_output": "A", "predicted_answer": "A", "is_correct": true}\n',
    ),
    "twinkle results": (b'{"timestamp": "x", "config": {}, "dataset_results": {}}',),
}
"""For each target inputs that come far, for a fuzzer to change."""
