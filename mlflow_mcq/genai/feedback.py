"""A grade as MLflow feedback: the verdict in words, and the same in numbers beside it.

MLflow averages numbers and yes or no, and leaves texts and errors out of its run metrics
without a word. So beside ``judge`` (a text) stand, where they exist:

===========================  ========================================================
``judge_correct``            over all graded rows; OTHER is not correct
``judge_correct_decided``    over CORRECT and INCORRECT alone; left out where OTHER
``judge_other``              over all graded rows
``judge_error``              over all rows: the judge failed, and the row is in no other
``strict_abstains``          over all rows: the strict rule leaves the row to a judge
===========================  ========================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlflow.entities import AssessmentError, AssessmentSource, Feedback

from mlflow_mcq.graders.plain import ABSTAINS
from mlflow_mcq.records import Generation, Grade, Verdict

__all__ = ["MARK", "feedback_of", "grade_from", "refusal"]

MARK = "mcq.grader"
"""Metadata by which a verdict of ours is known among the assessments of a trace."""

_STRICT = "strict"


def feedback_of(grade: Grade, judge_model: str = "") -> list[Feedback]:
    """The verdict and its numbers.

    Args:
        grade: What one grader read.
        judge_model: Who judges; empty for a grader that asks nobody.
    """
    name, source = grade.grader, _source(grade, judge_model)
    told = {MARK: name, **_metadata(grade)}
    if grade.verdict is None and grade.generation.reply.error is not None:
        # No answer: no grader has failed, and none could have read it.
        return [_failed(name, source, told, "NO_ANSWER", grade.error)]
    if grade.verdict is None and grade.error == ABSTAINS:
        why = "only a judge can read this"
        first = Feedback(
            name=name, value=ABSTAINS.upper(), rationale=why, source=source, metadata=told
        )
    elif grade.verdict is None:
        first = _failed(name, source, told, "JUDGE_ERROR", grade.error)
    else:
        first = Feedback(
            name=name,
            value=grade.verdict.value,
            rationale=_why(grade),
            source=source,
            metadata=told,
        )
    numbers = _numbers(grade, judged=bool(judge_model))
    return [first, *(Feedback(name=k, value=v, source=source) for k, v in numbers.items())]


def refusal(name: str, error: str) -> list[Feedback]:
    """The feedback on a row that cannot be read at all: it holds no options, or no gold."""
    source = AssessmentSource(source_type="CODE", source_id=name)
    return [_failed(name, source, {MARK: name}, "UNREADABLE_ROW", error)]


def grade_from(feedback: Feedback, generation: Generation) -> Grade:
    """The grade that a stored verdict stands for."""
    told: Mapping[str, Any] = feedback.metadata or {}
    choices = tuple(json.loads(told.get("mcq.choices", "[]")))
    known = feedback.value in Verdict.__members__
    error = "" if known else feedback.error_message or ABSTAINS
    return Grade(
        generation,
        str(told[MARK]),
        Verdict(feedback.value) if known else None,
        choices[0] if len(choices) == 1 else None,
        str(told.get("mcq.reason", "")) if known else "",
        error,
        evidence=str(told.get("mcq.judge_reply", "")),
        judge=str(told.get("mcq.judge", "")),
        several=choices if len(choices) > 1 else (),
    )


def _numbers(grade: Grade, judged: bool) -> dict[str, bool]:
    name, verdict = grade.grader, grade.verdict
    numbers: dict[str, bool] = {}
    if verdict is not None:
        numbers[f"{name}_correct"] = verdict is Verdict.CORRECT
        if verdict is not Verdict.OTHER:
            numbers[f"{name}_correct_decided"] = verdict is Verdict.CORRECT
        numbers[f"{name}_other"] = verdict is Verdict.OTHER
    if judged:
        numbers[f"{name}_error"] = verdict is None
    elif name == _STRICT:
        numbers[f"{name}_abstains"] = verdict is None
    return numbers


def _source(grade: Grade, judge_model: str) -> AssessmentSource:
    if judge_model and (grade.judge or grade.error):
        return AssessmentSource(source_type="LLM_JUDGE", source_id=judge_model)
    # A row that the strict rule settles was never shown to the judge.
    settled = f"{grade.grader}/{_STRICT}" if judge_model else grade.grader
    return AssessmentSource(source_type="CODE", source_id=settled)


def _metadata(grade: Grade) -> dict[str, str]:
    """For people who look at a row, and to make the grade again; MLflow keeps texts only."""
    prompt = grade.generation.prompt
    found: dict[str, object] = {
        "mcq.item_id": prompt.item.id,
        "mcq.orientation": prompt.orientation.name,
        "mcq.choices": json.dumps(list(grade.choices)),
        "mcq.choice": "" if grade.choice is None else prompt.item.options[grade.choice],
        "mcq.slot": "" if grade.slot is None else grade.slot,
        "mcq.reason": grade.reason,
        "mcq.judge_reply": grade.evidence,
        "mcq.judge": grade.judge,
    }
    return {name: str(value) for name, value in found.items() if value != ""}


def _why(grade: Grade) -> str:
    said = f"; the judge said: {grade.evidence}" if grade.evidence else ""
    return f"{grade.reason}{said}"


def _failed(
    name: str, source: AssessmentSource, told: Mapping[str, str], code: str, why: str
) -> Feedback:
    error = AssessmentError(error_code=code, error_message=why)
    return Feedback(name=name, error=error, source=source, metadata=dict(told))
