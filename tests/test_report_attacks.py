"""The report shows every attack, in every place where a stranger's text may stand, as text."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from attacks import ATTACKS

from mlflow_mcq.comparison import page
from mlflow_mcq.comparison.page import PageData, render_page
from mlflow_mcq.table import storable

TEXTS = [text for _, text in ATTACKS] + [
    "<script>alert(1)</script>",
    '"><svg/onload=alert(1)>',
    "</pre></td></table><iframe src=//x>",
    "</style><style>*{display:none}",
    "</title><base href=//x>",
    "<!--",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
]


class Tags(HTMLParser):
    """The tags of a page with their attributes, and all of its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Any] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def rendered(text: str, monkeypatch: pytest.MonkeyPatch) -> Tags:
    """A page on which everything that can be somebody's own says this."""
    monkeypatch.setattr(page, "headline", lambda contrast: text)
    monkeypatch.setattr(page, "answers", lambda contrast: [(text, text)])
    arm = SimpleNamespace(name=text)
    said = {f"{what}: {text}": text for what in ("letter", "answer", "reason")}
    row = {
        "row_id": text, "change": text, "question": text, "options_shown": text,
        "gold_letter": text, f"verdict: {text}": "OTHER", **said,
    }  # fmt: skip
    alarm = dict.fromkeys(("alarm", "arm", "baseline", "rule", "found", "next_step"), text)
    tables = {
        "arms_compared": pd.DataFrame([{"arm": text, "role": "r", "run_id": "i"}]),
        "deltas": pd.DataFrame([{text: text, "value": 0.5}]),
        "alarms": pd.DataFrame([alarm]),
        "differing": pd.DataFrame([row]),
    }
    contrast: Any = SimpleNamespace(grader=text, treatment=arm, baseline=arm)
    return Tags(render_page(PageData(text, [contrast], [text], tables, [], True)))


def test_no_text_adds_a_tag_and_all_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rendered("plain", monkeypatch).found
    assert len(plain) > 20
    pages = {text: rendered(text, monkeypatch) for text in map(storable, TEXTS)}
    assert [text for text, shown in pages.items() if shown.found != plain] == []
    lost = [text for text, shown in pages.items() if "".join(shown.said).count(text[:50]) < 10]
    assert lost == []
