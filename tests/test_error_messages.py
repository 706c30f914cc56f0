"""Every kind of error, met as a user meets it, and what its message says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folder_client import FolderClient

import mlflow_mcq
from mlflow_mcq import judges, tracking
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.errors import (
    DataError,
    JudgeNotConfigured,
    JudgeUnavailable,
    McqError,
    ModelError,
    RunInUse,
    SettingsError,
    StoreError,
)
from mlflow_mcq.graders import grade
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.settings import Settings
from mlflow_mcq.store.evaluation import refuse_other
from mlflow_mcq.store.journal import open_journal
from mlflow_mcq.store.row_store import RowStore

pytestmark = pytest.mark.first_question
PAGE = (Path(__file__).parent.parent / "docs" / "limits.md").read_text(encoding="utf-8")
ROW = {"question": "Which shines?", "options": ["sun", "stone"], "answer": "A"}


def evaluate(**given: Any) -> object:
    return mlflow_mcq.evaluate(**{"model": len, "data": [ROW], "evaluators": "mcq_regex", **given})


def read(**cells: Any) -> object:
    return read_data(load_data([{**ROW, **cells}]), Settings())


def a_used_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    FolderClient(folder)._write("tags", {"mcq.settings": "abc"})
    monkeypatch.setattr(tracking, "MlflowClient", lambda: FolderClient(folder))
    return tracking.refuse_used("7f3a")


def the_same_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(folder))
    first = open_journal("run", "abc")
    assert first is not None
    try:
        return open_journal("run", "abc")
    finally:
        first.close(finished=True)


def another_in_it(folder: Path) -> object:
    refuse_other(folder, {"model": "m"}, accept=False)
    return refuse_other(folder, {"model": "n"}, accept=False)


def a_file_for_a_folder(folder: Path) -> object:
    (folder / "rows").write_text("")
    return RowStore(folder / "rows")


def nobody_there() -> object:
    asked = JudgeSettings(model="m", base_url="http://127.0.0.1:9/v1", max_retries=0)
    return judges.ask_first(judges.judge_of(asked))


Case = Callable[[Path, pytest.MonkeyPatch], object]
CASES: dict[str, tuple[type[McqError], Case, tuple[str, ...]]] = {
    "no judge": (
        JudgeNotConfigured,
        lambda folder, patch: evaluate(evaluators="mcq_judge"),
        ("mcq_judge: no judge is configured", "judge.base_url", "mcq_regex"),
    ),
    "judge that answers nobody": (
        JudgeUnavailable,
        lambda folder, patch: nobody_there(),
        ("judge 'm': does not answer", "judge.base_url"),
    ),
    "judge that is an object": (
        SettingsError,
        lambda folder, patch: evaluate(judge=object()),
        ("judge: of a run must be given as settings", "got 'object'", '"local"', "models:/"),
    ),
    "misspelt setting": (
        SettingsError,
        lambda folder, patch: evaluate(orientatoins="swap"),
        ("orientatoins: is not a setting", 'Did you mean "orientations"?', "Known: "),
    ),
    "setting out of range": (
        SettingsError,
        lambda folder, patch: evaluate(repeats=0),
        ("repeats: input should be greater than or equal to 1; got 0",),
    ),
    "misspelt argument": (
        SettingsError,
        lambda folder, patch: mlflow_mcq.remote_model(
            url="http://x/v1", model="m"  # type: ignore[call-arg]
        ),
        ("remote_model: takes no argument of this name; got 'url'", 'Did you mean "base_url"?'),
    ),
    "no comparison": (
        SettingsError,
        lambda folder, patch: mlflow_mcq.fail_if_worse(["7f3a"]),  # type: ignore[arg-type]
        ("fail_if_worse: takes what mlflow_mcq.compare returns; got 'list'", "Compare the arms"),
    ),
    "used run": (
        RunInUse,
        lambda folder, patch: a_used_run(folder, patch),
        ("run 7f3a: holds an evaluation already", "nested=True"),
    ),
    "answer that is no option": (
        DataError,
        lambda folder, patch: read(answer="E"),
        ("row 0: the answer names none of the options; got 'E'", "'sun', 'stone'"),
    ),
    "answer that can be read in two ways": (
        DataError,
        lambda folder, patch: read(options=["B", "A"]),
        ("row 0: the answer can be read in more than one way", "columns.answer_as"),
    ),
    "missing file": (
        DataError,
        lambda folder, patch: load_data("no.jsonl"),
        ("data file: does not exist; got 'no.jsonl'",),
    ),
    "an address in place of a path": (
        DataError,
        lambda folder, patch: evaluate(data="file:///quiz.csv"),
        ("data file: is an address, and only files of this machine are read; got 'file:///quiz",
         "Give its path: /quiz.csv."),
    ),
    "an address of nothing": (
        DataError,
        lambda folder, patch: evaluate(data="file:///", limit=2),
        ("data file: is an address, and only files of this machine are read", "Give the path of"),
    ),
    "a path that is too long": (
        DataError,
        lambda folder, patch: evaluate(data=str(folder / ("long" * 99 + ".csv")), limit=2),
        ("data file: cannot be looked for (OSError: File name too long)",),
    ),
    "several right options": (
        DataError,
        lambda folder, patch: grade(["A"], ["x", "y"], gold=[[0, 1]]),
        ("row 0: several options are right", 'several_gold="any"'),
    ),
    "a tuple that is no model": (
        ModelError,
        lambda folder, patch: evaluate(model=("a", "b", "c")),
        ("model: a tuple must be (model, tokenizer); got 3",),
    ),
    "the same evaluation twice at once": (
        StoreError,
        lambda folder, patch: the_same_twice(folder, patch),
        ("cache: this very evaluation (model, data and settings) is under way: process",
         'cache: "off"'),
    ),
    "a directory of another evaluation": (
        StoreError,
        lambda folder, patch: another_in_it(folder),
        ("was begun with other settings", "(model: m, now n)", "Name another directory"),
    ),
    "a directory in the home of nobody": (
        StoreError,
        lambda folder, patch: evaluate(directory="~nobody-of-this-name/rows"),
        ("directory: begins with the home folder of a user that this machine does not know; got "
         "'~nobody-of-this-name/rows'", "~/ for your own"),
    ),
    "no folder": (
        StoreError,
        lambda folder, patch: a_file_for_a_folder(folder),
        ("cache: must be a folder that can be read and written",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_message_says_who_which_rule_what_and_what_to_do(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, cause, words = CASES[case]
    with pytest.raises(kind) as caught:
        cause(tmp_path, monkeypatch)
    assert type(caught.value) is kind
    said = str(caught.value)
    assert [word for word in words if word not in said] == []
    who, rule, _, _ = caught.value.args
    assert said.startswith(f"{who}: {rule}")
    assert said.endswith((".", ")", "?"))
    assert not re.search(r"<[\w.]+ object at|\bTraceback\b|0x[0-9a-f]{6}|\n", said)
    assert len(said) < 1200


def kinds(root: type[McqError]) -> Iterator[type[McqError]]:
    for kind in root.__subclasses__():
        if kind.__module__ == "mlflow_mcq.errors":
            yield kind
            yield from kinds(kind)


def test_every_kind_of_error_has_a_case() -> None:
    assert set(kinds(McqError)) == {kind for kind, _, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_the_first_words_of_each_message_stand_in_the_docs(case: str) -> None:
    rule = CASES[case][2][0].partition(": ")[2].partition(";")[0]
    assert rule.removesuffix(": process") in PAGE
