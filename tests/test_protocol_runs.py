"""Every protocol from what a user types to what stands in the run."""

from __future__ import annotations

import re
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient

import mlflow_mcq
from mlflow_mcq.arm import measure, read
from mlflow_mcq.datasets.frame import items_of, read_rows
from mlflow_mcq.engines.pyfunc import CallableEngine
from mlflow_mcq.graders import REGEX_GRADERS
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.protocols import PROTOCOLS, reads_of
from mlflow_mcq.settings import read_settings
from mlflow_mcq.table import generations_frame

pytestmark = pytest.mark.usefixtures("shared_store")

FRAME = pd.DataFrame(
    {
        "id": ["metal", "star", "sea"],
        "question": ["Which metal is liquid?", "Which is the nearest star?", "Which is salty?"],
        "options": [
            ["copper", "mercury", "tin", "lead"],
            ["Sirius", "Vega", "the Sun", "Rigel"],
            ["the sea", "a brook", "rain", "dew"],
        ],
        "answer": ["B", "C", "A"],
    }
)
GOLD = ("mercury", "the Sun", "the sea", "None of the other options")
TRAIN = [
    {"question": f"Example {n}?", "options": [f"e{n}a", f"e{n}b", f"e{n}c", f"e{n}d"], "answer": a}
    for n, a in enumerate("ABCDAB")
]


def run(model: Any, evaluators: str = "mcq_regex", **settings: Any) -> tuple[Any, Any]:
    with mlflow.start_run() as active:
        result = mlflow_mcq.evaluate(model, FRAME, evaluators=evaluators, **settings)
    return result, MlflowClient().get_run(active.info.run_id)


def knower(frame: pd.DataFrame) -> list[str]:
    """Names the label of the right option where it sees one, else the option's text."""
    replies = []
    for prompt in frame["prompt"]:
        lines = [line for line in prompt.split("\n\n")[-2].splitlines() if line]
        right = [line for line in lines if line.endswith(GOLD)]
        replies.append(right[0].partition(")")[0].strip() if right else "mercury")
    return replies


def top(frame: pd.DataFrame) -> list[str]:
    """Says the label of the first option, whatever it is called."""
    found = [re.search(r"^(\w+)\) ", prompt, re.MULTILINE) for prompt in frame["prompt"]]
    return [match[1] if match else "I cannot know yet." for match in found]


def measured(model: Any, **settings: Any) -> tuple[pd.DataFrame, dict[str, float]]:
    """The same without MLflow: rows and numbers of the bounded regex."""
    chosen = read_settings(settings)
    items = items_of(read_rows(FRAME, chosen.columns))
    requests = requests_for(items, chosen, chat=False)
    arm = measure(CallableEngine(model), requests, chosen)
    read(arm, [REGEX_GRADERS["regex_bounded"]])
    return generations_frame(arm.generations), arm.summaries["regex_bounded"].values


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_runs_from_one_word(protocol: str) -> None:
    rows, _ = measured(knower, protocol=protocol)
    assert set(rows["protocol"]) == {protocol}
    assert len(rows) == (3 if protocol == "cloze" else 12)
    assert rows["prompt"].str.len().min() > 20


@pytest.mark.parametrize("protocol", ["dashes", "letters-shuffled-labels", "options-last"])
def test_what_was_used_is_on_record(protocol: str) -> None:
    result, stored = run(knower, protocol=protocol)
    params, tags = stored.data.params, stored.data.tags
    assert set(result.tables["mcq_generations"]["protocol"]) == {protocol}
    assert params["mcq.protocol"] == protocol
    assert ("mcq.labels" in params) is ("labels" in reads_of(protocol))
    assert (params["mcq.temperature"], params["mcq.top_k"]) == (
        ("0.6", "20") if protocol == "dashes" else ("0.0", "0")
    )
    assert len(tags["mcq.prompts_digest"]) == 12
    assert tags["mcq.status"] == "finished"


@pytest.mark.parametrize("labels", ["upper", "lower", "digits", "katakana", ["P", "Q", "R", "S"]])
@pytest.mark.parametrize("protocol", ["letters", "letters-shuffled-labels", "none-of-the-above"])
def test_a_model_that_knows_scores_one_under_any_labels(protocol: str, labels: Any) -> None:
    _, values = measured(knower, protocol=protocol, labels=labels)
    assert values["accuracy"] == 1.0
    assert values["consistency"] == 1.0


def test_a_taste_for_the_top_is_told_from_a_taste_for_a_letter() -> None:
    _, found = measured(top, protocol="letters-shuffled-labels")
    assert found["pick_rate_slot_1"] == 1.0
    assert found["pick_rate_label_A"] < 0.7
    _, parrot = measured(lambda frame: ["A"] * len(frame), protocol="letters-shuffled-labels")
    assert parrot["pick_rate_label_A"] == 1.0
    assert parrot["pick_rate_slot_1"] < 0.7


@pytest.mark.parametrize("how", ["swap", "rotation"])
@pytest.mark.parametrize("slot", [0, 3])
def test_moving_the_right_answer_is_what_a_taste_for_the_top_feeds_on(how, slot) -> None:
    rows, values = measured(top, orientations=f"gold-at:{slot}:{how}")
    assert values["accuracy"] == float(slot == 0)
    assert list(rows["orientation_name"]) == [f"gold-at:{slot}:{how}"] * 3


def test_a_replaced_option_is_not_counted_as_one_that_cannot_move() -> None:
    _, stored = run(knower, protocol="none-of-the-above", labels="digits")
    assert stored.data.tags["mcq.items_with_fixed_options"] == "0"


def test_cloze_says_that_nothing_has_a_place() -> None:
    result, _ = run(lambda frame: ["mercury"] * len(frame), "mcq_analogy", protocol="cloze")
    assert result.metrics["analogy/accuracy"] == pytest.approx(1 / 3)
    read = [name for name in result.metrics if name.startswith("analogy")]
    assert not [name for name in read if "slot" in name or "consistency" in name]
    summary = result.tables["mcq_summary"]
    notes = dict(zip(summary["metric"], summary["note"], strict=True))
    assert "shows no options" in notes["analogy/consistency"]
    assert "shows no options" in notes["analogy/pick_rate_slot_1"]
    assert "mcq_confusion" not in result.tables


def test_examples_reach_the_model_and_the_record() -> None:
    asked: list[str] = []

    def model(frame: pd.DataFrame) -> list[str]:
        asked.extend(frame["prompt"])
        return ["A"] * len(frame)

    _, stored = run(model, few_shot={"rows": TRAIN, "k": 3, "gold": "all-at:A"}, seed=5)
    assert all(text.count("\nAnswer: A\n\n") == 3 for text in asked)
    assert stored.data.params["mcq.few_shot"].startswith("6 rows, k: 3, gold: all-at:A")
    _, other = run(model, few_shot={"rows": TRAIN[1:], "k": 3, "gold": "all-at:A"}, seed=5)
    assert other.data.tags["mcq.prompts_digest"] != stored.data.tags["mcq.prompts_digest"]


def test_a_protocol_of_your_own_runs_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow_mcq.records import Prompt

    def shout(item, orientation, *, chat):
        options = " / ".join(item.options[option] for option in orientation.order)
        return Prompt(item, orientation, "shout", f"{item.question.upper()} {options}", ())

    monkeypatch.setitem(PROTOCOLS, "shout", shout)
    _, stored = run(lambda frame: ["mercury"] * len(frame), protocol="shout")
    assert stored.data.params["mcq.protocol"] == "shout"
