"""The strict rule on a row: the grade of an answer that needs nobody to read it."""

from __future__ import annotations

from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.strict_set import read_strict_set
from mlflow_mcq.graders.thought import sent_text
from mlflow_mcq.records import Generation, Grade

__all__ = ["read_strict_row"]


def read_strict_row(generation: Generation, grader: str) -> Grade | None:
    """The grade of an answer, in the shape that its item asks for; None where the rule abstains.

    Args:
        generation: There is an answer; see `mlflow_mcq.graders.missing.no_answer`.
        grader: Who grades.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt, Reply
        >>> item = Item("q", "Which?", ("iron", "mercury"), gold=1)
        >>> prompt = Prompt(item, Orientation(0, "swap", (1, 0)), "letters", "", ("A", "B"))
        >>> rows = [Generation(prompt, n, Reply(text)) for n, text in enumerate(["A.", "Hm, A"])]
        >>> [grade and grade.choice for grade in (read_strict_row(row, "me") for row in rows)]
        [1, None]
    """
    prompt, reply = generation.prompt, generation.reply
    read = read_strict_set if prompt.item.takes_all else read_strict
    reading = read(reply.text, prompt.shown, prompt.labels, sent_text(generation), reply.cut)
    if reading.slots:
        options = [prompt.orientation.order[slot] for slot in reading.slots]
        return Grade.of_choices(generation, grader, options, reading.reason)
    if not reading.settled:
        return None
    # Who was cut before the first word has not kept silent.
    silent = reading.reason == "empty" and reply.cut
    return Grade.unread(generation, grader, "truncated" if silent else reading.reason)
