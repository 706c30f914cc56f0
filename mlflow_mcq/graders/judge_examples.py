"""Worked examples for the judge: one for each way in which reading goes wrong."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXAMPLES", "Example"]


@dataclass(frozen=True, slots=True)
class Example:
    """One reply with the slot that it chooses.

    Attributes:
        question: The question.
        options: Option texts as shown.
        reply: The candidate's reply.
        gold: Slot of the right option.
        slot: Slot that was chosen; None where the reply commits to no single option.
        by_letter: The choice rests on a letter, so it means nothing where none was shown.
    """

    question: str
    options: tuple[str, ...]
    reply: str
    gold: int
    slot: int | None
    by_letter: bool = False


_RIVER = ("the Danube", "the Rhine", "the Volga")
_TOOL = ("a thermometer", "a barometer", "a compass", "a ruler")

EXAMPLES: tuple[Example, ...] = (
    Example(
        "Which river flows into the Caspian Sea?",
        _RIVER,
        "I'd go with B, it is the longest one.",
        gold=2,
        slot=1,
        by_letter=True,
    ),
    Example(
        "Which instrument shows air pressure?",
        _TOOL,
        "You would read that off a barometer, which reacts to the weight of the air.",
        gold=1,
        slot=1,
    ),
    Example(
        "Which instrument shows north?",
        _TOOL,
        "I am not able to help with that.",
        gold=2,
        slot=None,
    ),
    Example(
        "Which river flows through Vienna?",
        _RIVER,
        "It could be the Danube or the Rhine; both fit.",
        gold=0,
        slot=None,
    ),
    Example(
        "Which instrument measures length?",
        _TOOL,
        "Not the thermometer, since that is for heat, and a compass only points. The ruler.",
        gold=3,
        slot=3,
    ),
    Example(
        "Which river is the longest of these?",
        _RIVER,
        "The Amazon.",
        gold=2,
        slot=None,
    ),
)
"""By letter, by text, a refusal, several, rejection before the choice, not on the list."""
