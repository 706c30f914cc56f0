"""The site: whole, built without a network, and about all that there is."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pages import ROOT, blocks_of
from pydantic import BaseModel

import mlflow_mcq
from mlflow_mcq.cli.root import COMMANDS
from mlflow_mcq.datasets.layouts import LAYOUTS
from mlflow_mcq.diagnostics import arm, outputs, pair, steering
from mlflow_mcq.grader_settings import (
    AnalogySettings,
    LogprobSettings,
    RegexSettings,
    SimilaritySettings,
)
from mlflow_mcq.graders.exam_reply import load_exam
from mlflow_mcq.judge_settings import JudgeSettings, Prices
from mlflow_mcq.metrics import summarize
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols import LABEL_STYLES, PROTOCOLS, WORDINGS
from mlflow_mcq.records import Generation, Grade, Item, Reply
from mlflow_mcq.settings import EVALUATORS, Columns, Settings
from mlflow_mcq.statistics.rows import rows_of
from mlflow_mcq.statistics.selection_bias import by_slot
from mlflow_mcq.table import generations_frame, grades_frame

DOCS = ROOT / "docs"
SOURCES = sorted((ROOT / "mlflow_mcq").rglob("*.py"))
ROOMS = {
    "Settings": Settings,
    "judge": JudgeSettings,
    "judge.prices": Prices,
    "columns": Columns,
    "few_shot": FewShotSettings,
    "regex": RegexSettings,
    "analogy": AnalogySettings,
    "similarity": SimilaritySettings,
    "logprob": LogprobSettings,
}
# What a browser fetches by itself; a link that a person clicks is none of these.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\b(?:src|srcset)=["']?(?:https?:)?//"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|@import\s+["']?(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//""",
    re.IGNORECASE,
)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.skipif(
    not importlib.util.find_spec("mkdocstrings"), reason="the extra `docs` is not installed"
)
def test_the_site_is_whole_and_loads_nothing_from_the_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", ".ci/mkdocs.yml"],
        cwd=ROOT,
        # A proxy that nobody serves: whatever asks the network while building fails.
        env={**os.environ, "MCQ_SITE": str(tmp_path), "https_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
    assert {path.name for path in pages} >= {"index.html", "reference.html", "settings.html"}
    loud = {p.name: FETCHED.findall(p.read_text(encoding="utf-8")) for p in pages}
    assert not {name: found for name, found in loud.items() if found}
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert all(f'id="mlflow_mcq.{name}"' in reference for name in mlflow_mcq.__all__)


@pytest.mark.parametrize(
    ("html", "is_fetched"),
    [
        pytest.param('<script src="https://cdn.example/x.js">', True, id="script"),
        pytest.param("<link rel=stylesheet href=//fonts.example/css>", True, id="fonts"),
        pytest.param("@font-face{src:url(https://fonts.example/a.woff2)}", True, id="font face"),
        pytest.param('<a href="https://mlflow.org">', False, id="a link to click"),
        pytest.param('<script src="assets/bundle.js">', False, id="own script"),
    ],
)
def test_what_a_browser_fetches_is_told_from_links(html: str, is_fetched: bool) -> None:
    assert bool(FETCHED.search(html)) is is_fetched


def shown(field: Any) -> str:
    """A default as the tables write it."""
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    if field.is_required():
        return "must be given"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in (None, (), {}):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    return f"`{value}`" if isinstance(value, str) else f"{value:g}"


def rows_of_settings() -> Iterator[Any]:
    for room, model in ROOMS.items():
        for name, field in model.model_fields.items():
            yield pytest.param(room, name, shown(field), id=f"{room}.{name}")


@pytest.mark.parametrize(("room", "name", "default"), [*rows_of_settings()])
def test_every_setting_is_described_with_its_default(room: str, name: str, default: str) -> None:
    (section,) = re.findall(
        rf"^#+ {re.escape(room)}\n(.*?)(?=^#|\Z)", page("settings"), re.M | re.S
    )
    (row,) = re.findall(rf"^\| `{name}` \| (.+?) \| .+ \|$", section, re.MULTILINE)
    assert row == default


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        pytest.param("labels", [*LABEL_STYLES, "native"], id="styles of labels"),
        pytest.param("language", WORDINGS, id="languages"),
    ],
)
def test_every_word_of_a_setting_is_named_and_no_other(setting: str, words: Any) -> None:
    (meaning,) = re.findall(rf"^\| `{setting}` \| .+? \| (.+) \|$", page("settings"), re.M)
    assert set(re.findall(r"`([^`]+)`", meaning)) == set(words)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_named(name: str) -> None:
    assert f"`{name}`" in page("data")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_is_described(name: str) -> None:
    assert f"\n| `{name}` |" in page("protocols")


def alarms() -> set[str]:
    """Names of alarms as the rules write them."""
    sources = (Path(str(module.__file__)) for module in (arm, pair, outputs, steering))
    texts = [source.read_text(encoding="utf-8") for source in sources]
    return {name for text in texts for name in re.findall(r'Alarm\(\s*"([a-z_]+)"', text)}


def test_every_alarm_is_described() -> None:
    described = re.findall(r"^\| `([a-z_]+)` \| .+ \| .+ \|$", page("alarms"), re.MULTILINE)
    assert set(described) == alarms()
    assert len(alarms()) > 15


ROOMS_OF_METRICS = "<grader>|judge|regex_[a-z]+|generation|lint|data|cost|similarity|analogy"


