"""A protocol with two turns in `mlflow.genai.evaluate`, where a row is one."""

from __future__ import annotations

from typing import Any

import mlflow
import pytest

import mlflow_mcq
from mlflow_mcq import scorers
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.genai.rotated import answered_rows
from mlflow_mcq.genai.row import generation_of

METALS = ["iron", "mercury", "tin", "zinc"]
DATA = [
    {"id": f"q{i}", "question": f"Which is number {i}?", "options": METALS, "answer": i % 4}
    for i in range(6)
]


class TwoTurns:
    """Thinks out loud, and picks afterwards: what it thought of, or else the second slot."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        if "afterwards" in prompt and "A) " not in prompt:
            known = "It is zinc." if "number 3" in prompt else "Hard."
            return f"{known} ({len(self.asked)})"
        lines = [line for line in prompt.splitlines() if line.endswith(") zinc")]
        return lines[-1][0] if "It is zinc." in prompt else "B"


TURNS = {"protocol": "options-last", "orientations": "rotations"}


def test_every_orientation_of_an_item_goes_on_from_one_and_the_same_reply() -> None:
    app = TwoTurns()
    rows = mlflow_mcq.rotated(DATA, opening=app, **TURNS)
    assert len(app.asked) == len(DATA) == len(rows) / 4
    seen: dict[str, set[str]] = {}
    for row in rows:
        before, options = row["inputs"]["prompt"].split("A) ")
        expected = row["expectations"]
        seen.setdefault(expected["mcq"]["item_id"], set()).add(before)
        shown = [expected["options"][place] for place in expected["order"]]
        lines = f"A) {options}".splitlines()[: len(shown)]
        assert lines == [f"{letter}) {text}" for letter, text in zip("ABCD", shown, strict=True)]
        assert generation_of(row["inputs"], "B", expected).prompt.labels == tuple("ABCD")
    assert [len(parts) for parts in seen.values()] == [1] * len(DATA)
    assert len({part for parts in seen.values() for part in parts}) == len(DATA)


def test_two_turns_give_the_numbers_of_an_evaluator(store: None) -> None:
    there = mlflow_mcq.evaluate(
        lambda frame: [TwoTurns()(prompt) for prompt in frame["prompt"]],
        DATA,
        evaluators="mcq_regex",
        **TURNS,
    )
    with mlflow.start_run():
        here = mlflow_mcq.genai_evaluate(DATA, TwoTurns(), [scorers.regex("bounded")], **TURNS)
    for name in ("accuracy", "consistency", "slot_shift", "pick_rate_slot_2", "accuracy_spread"):
        name = f"regex_bounded/{name}"
        assert here.metrics[name] == pytest.approx(there.metrics[name]), name
    # Item 3 is known in every order; of the five others one of four orders has gold second.
    assert here.metrics["regex_bounded/accuracy"] == pytest.approx((4 + 5) / 24)


def test_two_turns_of_a_model_of_ours(judge_server: Any) -> None:
    server = judge_server(lambda request, n: f"reply {n}")
    handle = mlflow_mcq.remote_model(server.url, "m", concurrency=1)
    settings = {**TURNS, "orientations": "rotations:2"}
    answered = answered_rows(handle.engine, DATA[:2], None, settings)
    opened = mlflow_mcq.rotated(DATA[:2], opening=handle, **settings)
    for row in (*answered, *opened):
        roles = [message["role"] for message in row["inputs"]["messages"]]
        assert roles == ["user", "assistant", "user"]
        assert row["inputs"]["messages"][1]["content"].startswith("reply ")
        assert generation_of(row["inputs"], "A", row["expectations"]).prompt.labels
    assert [row["outputs"] for row in answered] == [f"reply {n}" for n in range(2, 6)]
    assert len(server.requests) == 2 + 4 + 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(TURNS, r"rotated\(data, opening=predict_fn\)", id="nobody to ask first"),
        pytest.param({"opening": lambda prompt: ""}, "this protocol has one", id="nothing to ask"),
        pytest.param({**TURNS, "opening": lambda text: ""}, "Name its argument", id="its name"),
    ],
)
def test_two_turns_need_an_application(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        mlflow_mcq.rotated(DATA, **arguments)


def test_a_first_turn_that_fails_costs_no_row() -> None:
    def broken(prompt: str) -> str:
        raise ValueError("no luck")

    with pytest.raises(ModelError, match="no luck"):
        mlflow_mcq.rotated(DATA, opening=broken, **TURNS)
