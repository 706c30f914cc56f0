"""Fixtures shared by all tests: a real small model, and a scripted server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import FakeServer, Script
from hypothesis import settings

# A busy machine is no fault of the code: no example is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Before transformers is imported by anything: no test may wait for a model hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Before torch is imported: workers that each take every core make all of them slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    from mlflow_mcq.engines.local import LocalChat


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what loads the real model, so that ``-m "not real_model"`` is quick."""
    for item in items:
        if "smollm2" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_model)


@pytest.fixture(scope="session", autouse=True)
def quick_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give a new SQLite store MLflow's finished schema, in place of sixty migrations.

    They take three seconds of processor time, and a hundred tests want a store of their own.
    MLflow makes the schema itself, once, and what it made is written out again.
    """
    from mlflow.store.db import utils
    from sqlalchemy import create_engine, inspect

    migrate = utils._initialize_tables
    schema: list[str] = []

    def copied(engine: Any) -> None:
        file = engine.url.database
        if engine.dialect.name != "sqlite" or not file or inspect(engine).get_table_names():
            migrate(engine)
            return
        if not schema:
            made = tmp_path_factory.mktemp("schema") / "mlflow.db"
            migrate(create_engine(f"sqlite:///{made}"))
            with closing(sqlite3.connect(made)) as finished:
                schema.extend(finished.iterdump())
        with closing(sqlite3.connect(file)) as new:
            new.executescript("\n".join(schema))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "_initialize_tables", copied)
        yield


@pytest.fixture(autouse=True)
def no_active_experiment() -> Iterator[None]:
    """Undo `mlflow.set_experiment`, which outlives its store and even its process."""
    import sys

    yield
    if "mlflow" in sys.modules:
        from mlflow.tracking import fluent

        fluent._active_experiment_id = None
    os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


@pytest.fixture(autouse=True)
def no_first_question(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the questions beforehand, except where they are what is tested.

    Scripts of judges and models count their calls from 0, and tests count them after.
    """
    if "first_question" not in request.keywords:
        beforehand = "mlflow_mcq.engines.first_question.ask_first"
        monkeypatch.setattr(beforehand, lambda chat, decoding: None)
        monkeypatch.setattr("mlflow_mcq.judges.ask_first", lambda judge: None)


@pytest.fixture(scope="session")
def smollm2() -> LocalChat:
    """SmolLM2-135M-Instruct in memory (converted once per machine, 40 s)."""
    from mlflow_mcq.engines.demo import resolve_weights
    from mlflow_mcq.engines.local import load_local

    return load_local(resolve_weights("demo:smollm2"))


@pytest.fixture
def judge_server() -> Iterator[Callable[[Script], FakeServer]]:
    """A factory of scripted OpenAI-compatible servers: ``judge_server(script).url``."""
    servers: list[FakeServer] = []

    def start(script: Script) -> FakeServer:
        servers.append(FakeServer(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def judge(judge_server: Callable[[Script], FakeServer]) -> FakeServer:
    """A server that judges without a fault; see `two_items`."""
    from two_items import reading_judge

    return judge_server(reading_judge)


@contextmanager
def tracked_in(folder: Path) -> Iterator[None]:
    """Let MLflow keep its runs in a folder, and what came before afterwards."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tracking store of the test's own."""
    monkeypatch.chdir(tmp_path)  # MLflow puts artifacts beside the caller
    with tracked_in(tmp_path):
        yield tmp_path


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tracking store for all tests of a module, with an experiment that keeps artifacts there."""
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow")
    with tracked_in(folder):
        mlflow.create_experiment("tests", artifact_location=(folder / "artifacts").as_uri())
        yield folder


@pytest.fixture
def shared_store(module_store: Path) -> Path:
    """The module's store with its experiment on; each test finds its runs by their ids."""
    import mlflow

    mlflow.set_experiment("tests")
    return module_store
