"""A real tracking server that goes away and comes back: nothing is lost, nothing is doubled."""

from __future__ import annotations

import gc
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer
from mlflow import MlflowClient
from tracking_server import Cut, Line, serving

from mlflow_mcq import report
from mlflow_mcq.__main__ import main

N_ROWS = 8
"""Of each arm."""
ITEMS = [
    {"id": f"q{n}", "question": f"Is {n} even?", "options": ["yes", "no"], "answer": "AB"[n % 2]}
    for n in range(N_ROWS // 2)
]
NUMBERS = "POST .*/runs/log-batch"
TABLES = "PUT .*/mlflow-artifacts/.*mcq_grades.parquet"
LAST = "PUT .*/mlflow-artifacts/.*mcq_settings.json"
END = "POST .*/runs/update"
FOR_EVER = 10**9
QUICK = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}  # fmt: skip
KEPT = {"mcq_generations": ["generation", "order"], "mcq_grades": ["grader", "verdict", "choice"]}


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    folder = tmp_path_factory.mktemp("server")
    store = f"sqlite:///{folder}/mlflow.db"
    MlflowClient(store).search_experiments()  # makes the schema here, which is quick
    before = mlflow.get_tracking_uri()
    server = serving(store, folder)
    with server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_log_pictures", lambda *_: None)  # they take longest to make
        line = Line(server.port)
        mlflow.set_tracking_uri(line.url)
        yield line
        line.close()
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeServer]:
    server = FakeServer(lambda request, n: "A")
    yield server
    server.close()


@pytest.fixture
def recipe(line: Line, model: FakeServer, tmp_path: Path, monkeypatch: Any) -> Iterator[Path]:
    for name, value in {**QUICK, "MLFLOW_MCQ_CACHE": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    yield written(tmp_path, model)
    line.cut()
    model.requests.clear()


def written(folder: Path, model: FakeServer) -> Path:
    """A recipe of two arms, in an experiment named like its folder."""
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, ITEMS)), encoding="utf-8")
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        f"name: r\nexperiment: {folder.name}\ndata: items.jsonl\ncompare: false\n"
        f"model: {{base_url: {model.url}, model: m, concurrency: 1}}\n"
        "evaluators: [mcq_regex]\nregex: {parsers: [regex_naive]}\norientations: swap\narms:\n"
        "  - {name: first}\n  - {name: second, temperature: 0.5}\n",
        encoding="utf-8",
    )
    return recipe


@pytest.fixture(scope="module")
def undisturbed(
    line: Line, model: FakeServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the arms of the recipe put on record where nothing fails."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_MCQ_CACHE", str(folder / "home"))
        assert main(["run", str(written(folder, model))]) == 0
    model.requests.clear()
    return on_record(folder.name, folder)


def on_record(experiment: str, folder: Path) -> dict[str, Any]:
    """What the arms of the newest comparison hold, each of which must be there once."""
    client = MlflowClient()
    place = client.get_experiment_by_name(experiment).experiment_id
    done = "tags.`mcq.role` = 'arm' AND tags.`mcq.status` = 'finished'"
    runs = [run for run in client.search_runs([place], done) if run.info.status == "FINISHED"]
    newest = max(run.data.tags["mcq.comparison"] for run in runs)
    found = [run for run in runs if run.data.tags["mcq.comparison"] == newest]
    assert sorted(run.info.run_name for run in found) == ["first", "second"]
    return {run.info.run_name: held(run, folder) for run in found}


def held(run: Any, folder: Path) -> dict[str, Any]:
    """All in a run that does not depend on when it was made or on how much of it was found."""
    client, run_id = MlflowClient(), run.info.run_id
    names = [name for name in run.data.metrics if name.startswith("regex_")]
    history = {name: client.get_metric_history(run_id, name) for name in names}
    rows = {}
    for name, columns in KEPT.items():
        path = client.download_artifacts(run_id, f"{name}.parquet", str(folder))
        rows[name] = pd.read_parquet(path)[["row_id", *columns]].astype(str).to_dict("list")
    return {
        "numbers": {k: [(one.step, one.value) for one in v] for k, v in history.items()},
        "params": run.data.params,
        "files": sorted(file.path for file in client.list_artifacts(run_id)),
        "rows": rows,
    }


def test_a_server_that_is_back_soon_is_not_noticed(
    recipe: Path, line: Line, model: FakeServer, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    line.cut(
        Cut(NUMBERS, lose=2, answered=True),
        Cut(TABLES, lose=3),
        Cut(END, lose=3, after=LAST, answered=True),
        Cut(TABLES, lose=2, answered=True),
    )
    assert main(["run", str(recipe)]) == 0
    assert line.n_lost == 10
    assert on_record(tmp_path.name, tmp_path) == undisturbed
    assert len(model.requests) == 2 * N_ROWS


@pytest.mark.parametrize(
    ("cut", "n_asked"),
    [
        pytest.param(Cut(NUMBERS, FOR_EVER, after=LAST), N_ROWS, id="numbers after the first arm"),
        pytest.param(Cut(TABLES, FOR_EVER, answered=True), N_ROWS, id="tables of the first arm"),
        pytest.param(Cut(END, FOR_EVER, after=LAST), N_ROWS, id="the end of the first arm"),
    ],
)
def test_what_is_said_goes_on_where_a_server_was_lost(
    recipe: Path,
    line: Line,
    model: FakeServer,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    cut: Cut,
    n_asked: int,
) -> None:
    line.cut(cut)
    assert main(["run", str(recipe)]) == 1
    assert line.n_lost > 0
    assert len(model.requests) == n_asked
    said = capfd.readouterr().err
    assert "kept" in said
    goes_on = said.rstrip().splitlines()[-1]
    assert said.rstrip().splitlines()[-2].endswith("to go on, run the same again:")
    line.cut()
    _, module, name, *arguments = shlex.split(goes_on)
    assert (module, name) == ("-m", "mlflow_mcq")
    assert main(arguments) == 0
    assert len(model.requests) == 2 * N_ROWS
    assert on_record(tmp_path.name, tmp_path) == undisturbed
    gc.collect()  # a call ends when MLflow lets go of its data
    assert [*(tmp_path / "home" / "runs").iterdir()] == []
