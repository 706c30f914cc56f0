"""The protocol: one way to put items on paper, as a small frozen object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mlflow_mcq.protocols.page import Page
from mlflow_mcq.protocols.style import Style
from mlflow_mcq.protocols.wordings import Wording
from mlflow_mcq.records import Conversation, Item, Message, Orientation, Prompt

__all__ = ["Protocol", "Shot", "Shots"]


class Shot(NamedTuple):
    """One solved example.

    Attributes:
        item: What it asks.
        orientation: How its options stand.
        rationale: Why its right option is right; often empty.
    """

    item: Item
    orientation: Orientation
    rationale: str = ""


Shots = Callable[[Item], Sequence[Shot]]
"""The examples that go before an item, never the item itself."""


_PLAIN = Style()


def _no_shots(item: Item) -> tuple[Shot, ...]:
    return ()


def _answer_cue(words: Wording) -> str:
    return words.cue


@dataclass(frozen=True, slots=True)
class Protocol:
    """Turns an item in one orientation into a prompt.

    Enters by the door `mlflow_mcq.doors.PromptFamily`. One of your own is made from another
    with `dataclasses.replace`, or is any function that fits the door, and stands in
    `PROTOCOLS` under its name.

    Attributes:
        name: Of the protocol; part of every row key.
        lay: Item, orientation and style to a page: which labels stand there.
        ask: The page to what the user's turn says.
        answer: The page to what a solved example answers.
        cue: What plain text ends with; chat needs none.
        then: The page to what the user says after the model's first reply; None where one
            turn is all.
        plain_only: Plain text, also for a model that speaks chat.
        shows_options: The options are on the page.
        reads: Settings of the page that it looks at; any other one is refused.
        defaults: Settings where the user gives none, as published.
        style: How its pages are set.
        shots: Its examples.

    Example:
        >>> from mlflow_mcq.protocols.families import PROTOCOLS
        >>> item = Item("q", "Liquid metal?", ("iron", "mercury"), 1)
        >>> prompt = PROTOCOLS["cloze"](item, Orientation(0, "as-is", (0, 1)), chat=False)
        >>> print(prompt.content)
        Liquid metal?
        <BLANKLINE>
        Answer in a few words.
        Answer:
    """

    name: str
    lay: Callable[[Item, Orientation, Style], Page]
    ask: Callable[[Page], str]
    answer: Callable[[Page], str]
    cue: Callable[[Wording], str] = _answer_cue
    then: Callable[[Page], str] | None = None
    plain_only: bool = False
    shows_options: bool = True
    reads: frozenset[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    style: Style = _PLAIN
    shots: Shots = _no_shots

    def __call__(self, item: Item, orientation: Orientation, *, chat: bool) -> Prompt:
        """Render the same bytes for the same input on any machine.

        Raises:
            McqError: The item does not fit the style, or there are too few examples.
        """
        page = self.lay(item, orientation, self.style)
        solved = [self._solved(shot) for shot in self.shots(item)]
        content: Conversation
        if chat and not self.plain_only:
            content = tuple(m for example in solved for m in self._turns(example))
            content = (*content, Message("user", self.ask(page)))
        else:
            blocks = [*map(self._block, solved), self._open(page, self.ask(page))]
            content = "\n\n".join(blocks)
        # The first of two turns shows no options yet, so it shows no labels either.
        labels = () if self.then else page.labels
        return Prompt(page.item, page.orientation, self.name, content, labels)

    def second(self, first: Prompt, reply: str) -> Prompt:
        """The prompt after the model's first reply, which stands in it as it came.

        Args:
            first: What this protocol rendered.
            reply: The model's reply to the same item; raw.

        Raises:
            ValueError: The protocol has one turn only.
        """
        if self.then is None:
            raise ValueError(f"protocol {self.name!r} has no second turn")
        page = self.lay(first.item, first.orientation, self.style)
        asked = self.then(page)
        content: Conversation
        if isinstance(first.content, str):
            content = _going_on(page.words, first.content, reply, asked)
        else:
            content = (*first.content, Message("assistant", reply), Message("user", asked))
        return replace(first, content=content, labels=page.labels)

    def _solved(self, shot: Shot) -> Page:
        page = self.lay(shot.item, shot.orientation, self.style)
        return replace(page, rationale=shot.rationale)

    def _turns(self, page: Page) -> tuple[Message, ...]:
        asked, answered = Message("user", self.ask(page)), Message("assistant", self.answer(page))
        if self.then is None:
            return asked, answered
        # The reasoning is the first reply, which came before the options were seen.
        thought, shown = Message("assistant", page.rationale), Message("user", self.then(page))
        return asked, thought, shown, answered

    def _block(self, page: Page) -> str:
        asked = self._open(page, self.ask(page))
        if self.then is not None:
            asked = _going_on(page.words, asked, page.rationale, self.then(page))
        return asked + page.words.gap + self.answer(page)

    def _open(self, page: Page, asked: str) -> str:
        return f"{asked}\n{self.cue(page.words)}"


def _going_on(words: Wording, before: str, reply: str, asked: str) -> str:
    """Plain text up to the cue of the second turn."""
    return f"{before}{words.gap}{reply}\n\n{asked}\n{words.cue}"
