"""A key that stands in a recipe, or in an address of it, is never repeated."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_server import FakeServer, Script
from test_secrets import KEY, SECRETS, leaks, with_secrets

from mlflow_mcq.errors import McqError
from mlflow_mcq.recipe import load_recipe, run_recipe

ARMS = "name: r\ndata: items.jsonl\nmodel: m\narms: [{name: a}]\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{ARMS}judge: {{model: m, base_url: h, api_key: {KEY}}}", id="api_key"),
        pytest.param(f"{ARMS}judge: {KEY}", id="in place of a judge"),
        pytest.param(
            f"{ARMS}judge: {{model: m, base_url: 'http://h/v1', api_key_env: {KEY}}}", id="pasted"
        ),
        pytest.param(f"{ARMS}judge: {{api_key: {KEY}, model: [}}", id="no YAML"),
        pytest.param(f"{ARMS}api_key: {KEY}", id="as a setting"),
        pytest.param(f"{ARMS}seed: !!int {KEY}", id="no number"),
        pytest.param(
            "name: r\ndata: items.jsonl\narms: [{name: a, model: {model: m, "
            f"base_url: 'http://h/v1', api_key: {KEY}}}}}]\n", id="of a model",
        ),
        pytest.param(f"name: r\narms: [{{name: a, data: d, model: m, k: {KEY}}}]", id="in an arm"),
    ],
)  # fmt: skip
def test_what_is_refused_is_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(McqError) as caught:
        load_recipe(path)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    assert [one for one in SECRETS if one in shown] == []


@pytest.fixture
def store(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual one, with a cache of its own and a key in the environment."""
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(store / "home"))
    monkeypatch.setenv("CANARY_KEY", KEY)
    return store


def test_a_recipe_that_was_run_holds_no_secret(
    store: Path,
    judge_server: Callable[[Script], FakeServer],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    caplog.set_level(logging.DEBUG)
    server = judge_server(lambda request, n: "I should think the first one, all in all")
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "items.jsonl").write_text(
        '{"question": "q?", "options": ["x", "y"], "answer": "A"}\n'
    )
    url = with_secrets(server.url)
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        "name: r\ndata: items.jsonl\n"
        f"model: {{base_url: '{url}', model: m, api_key_env: CANARY_KEY}}\n"
        f"judge: {{base_url: '{server.url}', model: j, api_key_env: CANARY_KEY, exam_replies: 0}}\n"
        "orientations: as-is\narms: [{name: a}]\n"
    )
    run_recipe(recipe)
    assert {header["authorization"][:6] for header in server.headers} == {"Basic ", "Bearer"}
    assert leaks(store) == []
    shown = "".join(capfd.readouterr()) + caplog.text
    assert [one for one in SECRETS if one in shown] == []
