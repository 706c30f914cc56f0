"""A configuration of Twinkle Eval in place of a recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.experiment.twinkle_config import KEY_VARIABLE
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.settings import read_settings

SECRET = "tk-do-not-show-4711"
ROW = {"id": "r1", "question": "1 + 1?", "A": "1", "B": "2", "C": "3", "answer": "B"}


def written(folder: Path, evaluation: dict[str, Any] | None = None, **model: Any) -> Path:
    for place in ("sets/sums/one.jsonl", "sets/sums/deep/two.jsonl", "more.jsonl"):
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(ROW), encoding="utf-8")
    config = {
        "llm_api": {"base_url": "http://127.0.0.1:9/v1", "api_key": SECRET, "max_workers": 3,
                    "timeout": 20, "api_rate_limit": 2},
        "model": {"name": "twin", "temperature": 0.3, "top_p": 0.9, "max_tokens": 77, **model},
        "evaluation": {"dataset_paths": ["sets/sums/"], "evaluation_method": "box",
                       "shuffle_options": True, "repeat_runs": 3, **(evaluation or {})},
        "logging": {"level": "INFO"},
    }  # fmt: skip
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def test_it_is_translated_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = load_recipe(written(tmp_path))
    said = capsys.readouterr().err
    assert [arm.name for arm in recipe.arms] == ["sums/deep/two.jsonl", "sums/one.jsonl"]
    settings = read_settings(recipe.settings_of(recipe.arms[0]))
    assert (settings.orientations, settings.repeats) == ("shuffles:3", 1)
    assert (settings.temperature, settings.top_p, settings.max_new_tokens) == (0.3, 0.9, 77)
    assert settings.language == "zh"
    assert recipe.tables == ("repeats",)
    assert recipe.evaluators_of(recipe.arms[0]) == ["mcq_regex"]
    model = recipe.model_of(recipe.arms[0])
    assert (model.model, model.concurrency, model.timeout_s) == ("twin", 3, 20)
    assert model.api_key_env == KEY_VARIABLE
    assert "shuffles:3" in said
    assert "not taken over: llm_api.api_rate_limit, logging" in said
    assert SECRET not in said + repr(recipe)


@pytest.mark.parametrize(
    ("evaluation", "name", "value"),
    [
        pytest.param({"shuffle_options": False}, "orientations", "as-is", id="not shuffled"),
        pytest.param({"shuffle_options": False}, "repeats", 3, id="runs are repeats"),
        pytest.param({"repeat_runs": 1}, "orientations", "shuffles:1", id="one run"),
        pytest.param(
            {"datasets_prompt_map": {"sets/sums/": "en"}}, "language", "en", id="language"
        ),
        pytest.param({"evaluation_method": "pattern"}, "protocol", "letters", id="pattern"),
    ],
)
def test_evaluation(tmp_path: Path, evaluation: dict[str, Any], name: str, value: Any) -> None:
    recipe = load_recipe(written(tmp_path, evaluation))
    assert getattr(read_settings(recipe.settings_of(recipe.arms[0])), name) == value


def test_logit_switches_the_letter_scores_on(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, {"evaluation_method": "logit"}))
    assert read_settings(recipe.settings_of(recipe.arms[0])).logprob.enabled


def test_files_and_folders_and_a_judge(tmp_path: Path) -> None:
    paths = {"dataset_paths": ["more.jsonl", "sets/sums/deep"]}
    judge = {"judge_model": "j", "judge_url": "http://127.0.0.1:9/v1"}
    recipe = load_recipe(written(tmp_path, paths), judge)
    assert [arm.name for arm in recipe.arms] == ["more.jsonl", "deep/two.jsonl"]
    assert recipe.evaluators_of(recipe.arms[0]) == ["mcq_judge", "mcq_regex"]


@pytest.mark.parametrize(
    ("evaluation", "model", "said"),
    [
        pytest.param({"evaluation_method": "math"}, {}, "pattern, box, logit", id="no choice"),
        pytest.param({"dataset_paths": []}, {}, "dataset_paths", id="no data"),
        pytest.param({"dataset_paths": ["nowhere/"]}, {}, "no data file", id="no such folder"),
        pytest.param({"repeat_runs": True}, {}, "repeat_runs", id="runs that are no number"),
        pytest.param({}, {"presence_penalty": 0.5}, "presence_penalty", id="a penalty"),
        pytest.param({}, {"extra_body": {"seed": 1}}, "extra_body", id="more to send"),
        pytest.param({}, {"name": ""}, "model.name", id="no model"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(
    tmp_path: Path, evaluation: dict[str, Any], model: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        load_recipe(written(tmp_path, evaluation, **model))
