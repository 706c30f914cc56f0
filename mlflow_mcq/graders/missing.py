"""What a grader cannot read at all: said the same way by every grader."""

from __future__ import annotations

from mlflow_mcq.records import Generation, Grade

__all__ = ["asks_for_sets", "no_answer"]


def no_answer(generation: Generation, grader: str) -> Grade | None:
    """The grade of a generation that was never made; None where there is a text.

    A prompt that did not fit is OTHER: the model cannot answer it. A call that broke is
    an error, which can be run again: nobody knows what the model would have said.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt, Reply
        >>> item = Item("q", "Which?", ("x", "y"), gold=0)
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "", ("A", "B"))
        >>> grade = no_answer(Generation(prompt, 0, Reply(None, "timeout")), "judge")
        >>> grade.verdict, grade.error
        (None, 'no generation: timeout')
    """
    reply = generation.reply
    if reply.too_long:
        return Grade.unread(generation, grader, reply.finish_reason)
    if reply.error is not None:
        return Grade.failed(generation, grader, f"no generation: {reply.error}")
    return None


def asks_for_sets(generation: Generation, grader: str) -> Grade | None:
    """The grade by a grader of single options of an item that asks for all right ones.

    An error and no verdict: a grader that stops at the first option it finds would call a
    whole answer a part of one, and a part of one whole.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt, Reply
        >>> item = Item("q", "Which?", ("x", "y"), gold=0, policy="all")
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "", ("A", "B"))
        >>> asks_for_sets(Generation(prompt, 0, Reply("A")), "regex_naive").error
        'regex_naive reads single options, and this item asks for all right ones'
    """
    if not generation.prompt.item.takes_all:
        return None
    why = f"{grader} reads single options, and this item asks for all right ones"
    return Grade.failed(generation, grader, why)
