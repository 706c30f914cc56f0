"""What a recipe costs, said before anything is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_server import FakeServer, Script
from tiny import PLAIN_TEMPLATE, byte_tokenizer

from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.errors import DataError
from mlflow_mcq.forecast import Asked, Cost, cost_of, said
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.prompt_count import CHARACTERS_A_TOKEN
from mlflow_mcq.settings import Settings, read_settings

COLOURS = ["red", "green", "blue"]
FRAME = pd.DataFrame(
    {"question": ["One?", "Two?", "Three?"], "options": [COLOURS] * 3, "answer": [0, 1, 2]}
)
# Nobody has sat an exam under this name, wherever exams are kept.
JUDGE = {"model": "j", "base_url": "http://127.0.0.1:9/v1", "preflight": False}


def settings(**given: Any) -> Settings:
    return read_settings(given)


def cost(judged: bool = False, tokenizer: Any = None, **given: Any) -> Cost:
    chosen = settings(**given)
    rows = read_data(FRAME, chosen).rows
    return cost_of("one", rows, chosen, Asked(tokenizer=tokenizer), judged)


@pytest.mark.parametrize(
    ("given", "n_prompts"),
    [
        pytest.param({"orientations": "as-is"}, 3, id="as is"),
        pytest.param({"orientations": "rotations"}, 9, id="rotations"),
        pytest.param({"orientations": "rotations", "repeats": 2}, 18, id="repeats"),
        pytest.param({"orientations": "as-is", "limit": 2}, 2, id="limit"),
        pytest.param({"protocol": "options-last", "orientations": "rotations"}, 12, id="two turns"),
    ],
)
def test_prompts(given: dict[str, Any], n_prompts: int) -> None:
    assert cost(**given).n_prompts == n_prompts


def test_tokens_are_counted_where_a_tokenizer_is_at_hand() -> None:
    plain = settings(orientations="as-is")
    texts = [
        str(one.prompt.content)
        for one in requests_for(items_of(read_data(FRAME, plain).rows), plain, chat=False)
    ]
    found = cost(tokenizer=byte_tokenizer(), orientations="as-is")
    assert found.n_tokens == sum(1 + len(text.encode()) for text in texts)  # and BOS
    assert not found.estimate
    guessed = cost(orientations="as-is")
    assert guessed.n_tokens == -(-sum(map(len, texts)) // CHARACTERS_A_TOKEN)
    assert "characters / 4" in guessed.estimate


def test_the_chat_template_counts() -> None:
    plain = cost(tokenizer=byte_tokenizer(), input_format="text")
    chat = cost(tokenizer=byte_tokenizer(PLAIN_TEMPLATE))
    assert chat.n_tokens > plain.n_tokens


@pytest.mark.parametrize(
    ("judge", "rows", "exam"),
    [  # as expected, and at most
        pytest.param({"attempts": 1, "exam_replies": 0}, (3, 3), (0, 0), id="one call a row"),
        pytest.param({"attempts": 2, "exam_replies": 0}, (3, 6), (0, 0), id="attempts"),
        pytest.param({"attempts": 2, "votes": 3, "temperature": 0.2, "exam_replies": 5},
                     (9, 18), (15, 30), id="votes"),
        pytest.param({"attempts": 1, "panel": [{**JUDGE, "attempts": 2}], "exam_replies": 0},
                     (6, 9), (0, 0), id="panel"),
        pytest.param({"attempts": 1, "exam_replies": 0, "preflight": True}, (4, 4), (0, 0),
                     id="preflight"),
        pytest.param({"attempts": 1, "exam_replies": 0, "canaries": 2}, (5, 5), (0, 0),
                     id="canaries"),
        pytest.param({"attempts": 2, "exam_replies": 9, "max_calls": 10}, (3, 6), (7, 4),
                     id="a budget"),
        pytest.param({"attempts": 2, "exam_replies": 9, "max_calls": 4}, (3, 4), (1, 0),
                     id="a small one"),
    ],
)  # fmt: skip
def test_calls_of_the_judge(
    judge: dict[str, Any], rows: tuple[int, int], exam: tuple[int, int]
) -> None:
    found = cost(judged=True, judge={**JUDGE, **judge}, orientations="as-is")
    assert (found.n_judge_calls, found.n_judge_calls_most) == rows
    assert (found.n_exam_calls, found.n_exam_calls_most) == exam


@pytest.mark.parametrize(
    ("attempts", "line"),
    [
        pytest.param(1, "11 calls of a judge, one a row and 5 for its exam", id="one"),
        pytest.param(
            2, "11 calls of a judge, one a row and 5 for its exam (at most 22, with every retry)",
            id="two",
        ),
    ],
)  # fmt: skip
def test_arms_of_one_judge_sit_one_exam(attempts: int, line: str) -> None:
    judge = {**JUDGE, "attempts": attempts, "exam_replies": 5}
    one = cost(judged=True, judge=judge, orientations="as-is")
    assert said([one, one])[0].endswith(line)
    assert "no judge" in said([cost()])[0]


def test_bad_data_is_refused_before_anything_is_asked(
    tmp_path: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    from mlflow_mcq.recipe import run_recipe

    server = judge_server(lambda request, n: "A")
    (tmp_path / "items.jsonl").write_text('{"question": "?", "options": ["x"], "answer": 0}')
    path = tmp_path / "r.yaml"
    path.write_text(
        "name: r\ndata: items.jsonl\nevaluators: [mcq_regex]\narms: [{name: a}]\n"
        f"model: {{base_url: '{server.url}', model: m}}\n"
    )
    with pytest.raises(DataError):
        run_recipe(path)
    assert not server.requests