@cache
def spelt() -> set[str]:
    """Every text in the sources, those between the braces of an f-string too."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES)
    texts = {
        node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    }
    return {text for text in texts if isinstance(text, str) and text}


def is_made(name: str, texts: set[str]) -> bool:
    """Whether a name stands in the sources, or is put together from a part that does."""
    stem = re.sub(r"_(?:low|high)$", "", re.sub(r"_(slot|label)_\w+$", r"_\1_", name))
    parts = [text for text in texts if text[0] == "_" and text[1:].isidentifier()]
    return any(stem in text for text in texts) or any(stem.endswith(part) for part in parts)


def test_every_metric_that_a_page_names_is_made() -> None:
    texts, lost, n_named = spelt(), [], 0
    for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        named = re.findall(rf"`(?:{ROOMS_OF_METRICS})/(\w+)`", path.read_text(encoding="utf-8"))
        n_named += len(named)
        lost += [f"{path.name}: {name}" for name in named if not is_made(name, texts)]
    assert not lost
    assert n_named > 40
    assert not is_made("accuracy_of_nobody", texts)


def grades_of_three() -> pd.DataFrame:
    items = [Item(f"q{n}", "Which?", ("p", "q"), n % 2) for n in range(3)]
    asked = [PROTOCOLS["letters"](i, o, chat=True) for i in items for o in plan_for(i, "rotations")]
    return grades_frame(
        Grade.of_choice(Generation(one, 0, Reply("B")), "judge", 1) for one in asked
    )


def test_every_count_of_a_run_is_described() -> None:
    made = {text for text in spelt() if re.fullmatch(r"(?:generation|data)/[a-z_]+", text)}
    told = set()
    for line in page("metrics").splitlines():
        rooms = re.findall(r"`(\w+)/\w+`", line)
        told |= {room + name for room in rooms for name in re.findall(r"`\w*(/\w+)`", line)}
    assert made <= told
    assert len(made) > 8


def test_every_number_of_a_grader_is_described() -> None:
    found = summarize(grades_of_three(), judged=True, replicates=20)
    made = {re.sub(r"_(?:low|high)$", "", name) for name in found.values}
    lost = [
        name
        for name in made
        if not re.search(rf"/{name}`|`_{name.rpartition('_')[2]}`", page("metrics"))
        and not name.startswith("pick_rate_slot_")
    ]
    assert not lost
    assert {"accuracy_highest", "judge_error_rate", "slot_shift"} <= made


def test_every_column_is_described() -> None:
    for name, frame in (
        ("mcq_generations", generations_frame([])),
        ("mcq_grades", grades_frame([])),
        ("mcq_by_slot", by_slot(rows_of(grades_of_three())).assign(grader="judge")),
    ):
        (section,) = re.findall(rf"^## {name}\n(.*?)^## ", page("tables"), re.M | re.S)
        named = {
            column
            for cell in re.findall(r"^\| (`.+?`) \| ", section, re.MULTILINE)
            for column in re.findall(r"`(\w+)`", cell)
        }
        assert named == set(frame.columns)


def test_every_table_of_a_run_is_named() -> None:
    pictures = {"mcq_by_orientation_chart", "mcq_temperature_chart", "mcq_confusion_"}
    scorers = {"mcq_accuracy", "mcq_accuracy_decided", "mcq_other_rate", "mcq_unread_rate"}
    made = {text for text in spelt() if re.fullmatch(r"mcq_[a-z_]+", text)}
    sources = "".join(file.read_text(encoding="utf-8") for file in SOURCES)
    variables = re.findall(r'ContextVar\("(\w+)"|ContextVar\[[^()]*\]\(\s*"(\w+)"', sources)
    tables = made - pictures - scorers - set(EVALUATORS) - {n for pair in variables for n in pair}
    told = set(re.findall(r"^## (mcq_\w+)|`(mcq_\w+?)0?`", page("tables"), re.MULTILINE))
    assert tables <= {name for pair in told for name in pair}
    assert len(tables) > 20


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_is_described_and_shown(command: Any) -> None:
    assert re.search(rf"^\| `{command.name}\b.*` \|", page("command-line"), re.MULTILINE)
    typed = "".join(block.text for block in blocks_of(DOCS / "command-line.md", "sh"))
    assert f"mlflow-mcq {command.name}" in typed


def test_every_public_name_is_on_the_page_of_reference() -> None:
    listed = re.findall(r"^::: mlflow_mcq\.(\w+)$", page("reference"), re.MULTILINE)
    assert sorted({*listed} - {"errors"}) == mlflow_mcq.__all__


def test_pages_say_how_large_the_exam_is() -> None:
    replies = load_exam()
    canaries = sum(reply.kind == "injection" for reply in replies)
    told = (len(replies), len({reply.language for reply in replies}), canaries)
    for name in ("judge", "which-judge"):
        (size,) = re.findall(r"(\d+) (?:labelled )?replies in (\d+) languages", page(name))
        assert tuple(map(int, size)) == told[:2]
    assert set(re.findall(r"`canaries: (\d+)`", page("judge"))) == {str(canaries)}
    assert f"left out all {len(replies)}," in page("settings")


def test_every_shipped_recipe_is_described() -> None:
    for path in (ROOT / "recipes").glob("*.yaml"):
        assert f"\n| `{path.stem}` |" in page("recipes")


def test_versions_agree() -> None:
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
