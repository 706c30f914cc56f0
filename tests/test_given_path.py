"""Paths as people write them: what cannot be followed is said before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlflow_mcq.cli.recipes import found
from mlflow_mcq.datasets.built import located
from mlflow_mcq.datasets.sources import load_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.engines.embedder import SentenceEmbedder
from mlflow_mcq.errors import DataError, McqError, SettingsError, StoreError
from mlflow_mcq.experiment.recipe_file import read_recipe_file
from mlflow_mcq.given_path import existing_file, home_path
from mlflow_mcq.graders.judge_cache import JudgeCache
from mlflow_mcq.importers.lm_eval import from_lm_eval_samples
from mlflow_mcq.settings import Settings
from mlflow_mcq.store.journal import open_directory, open_journal
from mlflow_mcq.store.row_store import RowStore

LONG = "x" * 300 + ".csv"
NOBODYS = "~nobody-of-this-name/x"


@pytest.mark.parametrize(
    "open_file",
    [
        pytest.param(load_data, id="data"),
        pytest.param(lambda path: load_part(path, None, Settings(limit=1)), id="data, in parts"),
        pytest.param(from_lm_eval_samples, id="log"),
        pytest.param(found, id="recipe's name"),
        pytest.param(lambda path: read_recipe_file(Path(path)), id="recipe's file"),
        pytest.param(existing_file, id="file"),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(LONG, id="name too long"),
        pytest.param("a/" * 3000 + "x.csv", id="path too long"),
        pytest.param("a\0b.csv", id="a zero"),
        pytest.param("file:///x.csv", id="an address"),
        pytest.param(NOBODYS + ".csv", id="home of nobody"),
        pytest.param("x.csv/y.csv", id="not there"),
    ],
)
def test_a_file_that_cannot_be_found_is_our_own_error(
    open_file: Callable[[str], object], path: str
) -> None:
    with pytest.raises((DataError, SettingsError)):
        open_file(path)


@pytest.mark.parametrize(
    ("open_folder", "setting", "kind"),
    [
        pytest.param(lambda path: open_directory(path, {}, False), "directory", StoreError),
        pytest.param(lambda path: open_journal(path, "abc"), "cache", StoreError),
        pytest.param(RowStore, "cache", StoreError),
        pytest.param(lambda path: JudgeCache(path, "a"), "judge.cache_dir", SettingsError),
        pytest.param(
            lambda path: SentenceEmbedder("m", cache_dir=path), "similarity.cache_dir",
            SettingsError,
        ),
    ],
    ids=["directory", "journal", "rows", "judge", "vectors"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param(NOBODYS, "begins with the home folder of a user", id="home of nobody"),
        pytest.param("a\0b", "holds a zero byte", id="a zero"),
    ],
)
def test_a_folder_that_cannot_be_named_is_our_own_error(
    open_folder: Callable[[str], object],
    setting: str,
    kind: type[McqError],
    path: str,
    rule: str,
) -> None:
    with pytest.raises(kind, match=f"^{setting}: {rule}"):
        open_folder(path)


def test_a_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_path("~/rows", "directory", StoreError) == tmp_path / "rows"
    assert SentenceEmbedder("m", cache_dir="~/vectors").cache_dir == tmp_path / "vectors"
    assert located("~/quiz.csv", Path("recipes")) == str(tmp_path / "quiz.csv")


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        pytest.param("file:///data/quiz.csv", "Give its path: /data/quiz.csv.", id="file"),
        pytest.param("FILE:///quiz.csv", "Give its path: /quiz.csv.", id="in capitals"),
        pytest.param("file:///", "hf:owner/name", id="nothing behind it"),
        pytest.param("file://host/quiz.csv", "hf:owner/name", id="file of another machine"),
        pytest.param("s3://bucket/quiz.csv", "hf:owner/name", id="store"),
    ],
)
def test_an_address_in_a_recipe_is_named_as_it_was_written(address: str, advice: str) -> None:
    with pytest.raises(DataError, match="is an address") as caught:
        load_data(located(address, Path("recipes")))
    assert f"got {address!r}" in str(caught.value)
    assert advice in str(caught.value)


def test_a_file_that_is_not_there_is_met_with_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "quiz.csv").touch()
    with pytest.raises(DataError, match="does not exist") as caught:
        existing_file(tmp_path / "quizz.csv")
    assert f'Did you mean "{tmp_path / "quiz.csv"}"?' in str(caught.value)
    with pytest.raises(DataError) as caught:
        existing_file(tmp_path / "other.csv")
    assert "Did you mean" not in str(caught.value)
