"""README and docs are run, not believed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import mlflow
import pytest
import yaml
from fake_server import FakeServer
from pages import (
    ROOT,
    answer,
    blocks_of,
    name_of,
    on_server,
    pages_with,
    write_files,
    write_weights,
)

from mlflow_mcq.cli.root import cli
from mlflow_mcq.protocols import PROTOCOLS
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.tracking import RunLog

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeServer]:
    """One store, one cache and one scripted server for all pages: each takes seconds to make."""
    folder, server = tmp_path_factory.mktemp("pages"), FakeServer(answer)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-none")
        patch.setenv("MLFLOW_MCQ_CACHE", str(folder / "cache"))
        patch.chdir(folder)  # MLflow puts artifacts beside the caller
        # Half of the time would go into pictures, which have tests of their own.
        patch.setattr(RunLog, "figure", lambda log, name, figure: None)
        write_files(folder)
        write_weights(folder / "my-org-70b")
        yield server
    mlflow.set_tracking_uri(before)
    server.close()


@pytest.fixture
def own_protocols() -> Iterator[None]:
    """A page may add a protocol; the tests after it know only those that ship."""
    shipped = dict(PROTOCOLS)
    yield
    PROTOCOLS.clear()
    PROTOCOLS.update(shipped)


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_every_python_block_runs_in_order(
    page: Path, scripted: FakeServer, own_protocols: None
) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page, "python"):
        said = io.StringIO()
        code = "\n" * block.line + on_server(block.text, scripted.url)
        with contextlib.redirect_stdout(said):
            exec(compile(code, name_of(page), "exec"), names)
        if block.printed is not None:
            assert said.getvalue() == block.printed, f"{name_of(page)}:{block.line}"
    if any("OPENAI_API_KEY" in block.text for block in blocks_of(page, "python")):
        assert "Bearer sk-none" in {one.get("authorization") for one in scripted.headers}


@pytest.mark.parametrize("page", pages_with("sh"), ids=name_of)
def test_every_command_is_one_that_there_is(page: Path) -> None:
    text = "\n".join(block.text for block in blocks_of(page, "sh"))
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "mlflow-mcq" in words:
            _parse(words[words.index("mlflow-mcq") + 1 :])
        elif "mlflow_mcq" in words:
            _parse(words[words.index("mlflow_mcq") + 1 :])
        elif words[:2] == ["mlflow", "run"]:
            _check_project(words)


def _parse(words: list[str]) -> None:
    """Let click read the arguments; nothing is run."""
    group = click.Context(cli, info_name="mlflow-mcq")
    name, command, rest = cli.resolve_command(group, words)
    assert command is not None
    with contextlib.suppress(click.exceptions.Exit):  # --help has spoken
        command.make_context(name, rest, parent=group)


def _check_project(words: list[str]) -> None:
    points = yaml.safe_load((ROOT / "MLproject").read_text(encoding="utf-8"))["entry_points"]
    point = points[words[words.index("-e") + 1] if "-e" in words else "main"]
    given = [words[place + 1] for place, word in enumerate(words) if word == "-P"]
    assert {one.partition("=")[0] for one in given} <= set(point["parameters"])


@pytest.mark.parametrize("page", pages_with("yaml"), ids=name_of)
def test_every_recipe_is_one_that_loads(page: Path, tmp_path: Path) -> None:
    for block in blocks_of(page, "yaml"):
        path = tmp_path / "recipe.yaml"
        given = yaml.safe_load(block.text)
        # A part of a recipe is tried in the smallest whole one.
        whole = {"name": "part", "data": "items.jsonl", "arms": [{"name": "one"}], **given}
        whole = given if "arms" in given or "regrade" in given else whole
        judge = {"model": "judge", "base_url": "http://localhost:8000/v1"}
        path.write_text(yaml.safe_dump({"judge": judge, **whole}), encoding="utf-8")
        assert load_recipe(path).name == whole["name"], f"{name_of(page)}:{block.line}"


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```sh\nmlflow-mcq fly\n```\n")
    (block,) = blocks_of(page, "python")
    assert (block.text, block.printed) == ("print(1)\n", "2\n")
    with pytest.raises(click.UsageError, match="No such command"):
        _parse(shlex.split(blocks_of(page, "sh")[0].text)[1:])
    with pytest.raises(click.UsageError, match="--modle"):
        _parse(["run", "recipe.yaml", "--modle", "m"])


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_stand_where_machines_find_them(name: str) -> None:
    (block,) = re.findall(rf"<!-- {name} -->\n```sh\n(.+)\n```\n<!-- end -->", README)
    assert "-c .ci/constraints.txt" in block
    assert (ROOT / ".ci/constraints.txt").is_file()


def test_a_newcomer_is_done_with_the_readme_in_minutes() -> None:
    assert len(README.splitlines()) <= 260
