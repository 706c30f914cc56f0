"""Rows made ahead: the same with any number of processes, each made once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_jobs import generate_job, on_ranks, written_recipe
from tiny import byte_tokenizer, tiny_model

from mlflow_mcq.__main__ import main
from mlflow_mcq.errors import ModelError, SettingsError, StoreError
from mlflow_mcq.generation import ArmRows, generate_recipe
from mlflow_mcq.launch import generate_command, number_of_processes
from mlflow_mcq.ranks import chunk_ends
from mlflow_mcq.recipe import run_recipe
from mlflow_mcq.store.row_file import parse

ARMS = [
    {"name": "letters"},
    {"name": "sampled", "temperature": 0.9, "repeats": 2},
    {"name": "two-turns", "protocol": "options-last"},
]
TEMPLATE = (
    "{% for m in messages %}{% if 'number 3?' in m.content or all %}{{ raise_exception('no') }}"
    "{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def model(folder: Path) -> str:
    return saved(folder / "plain")


def saved(folder: Path, template: str | None = None) -> str:
    tiny_model().save_pretrained(folder)
    byte_tokenizer(template).save_pretrained(folder)
    return str(folder)


def lines(cache: Path) -> list[bytes]:
    return [
        line
        for path in sorted(cache.rglob("*.rows"))
        for line in path.read_bytes().split(b"\n")
        if line
    ]


def replies(cache: Path) -> dict[str, Any]:
    found = {line[:32].decode(): parse(line) for line in lines(cache)}
    assert len(found) == len(lines(cache)), "a row was made twice"
    return found


def generate(n: int, recipe: Path, cache: Path, killed_after: int | None = None) -> dict[int, Any]:
    return on_ranks(n, generate_job, {0: str(recipe)}, {0: str(cache)}, killed_after)


@pytest.fixture(scope="module")
def alone(folder: Path, model: str) -> tuple[Path, Path]:
    """A recipe, and its rows as one process makes them."""
    recipe = written_recipe(folder / "whole", 26, model, arms=ARMS)
    told = generate(1, recipe, folder / "one")
    assert told[0] == [
        ArmRows("letters", 78), ArmRows("sampled", 156), ArmRows("two-turns", 78)
    ]  # fmt: skip
    return recipe, folder / "one"


@pytest.mark.parametrize("n", [2, 3])
def test_every_number_of_processes_makes_the_same_rows_once(
    n: int, alone: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe, expected = alone
    told = generate(n, recipe, tmp_path)
    assert told[0] == told[n - 1] == [ArmRows(a.name, a.n_rows) for a in told[0]]
    assert replies(tmp_path) == replies(expected)
    # Where every row comes from one process, nothing was shared out.
    writers = Counter(path.stem.split("-")[-2] for path in tmp_path.rglob("*.rows"))
    assert len(writers) > 1


def test_a_job_killed_twice_goes_on_with_other_numbers_of_processes(
    alone: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe, expected = alone
    told = generate(3, recipe, tmp_path, killed_after=10)
    assert 1 not in told
    before = replies(tmp_path)
    assert 0 < len(before) < len(replies(expected))
    assert generate(1, recipe, tmp_path, killed_after=40) == {}
    between = replies(tmp_path)
    assert before.items() < between.items() < replies(expected).items()
    told = generate(2, recipe, tmp_path)
    assert sum(arm.n_found for arm in told[0]) == len(between)
    assert replies(tmp_path) == replies(expected)


def test_what_is_there_is_not_made_again(alone: tuple[Path, Path]) -> None:
    recipe, cache = alone
    before = lines(cache)
    told = generate(2, recipe, cache)
    assert [(arm.n_found, arm.n_missing) for arm in told[1]] == [(78, 0), (156, 0), (78, 0)]
    assert lines(cache) == before


def test_rows_travel_to_the_main_process_where_no_folder_is_shared(
    alone: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe, expected = alone
    caches = {0: str(tmp_path / "0"), 1: str(tmp_path / "1")}
    on_ranks(2, generate_job, {0: str(recipe)}, caches, None)
    elsewhere = replies(tmp_path / "1")
    assert elsewhere
    assert replies(tmp_path / "0") == replies(expected)


@pytest.mark.parametrize("n_items", [1, 2, 9])
def test_a_process_without_rows_keeps_nobody_waiting(
    n_items: int, model: str, tmp_path: Path
) -> None:
    recipe = written_recipe(tmp_path, n_items, model)
    told = generate(3, recipe, tmp_path / "cache")
    assert told[0] == told[1] == told[2] == [ArmRows("one", 3 * n_items)]
    assert len(replies(tmp_path / "cache")) == 3 * n_items


def test_processes_that_read_other_data_are_found_out(model: str, tmp_path: Path) -> None:
    recipes = {
        rank: str(written_recipe(tmp_path / str(rank), 9 + (rank == 1), model)) for rank in range(3)
    }
    told = on_ranks(3, generate_job, recipes, {0: str(tmp_path / "cache")}, None)
    assert {str(error) for error in told.values()} == {str(told[0])}
    assert str(told[0]).startswith("process 1: differs from process 0 in data (10 items, ")


def test_a_refusal_of_the_main_process_ends_all(model: str, tmp_path: Path) -> None:
    recipe = written_recipe(tmp_path, 3, model)
    (tmp_path / "file").write_text("no folder")
    told = on_ranks(2, generate_job, {0: str(recipe)}, {0: str(tmp_path / "file")}, None)
    assert [type(error) for error in told.values()] == [StoreError, StoreError]


def test_rows_that_fail_are_counted_and_asked_for_again(folder: Path, tmp_path: Path) -> None:
    recipe = written_recipe(tmp_path, 12, saved(folder / "some", TEMPLATE))
    for n in (2, 1):
        told = generate(n, recipe, tmp_path / "cache")
        assert told[0] == [ArmRows("one", 36, 33 if n == 1 else 0, n_missing=3)]


def test_where_every_row_fails_the_first_reason_is_said(folder: Path, tmp_path: Path) -> None:
    template = TEMPLATE.replace("or all", "or true")
    recipe = written_recipe(tmp_path, 9, saved(folder / "none", template))
    told = generate(2, recipe, tmp_path / "cache")
    assert [type(error) for error in told.values()] == [ModelError, ModelError]
    assert "chat template" in str(told[0])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        pytest.param({"cache": "off"}, "no row is kept", id="nothing is kept"),
        pytest.param({"model": None}, "in the data", id="stored answers"),
    ],
)
def test_what_cannot_be_made_ahead_says_so(
    more: dict[str, Any], why: str, model: str, tmp_path: Path
) -> None:
    path = written_recipe(tmp_path, 3, **{"model": model, **more})
    [arm] = generate_recipe(path)
    assert (arm.n_rows, why in arm.skipped) == (0, True)


def test_a_run_finds_the_rows_made_ahead(model: str, environment: Path) -> None:
    recipe = written_recipe(environment, 9, model)
    generate_recipe(recipe)
    [result] = run_recipe(recipe)
    assert result.metrics["generation/n_resumed"] == 27
    assert lines(environment / "cache") == []  # all of it is on record


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_chunks_cover_every_item_once(n_items: int, n_ranks: int) -> None:
    ends = chunk_ends(n_items, n_ranks)
    sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    assert sum(sizes) == n_items
    assert sizes == sorted(sizes, reverse=True)
    assert n_ranks == 1 or not ends or sizes[0] <= max(8, n_items // n_ranks)


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_processes_is_a_number(asked: str) -> None:
    with pytest.raises(SettingsError, match="num_processes"):
        number_of_processes(asked)


def test_processes_do_not_start_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert number_of_processes("") == 1
    with pytest.raises(SettingsError, match="has started 2 already"):
        number_of_processes("2")


def test_the_command_passes_on_what_was_given_and_nothing_else() -> None:
    given_ = {"limit": "", "judge_url": "http://h/v1", "model": "a b; c"}
    command = generate_command("r.yaml", given_, 4, on_cpu=False)
    assert command[command.index("generate") :] == [
        "generate", "r.yaml", "--judge-url", "http://h/v1", "--model", "a b; c",
    ]  # fmt: skip


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    yield tmp_path
    mlflow.set_tracking_uri(before)


def test_torchrun_generates(model: str, environment: Path) -> None:
    """The launcher itself; everything else about processes is tested without it."""
    recipe = written_recipe(environment, 20, model)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    module = ["--nproc-per-node", "2", "-m", "mlflow_mcq", "generate", str(recipe)]
    done = subprocess.run(
        [*torchrun, *module], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("one: 60 rows, 0 found, 60 made") == 1
    assert len(replies(environment / "cache")) == 60


def test_accelerate_generates_and_one_process_logs(
    model: str, environment: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe = written_recipe(environment, 20, model)
    assert main(["run", str(recipe), "--num-processes", "2"]) == 0
    assert capfd.readouterr().out.count("one: 60 rows, 0 found, 60 made") == 1
    client = mlflow.MlflowClient()
    homes = [e.experiment_id for e in client.search_experiments()]
    [run] = client.search_runs(homes, "tags.`mcq.role` = 'arm'")
    assert run.data.metrics["generation/n_resumed"] == 60
