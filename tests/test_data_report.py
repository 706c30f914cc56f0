"""A native file through the front door: what the run says of its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from native_rows import NATIVE

import mlflow_mcq

pytestmark = pytest.mark.usefixtures("store")


def always_a(frame: pd.DataFrame) -> list[str]:
    return ["A"] * len(frame)


def test_a_native_file_with_bad_rows(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = NATIVE["truthfulqa"][0][0]
    rows: list[dict[str, Any]] = [
        {**item, "question": f"{item['question']} ({i})"} for i in range(14)
    ]
    rows[3] = {**rows[3], "mc1_targets": {"choices": ["x", "y"], "labels": [0, 0]}}
    path = store / "truthful.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = mlflow_mcq.evaluate(
        always_a,
        path,
        evaluators="mcq_regex",
        orientations="as-is",
        on_bad_rows="skip",
        limit=12,
    )
    said = capsys.readouterr().err
    assert "read as: TruthfulQA MC1, 13 items, 3 options, gold is option 1 in all" in said
    numbers = {k: v for k, v in result.metrics.items() if k.startswith("data/")}
    assert numbers == {
        "data/gold_slot_share_highest": 1.0,
        "data/n_items": 12.0,
        "data/n_skipped": 1.0,
    }
    (bad,) = result.tables["mcq_bad_rows"].to_dict("records")
    assert bad["row"] == 3
    assert "must mark exactly one choice" in bad["error"]
    assert {"gold_position", "unreadable"} <= set(result.tables["mcq_lint"]["rule"])
    run = MlflowClient().get_run(result.run_id)
    assert run.data.params["mcq.layout"] == run.data.tags["mcq.layout"] == "truthfulqa"
    assert run.data.tags["mcq.data"].endswith("12 of them are measured")
    # All right, and worth nothing.
    assert result.metrics["regex_bounded/accuracy"] == 1.0
    assert "gold_in_one_slot" in run.data.tags["mcq.alarms"]


def test_stored_answers_stay_with_their_rows_when_some_are_left_out() -> None:
    item = NATIVE["piqa"][0][0]
    frame = pd.DataFrame(
        {
            **{name: [value] * 4 for name, value in item.items()},
            "label": [1, 7, 0, 1],
            "id": ["p", "q", "r", "s"],
            "said": ["B", "B", "A", "A"],
        }
    )
    result = mlflow.models.evaluate(
        data=frame,
        predictions="said",
        model_type="multiple-choice",
        evaluators="mcq_regex",
        evaluator_config={"on_bad_rows": "skip", "lint": False},
    )
    stored = result.tables["mcq_generations"].set_index("item_id")["generation"]
    assert stored.to_dict() == {"p": "B", "r": "A", "s": "A"}
    assert result.metrics["regex_bounded/accuracy"] == pytest.approx(2 / 3)
    assert "mcq_lint" not in result.tables


def test_an_unknown_layout_is_refused_before_a_run() -> None:
    with pytest.raises(mlflow_mcq.errors.SettingsError, match='Did you mean "piqa"'):
        mlflow_mcq.evaluate(always_a, "x.jsonl", evaluators="mcq_regex", layout="piq")
