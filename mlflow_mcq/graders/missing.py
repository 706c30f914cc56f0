"""Generations that hold no answer to read: said the same way by every grader."""

from __future__ import annotations

from mlflow_mcq.records import Generation, Grade

__all__ = ["no_answer"]

_TOO_LONG = "prompt_too_long"


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
    if reply.finish_reason == _TOO_LONG:
        return Grade.unread(generation, grader, _TOO_LONG)
    if reply.error is not None:
        return Grade.failed(generation, grader, f"no generation: {reply.error}")
    return None
