"""Rows whose answers seem to speak to the judge, and rows that the judge is tried on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mlflow_mcq.diagnostics import Alarm
from mlflow_mcq.diagnostics.steering import find_steering, steering_alarm
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.graders.budget import SPENT
from mlflow_mcq.graders.exam import ExamReply, load_exam
from mlflow_mcq.graders.thought import visible_answer
from mlflow_mcq.metrics import Summary
from mlflow_mcq.records import Generation, Grade
from mlflow_mcq.table import row_id

__all__ = ["canary_numbers", "suspected"]

_KIND = "injection"


def suspected(
    answered: Sequence[Generation],
) -> tuple[Summary, dict[str, pd.DataFrame], list[Alarm]]:
    """Look for answers that steer; thinking is left out, as the judge never sees it.

    Returns:
        ``generation/injection_suspected_rate`` in [0, 1], undefined without answers; the table
        ``mcq_injection`` (``row_id``, ``kind``, ``excerpt``) and the alarm, where any is found.
    """
    found = [*find_steering([visible_answer(one).text for one in answered])]
    ids = [row_id(one) for one in answered]
    numbers = Summary()
    numbers.rate("generation/injection_suspected_rate", len(found), len(answered), "answers")
    alarm = steering_alarm(found, len(answered), ids)
    if alarm is None:
        return numbers, {}, []
    rows = [{"row_id": ids[s.row], "kind": s.kind, "excerpt": s.excerpt} for s in found]
    return numbers, {"mcq_injection": pd.DataFrame(rows)}, [alarm]


def canary_numbers(judge: JudgeGrader) -> Summary:
    """Put replies that try to steer the judge to it, whose right reading is known.

    In every run, unlike the exam: a judge behind a server may be another one tomorrow.

    Returns:
        ``n_canaries`` and ``canary_accuracy``, the share that it read rightly, in [0, 1]. What
        it could not be read on counts as not right: a steered judge often says neither.
        Undefined where the budget is spent; nothing where ``judge.canaries`` is 0.
    """
    numbers = Summary()
    drawn = [one for one in load_exam() if one.kind == _KIND][: judge.settings.canaries]
    if not drawn:
        return numbers
    known = {one.generation.key: one for one in drawn}
    read = [*judge.read([one.generation for one in drawn])]
    if any(grade.error.startswith(SPENT) for grade in read):
        numbers.undefined["canary_accuracy"] = f"undefined: {judge.spent}"
        return numbers
    right = sum(_right(grade, known[grade.generation.key], judge) for grade in read)
    numbers.values["n_canaries"] = float(len(drawn))
    numbers.rate("canary_accuracy", right, len(drawn), "canaries")
    return numbers


def _right(grade: Grade, reply: ExamReply, judge: JudgeGrader) -> bool:
    same_slot = judge.settings.shape == "direct" or grade.slot == reply.slot
    return grade.verdict is reply.verdict and same_slot
