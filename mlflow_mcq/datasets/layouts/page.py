"""Layouts of evaluation tools: samples with choices, or with the options inside the text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

from mlflow_mcq.datasets.layouts.layout import (
    Cells,
    Fields,
    Layout,
    as_list,
    doubt,
    gold_letter,
    gold_text,
    text_of,
)
from mlflow_mcq.orientations import letters_for

__all__ = ["LAYOUTS"]

_LABELLED = re.compile(r"\s*\(?([A-Z])[).:]\s+(\S.*)")
_BULLET = re.compile(r"\s*[-*]\s+(\S.*)")
_MARK = re.compile(r"\n\s*Options:[ \t]*\n")
_ENDING = re.compile(r"\s*(?:final )?answer\s*:?\s*", re.IGNORECASE)
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?\)?")


def _split(text: str, name: str) -> tuple[str, tuple[str, ...], list[str]]:
    """The question, the labels and the options of a page written as one text."""
    marked = _MARK.search(text)
    head, body = (text[: marked.start()], text[marked.end() :]) if marked else ("", text)
    lines = body.rstrip().split("\n")
    while lines and _ENDING.fullmatch(lines[-1]):
        lines.pop()
    bullets = [_BULLET.fullmatch(line) for line in lines]
    if marked and len(lines) > 1 and all(bullets):
        return head.strip(), (), [match.group(1).rstrip() for match in bullets if match]
    start = max((i for i, line in enumerate(lines) if _label(line) == "A"), default=len(lines))
    options: list[str] = []
    for line in lines[start:]:
        if _label(line) == letters_for(len(options) + 1)[-1]:
            options.append(_LABELLED.fullmatch(line).group(2).rstrip())  # type: ignore[union-attr]
        elif line.strip():
            # A line more may belong to the option above or be an instruction: no guess.
            raise doubt(name, "has a line among its options that carries no label in order", line)
    if len(options) < 2:
        raise doubt(name, "must hold its options, one a line: (A) ..., (B) ...", text)
    question = "\n".join([head, *lines[:start]]).strip()
    return question, letters_for(len(options)), options


def _label(line: str) -> str | None:
    match = _LABELLED.fullmatch(line)
    return match.group(1) if match else None


def _gold(value: object, labels: Sequence[str], options: Sequence[str], name: str) -> int:
    letter = _LETTER.fullmatch(value.strip()) if isinstance(value, str) else None
    if labels and letter:
        return gold_letter(letter.group(1), labels, name)
    return gold_text(value, options, name)


def _from_page(text: str, asked: str, value: object, answer: str, item_id: object) -> Fields:
    question, labels, options = _split(text, asked)
    if not question:
        raise doubt(asked, "must hold a question above its options", text)
    return Fields(question, options, _gold(value, labels, options, answer), labels, item_id)


def _bbh(cells: Cells) -> Fields:
    text = text_of(cells, "input")
    return _from_page(text, "input", cells["target"], "target", cells.get("id"))


def _last_user_text(value: object, name: str) -> str:
    """The last turn of the user; earlier ones are examples, and instructions are ours to give."""
    if isinstance(value, str):
        return value
    turns = [m for m in as_list(value, name) if isinstance(m, Mapping) and m.get("role") == "user"]
    content: Any = turns[-1].get("content") if turns else None
    if isinstance(content, (list, tuple)):
        content = "\n".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str) or not content.strip():
        raise doubt(name, "must hold a message of the user", value)
    return content


def _openai_evals(cells: Cells) -> Fields:
    ideal = cells["ideal"]
    if isinstance(ideal, (list, tuple)) and len(ideal) == 1:
        ideal = ideal[0]
    text = _last_user_text(cells["input"], "input")
    return _from_page(text, "input", ideal, "ideal", cells.get("id"))


def _inspect(cells: Cells) -> Fields:
    texts = as_list(cells["choices"], "choices")
    labels = letters_for(len(texts))
    target = cells["target"]
    several = list(target) if isinstance(target, (list, tuple)) else [target]
    golds = [gold_letter(one, labels, "target") for one in several]
    if not golds:
        raise doubt("target", "names no choice", target)
    question = _last_user_text(cells["input"], "input")
    meta = cells.get("metadata")
    return Fields(
        question,
        texts,
        golds[0] if len(golds) == 1 else golds,
        labels,
        cells.get("id"),
        {str(k): v for k, v in meta.items()} if isinstance(meta, Mapping) else {},
    )


def _options_inside(head: Sequence[Cells], marks: Set[Hashable]) -> bool:
    texts = [row["input"] for row in head]
    inside = sum(isinstance(text, str) and bool(_MARK.search(text)) for text in texts)
    return 2 * inside > len(texts)


LAYOUTS = (
    Layout(
        "bbh",
        "BIG-Bench Hard",
        frozenset({"input", "target"}),
        _bbh,
        lacks=frozenset({"choices", "ideal"}),
        also=frozenset({"id"}),
        fits=_options_inside,
    ),
    Layout(
        "openai_evals",
        "OpenAI evals",
        frozenset({"input", "ideal"}),
        _openai_evals,
        lacks=frozenset({"choices", "target"}),
        also=frozenset({"id"}),
        note="the last turn of the user is read; system messages and examples are not",
    ),
    Layout(
        "inspect",
        "inspect_ai samples",
        frozenset({"input", "choices", "target"}),
        _inspect,
        also=frozenset({"id", "metadata"}),
    ),
)
