"""Models by MLflow's own addresses, and servers that want their key in another place."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import mlflow.pyfunc  # in full: MLflow would load it later, over what tests put there
import pandas as pd
import pytest
from fake_server import completion, refused
from mlflow.exceptions import MlflowException
from mlflow.pyfunc.model import ModelFromDeploymentEndpoint
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

import mlflow_mcq
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.endpoint import EndpointChat
from mlflow_mcq.engines.handle import connect_judge, endpoint_model
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.logged import PyfuncChat
from mlflow_mcq.engines.pyfunc import CallableEngine
from mlflow_mcq.errors import JudgeNotConfigured, JudgeUnavailable, ModelError, SettingsError
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.judges import ask_first, judge_of
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import DOWN, Decoding, Item, Message, Query, Verdict
from mlflow_mcq.settings import Settings, read_settings
from mlflow_mcq.shown_judge import shown_judge
from mlflow_mcq.unwrap import engine_of

ITEMS = [Item("q", "Liquid metal?", ("mercury", "iron"), 0)]
ASKED = [Query((Message("user", "Which?"),))]


@pytest.fixture
def gateway(judge_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A gateway at MLflow's deployments target; its script may be changed."""
    for name in ("TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    server = judge_server(lambda request, n: "OTHER")
    monkeypatch.setenv("MLFLOW_DEPLOYMENTS_TARGET", server.url.removesuffix("/v1"))
    return server


# --- endpoints:/name -------------------------------------------------------------------


def test_an_endpoint_is_asked_as_the_gateway_wants_it(gateway: Any) -> None:
    gateway.script = lambda request, n: completion("Neither.")
    [(place, reply)] = EndpointChat("endpoints:/my chat").ask(ASKED, Decoding(5))
    assert (place, reply.text, reply.n_prompt_tokens) == (0, "Neither.", 7)
    assert gateway.paths == ["/gateway/my%20chat/invocations"]
    # The gateway refuses to be told the model.
    assert gateway.requests == [
        {"messages": [{"role": "user", "content": "Which?"}], "temperature": 0.0, "max_tokens": 5}
    ]


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        pytest.param({}, "Bearer none", id="nothing"),
        pytest.param({"TOKEN": "tok-12345678"}, "Bearer tok-12345678", id="token"),
        pytest.param(
            {"USERNAME": "me", "PASSWORD": "p@ss/word"},
            "Basic " + base64.b64encode(b"me:p@ss/word").decode(),
            id="user and password",
        ),
    ],
)
def test_mlflows_own_credentials_are_used(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sent: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    chat = EndpointChat("endpoints:/chat")
    list(chat.ask(ASKED, Decoding()))
    assert gateway.headers[0]["authorization"] == sent
    assert "p@ss" not in repr(chat)
    assert "p%40ss" not in repr(chat)


def test_the_evaluated_model_may_be_an_endpoint(gateway: Any) -> None:
    gateway.script = lambda request, n: "It may be so."
    model = endpoint_model("endpoints:/candidate")
    assert model(pd.DataFrame({"prompt": ["Which?", "What?"]})) == ["It may be so."] * 2
    assert set(gateway.paths) == {"/gateway/candidate/invocations"}
    [answer] = model.engine.generate(
        requests_for(ITEMS, Settings(orientations="as-is"), chat=model.engine.speaks_chat),
        Decoding(),
    )
    gateway.script = lambda request, n: "B"
    [grade] = judge_of(JudgeSettings(model="endpoints:/judge")).grade([answer])
    assert (grade.verdict, grade.choice) == (Verdict.INCORRECT, 1)
    assert gateway.paths[-1] == "/gateway/judge/invocations"


@pytest.mark.parametrize(
    ("target", "params", "kind"),
    [
        pytest.param(None, {}, ChatEngine, id="a gateway"),
        pytest.param("databricks", {}, CallableEngine, id="Databricks stays with MLflow"),
        pytest.param(None, {"n": 1}, CallableEngine, id="so do parameters of its own"),
    ],
)
def test_mlflows_wrapper_is_taken_off(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, target: Any, params: Any, kind: type
) -> None:
    if target:
        monkeypatch.setenv("MLFLOW_DEPLOYMENTS_TARGET", target)
    inner = ModelFromDeploymentEndpoint("candidate", params)
    model = SimpleNamespace(python_model=inner, predict=lambda frame: [], metadata=None)
    assert type(engine_of(model, Settings())) is kind


def test_an_address_of_its_own_wins(gateway: Any, judge_server: Any) -> None:
    other = judge_server(lambda request, n: "A")
    target = other.url.removesuffix("/v1")
    chat = connect_judge(JudgeSettings(model="endpoints:/chat", base_url=target))
    list(chat.ask(ASKED, Decoding()))
    assert (len(other.requests), len(gateway.requests)) == (1, 0)


@pytest.mark.first_question
def test_an_endpoint_that_is_not_there_is_found_beforehand(gateway: Any) -> None:
    gateway.script = lambda request, n: refused(404, "no such endpoint")
    judge = judge_of(JudgeSettings(model="endpoints:/chat"))
    with pytest.raises(JudgeUnavailable, match="no such endpoint"):
        ask_first(judge)
    [(_, reply)] = EndpointChat("endpoints:/chat").ask(ASKED, Decoding())
    assert reply.finish_reason == DOWN


@pytest.mark.parametrize(
    ("target", "uri", "said"),
    [
        pytest.param("", "endpoints:/chat", "set_deployments_target", id="no target"),
        pytest.param("databricks", "endpoints:/chat", "serving-endpoints", id="Databricks"),
        pytest.param("http://127.0.0.1:1", "endpoints:/", "names no endpoint", id="no name"),
    ],
)
def test_targets_that_cannot_be_asked(
    target: str, uri: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_DEPLOYMENTS_TARGET", target)
    with pytest.raises(SettingsError, match=said):
        EndpointChat(uri)


@pytest.mark.parametrize(
    ("judge", "place"),
    [
        pytest.param({"model": "endpoints:/x"}, "mlflow", id="gateway"),
        pytest.param({"model": "models:/x/1"}, "local", id="logged"),
        pytest.param({"model": "runs:/r/m", "base_url": None}, "local", id="logged, none given"),
        pytest.param({"model": "x"}, None, id="a name alone says nothing"),
    ],
)
def test_a_name_may_say_where_the_judge_stands(judge: dict[str, Any], place: str | None) -> None:
    if place is None:
        with pytest.raises(JudgeNotConfigured):
            read_settings({"judge": judge})
    else:
        found = read_settings({"judge": judge}).judge
        assert found is not None
        assert found.base_url == place


# --- models:/name ----------------------------------------------------------------------


class Stored:
    """What MLflow loads: a pyfunc by its predict, or one that holds a pipeline."""

    model_id = "m-1"

    def __init__(self, predict: Any = None, pipeline: Any = None) -> None:
        flavors = {"transformers": {}} if pipeline else {"python_function": {}}
        self.metadata = SimpleNamespace(
            flavors=flavors, model_uuid="u-1", get_input_schema=lambda: None
        )
        self.predict = predict
        self.get_raw_model = lambda: pipeline


def loads(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.setattr(mlflow.pyfunc, "load_model", lambda uri: model)


@pytest.mark.parametrize(
    "wrapped",
    [
        pytest.param(lambda text: [text], id="list"),
        pytest.param(lambda text: pd.Series([text], index=[7]), id="series with an index"),
        pytest.param(lambda text: pd.DataFrame({"out": [text]}), id="table"),
        pytest.param(lambda text: text, id="bare text"),
        pytest.param(lambda text: {"choices": [{"message": {"content": text}}]}, id="completion"),
    ],
)
def test_a_logged_function_may_judge(wrapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(frame: pd.DataFrame) -> Any:
        if "break" in frame.iloc[0, 0]:
            raise ValueError("broken")
        return wrapped("OTHER")

    loads(monkeypatch, Stored(predict))
    chat = connect_judge(JudgeSettings(model="models:/judge/1"))
    assert isinstance(chat, PyfuncChat)
    assert not chat.deterministic
    asked = [Query("Which?"), Query("break")]
    texts = [(reply.text, reply.error) for _, reply in chat.ask(asked, Decoding())]
    assert texts == [("OTHER", None), (None, "ValueError: broken")]


def test_a_logged_pipeline_is_run_by_our_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = SimpleNamespace(model=tiny_model(), tokenizer=byte_tokenizer(PLAIN_TEMPLATE))
    loads(monkeypatch, Stored(pipeline=pipeline))
    chat = connect_judge(JudgeSettings(model="models:/judge@best"))
    assert isinstance(chat, LocalChat)
    assert chat.origin == "m-1"


def test_a_logged_pipeline_without_a_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, Stored(pipeline=SimpleNamespace(model=tiny_model(), tokenizer=None)))
    with pytest.raises(ModelError, match="with its tokenizer"):
        connect_judge(JudgeSettings(model="models:/pictures/1"))


def test_a_model_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(uri: str) -> None:
        raise MlflowException("no such model")

    monkeypatch.setattr(mlflow.pyfunc, "load_model", nothing)
    with pytest.raises(ModelError, match="cannot be loaded: no such model"):
        connect_judge(JudgeSettings(model="models:/nobody/1"))


# --- keys in other places --------------------------------------------------------------

AZURE = {"api_key_env": "MY_KEY", "api_key_header": "api-key"}


def test_azure_gets_its_key_and_its_version(
    judge_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "az-secret-key")
    server = judge_server(lambda request, n: "In api 2024-10-21 with az-secret-key.")
    judge = JudgeSettings(
        model="gpt", base_url=server.url, query={"api-version": "2024-10-21"}, **AZURE
    )
    [(_, reply)] = connect_judge(judge).ask(ASKED, Decoding())
    assert server.paths == ["/v1/chat/completions?api-version=2024-10-21"]
    assert server.headers[0]["api-key"] == "az-secret-key"
    assert "authorization" not in server.headers[0]
    # The key is taken out of what a server says, and a date is no secret.
    assert reply.text == "In api 2024-10-21 with [redacted]."


def test_a_model_behind_azure(judge_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "az-secret-key")
    server = judge_server(lambda request, n: "A")
    model = mlflow_mcq.remote_model(
        f"{server.url}?a=1", "gpt", query={"api-version": "preview"}, **AZURE
    )
    assert model(pd.DataFrame({"prompt": ["Which?"]})) == ["A"]
    assert server.paths == ["/v1/completions?a=1&api-version=preview"]


def test_only_the_version_of_a_query_is_shown() -> None:
    query = {"api-version": "2024-10-21", "code": "sesame-sesame"}
    shown = shown_judge(JudgeSettings(model="gpt", base_url="https://host/v1", query=query))
    assert shown["query"] == {"api-version": "2024-10-21", "code": "(hidden)"}


def test_a_query_that_is_wrong_is_not_repeated() -> None:
    judge = {"model": "gpt", "base_url": "https://host/v1", "query": {"code": 70355608}}
    with pytest.raises(SettingsError, match="query") as caught:
        read_settings({"judge": judge})
    assert "70355608" not in str(caught.value)


def test_a_secret_in_a_query_is_not_registered() -> None:
    judge = mlflow_mcq.scorers.judge("gpt", "https://host/v1", query={"code": "sesame"})
    with pytest.raises(SettingsError, match="holds credentials or a query"):
        judge.model_dump()
