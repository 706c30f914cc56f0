"""The nouns: what an evaluation is made of, from item to grade.

Every record is frozen and points back to what it came from, so that nothing is
ever joined by position. Three words are kept apart everywhere:

* **option**: an index into ``Item.options``, the order of the data;
* **slot**: a place on the page, 0 at the top;
* **letter**: the name of a slot on paper; letters live in prompts only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from numbers import Integral
from typing import Literal

from mlflow_mcq.errors import DataError
from mlflow_mcq.said import DOWN, Conversation, Decoding, Message, Query, Reply

__all__ = [
    "DOWN", "UNSEEN", "Conversation", "Decoding", "Generation", "Grade", "Item", "Message",
    "Orientation", "Policy", "Prompt", "Query", "Reply", "Request", "Verdict",
]  # fmt: skip


class Verdict(str, Enum):
    """What one answer is worth: right, wrong, or no single option at all.

    Closed and spelt out on purpose: a bool cannot say OTHER, and a letter code
    would be confused with an option.
    """

    CORRECT = "CORRECT"
    INCORRECT = "INCORRECT"
    OTHER = "OTHER"


Policy = Literal["any", "all"]
"""What an item asks for: ``any`` one right option, or ``all`` of them and no other."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question with its options, in the order of the data.

    Attributes:
        id: Unique name within the data set; part of every row key.
        question: The text of the question.
        options: At least two texts; they may repeat.
        gold: Index into ``options``; never a text (texts repeat) or a letter. One of `golds`.
        meta: Anything else the data carried, as text; never shown to the model.
        also_right: Indices of the other right options; most items have none.
        policy: ``all`` asks for every right option, so that several may be named. Items with
            one gold carry it too, or the wording would tell how many are right.

    Raises:
        DataError: Fewer than two options, an empty one, or gold out of range.

    Example:
        >>> Item("q1", "Which metal is liquid?", ("iron", "mercury"), gold=1).gold
        1
        >>> Item("q2", "Which is even?", ("4", "5", "2"), 2, also_right=(0,)).golds
        (0, 2)
    """

    id: str
    question: str
    options: tuple[str, ...]
    gold: int
    meta: Mapping[str, str] = field(default_factory=dict)
    also_right: tuple[int, ...] = ()
    policy: Policy = "any"

    def __post_init__(self) -> None:
        who = f"item {self.id!r}"
        if len(self.options) < 2:
            raise DataError(who, "an item needs at least two options", self.options)
        for index, option in enumerate(self.options):
            if not isinstance(option, str) or not option.strip():
                raise DataError(who, f"option {index} is empty or no text", self.options)
        last = len(self.options) - 1
        for gold in (self.gold, *self.also_right):
            whole = isinstance(gold, Integral) and not isinstance(gold, bool)
            if not whole or not 0 <= gold <= last:
                raise DataError(who, f"gold must be an option index from 0 to {last}", gold)
        if len(self.golds) <= len(self.also_right):
            raise DataError(who, "names one right option twice", (self.gold, *self.also_right))
        if self.policy not in ("any", "all"):
            raise DataError(who, 'policy must be "any" or "all"', self.policy)

    @property
    def golds(self) -> tuple[int, ...]:
        """Every right option, in the order of the data."""
        return tuple(sorted({self.gold, *self.also_right})) if self.also_right else (self.gold,)

    @property
    def takes_all(self) -> bool:
        """Whether every right option is asked for, so that an answer may name several."""
        return self.policy == "all"


UNSEEN = "unseen"  # name of the orientation of an item whose options are not on the page


@dataclass(frozen=True, slots=True)
class Orientation:
    """One order in which the options of an item are shown.

    Attributes:
        index: Place in the item's plan, 0 first; the ``step`` of its metrics.
        name: For people: ``rot0``, ``swap``, ``shuffle2``, ``as-is``.
        order: ``order[slot]`` is the option shown in that slot; a permutation.

    Example:
        >>> o = Orientation(1, "rot1", (1, 2, 0))
        >>> o.slot_of(0), o.order[0]
        (2, 1)
    """

    index: int
    name: str
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.order))):
            raise DataError(
                f"orientation {self.name!r}", "order must be a permutation of 0..n-1", self.order
            )

    def slot_of(self, option: int) -> int:
        """The slot in which an option is shown."""
        return self.order.index(option)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Exactly what is sent for one item in one orientation.

    Attributes:
        item: Where it came from.
        orientation: The order shown.
        protocol: Name of the prompt family.
        content: Plain text or chat messages.
        labels: The letters by slot; empty where the protocol shows none.
    """

    item: Item
    orientation: Orientation
    protocol: str
    content: Conversation
    labels: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The option texts by slot."""
        return tuple(self.item.options[option] for option in self.orientation.order)

    @property
    def unseen(self) -> bool:
        """Whether no option is on the page, so that none has a place."""
        return self.orientation.name == UNSEEN

    def row_key(self, repeat: int) -> tuple[str, str, int, int]:
        """(item id, protocol, orientation index, repeat): unique within a run."""
        return (self.item.id, self.protocol, self.orientation.index, repeat)

    @property
    def gold_slot(self) -> int:
        """The slot in which `Item.gold` is shown; where several are right, one of them."""
        return self.orientation.slot_of(self.item.gold)

    @property
    def gold_slots(self) -> tuple[int, ...]:
        """The slots in which right options are shown, from the top."""
        return tuple(sorted(self.orientation.slot_of(gold) for gold in self.item.golds))


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to be answered once.

    Attributes:
        prompt: What to ask.
        repeat: 0 for the first sample of this prompt, 1 for the second, ...
    """

    prompt: Prompt
    repeat: int = 0

    @property
    def key(self) -> tuple[str, str, int, int]:
        """(item id, protocol, orientation index, repeat): unique within a run."""
        return self.prompt.row_key(self.repeat)

    def seed(self, base: int) -> int:
        """A seed of this row alone, whatever batch or process it lands in."""
        key = "\x1f".join(map(str, (base, *self.key, self.prompt.orientation.order)))
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer of the evaluated model, raw: never stripped, never rewritten.

    Attributes:
        prompt: What was asked.
        repeat: Which sample of the prompt this is.
        reply: The text with its token ids, finish reason and counts.
        engine: Fingerprint of the model that answered.
        human_label: What a person says the answer is worth, where one has read it.
    """

    prompt: Prompt
    repeat: int
    reply: Reply
    engine: str = ""
    human_label: Verdict | None = None

    @property
    def text(self) -> str:
        """The raw text; empty where the model returned none."""
        return self.reply.text or ""

    @property
    def key(self) -> tuple[str, str, int, int]:
        """(item id, protocol, orientation index, repeat): unique within a run."""
        return self.prompt.row_key(self.repeat)


@dataclass(frozen=True, slots=True)
class Grade:
    """What one grader read in one generation.

    Made by five constructors only: `of_choice`, `of_choices`, `of_verdict`, `unread`, `failed`.

    Attributes:
        generation: What was read.
        grader: Name of the grader.
        verdict: The verdict; None exactly when ``error`` is set.
        choice: Option index that was read; None where none or several were, or none is known.
        reason: Why OTHER, or how the choice was read.
        error: Why the grader could not do its work: a judge error, neither OTHER nor INCORRECT.
        evidence: The judge's own reply, raw; empty where no judge was asked.
        judge: Fingerprint of the judge; empty where no judge was asked.
        several: Options in ascending order where more than one was named (policy ``all``).
    """

    generation: Generation
    grader: str
    verdict: Verdict | None
    choice: int | None = None
    reason: str = ""
    error: str = ""
    evidence: str = ""
    judge: str = ""
    several: tuple[int, ...] = ()

    @classmethod
    def of_choice(
        cls, generation: Generation, grader: str, choice: int, reason: str = "", evidence: str = ""
    ) -> Grade:
        """Grade an answer that names one option: compare it with the golds, by index."""
        return cls.of_choices(generation, grader, (choice,), reason, evidence)

    @classmethod
    def of_choices(
        cls,
        generation: Generation,
        grader: str,
        choices: Iterable[int],
        reason: str = "",
        evidence: str = "",
    ) -> Grade:
        """Grade an answer by the options that it names.

        Under ``all`` exactly the golds are CORRECT, a part of them or one too many is
        INCORRECT. Under ``any`` several are OTHER: naming every option would always be right.
        """
        item, named = generation.prompt.item, tuple(sorted(set(choices)))
        if not named or (len(named) > 1 and not item.takes_all):
            why = "several_options" if named else "no_option"
            return cls.unread(generation, grader, why, evidence)
        right = named == item.golds if item.takes_all else named[0] in item.golds
        verdict = Verdict.CORRECT if right else Verdict.INCORRECT
        one, several = (named[0], ()) if len(named) == 1 else (None, named)
        return cls(generation, grader, verdict, one, reason, evidence=evidence, several=several)

    @classmethod
    def of_verdict(
        cls, generation: Generation, grader: str, verdict: Verdict, evidence: str = ""
    ) -> Grade:
        """Grade by a judge that says only whether the answer is right.

        CORRECT names the gold option (under ``any`` one of several, unknown which). INCORRECT
        names the other one of two; of more the choice stays unknown instead of being guessed.
        """
        item = generation.prompt.item
        if verdict is Verdict.CORRECT and (item.takes_all or not item.also_right):
            return cls.of_choices(generation, grader, item.golds, "judge", evidence)
        other_of_two = len(item.options) == 2 and not item.takes_all and not item.also_right
        choice = 1 - item.gold if verdict is Verdict.INCORRECT and other_of_two else None
        reason = "judge_other" if verdict is Verdict.OTHER else "judge"
        return cls(generation, grader, verdict, choice, reason, evidence=evidence)

    @classmethod
    def unread(cls, generation: Generation, grader: str, reason: str, evidence: str = "") -> Grade:
        """Grade an answer that names no single option: OTHER, with the reason.

        Never map a refusal to a letter: a 30 % refusal rate would read as a 30 %
        preference for whichever option comes first.
        """
        return cls(generation, grader, Verdict.OTHER, None, reason, evidence=evidence)

    @classmethod
    def failed(cls, generation: Generation, grader: str, error: str, evidence: str = "") -> Grade:
        """Record that the grader could not read the row; it can be tried again later."""
        return cls(generation, grader, None, None, "", error or "unknown error", evidence)

    @property
    def choices(self) -> tuple[int, ...]:
        """Every option that was named, in ascending order; empty where none is known."""
        return self.several if self.choice is None else (self.choice,)

    @property
    def slot(self) -> int | None:
        """The slot of the choice, as shown; None without a single choice, or a page of them."""
        prompt = self.generation.prompt
        if self.choice is None or prompt.unseen:
            return None
        return prompt.orientation.slot_of(self.choice)
