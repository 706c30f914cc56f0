"""Stores that fail: what was measured stays, and the same call goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.__main__ import main
from mlflow_mcq.errors import DataError
from mlflow_mcq.store.row_store import RowStore

FRAME = pd.DataFrame(
    {
        "question": ["Which metal is liquid?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
    }
)
N_ROWS = 5


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One store for all: to make one takes longer than any test here."""
    folder = tmp_path_factory.mktemp("mlflow")
    uri, before = f"sqlite:///{folder}/mlflow.db", mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment("e", artifact_location=(folder / "artifacts").as_uri())
    yield uri
    mlflow.set_tracking_uri(before)


@pytest.fixture(autouse=True)
def here(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "home"))
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("e")


@pytest.fixture
def servers(judge_server: Callable[[Script], FakeServer]) -> tuple[FakeServer, FakeServer]:
    model = judge_server(lambda request, n: "one of them, hard to read")
    return model, judge_server(lambda request, n: "A" if n % 2 else "OTHER")


def evaluate(servers: tuple[FakeServer, FakeServer]) -> Any:
    model, judge = servers
    # Not beside the model: calls under way when a store fails would be made once more.
    asked = {"model": "j", "base_url": judge.url, "exam_replies": 0, "overlap": False}
    remote = mlflow_mcq.remote_model(model.url, "m")
    return mlflow_mcq.evaluate(remote, FRAME, judge=asked, targets="answer")


def runs_of(experiment: str) -> list[Any]:
    found = MlflowClient().get_experiment_by_name(experiment)
    return list(MlflowClient().search_runs([found.experiment_id]))


def calls(servers: tuple[FakeServer, FakeServer]) -> list[int]:
    return [len(server.requests) for server in servers]


def gone(*_: object, **__: object) -> None:
    raise MlflowException("API request failed: connection refused")


def read_only(*_: object, **__: object) -> None:
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        pytest.param(["log_artifact"], read_only, id="artifacts are read-only"),
        pytest.param(["log_batch"], gone, id="numbers are refused"),
        pytest.param(["log_batch", "log_artifact", "get_run"], gone, id="all of it is gone"),
    ],
)
def test_a_store_that_comes_back_gets_everything(
    servers: tuple[FakeServer, FakeServer],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    broken: list[str],
    fault: Callable[..., None],
) -> None:
    real = {name: getattr(MlflowClient, name) for name in broken}
    with monkeypatch.context() as patch:
        for name in broken:
            # Only once the model has answered: these are the hours that must not be lost.
            patch.setattr(
                MlflowClient,
                name,
                lambda *a, _name=name, **k: (
                    fault() if len(servers[0].requests) == N_ROWS else real[_name](*a, **k)
                ),
            )
        with pytest.raises((MlflowException, OSError), match=r"refused|Read-only"):
            evaluate(servers)
    assert f"{N_ROWS} answers are kept in" in capfd.readouterr().err
    [newest, *_] = runs_of("e")
    assert newest.data.tags.get("mcq.status") in (None, "failed")
    before = calls(servers)
    result = evaluate(servers)
    assert calls(servers)[0] == before[0] == N_ROWS
    assert calls(servers)[1] == N_ROWS
    assert result.metrics["generation/n_resumed"] == N_ROWS
    assert MlflowClient().get_run(result.run_id).data.tags["mcq.status"] == "finished"


@pytest.fixture(scope="module")
def finished(uri: str) -> list[str]:
    """Two finished arms."""
    mlflow.set_experiment("e")
    runs = []
    for letter in "AB":
        with mlflow.start_run(run_name=letter):
            result = mlflow_mcq.evaluate(
                lambda frame, letter=letter: [letter] * len(frame),
                FRAME, targets="answer", evaluators="mcq_regex",
            )  # fmt: skip
            runs.append(result.run_id)
    return runs


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def zeroed(data: bytes) -> bytes:
    return data[:4] + b"\x00" * (len(data) - 8) + data[-4:]


