"""A directory that is named for one evaluation is refused to another, with what differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq.errors import SettingsError, StoreError
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.store.evaluation import refuse_other
from mlflow_mcq.store.journal import open_directory

FRAME = pd.DataFrame(
    {
        "question": ["Which metal is liquid?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
    }
)
OTHER = FRAME.assign(answer=["A", "A"])
N_ROWS = 5
SHOTS = [{"question": "Which flies?", "options": ["bird", "fish"], "answer": "A"}]


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_MCQ_CACHE", str(folder / "home"))
        patch.chdir(folder)
        yield
    mlflow.set_tracking_uri(before)


@pytest.fixture
def server(judge_server: Callable[[Script], FakeServer]) -> FakeServer:
    return judge_server(lambda request, n: "A")


def evaluate(server: FakeServer, folder: Path, **changed: Any) -> Any:
    model, data = changed.pop("model", "m"), changed.pop("data", FRAME)
    remote = mlflow_mcq.remote_model(server.url, model, concurrency=1)
    named = {"evaluators": "mcq_regex", "directory": str(folder), "lint": False}
    return mlflow_mcq.evaluate(remote, data, targets="answer", **{**named, **changed})


@pytest.fixture(scope="module")
def begun(home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """A server, and a directory that holds the rows of one evaluation of it."""
    server = FakeServer(lambda request, n: "A")
    folder = tmp_path_factory.mktemp("rows")
    evaluate(server, folder)
    yield server, folder
    server.close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"model": "n"}, "model: m, now n", id="model"),
        pytest.param({"data": OTHER}, r"data: 2 items \(\w+\), now 2 items \(\w+\)", id="data"),
        pytest.param({"data": FRAME[:1]}, r"data: 2 items .*, now 1 items", id="fewer items"),
        pytest.param({"temperature": 0.5}, "temperature: 0.0, now 0.5", id="decoding"),
        pytest.param({"protocol": "dashes"}, 'protocol: "letters", now "dashes"', id="protocol"),
        pytest.param(
            {"orientations": "as-is"}, 'orientations: "rotations:4", now "as-is"', id="orientations"
        ),
        pytest.param(
            {"few_shot": {"rows": SHOTS, "k": 1}}, "few_shot.k: left out, now 1", id="examples"
        ),
    ],
)
def test_other_settings_are_refused_and_named(
    begun: tuple[FakeServer, Path], changed: dict[str, Any], said: str
) -> None:
    server, folder = begun
    n_asked = len(server.requests)
    with pytest.raises(MlflowException, match=said) as caught:
        evaluate(server, folder, **changed)
    assert len(server.requests) == n_asked
    assert re.search("Name another directory, or set accept_changes", str(caught.value))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"regex": {"parsers": ["regex_naive"]}}, id="who reads"),
        pytest.param({"batch_size": 2}, id="rows at a time"),
        pytest.param({"temperature": 0.0}, id="a default that is spelt out"),
    ],
)
def test_the_same_rows_are_found(begun: tuple[FakeServer, Path], changed: dict[str, Any]) -> None:
    server, folder = begun
    n_asked = len(server.requests)
    result = evaluate(server, folder, **changed)
    assert result.metrics["generation/n_resumed"] == N_ROWS
    assert len(server.requests) == n_asked


def test_changes_that_are_accepted_make_what_is_new(server: FakeServer, tmp_path: Path) -> None:
    evaluate(server, tmp_path, limit=1)
    n_before = len(server.requests)
    result = evaluate(server, tmp_path, accept_changes=True)
    assert len(server.requests) == N_ROWS
    assert result.metrics["generation/n_resumed"] == n_before
    evaluate(server, tmp_path)  # it is this one's directory from here on
    evaluate(server, tmp_path, limit=1)  # and the first one's, too
    assert len(server.requests) == N_ROWS


def test_after_accepted_changes_a_difference_is_from_the_nearest(tmp_path: Path) -> None:
    begun = {"model": "a", "data": "x"}
    refuse_other(tmp_path, begun, accept=False)
    refuse_other(tmp_path, {**begun, "seed": "1", "top_k": "5"}, accept=True)
    for known in (begun, {**begun, "seed": "1", "top_k": "5"}):
        refuse_other(tmp_path, known, accept=False)
    with pytest.raises(StoreError, match=r"2 other settings.* \(top_k: 5, now 7\)"):
        refuse_other(tmp_path, {**begun, "seed": "1", "top_k": "7"}, accept=False)
    with pytest.raises(StoreError, match=r"2 other settings.* \(seed: 0, now 3\)"):
        refuse_other(tmp_path, {**begun, "seed": "3"}, accept=False, defaults={"seed": "0"})


def test_a_function_cannot_be_told_from_another(tmp_path: Path) -> None:
    with pytest.raises(MlflowException, match="directory: keeps rows of models that are known"):
        mlflow_mcq.evaluate(
            lambda frame: ["A"] * len(frame), FRAME, targets="answer", evaluators="mcq_regex",
            directory=str(tmp_path),
        )  # fmt: skip


def test_one_place_for_rows_is_enough(server: FakeServer, tmp_path: Path) -> None:
    with pytest.raises(MlflowException, match="cache names another place"):
        evaluate(server, tmp_path, cache=str(tmp_path / "cache"))


def test_two_evaluations_at_once_are_refused(tmp_path: Path) -> None:
    first = open_directory(str(tmp_path), {"model": "a"}, accept=False)
    with pytest.raises(StoreError, match="directory: an evaluation is under way in it: process"):
        open_directory(str(tmp_path), {"model": "a"}, accept=False)
    first.close(finished=True)
    assert tmp_path.exists()
    open_directory(str(tmp_path), {"model": "a"}, accept=False).close(finished=False)


def test_who_was_refused_does_not_hold_the_directory(tmp_path: Path) -> None:
    open_directory(str(tmp_path), {"model": "a"}, accept=False).close(finished=True)
    with pytest.raises(StoreError, match="model: a, now b"):
        open_directory(str(tmp_path), {"model": "b"}, accept=False)
    open_directory(str(tmp_path), {"model": "a"}, accept=False).close(finished=True)


@pytest.mark.parametrize("torn", ["", '{"model": ', "\0\0\0"])
def test_a_torn_note_is_written_again(tmp_path: Path, torn: str) -> None:
    """Rows have keys of their own, so nothing is mixed by not knowing."""
    (tmp_path / "evaluation.json").write_text(torn)
    refuse_other(tmp_path, {"model": "a"}, accept=False)
    with pytest.raises(StoreError, match="model: a, now b"):
        refuse_other(tmp_path, {"model": "b"}, accept=False)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param("[]", id="a list"),
        pytest.param('{"accuracy": 0.5}', id="numbers"),
        pytest.param('{"evaluations": []}', id="one name alike"),
        pytest.param('{"model": "m", "score": "0.5"}', id="texts"),
        pytest.param("accuracy,0.5", id="no JSON"),
        pytest.param("[" * 100_000, id="deep"),
    ],
)
@pytest.mark.parametrize("accept", [False, True])
def test_a_file_of_somebody_else_is_not_written_over(
    tmp_path: Path, held: str, accept: bool
) -> None:
    note = tmp_path / "evaluation.json"
    note.write_text(held)
    with pytest.raises(StoreError, match=r"evaluation\.json that is not from here"):
        open_directory(str(tmp_path), {"model": "a"}, accept=accept)
    assert note.read_text() == held


@pytest.mark.parametrize("name", ["lock", "holder.json", "evaluation.json", "evaluation.json.new"])
def test_a_directory_that_cannot_be_written_to_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match=r"^directory: .*Name another directory") as caught:
        open_directory(str(tmp_path), {"model": "a"}, accept=False)
    assert "MLFLOW_MCQ_CACHE" not in str(caught.value)  # it has no say in where this one is


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_what_is_no_directory_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"^directory: .*Name another directory"):
        open_directory(f"{tmp_path}/{name}", {"model": "a"}, accept=False)


def test_each_arm_of_a_recipe_has_a_directory_of_its_own(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\ndata: nonsense:4\nmodel: demo:smollm2\nevaluators: [mcq_regex]\ndirectory: rows\n"
        "arms:\n  - {name: a}\n  - {name: a/b}\n  - {name: ..}\n  - {name: own, directory: mine}\n"
    )
    loaded = load_recipe(recipe)
    places = [loaded.settings_of(arm)["directory"] for arm in loaded.arms]
    assert places == ["rows/arm-a", "rows/arm-a%2Fb", "rows/arm-..", "mine"]


@pytest.mark.parametrize(
    ("arms", "names"),
    [
        pytest.param(
            "  - {name: a, directory: mine}\n  - {name: b, directory: ./mine/}\n", "a and b",
            id="two arms",
        ),
        pytest.param(
            "  - {name: a, directory: mine, grid: {top_k: [5, 9]}}\n", "a top_k.* and a top_k.*",
            id="a grid",
        ),
        pytest.param(
            "  - {name: a}\n  - {name: b, directory: rows/arm-a}\n", "a and b", id="another's"
        ),
    ],
)  # fmt: skip
def test_arms_that_share_a_directory_are_refused_before_anything_is_made(
    arms: str, names: str, tmp_path: Path
) -> None:
    """The second would be refused once the first had been made, or be given its rows."""
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\ndata: nonsense:4\nmodel: demo:smollm2\nevaluators: [mcq_regex]\n"
        f"directory: rows\narms:\n{arms}"
    )
    with pytest.raises(SettingsError, match=f"arms {names} name one directory"):
        load_recipe(recipe)
