"""What is shipped, and what an import does: no file is forgotten, no network is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMPORT_ALL = """
import importlib, pkgutil, socket

def refuse(*_, **__):
    raise AssertionError("an import reaches for the network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
import mlflow_mcq

for module in pkgutil.walk_packages(mlflow_mcq.__path__, "mlflow_mcq."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_no_import_reaches_for_the_network() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_file_that_is_no_code_is_shipped() -> None:
    package = ROOT / "mlflow_mcq"
    known = set(PROJECT["tool"]["setuptools"]["package-data"]["mlflow_mcq"])
    there = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert there == known
    assert "py.typed" in known


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "mlflow_mcq").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_dependency_has_a_lowest_release() -> None:
    # certifi has dates for releases, and every one of them will do.
    loose = {
        r.name for r in map(Requirement, PROJECT["project"]["dependencies"]) if not r.specifier
    }
    assert loose == {"certifi"}


def test_recipes_are_plain_data_without_keys() -> None:
    for path in (ROOT / "recipes").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert yaml.safe_load(text)["name"]
        assert "!!" not in text
        assert "api_key:" not in text
