"""Reading stored answers again: no inference, nothing lost, both runs linked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script, server_error
from mlflow import MlflowClient

import mlflow_mcq
from mlflow_mcq.errors import DataError, JudgeNotConfigured, SettingsError
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Reply
from mlflow_mcq.table import generations_frame, generations_from, grades_frame, grades_from

DATA = pd.DataFrame(
    {
        "id": [f"q{i}" for i in range(6)],
        "question": [f"Which is {i}?" for i in range(6)],
        "options": [[f"number {i}", "nothing"] for i in range(6)],
        "answer": [0] * 6,
    }
)
N_ROWS = 12


def rambler(frame: pd.DataFrame) -> list[str]:
    return [f"Hard to say in a word, row {i}, but number one." for i in range(len(frame))]


def judged_by(server: FakeServer, **settings: Any) -> dict[str, Any]:
    where = {"model": "fake", "base_url": server.url}
    return {**where, "max_retries": 0, "exam_replies": 0, **settings}


def grades_of(result: Any) -> pd.DataFrame:
    table = result.artifacts["mcq_grades_parquet"].content
    return table[table["grader"] == "judge"].set_index("row_id")


def test_judge_errors_are_mended_without_inference(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    shaky = judge_server(lambda request, n: server_error() if n % 3 == 0 else "A")
    first = mlflow_mcq.evaluate(rambler, DATA, judge=judged_by(shaky, concurrency=1))
    failed = int(first.metrics["judge/n_judge_errors"])
    assert 0 < failed < N_ROWS
    asked = len(shaky.requests)
    shaky.script = lambda request, n: "A"
    second = mlflow_mcq.regrade(first.run_id, judged_by(shaky, concurrency=1), only="errors")
    assert second.metrics["judge/n_judge_errors"] == 0
    assert second.metrics["judge/n_rows"] == N_ROWS
    assert len(shaky.requests) - asked <= failed
    before, after = grades_of(first), grades_of(second)
    kept = before["verdict"].notna()
    pd.testing.assert_frame_equal(before[kept], after[kept])
    client = MlflowClient()
    assert client.get_run(second.run_id).data.tags["mcq.regraded_from"] == first.run_id
    assert client.get_run(first.run_id).data.tags["mcq.regraded_by"] == second.run_id
    old, new = (r.artifacts["mcq_generations_parquet"].content for r in (first, second))
    pd.testing.assert_frame_equal(old, new)


def test_where_nothing_is_left_to_read_nobody_is_asked_and_that_is_said(
    store: Path, judge_server: Callable[[Script], FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = judge_server(lambda request, n: "OTHER" if n % 2 else "A")
    first = mlflow_mcq.evaluate(rambler, DATA, judge=judged_by(server, concurrency=1))
    asked, before = len(server.requests), mlflow.search_runs()
    capsys.readouterr()
    again = mlflow_mcq.regrade(first.run_id, judged_by(server), only="errors")
    assert again.run_id == first.run_id
    assert again.metrics == pytest.approx(first.metrics)
    assert (len(server.requests), len(mlflow.search_runs())) == (asked, len(before))
    said = capsys.readouterr().err
    assert "nothing to do" in said
    assert "holds no judge errors (its judge has read " in said
    assert "6 OTHER" in said
    mlflow_mcq.regrade(first.run_id, judged_by(server), only=["OTHER", "errors"])
    assert "6 of 12 rows are read again (OTHER or errors" in capsys.readouterr().err


def test_another_judge_reads_all_rows(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    first = mlflow_mcq.evaluate(rambler, DATA, judge=judged_by(judge_server(lambda r, n: "A")))
    other = judge_server(lambda request, n: "OTHER")
    second = mlflow_mcq.regrade(first.run_id, judged_by(other, model="other"))
    assert second.metrics["judge/other_rate"] == 1
    tags = [MlflowClient().get_run(r.run_id).data.tags for r in (first, second)]
    assert tags[0]["mcq.judge_fingerprint"] != tags[1]["mcq.judge_fingerprint"]
    assert tags[0]["mcq.data_digest"] == tags[1]["mcq.data_digest"]


def test_rows_read_by_several_judges_are_tagged_so(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    server = judge_server(lambda r, n: "OTHER" if n % 2 else "A")
    first = mlflow_mcq.evaluate(rambler, DATA, judge=judged_by(server, concurrency=1))
    again = judged_by(judge_server(lambda r, n: "B"), model="another")
    second = mlflow_mcq.regrade(first.run_id, again, only=["OTHER"])
    assert second.metrics["judge/other_rate"] == 0
    tag = MlflowClient().get_run(second.run_id).data.tags["mcq.judge_fingerprint"]
    assert tag.startswith("several: ")


def test_a_run_without_a_judge_can_be_judged_later(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    first = mlflow_mcq.evaluate(rambler, DATA, evaluators=["mcq_regex"])
    second = mlflow_mcq.regrade(first.run_id, judged_by(judge_server(lambda r, n: "A")))
    assert second.metrics["judge/accuracy"] == 0.5


def test_a_row_that_was_never_answered_stays_so(
    store: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    model = judge_server(lambda r, n: server_error(400) if n == 0 else "well, the first")
    remote = mlflow_mcq.remote_model(base_url=model.url, model="m", concurrency=1)
    first = mlflow_mcq.evaluate(remote, DATA, evaluators=["mcq_regex"])
    second = mlflow_mcq.regrade(first.run_id, judged_by(judge_server(lambda r, n: "A")))
    assert second.metrics["judge/n_rows"] == N_ROWS - 1
    assert second.metrics["judge/other_rate"] == 0
    assert second.metrics["generation/error_rate"] == 1 / N_ROWS


def test_the_command_line_regrades(
    store: Path,
    judge_server: Callable[[Script], FakeServer],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow_mcq.__main__ import main

    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(store / "cache"))
    first = mlflow_mcq.evaluate(rambler, DATA, evaluators=["mcq_regex"])
    server = judge_server(lambda request, n: "OTHER")
    command = ["regrade", first.run_id, "--judge-model", "m", "--judge-url", server.url]
    assert main(command) == 0
    assert "regraded" in capsys.readouterr().out
    assert main(["regrade", first.run_id]) == 2
    assert "judge.model" in capsys.readouterr().err


def test_what_cannot_be_regraded_says_why(store: Path) -> None:
    with mlflow.start_run() as run:
        pass
    judge = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(DataError, match=r"holds no mcq_generations\.parquet"):
        mlflow_mcq.regrade(run.info.run_id, judge)
    for near in (run.info.run_id[:8], run.info.run_name):
        MlflowClient().set_tag(run.info.run_id, "mcq.status", "finished")
        with pytest.raises(SettingsError, match=f"no such run.*mean {run.info.run_id}.*mlflow.db"):
            mlflow_mcq.regrade(near, judge)
    with pytest.raises(SettingsError, match="only: must be some of"):
        mlflow_mcq.regrade(run.info.run_id, judge, only="wrong")
    with pytest.raises(JudgeNotConfigured):
        mlflow_mcq.regrade(run.info.run_id)


@pytest.mark.parametrize("protocol", ["letters", "dashes"])
def test_tables_give_back_what_was_put_in(tmp_path: Path, protocol: str) -> None:
    item = Item("q/1", "Which?\nReally?", ("x", "10", "None"), 2)
    render = prompt_family(protocol)
    rows = tuple(
        Generation(
            render(item, orientation, chat=False), repeat,
            Reply("B", None, "eos", (4, 5), 7, 2, "sent"), "engine",
        )
        for orientation in plan_for(item, "rotations")
        for repeat in (0, 1)
    )  # fmt: skip
    grades = [Grade.of_choice(row, "judge", 1, evidence="B") for row in rows[:-2]]
    grades += [Grade.unread(rows[-2], "judge", "empty"), Grade.failed(rows[-1], "judge", "503")]
    generations_frame(rows).to_parquet(tmp_path / "g.parquet")
    grades_frame(grades).to_parquet(tmp_path / "v.parquet")
    back = generations_from(pd.read_parquet(tmp_path / "g.parquet"))
    again = grades_from(pd.read_parquet(tmp_path / "v.parquet"), back)
    pd.testing.assert_frame_equal(generations_frame(back), generations_frame(rows))
    pd.testing.assert_frame_equal(grades_frame(again), grades_frame(grades))
    assert [g.reply.error for g in back] == [g.reply.error for g in rows]
    assert [g.prompt.labels for g in back] == [g.prompt.labels for g in rows]
