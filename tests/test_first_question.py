"""A model behind a server is asked one short question before anything long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import fake_server as fake
import mlflow
import pytest
from fake_server import FakeServer, Script
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.engines.handle import endpoint_model
from mlflow_mcq.engines.kept import KeptEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Decoding, Item
from mlflow_mcq.settings import Settings
from mlflow_mcq.store.row_store import RowStore

pytestmark = pytest.mark.first_question
Server = Callable[[Script], FakeServer]
ITEMS = [Item(f"q{i}", f"Number {i}?", ("sun", "moon"), 0) for i in range(3)]
ROWS = requests_for(ITEMS, Settings(orientations="as-is"), chat=True)
FIRST = "Which metal is liquid at room temperature?"
KEY = "sk-canary-51Jd0q2x"
PARTS: Any = {
    "body": {"choices": [{"message": {"content": [{"type": "text", "text": "A"}]}, "index": 0}]}
}


def texts(handle: mlflow_mcq.ModelHandle, decoding: Decoding | None = None) -> list[str | None]:
    answers = handle.engine.generate(ROWS, decoding or Decoding())
    return [one.reply.text for one in answers]


def asked(server: FakeServer) -> list[str]:
    return [request["messages"][-1]["content"] for request in server.requests]


@pytest.mark.parametrize(
    ("answer", "words", "calls"),
    [
        pytest.param(fake.refused(401, f"no such key: {KEY}"), "401", 1, id="wrong key"),
        pytest.param(fake.refused(403, "not for you"), "not for you", 1, id="no right"),
        pytest.param(fake.refused(404, "no model nemo"), "no model nemo", 1, id="wrong model"),
        pytest.param(
            fake.refused(429, "pay", code="insufficient_quota"), "pay", 1, id="no quota left"
        ),
        pytest.param(
            fake.refused(400, "top_k is unknown"), "top_k is unknown", 2, id="a setting is refused"
        ),
        pytest.param(fake.html_page(), "no completion: <!doctype", 2, id="a page to sign in"),
        pytest.param(fake.no_choices(), "without any choice", 2, id="no choices"),
        pytest.param(PARTS, "content of the server's reply is list", 2, id="content in parts"),
    ],
)
def test_a_server_that_will_answer_no_row_stops_before_the_first(
    answer: Any, words: str, calls: int, judge_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", KEY)
    server = judge_server(lambda request, n: answer)
    handle = mlflow_mcq.remote_model(server.url, "m", api_key_env="CANARY_KEY")
    with pytest.raises(ModelError) as caught:
        texts(handle)
    said = str(caught.value)
    for part in ("model 'm'", server.url, words, "nothing was generated yet", "Check "):
        assert part in said
    assert KEY not in said
    assert set(asked(server)) == {FIRST}
    assert len(server.requests) == calls


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        pytest.param(
            fake.refused(400, "'temperature' does not support 0 with this model"),
            "Some models know no temperature but 1. Check the settings that it names",
            id="a setting",
        ),
        pytest.param(
            fake.refused(404, "no such model"), "Check model, base_url and api_key_env", id="a name"
        ),
        pytest.param(fake.html_page(), "Check model, base_url and api_key_env", id="a page"),
        pytest.param(PARTS, "Check model, base_url and api_key_env", id="no text"),
    ],
)
def test_what_to_change_is_what_was_refused(answer: Any, check: str, judge_server: Server) -> None:
    server = judge_server(lambda request, n: answer)
    with pytest.raises(ModelError) as caught:
        texts(mlflow_mcq.remote_model(server.url, "m"))
    assert check in str(caught.value)
    assert ("Check model" in str(caught.value)) is check.startswith("Check model")


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_knows_only_the_newer_name_of_the_limit(
    status: int, judge_server: Server
) -> None:
    said = "'max_tokens' is not supported, use 'max_completion_tokens'"
    server = judge_server(
        lambda request, n: fake.refused(status, said) if "max_tokens" in request else "A"
    )
    assert texts(mlflow_mcq.remote_model(server.url, "m")) == ["A"] * 3
    assert len(server.requests) == 5


def test_nothing_listens_there() -> None:
    with pytest.raises(ModelError, match=r"APIConnectionError.*Check model, base_url"):
        texts(mlflow_mcq.remote_model("http://127.0.0.1:9/v1", "m"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(fake.slow("late", 0.5), True, id="timeout"),
        pytest.param(fake.server_error(503), True, id="503"),
        pytest.param(fake.reset(), True, id="reset"),
        pytest.param(fake.null_content("length"), False, id="thoughts alone"),
    ],
)
def test_what_may_be_over_by_then_stops_nothing(
    answer: Any, said: bool, judge_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    first = lambda request: request["messages"][-1]["content"] == FIRST  # noqa: E731
    server = judge_server(lambda request, n: answer if first(request) else "A")
    assert texts(mlflow_mcq.remote_model(server.url, "m", timeout_s=0.25)) == ["A"] * 3
    assert ("the evaluation goes on" in caplog.text) is said


def test_a_limit_too_small_for_thoughts_is_no_fault(
    judge_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def thinks(request: dict[str, Any], n: int) -> fake.Answer:
        return "A" if request["max_tokens"] > 16 else fake.refused(400, "output limit reached")

    server = judge_server(thinks)
    assert texts(mlflow_mcq.remote_model(server.url, "m"), Decoding(max_new_tokens=99))
    assert [request["max_tokens"] for request in server.requests] == [16, 99, 99, 99, 99]
    assert "failed" not in caplog.text


def test_it_is_one_short_call_with_the_settings_of_the_rows_and_no_row(
    judge_server: Server,
) -> None:
    server = judge_server(lambda request, n: "A")
    handle = mlflow_mcq.remote_model(server.url, "m")
    decoding = Decoding(max_new_tokens=64, temperature=0.7, top_p=0.9)
    assert texts(handle, decoding) == texts(handle, decoding) == ["A"] * 3
    assert asked(server).count(FIRST) == 1  # not again in the second round
    question = server.requests[0]
    assert (question["max_tokens"], question["temperature"], question["top_p"]) == (16, 0.7, 0.9)
    assert handle.engine.spent.n_rows == 6


@pytest.mark.parametrize(
    "settings",
    [pytest.param({"chat": False}, id="plain"), pytest.param({"preflight": False}, id="left out")],
)
def test_where_it_is_not_a_chat_and_where_it_is_not_wanted(
    settings: dict[str, Any], judge_server: Server
) -> None:
    server = judge_server(lambda request, n: "A")
    texts(mlflow_mcq.remote_model(server.url, "m", **settings))
    prompts = [request.get("prompt", "") for request in server.requests]
    assert (prompts[0] == f"{FIRST}\nAnswer:") is ("chat" in settings)
    assert len(prompts) == 3 + ("chat" in settings)


def test_a_run_with_nothing_left_to_make_asks_nothing(judge_server: Server, tmp_path: Path) -> None:
    server = judge_server(lambda request, n: "A" if n < 4 else fake.refused(401, "expired"))

    def resumed() -> list[str | None]:
        handle = mlflow_mcq.remote_model(server.url, "m")
        with closing(RowStore(tmp_path)) as rows:
            answers = KeptEngine(handle.engine, rows).generate(ROWS, Decoding())
            return [one.reply.text for one in answers]

    assert resumed() == ["A"] * 3
    assert resumed() == ["A"] * 3
    assert len(server.requests) == 4


def test_an_endpoint_of_the_gateway_is_asked_too(
    judge_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = judge_server(lambda request, n: fake.refused(404, "no endpoint chat"))
    monkeypatch.setenv("MLFLOW_DEPLOYMENTS_TARGET", server.url.removesuffix("/v1"))
    with pytest.raises(ModelError, match=r"no endpoint chat.*deployments target"):
        texts(endpoint_model("endpoints:/chat"))
    assert server.paths == ["/gateway/chat/invocations"]


def test_an_evaluation_stops_and_its_run_says_why(judge_server: Server, store: None) -> None:
    server = judge_server(lambda request, n: fake.refused(404, "no model nemo"))
    model = mlflow_mcq.remote_model(server.url, "nemo")
    data = [{"question": "?", "options": ["sun", "moon"], "answer": "A"}]
    with pytest.raises(MlflowException, match="no model nemo"):
        mlflow_mcq.evaluate(model, data, evaluators="mcq_regex")
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.tags["mcq.status"] == "failed"
    assert "no model nemo" in run.data.tags["mcq.error"]
    assert len(server.requests) == 1
