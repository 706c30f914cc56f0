"""Worked examples for the judge: one for each way in which reading goes wrong.

They come in families by the kind of reply, since a judge that has only seen one-liners
takes the first option of a long derivation for its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["EXAMPLES", "LONG_REPLY", "Example", "ReplyFamily", "family_of"]

ReplyFamily = Literal["short", "reasoned"]

LONG_REPLY = 400
"""Characters from which on a reply is a reasoned one, whatever was asked for."""


def family_of(protocol: str, reply: str) -> ReplyFamily:
    """The family of examples that goes with a reply.

    ``reasoned`` where the protocol asks for reasoning (its name says so) or the visible
    reply has more than `LONG_REPLY` characters; else ``short``. Both are shown with
    letters or without, as the candidate saw its options.

    Example:
        >>> family_of("letters", "B, I think."), family_of("letters-reasoned", "B")
        ('short', 'reasoned')
    """
    return "reasoned" if "reasoned" in protocol or len(reply) > LONG_REPLY else "short"


@dataclass(frozen=True, slots=True)
class Example:
    """One reply with the slot that it chooses.

    Attributes:
        question: The question.
        options: Option texts as shown.
        reply: The candidate's reply.
        gold: Slot of the right option.
        slot: Slot that was chosen; None where the reply commits to no single option.
        why: What a judge that gives its reasons says about it.
        by_letter: The choice rests on a letter, so it means nothing where none was shown.
        also: Further slots that were chosen, where several may be.
        also_right: Slots of further right options, in ascending order after ``gold``.
    """

    question: str
    options: tuple[str, ...]
    reply: str
    gold: int
    slot: int | None
    why: str
    by_letter: bool = False
    also: tuple[int, ...] = ()
    also_right: tuple[int, ...] = ()


_RIVER = ("the Danube", "the Rhine", "the Volga")
_TOOL = ("a thermometer", "a barometer", "a compass", "a ruler")

_SHORT = (
    Example(
        "Which river flows into the Caspian Sea?",
        _RIVER,
        "I'd go with B, it is the longest one.",
        gold=2,
        slot=1,
        why="It goes with one letter.",
        by_letter=True,
    ),
    Example(
        "Which instrument shows air pressure?",
        _TOOL,
        "You would read that off a barometer, which reacts to the weight of the air.",
        gold=1,
        slot=1,
        why="It names one option by its text.",
    ),
    Example(
        "Which instrument shows north?",
        _TOOL,
        "I am not able to help with that.",
        gold=2,
        slot=None,
        why="It refuses.",
    ),
    Example(
        "Which river flows through Vienna?",
        _RIVER,
        "It could be the Danube or the Rhine; both fit.",
        gold=0,
        slot=None,
        why="It leaves two options open.",
    ),
    Example(
        "Which instrument measures length?",
        _TOOL,
        "Not the thermometer, since that is for heat, and a compass only points. The ruler.",
        gold=3,
        slot=3,
        why="It rejects two options and then names one.",
    ),
    Example(
        "Which river is the longest of these?",
        _RIVER,
        "The Amazon.",
        gold=2,
        slot=None,
        why="What it names is not on the list.",
    ),
)
# By letter, by text, a refusal, several, rejection before the choice, not on the list.

_REASONED = (
    Example(
        "A train covers 90 km in 45 minutes. What is its mean speed?",
        ("60 km/h", "90 km/h", "120 km/h", "135 km/h"),
        "45 minutes are three quarters of an hour. 90 divided by 45 would be 2, so A looks "
        "tempting, but that is km per minute. 90 / 0.75 = 120.\n\nAnswer: C",
        gold=2,
        slot=2,
        why="A is only weighed; the last line goes with one letter.",
        by_letter=True,
    ),
    Example(
        "Which of these gases is the lightest?",
        ("helium", "hydrogen", "neon"),
        "Helium lifts balloons, so it must be light. Its mass is 4, though, and that of a "
        "hydrogen molecule is 2. So helium is not the lightest of them; hydrogen is. Neon "
        "is far heavier. I settle on hydrogen.",
        gold=1,
        slot=1,
        why="It corrects itself and settles on one option.",
    ),
    Example(
        "Which instrument measures length?",
        _TOOL,
        "Let us go through them. A thermometer is for heat. A barometer is for pressure. A "
        "compass is for directions. A ruler has",
        gold=3,
        slot=None,
        why="It breaks off before it commits to an option.",
    ),
    Example(
        "Which river flows into the Caspian Sea?",
        _RIVER,
        "The Danube ends in the Black Sea, which lies near the Caspian Sea, and the Rhine ends "
        "in the North Sea. From what is known here, both the Danube and the Volga could be "
        "meant, and nothing more can be said.",
        gold=2,
        slot=None,
        why="It ends with two options open.",
    ),
    Example(
        "Which river is the longest of these?",
        _RIVER,
        "The Volga has more than 3,500 km and the Danube about 2,850 km. The Rhine is by far the "
        "shortest. Counting its tributaries, I take the Danube.",
        gold=2,
        slot=0,
        why="Whatever the numbers say, it takes one option.",
    ),
)
# A letter after a rejected one, a correction, cut off, undecided, a choice against its reasons.

EXAMPLES: dict[ReplyFamily, tuple[Example, ...]] = {"short": _SHORT, "reasoned": _REASONED}
"""Examples by family."""
