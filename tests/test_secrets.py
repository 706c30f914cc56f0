"""A key goes to its server and nowhere else, whatever fails on the way."""

from __future__ import annotations

import logging
import traceback
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_server as fake
import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.engines.http_client import Address
from mlflow_mcq.errors import McqError
from mlflow_mcq.judges import judge_of
from mlflow_mcq.settings import read_settings

pytestmark = pytest.mark.first_question
KEY = "sk-canary-Kx83jq7712"
PASSWORD = "pw-canary-93kd02"
IN_QUERY = "query-canary-5571ab"
BASIC = b64encode(f"anna:{PASSWORD}".encode()).decode()
SECRETS = (KEY, PASSWORD, IN_QUERY, BASIC)
FRAME = pd.DataFrame(
    {
        "question": ["Which shines?", "Which floats?"],
        "options": [["sun", "stone"], ["lead", "cork"]],
        "answer": ["A", "B"],
    }
)


@pytest.fixture(autouse=True)
def here(
    shared_store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(shared_store / "home"))
    monkeypatch.setenv("CANARY_KEY", KEY)
    caplog.set_level(logging.DEBUG)


def leaks(folder: Path) -> list[str]:
    """Files of a store that hold a secret, packed tables included."""
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        held = path.read_bytes()
        if path.suffix == ".parquet":  # compressed
            held += repr(pd.read_parquet(path).to_dict("list")).encode()
        found += [f"{path.name}: {one}" for one in SECRETS if one.encode() in held]
    return found


def echo(status: int, *known: str) -> Script:
    """A server that repeats all it was sent, late in a long page and early in a short one."""

    def script(request: dict[str, Any], n: int) -> fake.Answer:
        said = f"got Bearer {', '.join(known)}"
        if status == 200:
            return f"A, since {said}"
        if n % 2:
            return fake.refused(status, said)
        page = "x" * 280 + " " + said
        return {"status": status, "body": page, "headers": {"Content-Type": "text/html"}}

    return script


def with_secrets(url: str) -> str:
    return url.replace("//", f"//anna:{PASSWORD}@") + f"?key={IN_QUERY}"


def wordy(frame: pd.DataFrame) -> list[str]:
    return ["One of the two, I should think."] * len(frame)


def no_leak(
    shared_store: Path, caplog: Any, capfd: Any, error: BaseException | None = None
) -> None:
    assert leaks(shared_store) == []
    shown = "".join(capfd.readouterr()) + caplog.text
    if error is not None:
        shown += "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    assert [one for one in SECRETS if one in shown] == []


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500])
@pytest.mark.parametrize("credentials", [True, False], ids=["in the URL", "in a variable"])
def test_a_run_that_goes_well_or_fails_holds_no_secret(
    shared_store: Path,
    judge_server: Callable[[Script], FakeServer],
    status: int,
    credentials: bool,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    in_url = (f"anna:{PASSWORD}", PASSWORD, f"Basic {BASIC}", f"?key={IN_QUERY}", IN_QUERY)
    server = judge_server(echo(status, KEY, *(in_url if credentials else ())))
    url = with_secrets(server.url) if credentials else server.url
    judge = {
        "model": "m", "base_url": url, "api_key_env": "CANARY_KEY", "exam_replies": 3,
        "max_retries": 0, "cache_dir": str(shared_store / "replies"),
    }  # fmt: skip
    error = None
    try:
        result = mlflow_mcq.evaluate(wordy, FRAME, judge=judge)
        mlflow_mcq.regrade(result.run_id, judge, only="errors")
    except Exception as fault:  # noqa: BLE001  any of them is looked at
        error = fault
    assert (error is not None) is (status in (401, 403, 404))
    sent = server.headers[0]["authorization"]
    assert sent == (f"Basic {BASIC}" if credentials else f"Bearer {KEY}")
    no_leak(shared_store, caplog, capfd, error)


def test_the_evaluated_model_has_a_key_as_well(
    shared_store: Path,
    judge_server: Callable[[Script], FakeServer],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for status in (200, 500):
        server = judge_server(echo(status, KEY, PASSWORD, BASIC, IN_QUERY))
        model = mlflow_mcq.remote_model(
            with_secrets(server.url), "m", api_key_env="CANARY_KEY", concurrency=2
        )
        model.chat.max_retries = 0
        assert not [one for one in SECRETS if one in repr(model)]
        error = None
        try:
            mlflow_mcq.evaluate(model, FRAME, evaluators="mcq_regex", logprob={"enabled": True})
        except MlflowException as fault:  # not one row was answered
            error = fault
        assert (error is not None) is (status == 500)
        no_leak(shared_store, caplog, capfd, error)


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(KEY, id="in place of all settings"),
        pytest.param({"model": "m", "base_url": "http://h/v1", "api_key": KEY}, id="api_key"),
        pytest.param({"model": "m", "base_url": "http://h/v1", "api_key_env": KEY}, id="pasted"),
        pytest.param({"model": "m", "base_url": "http://h/v1", "key": {"a": KEY}}, id="nested"),
        pytest.param(
            {"model": "m", "base_url": "http://h/v1", "headers": {"Authorization": KEY}},
            id="headers",
        ),
        pytest.param({"model": "m", "base_url": f"anna:{PASSWORD}@h/v1"}, id="no scheme"),
        pytest.param({"model": "m", "base_url": f"ftp://anna:{PASSWORD}@h/v1"}, id="odd scheme"),
        pytest.param({"model": "m", "base_url": f"http://anna:{PASSWORD}/x@h/v1"}, id="a slash"),
        pytest.param({"model": "m", "base_url": f"http://h:{PASSWORD}/v1"}, id="in the port"),
        pytest.param({"model": "m", "base_url": "http://h/v1", "panel": [KEY]}, id="as a member"),
        pytest.param(
            {"model": "m", "base_url": with_secrets("http://127.0.0.1:9/v1")}, id="nothing there"
        ),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(
    shared_store: Path,
    judge: Any,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if isinstance(judge, dict):
        judge = {"max_retries": 0, "exam_replies": 0, **judge}
    with mlflow.start_run():
        config = {"mcq_judge": {"judge": judge}}
        with pytest.raises(Exception) as caught:  # noqa: PT011  ours or MLflow's
            mlflow.models.evaluate(
                wordy, FRAME, targets="answer", model_type="mcq", evaluators="mcq_judge",
                evaluator_config=config,
            )  # fmt: skip
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    # The caller's own line stands in a traceback as it was written: that is no leak of ours.
    assert [one for one in SECRETS if one in shown] == []
    assert leaks(shared_store) == []
    assert [one for one in SECRETS if one in caplog.text + "".join(capfd.readouterr())] == []


def test_records_that_hold_secrets_do_not_show_them() -> None:
    settings = read_settings(
        {"judge": {"model": "m", "base_url": "http://h/v1", "api_key_env": "CANARY_KEY"}}
    )
    judge = judge_of(settings.judge)
    shown = repr(judge) + repr(judge.seats) + repr(vars(judge.chat)) + repr(settings)
    address = Address(with_secrets("http://h/v1"), KEY, 1, 0)
    shown += repr(address) + address.path("completions").partition("?")[0]
    assert [one for one in SECRETS if one in shown] == []


def test_a_key_that_is_gone_when_it_is_needed_is_named_by_its_variable(monkeypatch) -> None:
    settings = read_settings(
        {"judge": {"model": "m", "base_url": "http://h/v1", "api_key_env": "CANARY_KEY"}}
    )
    monkeypatch.delenv("CANARY_KEY")
    with pytest.raises(McqError, match="CANARY_KEY, which is not set"):
        judge_of(settings.judge)
