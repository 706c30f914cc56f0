"""A judge that reads while the model still generates: sooner, and otherwise the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script

import mlflow_mcq
from mlflow_mcq.arm import Arm, measure, read
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.graders.early import EarlyReader, reads_early
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Decoding, Generation, Item, Query, Reply, Request
from mlflow_mcq.settings import Settings

GUARD_S = 60  # a dead-lock must fail, not hang
SETTINGS = Settings(orientations="as-is")
# Two of a kind under different ids: what the judge is asked about them is the same.
ITEMS = [Item(f"q{n}", f"Which is {n // 2}?", ("this", "that"), n % 2) for n in range(12)]
REQUESTS = requests_for(ITEMS, SETTINGS, chat=False)
Step = Callable[[int], None]


class Scripted:
    """An engine that does something before each of its rows."""

    fingerprint, speaks_chat = "scripted", False

    def __init__(self, step: Step = lambda n: None) -> None:
        self._step = step

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        for n, request in enumerate(requests):
            self._step(n)
            text = "A" if n % 5 == 0 else f"I should say the one you think of, {n // 2}"
            reply = Reply(None, "lost") if n == 7 else Reply(text)
            yield Generation(request.prompt, request.repeat, reply, "scripted")


def judge_at(server: FakeServer, **changes: Any) -> JudgeGrader:
    given = {"concurrency": 2, "exam_replies": 0, "max_retries": 0, **changes}
    settings = JudgeSettings(model="j", base_url=server.url, **given)
    chat = OpenAIChat("j", server.url, concurrency=settings.concurrency, max_retries=0)
    return JudgeGrader(chat, settings)


def read_by(judge: JudgeGrader, early: bool, step: Step = lambda n: None) -> Arm:
    reader = EarlyReader(judge) if early else None
    arm = measure(Scripted(step), REQUESTS, SETTINGS, early=reader)
    read(arm, [judge])
    return arm


def threads(name: str) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == name]


def test_the_judge_is_asked_before_the_last_answer_is_there(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    asked = threading.Event()
    server = judge_server(lambda request, n: asked.set() or "A")

    def wait_in_the_middle(n: int) -> None:
        assert n != 6 or asked.wait(GUARD_S), "no row was put to the judge yet"

    arm = read_by(judge_at(server), early=True, step=wait_in_the_middle)
    assert arm.numbers.values["cost/judging_overlapped_seconds"] > 0
    assert not threads("mcq-early")


def test_by_the_door_that_users_take(
    store: None, judge_server: Callable[[Script], FakeServer]
) -> None:
    """In whatever order evaluators are named."""
    asked = threading.Event()
    server = judge_server(lambda request, n: asked.set() or "A")
    calls = []

    def model(frame: pd.DataFrame) -> list[str]:
        calls.append(len(frame))
        assert len(calls) < 3 or asked.wait(GUARD_S), "no row was put to the judge yet"
        return ["Whatever you like"] * len(frame)

    table = [{"question": i.question, "options": list(i.options), "answer": i.gold} for i in ITEMS]
    judge = {"model": "j", "base_url": server.url, "concurrency": 2, "exam_replies": 0}
    result = mlflow_mcq.evaluate(
        model, table, judge=judge, evaluators=["mcq_regex", "mcq_judge"], batch_size=4,
        orientations="as-is",
    )  # fmt: skip
    assert len(calls) == 3
    assert result.metrics["cost/judging_overlapped_seconds"] > 0
    assert result.metrics["judge/n_rows"] == 12


@pytest.mark.parametrize(
    ("names", "changes", "said"),
    [
        pytest.param(("mcq_regex", "mcq_judge"), {}, True, id="last"),
        pytest.param(("mcq_judge", "mcq_regex"), {}, False, id="first"),
        pytest.param(("mcq_regex", "mcq_judge"), {"max_calls": 9}, False, id="it waits anyway"),
    ],
)
def test_mlflows_own_order_is_kept_and_what_it_costs_is_said(
    store: None,
    judge_server: Callable[[Script], FakeServer],
    capsys: pytest.CaptureFixture[str],
    names: tuple[str, ...],
    changes: dict[str, Any],
    said: bool,
) -> None:
    server = judge_server(lambda request, n: "A")
    judge = {"model": "j", "base_url": server.url, "exam_replies": 0, "check_rows": 0, **changes}
    frame = pd.DataFrame({"question": ["Which?"], "options": [["this", "that"]], "answer": [0]})
    result = mlflow.models.evaluate(
        lambda table: ["As you like"] * len(table),
        frame,
        model_type="mcq",
        evaluators=list(names),
        evaluator_config={name: {"judge": judge} for name in names},
    )
    assert result.metrics["judge/n_rows"] == 2
    assert ("Named first in evaluators=[...]" in capsys.readouterr().err) is said


@pytest.mark.parametrize(
    ("reply", "changes"),
    [
        pytest.param(lambda request, n: "A", {}, id="a sound judge"),
        pytest.param(lambda request, n: "I cannot tell you.", {}, id="one that is never read"),
        pytest.param(lambda request, n: {"status": 400}, {}, id="one that refuses"),
        pytest.param(
            lambda request, n: "B", {"votes": 3, "shuffle_options": True}, id="with votes"
        ),
    ],
)
def test_what_is_read_and_what_is_counted_is_the_same(
    reply: Script, changes: dict[str, Any], judge_server: Callable[[Script], FakeServer]
) -> None:
    server = judge_server(reply)
    arms = [read_by(judge_at(server, **changes), early) for early in (False, True)]
    late, soon = (arm.frames["judge"] for arm in arms)
    pd.testing.assert_frame_equal(late, soon)
    assert arms[0].summaries["judge"].values == arms[1].summaries["judge"].values
    assert arms[0].summaries["judge"].values["n_calls"] > 0


def test_an_interrupted_model_ends_the_calls_of_the_judge(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(request: dict[str, Any], n: int) -> str:
        asked.set()
        release.wait(GUARD_S)
        return "A"

    def interrupt(n: int) -> None:
        if n == 6:
            assert asked.wait(GUARD_S)
            raise KeyboardInterrupt

    reader = EarlyReader(judge_at(judge_server(hang)))
    with pytest.raises(KeyboardInterrupt):
        measure(Scripted(interrupt), REQUESTS, SETTINGS, early=reader)
    reader.stop()
    assert not threads("mcq-early")
    assert not threads("mcq-openai")
    release.set()


def test_what_breaks_the_judge_is_raised_where_its_grades_are_asked_for() -> None:
    class Broken:
        fingerprint, deterministic, speaks_chat = "broken", False, True

        def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[Any]:
            raise ZeroDivisionError

        def stop(self) -> None: ...

    judge = JudgeGrader(Broken(), JudgeSettings(model="j", base_url="http://x/v1", exam_replies=0))
    with pytest.raises(ZeroDivisionError):
        read_by(judge, early=True)
    assert not threads("mcq-early")


@pytest.mark.parametrize(
    ("changes", "early"),
    [
        pytest.param({}, True, id="a server"),
        pytest.param({"overlap": False}, False, id="not wanted"),
        pytest.param({"max_calls": 5}, False, id="a budget of calls"),
        pytest.param({"max_judge_tokens": 500}, False, id="a budget of tokens"),
    ],
)
def test_who_may_read_early(
    changes: dict[str, Any], early: bool, judge_server: Callable[[Script], FakeServer]
) -> None:
    assert reads_early(judge_at(judge_server(lambda request, n: "A"), **changes)) is early


def test_weights_that_are_loaded_here_read_at_the_end() -> None:
    from tiny import byte_tokenizer, tiny_model

    from mlflow_mcq.engines.local import LocalChat

    chat = LocalChat(tiny_model(), byte_tokenizer())
    assert not reads_early(JudgeGrader(chat, JudgeSettings(model="j", base_url="local")))