def read_again(runs: list[str]) -> None:
    judge = {"model": "j", "base_url": "http://127.0.0.1:9/v1"}
    mlflow_mcq.regrade(runs[0], judge, only="errors")


@pytest.mark.parametrize(
    ("artifact", "use", "damage"),
    [
        pytest.param("mcq_generations.parquet", read_again, cut, id="answers cut, regrade"),
        pytest.param("mcq_grades.parquet", read_again, zeroed, id="grades zeroed, regrade"),
        pytest.param("mcq_settings.json", read_again, cut, id="settings cut, regrade"),
        pytest.param("mcq_generations.parquet", mlflow_mcq.compare, zeroed, id="answers, compare"),
        pytest.param("mcq_grades.parquet", mlflow_mcq.compare, cut, id="grades, compare"),
        pytest.param("mcq_alarms.json", mlflow_mcq.compare, lambda data: b"", id="alarms, compare"),
    ],
)
def test_a_damaged_artifact_is_named(
    finished: list[str],
    artifact: str,
    use: Callable[[list[str]], object],
    damage: Callable[[bytes], bytes],
) -> None:
    folder = MlflowClient().get_run(finished[0]).info.artifact_uri.removeprefix("file://")
    path = Path(folder, artifact)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    try:
        with pytest.raises(DataError, match=f"{artifact} that is damaged or cut short") as caught:
            use(finished)
    finally:
        path.write_bytes(whole)
    assert finished[0] in str(caught.value)


FULL = """
import resource, signal, sys
from mlflow_mcq.errors import StoreError
from mlflow_mcq.records import Reply
from mlflow_mcq.store.row_store import RowStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
store, n = RowStore(sys.argv[1]), 0
try:
    while True:
        store.put(n.to_bytes(16, "big"), Reply(f"answer {n}"))
        n += 1
except StoreError as error:
    print(n, error)
"""


def test_a_full_disk_says_so_and_keeps_what_was_made(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "rows")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    n, _, said = done.stdout.partition(" ")
    assert "will not be made again. Free some space" in said
    with RowStore(tmp_path / "rows") as store:
        assert [store.get(key).text for key in store] == [f"answer {i}" for i in range(int(n))]
        assert len(store) == int(n) > 20


def test_ctrl_c_says_what_is_saved_and_how_to_go_on(
    uri: str, tmp_path: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    child: list[subprocess.Popen[str]] = []

    def model(request: dict[str, Any], n: int) -> str:
        if n == 3 and child:
            child.pop().send_signal(signal.SIGINT)
        return "B"

    server = judge_server(model)
    (tmp_path / "items.jsonl").write_text(
        "".join(
            f'{{"question": "q{n}?", "options": ["x", "y"], "answer": "A"}}\n' for n in range(20)
        )
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: r\nexperiment: interrupted\ndata: items.jsonl\n"
        f"model: {{base_url: {server.url}, model: m, concurrency: 1}}\n"
        "evaluators: [mcq_regex]\norientations: as-is\narms: [{name: only}]\n"
    )
    command = [sys.executable, "-m", "mlflow_mcq", "run", str(recipe)]
    env = {**os.environ, "MLFLOW_TRACKING_URI": uri, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # A test that was started in the background is deaf to Ctrl-C, and so are its children.
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(command, cwd=tmp_path, env=env, **pipes)
    child.append(running)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 130, said
    assert "answers are kept in" in said
    assert said.rstrip().endswith(f"-m mlflow_mcq run {recipe}")
    assert "Traceback" not in said
    [arm] = [run for run in runs_of("interrupted") if run.data.tags.get("mcq.role") == "arm"]
    assert (arm.info.status, arm.data.tags["mcq.status"]) == ("FAILED", "failed")
    assert arm.data.tags["mcq.error"] == "KeyboardInterrupt"
    asked = len(server.requests)
    assert main(["run", str(recipe)]) == 0
    assert len(server.requests) <= 20 + 2  # what was under way, once more, and nothing else
    assert asked < 20
