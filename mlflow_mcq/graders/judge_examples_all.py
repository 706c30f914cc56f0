"""Worked examples for the judge where the candidate was asked for every right option.

A set of their own: the ordinary examples call an answer that names two options no answer,
which is what must not be learnt here.
"""

from __future__ import annotations

from mlflow_mcq.graders.judge_examples import Example, ReplyFamily

__all__ = ["EXAMPLES_FOR_ALL"]

_RIVER = ("the Danube", "the Rhine", "the Dnieper")
_TOOL = ("a thermometer", "a barometer", "a compass", "a ruler")

_SHORT = (
    Example(
        "Which of these rivers flow into the Black Sea?",
        _RIVER,
        "I'd go with A and C.",
        gold=0,
        slot=0,
        why="It goes with two letters.",
        by_letter=True,
        also=(2,),
        also_right=(2,),
    ),
    Example(
        "Which of these instruments does a weather station need?",
        _TOOL,
        "A barometer, which reacts to the weight of the air.",
        gold=0,
        slot=1,
        why="It names one option by its text.",
        also_right=(1,),
    ),
    Example(
        "Which of these instruments have a scale?",
        _TOOL,
        "I am not able to help with that.",
        gold=0,
        slot=None,
        why="It refuses.",
        also_right=(1, 3),
    ),
    Example(
        "Which of these rivers pass through a capital?",
        _RIVER,
        "It is either the Danube or the Dnieper.",
        gold=0,
        slot=None,
        why="It leaves open which of two it means.",
        also_right=(2,),
    ),
    Example(
        "Which of these instruments can be carried in a pocket?",
        _TOOL,
        "Not the barometer. The thermometer, the compass and the ruler.",
        gold=0,
        slot=0,
        why="It rejects one option and names three.",
        also=(2, 3),
        also_right=(2, 3),
    ),
    Example(
        "Which of these rivers rise in the Alps?",
        _RIVER,
        "The Rhine and the Rhône.",
        gold=1,
        slot=None,
        why="One of the two that it names is not on the list.",
    ),
)
# By letter, a part of the right ones, a refusal, left open, a rejection, not on the list.

_REASONED = (
    Example(
        "Which of these numbers are prime?",
        ("21", "29", "31", "39"),
        "21 is 3 times 7, so A is out. 29 has no divisor. 31 has none either. D looks prime, "
        "but 39 is 3 times 13.\n\nAnswer: B, C",
        gold=1,
        slot=1,
        why="A and D are only weighed; the last line goes with two letters.",
        by_letter=True,
        also=(2,),
        also_right=(2,),
    ),
    Example(
        "Which of these gases are lighter than air?",
        ("helium", "argon", "hydrogen"),
        "Helium fills balloons, so it is lighter. Argon might be, but its mass is 40, and that "
        "of air is about 29. I would have left hydrogen out, since it burns, but that is not "
        "the question. So helium and hydrogen.",
        gold=0,
        slot=0,
        why="It corrects itself and settles on two options.",
        also=(2,),
        also_right=(2,),
    ),
    Example(
        "Which of these instruments does a weather station need?",
        _TOOL,
        "Let us go through them. A thermometer shows the heat, so it counts. A barometer shows "
        "the pressure, so it counts. A compass is of no use there, and a ruler",
        gold=0,
        slot=None,
        why="It breaks off before it commits to a set of options.",
        also_right=(1,),
    ),
    Example(
        "Which of these rivers flow into the Black Sea?",
        _RIVER,
        "The Rhine ends in the North Sea. The Danube and the Dnieper both run to the south-east. "
        "The Dnieper may end in the Sea of Azov, though. I take the Danube alone.",
        gold=0,
        slot=0,
        why="It weighs several and takes one option.",
        also_right=(2,),
    ),
)
# Letters after rejected ones, a correction, cut off, one of several.

EXAMPLES_FOR_ALL: dict[ReplyFamily, tuple[Example, ...]] = {
    "short": _SHORT,
    "reasoned": _REASONED,
}
"""Examples by family."""
