"""The visible answer of a reasoning model, apart from its thinking.

A letter inside the thinking is a letter that was weighed, not one that was chosen:
"A looks right. No." must never be read as A. The raw text stays where it is; what is
made here is a view.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.records import Generation

__all__ = ["Answer", "answer_part", "sent_text", "visible_answer"]

_NAMES = (
    r"think|thinking|thoughts?|inner_thoughts|reasoning|reflection|analysis|scratchpad|seed:think"
)
# Each pattern is bounded on purpose ({0,80}): hostile text must not make it scan ahead.
_TAG = re.compile(
    # What may follow first: a million "<" must not each be held against every name.
    r"(?=<(?:\||/?(?:[acirt]|s[ce]))|\[/?t|◁)(?:"
    rf"<(?P<end>/?)(?P<tag>{_NAMES})(?:\s[^<>]{{0,80}})?>"
    r"|\[(?P<end2>/?)(?P<tag2>THINK)\]"
    r"|◁(?P<end3>/?)(?P<tag3>think)▷"
    r"|<\|(?P<edge>begin|start|end)_of_thought\|>"
    r"|<\|(?P<edge2>start|end)_thinking\|>"
    r"|<\|(?P<end4>/?)(?P<tag4>think|thinking)\|>"
    r"|(?:\A<\|start\|>assistant)?<\|channel\|>\s{0,8}(?P<channel>analysis|commentary|final)[^<]{0,80}<\|message\|>"
    r"|(?P<gopen><\|channel>thought)|(?P<gclose><channel\|>))",
    re.IGNORECASE,
)
_HINTS = ("<", "[", "◁", "analysis")
_TAIL = 240
# What is left of the channel marks when a tokenizer drops special tokens.
_BARE_START, _BARE_FINAL = "analysis", "assistantfinal"


@dataclass(frozen=True, slots=True)
class Answer:
    """A view of one generated text.

    Attributes:
        text: What a reader is meant to see.
        thought: What was thought before it.
        unfinished: The thinking was opened and never closed, so there is no answer.
    """

    text: str
    thought: str = ""
    unfinished: bool = False


@lru_cache(maxsize=8)  # each grader asks several times for the answer it is reading
def answer_part(text: str, sent: str = "") -> Answer:
    """Separate the answer from the thinking.

    A closing tag without an opening one means that the chat template had opened the
    thinking: everything before it is thought. Unclosed thinking is never an answer,
    whatever letters it holds.

    Args:
        text: The generated text.
        sent: The text that reached the model; where it ends with an opening tag, the
            generation starts inside the thinking.

    Example:
        >>> answer_part("<think>A? No.</think>B")
        Answer(text='B', thought='A? No.', unfinished=False)
        >>> answer_part("A? No, B", sent="...<think>\\n").unfinished
        True
    """
    inside = _opened_by(sent) if sent else ""
    if not inside and not any(hint in text for hint in _HINTS):
        return Answer(text)
    if text.startswith(_BARE_START) and _BARE_FINAL in text:
        thought, _, final = text.rpartition(_BARE_FINAL)
        return Answer(final, thought.removeprefix(_BARE_START))
    seen: list[str] = []
    thoughts: list[str] = []
    start = 0
    for mark in _TAG.finditer(text):
        kind, opens = _kind(mark)
        if inside and (opens or kind != inside):
            continue  # a tag that the thinking only mentions
        piece = text[start : mark.start()]
        if inside:
            thoughts.append(piece)
            inside = ""
        elif opens:
            seen.append(piece)
            inside = kind
        else:
            thoughts += [*seen, piece]
            seen.clear()
        start = mark.end()
    (thoughts if inside else seen).append(text[start:])
    return Answer("".join(seen), "".join(thoughts), bool(inside))


def visible_answer(generation: Generation) -> Answer:
    """The view of a generation, knowing what was sent."""
    return answer_part(generation.text, sent_text(generation))


def sent_text(generation: Generation) -> str:
    """The text that reached the model, as far as it is known."""
    content = generation.prompt.content
    return generation.reply.sent or (content if isinstance(content, str) else "")


def _kind(mark: re.Match[str]) -> tuple[str, bool]:
    """Which pair a mark belongs to, and whether it opens."""
    groups = mark.groupdict()
    for end, tag in (("end", "tag"), ("end2", "tag2"), ("end3", "tag3"), ("end4", "tag4")):
        if groups[tag]:
            return groups[tag].lower(), not groups[end]
    if groups["channel"]:
        return "channel", groups["channel"].lower() != "final"
    for edge in ("edge", "edge2"):
        if groups[edge]:
            return edge, groups[edge].lower() != "end"
    return "gemma", groups["gopen"] is not None


def _opened_by(sent: str) -> str:
    """The kind of thinking that the prompt left open, or an empty text."""
    tail = sent[-_TAIL:].rstrip()
    marks = [*_TAG.finditer(tail)]
    if not marks or marks[-1].end() != len(tail):
        return ""
    kind, opens = _kind(marks[-1])
    return kind if opens else ""
