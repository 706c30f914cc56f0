"""The strict rule as a grader of its own, with no judge behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow_mcq.graders.missing import no_answer
from mlflow_mcq.graders.plain import ABSTAINS
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.strict_set import read_strict_set
from mlflow_mcq.graders.thought import sent_text
from mlflow_mcq.records import Generation, Grade

__all__ = ["StrictGrader"]

_CUT = "length"


class StrictGrader:
    """Grades replies that are nothing but a label or an option's own text.

    Any other reply has no verdict and the error ``abstains``: that is neither OTHER nor
    wrong, since the answer may be there for somebody who can read.

    Attributes:
        name: Prefix of its metrics.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt, Reply
        >>> item = Item("q", "Which?", ("iron", "mercury"), gold=1)
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "", ("A", "B"))
        >>> rows = [Generation(prompt, n, Reply(text)) for n, text in enumerate(["B", "Hm, B"])]
        >>> [(grade.verdict, grade.error) for grade in StrictGrader().grade(rows)]
        [(<Verdict.CORRECT: 'CORRECT'>, ''), (None, 'abstains')]
    """

    name = "strict"

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation, in order."""
        for generation in generations:
            yield no_answer(generation, self.name) or self._read(generation)

    def _read(self, generation: Generation) -> Grade:
        prompt, reply = generation.prompt, generation.reply
        read = read_strict_set if prompt.item.takes_all else read_strict
        cut = reply.finish_reason == _CUT
        reading = read(reply.text, prompt.shown, prompt.labels, sent_text(generation), cut)
        if reading.slots:
            options = [prompt.orientation.order[slot] for slot in reading.slots]
            return Grade.of_choices(generation, self.name, options, reading.reason)
        if reading.settled:
            return Grade.unread(generation, self.name, reading.reason)
        return Grade.failed(generation, self.name, ABSTAINS)
