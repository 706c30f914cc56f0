"""What the judge is asked.

The candidate's text is data. It stands between two fences with a mark that it cannot
hold, our words come after it, and nothing in it is ever filled in or formatted. It is
the visible answer, otherwise untouched: thinking is left out, since a judge that reads
"A? No, it must be" picks up letters that the candidate did not choose.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from mlflow_mcq.graders.harmless import HARMLESS_VERSION, harmless
from mlflow_mcq.graders.judge_examples import EXAMPLES, Example, ReplyFamily, family_of
from mlflow_mcq.graders.judge_examples_all import EXAMPLES_FOR_ALL
from mlflow_mcq.graders.judge_page import JudgePage, page_of
from mlflow_mcq.graders.judge_wording import (
    ASKED,
    CUES,
    FORMS,
    GOLD_HEADS,
    KEYS,
    NO_LETTER_WHY,
    NO_LETTERS,
    OBJECT_CUE,
    OBJECTS,
    OPTIONS_UNSEEN,
    ORDER,
    REPLY,
    RULES,
    Asked,
    Shape,
)
from mlflow_mcq.graders.thought import visible_answer
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.protocols import one_line_label, option_lines
from mlflow_mcq.records import Conversation, Generation, Item, Message

__all__ = ["JUDGE_PROMPT_VERSION", "Shape", "harmless", "judge_conversation"]


@dataclass(frozen=True, slots=True)
class _Case:
    """One thing to be judged."""

    question: str
    options: tuple[str, ...]  # by slot, as the candidate saw them
    reply: str
    gold_slots: tuple[int, ...]
    page: JudgePage
    family: ReplyFamily
    unseen: bool = False
    control: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Form:
    """How a judge is asked, and how it is to answer."""

    shape: Shape
    chat: bool
    rationale: bool
    asked: Asked = "one"

    @property
    def cue(self) -> str:
        return OBJECT_CUE if self.rationale else CUES[self.shape, self.asked]


def judge_conversation(
    generation: Generation,
    shape: Shape,
    chat: bool,
    page: JudgePage | None = None,
    rationale: bool = False,
    control: tuple[str, ...] = (),
) -> Conversation:
    """The conversation that asks for one generation.

    Args:
        generation: What is to be read.
        shape: ``extract`` or ``direct``.
        chat: Whether the judge takes messages; otherwise plain text with a cue at its end.
        page: The judge's list of options; None keeps the order that the candidate saw.
        rationale: Ask for a reason before the verdict.
        control: Tokens that steer this judge, beside those of common chat templates.

    Returns:
        The rules, examples as earlier turns, then the case: what all rows of a family
        share comes first, so that a server or a local model reads it once. The same
        arguments give the same bytes.
    """
    prompt, reply = generation.prompt, visible_answer(generation).text
    case = _Case(
        prompt.item.question,
        prompt.shown,
        reply,
        prompt.gold_slots,
        page or page_of(generation),
        family_of(prompt.protocol, reply),
        prompt.unseen,
        control,
    )
    return _conversation(case, _Form(shape, chat, rationale, _asked(prompt.item, shape)))


def _asked(item: Item, shape: Shape) -> Asked:
    """What counts as an answer, as far as this judge is told.

    One that is not given the gold reads an item with several as any other.
    """
    if item.takes_all:
        return "all"
    return "any" if item.also_right and shape == "direct" else "one"


def _conversation(case: _Case, form: _Form) -> Conversation:
    before = _examples(form, case.family, case.page.lettered)
    asked = _ask(case, form)
    rules = RULES[form.shape, form.asked]
    if form.chat:
        return (Message("system", rules), *before, Message("user", asked))
    turns = [
        f"{asked.content}\n{form.cue} {answer.content}"
        for asked, answer in zip(before[::2], before[1::2], strict=True)
    ]
    return "\n\n---\n\n".join([rules, *turns, asked + "\n" + form.cue])


@lru_cache(maxsize=32)
def _examples(form: _Form, family: ReplyFamily, lettered: bool) -> tuple[Message, ...]:
    turns: list[Message] = []
    for one in (EXAMPLES_FOR_ALL if form.asked == "all" else EXAMPLES)[family]:
        lines = tuple(range(len(one.options)))
        page = JudgePage(lines, letters_for(len(lines)), lettered)
        golds = (one.gold, *one.also_right)
        case = _Case(one.question, one.options, one.reply, golds, page, family)
        answer = _answer(one, form, page)
        turns += [Message("user", _ask(case, form)), Message("assistant", answer)]
    return tuple(turns)


def _answer(example: Example, form: _Form, page: JudgePage) -> str:
    lost = example.by_letter and not page.lettered
    slots = () if lost or example.slot is None else (example.slot, *example.also)
    if not slots:
        value = "OTHER"
    elif form.shape == "extract":
        value = ", ".join(page.seen[slot] for slot in slots)
    else:
        value = "CORRECT" if slots == (example.gold, *example.also_right) else "INCORRECT"
    if not form.rationale:
        return value
    return json.dumps({"reason": NO_LETTER_WHY if lost else example.why, KEYS[form.shape]: value})


def _ask(case: _Case, form: _Form) -> str:
    """Data first, our words last. Parts are joined, so a brace in the data stays a brace."""
    page = case.page
    question, reply, *shown = (
        harmless(text, case.control)
        for text in (case.question, case.reply, *(case.options[slot] for slot in page.lines))
    )
    mark = _mark(question, *shown, reply)
    parts = [question, option_lines(shown, page.labels)]
    if not page.lettered:
        parts.append(OPTIONS_UNSEEN if case.unseen else NO_LETTERS)
    if page.shuffled:
        parts.append(ORDER.replace("{seen}", ", ".join(page.seen)))
    parts.append("\n".join([REPLY, mark, reply, mark]))
    if form.shape == "direct":
        lines = sorted(page.lines.index(slot) for slot in case.gold_slots)
        golds = [one_line_label(page.labels[line] + ") ", shown[line]) for line in lines]
        parts.append("\n".join([GOLD_HEADS[form.asked], *golds]))
    wanted = (OBJECTS if form.rationale else FORMS)[form.shape, form.asked]
    parts.append(wanted.replace("{names}", ", ".join(page.labels)))
    return "\n\n".join(parts)


def _mark(*data: str) -> str:
    """A mark of this row alone that its data does not hold.

    It is drawn from the data, so that a rerun sends the same bytes and a cache works; a
    text that holds the mark has another hash, and is drawn again all the same.
    """
    digest = hashlib.sha256("\x1f".join(data).encode())
    while True:
        mark = "==" + digest.hexdigest()[:16] + "=="
        if not any(mark in text for text in data):
            return mark
        digest.update(b"again")


def _version() -> str:
    """Twelve hex digits over every wording, rendered: any change of it is a new judge."""
    digest = hashlib.sha256(f"{HARMLESS_VERSION}{OPTIONS_UNSEEN}".encode())
    shapes: tuple[Shape, ...] = ("extract", "direct")
    switch = (True, False)
    for shape, chat, rationale, asked in product(shapes, switch, switch, ASKED):
        golds = (0,) if asked == "one" else (0, 1)
        for family, lettered, shuffled in product(EXAMPLES, switch, switch):
            page = JudgePage((1, 0) if shuffled else (0, 1), ("A", "B"), lettered, shuffled)
            case = _Case("Which?", ("one", "two\nlines"), "one {mark}", golds, page, family)
            digest.update(repr(_conversation(case, _Form(shape, chat, rationale, asked))).encode())
    return digest.hexdigest()[:12]


JUDGE_PROMPT_VERSION: str = _version()
"""Digest of the wording, all families of examples included; part of the fingerprint."""
