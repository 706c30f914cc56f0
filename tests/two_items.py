"""Two items, models that answer them by rule, and one evaluation of them through MLflow."""

from __future__ import annotations

import re
from typing import Any

import mlflow
import pandas as pd
from fake_server import FakeServer
from mlflow import MlflowClient

LETTER = re.compile(r"^([A-Z])\) (.*)$", re.MULTILINE)
FRAME = pd.DataFrame(
    {
        "question": ["Which metal is liquid at room temperature?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
        "id": ["metal", "star"],
    },
    index=[7, 7],
)
GOLD = {"mercury", "sun"}
N_ROWS = 5


def shown(prompt: str) -> dict[str, str]:
    """Letter of each option text, as the prompt shows them."""
    return {text: letter for letter, text in LETTER.findall(prompt)}


def oracle(frame: pd.DataFrame) -> list[str]:
    """Answers each prompt rightly, with prose around it that only a judge can read."""
    answers = []
    for prompt in frame["prompt"]:
        (text,) = GOLD & set(shown(prompt))
        answers.append(f"It has to be {text}, I think.")
    return answers


def bare_oracle(frame: pd.DataFrame) -> list[str]:
    right = [GOLD & set(shown(prompt)) for prompt in frame["prompt"]]
    return [
        shown(prompt)[text.pop()] if text else "no idea"
        for prompt, text in zip(frame["prompt"], right, strict=True)
    ]


def parrot(frame: pd.DataFrame) -> list[str]:
    return ["A"] * len(frame)


def reading_judge(request: dict[str, Any], n_calls: int) -> str:
    """Finds the one option text in the candidate's reply, as a perfect judge would."""
    asked = request["messages"][-1]["content"]
    reply = asked.split("The candidate's reply:")[1]
    named = [letter for text, letter in shown(asked).items() if text in reply]
    return named[0] if len(named) == 1 else "OTHER"


def judged_by(server: FakeServer, **settings: Any) -> dict[str, Any]:
    where = {"model": "fake-judge", "base_url": server.url}
    return {**where, "max_retries": 2, "exam_replies": 0, **settings}


def evaluate(model: Any, data: Any = FRAME, evaluators: Any = "mcq_regex", **more: Any) -> Any:
    more.setdefault("targets", "answer")
    return mlflow.models.evaluate(
        model, data, model_type="multiple-choice", evaluators=evaluators, **more
    )


def run_of(result: Any) -> Any:
    return MlflowClient().get_run(result.run_id)


def grades_of(result: Any, grader: str = "judge") -> pd.DataFrame:
    table = result.artifacts["mcq_grades_parquet"].content
    return table[table["grader"] == grader].reset_index(drop=True)


def never(frame: pd.DataFrame) -> list[str]:
    raise AssertionError("the model must not be asked")
