"""No stranger's text is more than text in a report, as a real browser has it.

`test_report_attacks` asks a parser; here a browser runs what it finds. The policy inside the
page would stop a script even where a text got out, so the page is also opened without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from attacks import ATTACKS
from chromium import CHROMIUM, Watched
from fake_server import FakeServer
from jinja2 import Template
from mlflow import MlflowClient
from scripts_of_strangers import PAYLOADS

import mlflow_mcq
from mlflow_mcq.table import storable

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (apt install chromium)"),
]

# What is taken for a thought is not answered by: such rows say nothing and differ in nothing.
MARKUP = [text for kind, text in ATTACKS if kind in ("markup", "unseen") and "think>" not in text]
# What a DataFrame can hold: no half of a pair of surrogates.
TEXTS = [storable(text) for text in [*(text for text, _ in PAYLOADS), *MARKUP]]
ARMS = (
    "<img data-theirs src=x onerror=ran('baseline')>",
    "\"'><svg data-theirs onload=ran('arm')>$x^2$",
)
# Every element of ours with its attributes; ids, sizes and colours are matplotlib's own.
OURS = {
    "html": "lang", "head": "", "title": "", "style": "type", "body": "", "h1": "", "h2": "",
    "meta": "charset content http-equiv name", "p": "class", "strong": "", "dl": "", "dt": "",
    "dd": "", "div": "class", "br": "", "span": "class", "table": "class", "colgroup": "",
    "col": "style", "thead": "", "tbody": "", "tr": "", "th": "", "td": "class", "pre": "",
    "figure": "", "defs": "", "g": "id style transform clip-path", "path": "d id style clip-path",
    "svg": "height version viewBox width xmlns xmlns:xlink", "text": "style transform x y",
    "use": "x y xlink:href style", "clipPath": "id", "rect": "x y width height",
    "image": "id width height transform x y xlink:href clip-path", "tspan": "x y style",
}  # fmt: skip
_ELEMENTS = """[...document.querySelectorAll('*')].map(one => [
    one.tagName.includes(':') || one instanceof SVGElement ? one.tagName : one.localName,
    Object.fromEntries([...one.attributes].map(a => [a.name, a.value]))])"""


def frame_of(texts: list[str], letter: str) -> pd.DataFrame:
    """A data set in which everything that can be somebody's text is one of these."""
    n = len(texts)
    return pd.DataFrame(
        {
            "<b data-theirs>id": [f"{text} {i}" for i, text in enumerate(texts)],
            "<i onload=ran(1)>": texts,
            "choices": [[texts[(i + 1) % n] + " 1", texts[(i + 2) % n] + " 2"] for i in range(n)],
            "key": ["AB"[i % 2] for i in range(n)],
            "reply": [f"{letter}: {text}" for text in texts],
        }
    )


COLUMNS = {
    "id": "<b data-theirs>id", "question": "<i onload=ran(1)>", "options": "choices",
    "answer": "key", "generation": "reply",
}  # fmt: skip


def judged(request: dict[str, Any], n_calls: int) -> str:
    """Names what the reply begins with. What a judge says itself is on no report."""
    reply = request["messages"][-1]["content"].split("The candidate's reply:")[1]
    return "".join(re.findall(r"^([AB]): ", reply, flags=re.MULTILINE)[:1]) or "OTHER"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every HTML file that two arms and their comparison leave."""
    folder = tmp_path_factory.mktemp("strangers")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("e", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("e")
    judge = FakeServer(judged)
    who = {"model": "j", "base_url": judge.url, "exam_replies": 0, "check_rows": 0}
    runs = []
    for name, says in zip(ARMS, "AB", strict=True):
        with mlflow.start_run(run_name=name):
            done = mlflow_mcq.evaluate(
                None, frame_of(TEXTS, says), judge=who, columns=COLUMNS, cache="off"
            )  # fmt: skip
        runs.append(str(done.run_id))
    found = mlflow_mcq.compare(runs, trace_rows=0)
    judge.close()
    for run in (*runs, found.run_id):
        MlflowClient().download_artifacts(run, "", str(folder / "all" / run))
    mlflow.set_tracking_uri(before)
    return sorted((folder / "all").rglob("*.htm*"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    watched = Watched(tmp_path_factory.mktemp("browser"))
    yield watched
    watched.close()


def strange_elements(browser: Watched) -> list[Any]:
    """Elements that we do not write, or with what we do not write on them."""
    return [
        (tag, values)
        for tag, values in browser.told(_ELEMENTS)
        if tag not in OURS
        or not set(values) <= {*OURS[tag].split(), "class"} - {"data-theirs"}
        or not values.get("xlink:href", "#").startswith(("#", "data:image/png"))
    ]


def collapsed(text: str) -> str:
    """A text as a reader tells it from another one: runs of white space are one space."""
    # HTML has no way to hold a NUL; a browser passes over it.
    return re.sub(r"\s+", " ", text.replace("\x00", "")).strip()


def doings(browser: Watched) -> list[Any]:
    """All that a page did besides being there."""
    return [*browser.ran, *browser.asked, *browser.went, *strange_elements(browser)]


def test_the_report_is_the_only_page_that_is_written(reports: list[Path]) -> None:
    assert [path.name for path in reports] == ["mcq_report.html"]


@pytest.mark.parametrize("policy", ["with its policy", "without its policy"])
@pytest.mark.parametrize("place", ["from a file", "from a server"])
def test_no_text_of_a_stranger_does_anything(
    reports: list[Path], browser: Watched, tmp_path: Path, place: str, policy: str
) -> None:
    page = reports[0].read_text(encoding="utf-8")
    bare, n_policies = re.subn(r"<meta http-equiv=[^>]*>", "", page, count=1)
    assert n_policies == 1
    text = page if policy == "with its policy" else bare
    shown = tmp_path / "report.html"
    shown.write_text(text, encoding="utf-8")
    url = shown.as_uri() if place == "from a file" else browser.serve("/report.html", text)
    browser.open(url, wait_ms=500)
    assert doings(browser) == []
    assert browser.told("document.title") == f"{ARMS[1]} against {ARMS[0]}"
    assert browser.told("document.querySelectorAll('figure svg').length") >= 5


def test_every_text_can_be_read(reports: list[Path], browser: Watched) -> None:
    browser.open(reports[0].as_uri())
    seen = collapsed(browser.told("document.body.innerText"))
    # Once in a question, twice among options, once in each arm's answer.
    rare = [text for text in TEXTS if seen.count(collapsed(text)[:300]) < 5]
    assert rare == []
    assert all(name in seen for name in ARMS)


@pytest.mark.parametrize(
    ("text", "page"), [pytest.param(*one, id=f"{k}") for k, one in enumerate(PAYLOADS) if one[1]]
)
def test_a_careless_page_is_caught(browser: Watched, text: str, page: str) -> None:
    """The same look at the same texts where nobody escapes: or the tests above are blind."""
    if "{%" in text:  # a careless page fills in what looks like a field of its own
        text = Template(text).render()
    url = browser.serve("/careless.html", f"<!doctype html>{page.replace('%s', text)}")
    for wait_ms in (0, 500):
        browser.open(url, wait_ms)
        theirs = [values for _, values in strange_elements(browser) if "data-theirs" in values]
        if browser.ran or browser.asked or browser.went or theirs:
            return
    assert text not in browser.told("document.body.innerText")
    assert "&" in text  # a text that is read as another one
