"""Arms whose truth is known, as models that answer prompts; and a judge that reads them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pandas as pd

LETTER = re.compile(r"^([A-Z])\) (.*)$", re.MULTILINE)
Model = Callable[[pd.DataFrame], list[str]]
# Without a letter that any parser takes for a label, so that nothing but refusing is tested.
REFUSAL = "Sorry, not for me."


def items(n: int) -> pd.DataFrame:
    """Questions whose options are numbers; gold stands in each slot in turn."""
    return pd.DataFrame(
        {
            "id": [f"q{i}" for i in range(n)],
            "question": [f"Which number ends item {i}?" for i in range(n)],
            "options": [[f"{31000 + 10 * i + k}" for k in range(4)] for i in range(n)],
            "answer": ["ABCD"[i % 4] for i in range(n)],
        }
    )


def draw(*key: object) -> float:
    """A number in [0, 1) that depends on the key alone, whatever the order of rows."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def shown(prompt: str) -> dict[str, str]:
    """Letter of each option text, as the prompt shows them."""
    return {text: letter for letter, text in LETTER.findall(prompt)}


def knowing(share: float, seed: str) -> Model:
    """Knows a share of the items, guesses the rest anew in each orientation."""

    def model(frame: pd.DataFrame) -> list[str]:
        return [_letter(prompt, share, seed) for prompt in frame["prompt"]]

    return model


def _letter(prompt: str, share: float, seed: str) -> str:
    letters = shown(prompt)
    item = int(re.findall(r"item (\d+)", prompt)[-1])
    gold = f"{31000 + 10 * item + item % 4}"
    if draw(seed, "knows", item) < share:
        return letters[gold]
    order = "".join(letters)
    return "ABCD"[int(4 * draw(seed, "guess", item, *letters, order))]


def changed(model: Model, share: float, seed: str, say: Callable[[str, str], str]) -> Model:
    """Another model that says something else in a share of the rows."""

    def other(frame: pd.DataFrame) -> list[str]:
        return [
            say(answer, prompt) if draw(seed, prompt) < share else answer
            for answer, prompt in zip(model(frame), frame["prompt"], strict=True)
        ]

    return other


def first_slot(answer: str, prompt: str) -> str:
    return "A"


def refuse(answer: str, prompt: str) -> str:
    return REFUSAL


def explain(answer: str, prompt: str) -> str:
    """The same answer in words that begin by ruling another letter out."""
    wrong = "ABCD"[("ABCD".index(answer) + 1 + int(3 * draw("wrong", prompt))) % 4]
    (text,) = [text for text, letter in shown(prompt).items() if letter == answer]
    return f"Not {wrong}; it is {text}."


def reading_judge(request: dict[str, Any], n_calls: int) -> str:
    """Reads a bare letter, or finds the one option text in a reply, as a perfect judge would."""
    asked = request["messages"][-1]["content"]
    reply = asked.split("The candidate's reply:")[1]
    letters = shown(asked.split("The candidate's reply:")[0])
    named = [letter for text, letter in letters.items() if text in reply]
    if len(named) == 1:
        return named[0]
    bare = [line.strip() for line in reply.splitlines() if line.strip() in ("A", "B", "C", "D")]
    return bare[0] if bare else "OTHER"
