"""A judge that fails in every way: each row ends as a verdict, or as an error with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from chaos_server import FINAL, HARMLESS, PASSING, UNREADABLE, ChaosServer
from fake_chat import generation

import mlflow_mcq
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.judges import judge_of
from mlflow_mcq.records import Generation, Item, Verdict

N_ROWS = 2000
LIMIT = 64
RETRIES, ATTEMPTS = 2, 3


@pytest.fixture
def chaos() -> Iterator[Callable[..., ChaosServer]]:
    servers: list[ChaosServer] = []

    def start(seed: int, **more: float) -> ChaosServer:
        servers.append(ChaosServer(seed, **more))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def rows(n: int) -> list[Generation]:
    return [
        generation(
            f"I mean the one with rings, in case {i} as ever.",
            item=Item(f"q{i}", "Which shows rings?", ("Venus", "Saturn", "Neptune", "Mars"), 1),
        )
        for i in range(n)
    ]


def judge(server: ChaosServer, **more: object) -> JudgeGrader:
    asked = {"concurrency": LIMIT, "timeout_s": 3, "max_retries": RETRIES, "attempts": ATTEMPTS}
    return judge_of(JudgeSettings(model="m", base_url=server.url, **{**asked, **more}))


def number(grade_or_row: object) -> int:
    row = getattr(grade_or_row, "generation", grade_or_row)
    return int(row.prompt.item.id[1:])


def test_the_schedule_holds_every_fault_on_its_way_and_for_good(chaos):
    server = chaos(0)
    met = Counter(server.fate(row).kind for row in range(N_ROWS))
    assert set(met) == {"", *PASSING, *UNREADABLE, *HARMLESS, *FINAL}
    fates = [server.fate(row).becomes(RETRIES, ATTEMPTS) for row in range(N_ROWS)]
    assert min(Counter(fates).values()) > 20


def test_every_row_ends_as_its_fate_has_it(chaos):
    server = chaos(0)
    grades = [*judge(server).grade(rows(N_ROWS))]
    assert sorted(map(number, grades)) == [*range(N_ROWS)]
    for grade in grades:
        fate = server.fate(number(grade))
        due = fate.becomes(RETRIES, ATTEMPTS)
        found = "verdict" if grade.verdict else grade.error.partition(":")[0]
        assert found == due, (fate, grade.verdict, grade.error)
        assert grade.verdict in (None, Verdict.CORRECT)
        if due == "judge_error":
            assert len(grade.error) > len("judge_error: ")
        assert len(grade.evidence) < 21_000
        # What bounds the time: no row is asked for ever.
        assert server.calls[number(grade)] <= fate.most_calls(RETRIES, ATTEMPTS)
    assert 1 < server.max_parallel <= LIMIT


REASONS = {
    "filtered": "filter withheld",
    "cut": "raise judge.max_tokens",
    "400": "context too long",
    "parts": "no text",
    "500": "InternalServerError 500",
    "429": "RateLimitError 429",
    "login_page": "Sign in",
    "no_choices": "without any choice",
    "reset": "APIConnectionError",
    "reset_in_body": "APIConnectionError",
    "broken_json": "JSONDecodeError",
    "megabyte": "judge_parse_failure",
}


def test_each_error_says_what_was_the_matter(chaos):
    server = chaos(0)
    failed = [
        row
        for row in rows(N_ROWS)
        if server.fate(number(row)).becomes(0, 1) != "verdict"
        and server.fate(number(row)).kind in REASONS
    ]
    first = {server.fate(number(row)).kind: row for row in failed}
    errors = {
        server.fate(number(grade)).kind: grade.error
        for grade in judge(server, max_retries=0, attempts=1).grade([*first.values()])
    }
    assert errors.keys() == REASONS.keys()
    assert all(REASONS[kind] in error for kind, error in errors.items())


@pytest.fixture
def home(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(store / "home"))


def test_regrading_mends_exactly_the_rows_that_failed(home, chaos):
    server = chaos(3, share=0.9)
    n = 60
    frame = pd.DataFrame(
        {
            "id": [f"q{i}" for i in range(n)],
            "question": ["Which shows rings?"] * n,
            "options": [["Saturn", "Mars"]] * n,
            "answer": ["A"] * n,
            "generation": [f"The one with rings, in case {i} as ever." for i in range(n)],
        }
    )
    asked = {
        "model": "m", "base_url": server.url, "max_retries": 1, "attempts": 1, "timeout_s": 3,
        "exam_replies": 0, "concurrency": 8,
    }  # fmt: skip
    first = mlflow_mcq.evaluate(None, frame, judge=asked)
    failed = {i for i in range(n) if server.fate(i).becomes(1, 1) != "verdict"}
    assert first.metrics["judge/n_judge_errors"] == len(failed) > 10
    server.healed, before = True, server.calls.copy()
    second = mlflow_mcq.regrade(first.run_id, asked, only="errors")
    assert second.metrics["judge/n_judge_errors"] == 0
    assert set(server.calls - before) == failed
    assert set((server.calls - before).values()) == {1}
