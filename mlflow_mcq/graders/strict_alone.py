"""The strict rule as a grader of its own, with no judge behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow_mcq.graders.missing import no_answer
from mlflow_mcq.graders.plain import ABSTAINS
from mlflow_mcq.graders.strict_row import read_strict_row
from mlflow_mcq.records import Generation, Grade

__all__ = ["StrictGrader"]


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
        settled = read_strict_row(generation, self.name)
        return settled or Grade.failed(generation, self.name, ABSTAINS)
