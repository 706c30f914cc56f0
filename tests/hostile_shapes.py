"""Long replies of nasty shapes, and everything that reads a reply.

Each shape is a text that makes a careless pattern scan again and again. Whatever reads them
must take time in proportion to their length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fake_chat import ScriptedChat, always, generation, settings

from mlflow_mcq.diagnostics.outputs import kind_of_damage
from mlflow_mcq.diagnostics.steering import kind_of_steering
from mlflow_mcq.graders import ALL_REGEX_GRADERS, AnalogyGrader, JudgeGrader, SimilarityGrader
from mlflow_mcq.graders.judge_reply import parse_judge_reply
from mlflow_mcq.graders.refusals import is_refusal
from mlflow_mcq.graders.spans import extract_span
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.strict_set import read_strict_set
from mlflow_mcq.graders.thought import answer_part
from mlflow_mcq.records import Item

_OPTIONS = ("iron", "a", "A B", "(")
_ITEM = Item("q", "Which?", _OPTIONS, 0)

_UNITS = {
    "one letter": "A",
    "small letters": "a",
    "letters and blanks": "A ",
    "brackets": "(",
    "square brackets": "[",
    "braces": "{",
    "closing brackets": ")",
    "blanks": " ",
    "line breaks": "\n",
    "blank lines": " \n",
    "tabs": "\t",
    "stars": "**",
    "underscores": "__",
    "backticks": "```",
    "hashes": "# ",
    "dashes": "- ",
    "full stops": ".",
    "stops and blanks": ". ",
    "ellipses": "…",
    "quotes": '"',
    "commas": ", ",
    "colons": ":",
    "digits": "1",
    "numbers": "1.5,",
    "initials": "a.b.",
    "answer is": "answer is ",
    "answer colon": "Answer: ",
    "answer stars": "answer **",
    "final verdict": "Final verdict: ",
    "verdict lines": "verdict: CORRECT\n",
    "other because": "OTHER - ",
    "think opened": "<think>",
    "think closed": "</think>",
    "think attributes": "<think ",
    "half tags": "<",
    "channels": "<|channel|>",
    "role tokens": "<|im_start|>system\n",
    "end marks": "</s>",
    "boxes": "\\boxed{",
    "dollars": "$",
    "fences": "```json\n{",
    "json": '{"answer": "A"}',
    "refusals": "I cannot ",
    "to judge": "judge: ",
    "ignoring": "ignore ",
    "zero width": "\u200b",
    "joined letters": "A\u200dB",
    "bidi": "\u202e",
    "accents": "\u0301",
    "Chinese": "答案是",
    "katakana": "ア",
    "wide": "（Ａ）",
    "Hangul parts": "\u1100\u1161",
    "emoji": "👩\u200d",
    "nothing": "\x00",
    "surrogates": "\ud800",
    "line separators": "\u2028",
}
_ENDS = {
    "a mark, then blanks": ("answer is", " ", "x"),
    "a bracket, then letters": ("(A", "A", ""),
    "a label, then blanks": ("A", " ", "x"),
    "an open box": ("\\boxed{A", "A", ""),
    "text after line breaks": ("The answer is", "\n", "A"),
    "deep JSON": ("[", "[", "]"),
    "deep objects": ("", '{"a":', "1"),
    "deep objects of the verdict": ("", '{"verdict":', '"A"'),
    "bold never closed": ("**", "A", ""),
    "an option, again and again": ("", "iron ", "."),
    "a long option": ("", "x", " iron"),
    "a thought, then stops": ("<think>", ".", "</think>A"),
    "human and assistant": ("Human:", "x", "\nAssistant"),
}


def shapes(size: int) -> dict[str, str]:
    """Every shape by name, each of about this many characters."""
    made = {name: unit * (size // len(unit)) for name, unit in _UNITS.items()}
    for name, (start, unit, end) in _ENDS.items():
        made[name] = start + unit * (size // len(unit)) + end
    return made


class _Letters:
    """A tokenizer with a token for each character."""

    def encode(self, text: str) -> list[int]:
        return [ord(sign) for sign in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


class _Embedder:
    fingerprint = "fake"

    def embed(self, texts: list[str]) -> Any:
        return np.eye(len(texts), 8, dtype=np.float32)


def _graded(grader: Any) -> Callable[[str], object]:
    return lambda text: [*grader.grade([generation(text, item=_ITEM)])]


def _judged(reply: str | None = None) -> Callable[[str], object]:
    """The row is hostile, or, without a reply, the judge itself is."""

    def read(text: str) -> object:
        chat = ScriptedChat(always(text if reply is None else reply))
        judge = JudgeGrader(chat, settings(attempts=1))
        return [*judge.grade([generation("Perhaps it is iron" if reply is None else text)])]

    return read


READERS: dict[str, Callable[[str], object]] = {
    "strict": lambda text: read_strict(text, _OPTIONS),
    "strict, long options": lambda text: read_strict(text, (text[:-1], text + "a", "b")),
    "strict set": lambda text: read_strict_set(text, _OPTIONS),
    "strict set, long options": lambda text: read_strict_set(text, (text[:-1], text + "a", "b")),
    **{name: _graded(grader) for name, grader in ALL_REGEX_GRADERS.items()},
    "judge": _judged("A"),
    "judge that is hostile": _judged(),
    "judge reply, extract": lambda text: parse_judge_reply(text, options=_OPTIONS),
    "judge reply, direct": lambda text: parse_judge_reply(text, "direct"),
    "judge reply, several": lambda text: parse_judge_reply(text, several=True),
    "thought": answer_part,
    "thought, opened before": lambda text: answer_part(text, sent=text + "<think>"),
    "span": lambda text: extract_span(text, _OPTIONS),
    "analogy": _graded(AnalogyGrader()),
    "analogy, tokens": _graded(AnalogyGrader(tokenizer=_Letters())),
    "similarity": _graded(SimilarityGrader(_Embedder())),
    "refusal": lambda text: is_refusal(text, _OPTIONS),
    "steering": kind_of_steering,
    "damage": lambda text: kind_of_damage(text, "Which?"),
}
"""Everything that reads a reply, by name; each takes the text alone."""
