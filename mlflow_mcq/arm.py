"""An arm: what one run has measured.

Evaluators of one call share an arm, so that answers are generated once however many
graders read them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlflow_mcq import metrics
from mlflow_mcq.doors import Engine, Grader
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.pipeline import generate, grade
from mlflow_mcq.records import Generation, Grade, Item, Request
from mlflow_mcq.settings import Settings
from mlflow_mcq.table import grades_frame

__all__ = ["Arm", "compare_with_judge", "measure", "put", "read"]


@dataclass
class Arm:
    """Everything measured in one run so far.

    Attributes:
        settings: What decided the rows.
        generations: The answers.
        seconds: Time that generation took.
        grades: Grades by grader, in the order of ``generations``.
        summaries: Numbers by grader.
        judge: The judge that read them, if one did.
        numbers: Numbers that belong to no single grader's rows.
    """

    settings: Settings
    generations: tuple[Generation, ...]
    seconds: float
    grades: dict[str, tuple[Grade, ...]] = field(default_factory=dict)
    summaries: dict[str, metrics.Summary] = field(default_factory=dict)
    judge: JudgeGrader | None = None
    numbers: metrics.Summary = field(default_factory=metrics.Summary)

    @property
    def answered(self) -> tuple[Generation, ...]:
        """The generations that graders can read: those with an answer."""
        return tuple(g for g in self.generations if g.reply.error is None)

    @property
    def items(self) -> tuple[Item, ...]:
        """The items measured, once each."""
        return tuple({g.prompt.item.id: g.prompt.item for g in self.generations}.values())

    def inherit(self, asked: Settings) -> None:
        """Check that another evaluator of the same call asks for these very rows.

        Raises:
            SettingsError: It sets something that would have given other rows.
        """
        for name, value in asked.measured.items():
            mine = self.settings.measured[name]
            if name in asked.model_fields_set and value != mine:
                raise SettingsError(
                    name,
                    f"evaluators of one call read the same rows, generated with {mine!r}",
                    value,
                    "Set it once, or evaluate in two calls.",
                )


def measure(engine: Engine, requests: Sequence[Request], settings: Settings) -> Arm:
    """Generate all rows."""
    start = time.monotonic()
    generations = generate(engine, requests, settings)
    arm = Arm(settings, generations, time.monotonic() - start)
    reasons = [g.reply.finish_reason for g in generations]
    n_failed = len(generations) - len(arm.answered)
    arm.numbers.rate("generation/error_rate", n_failed, len(generations), "rows")
    arm.numbers.values |= {
        "generation/n_rows": float(len(generations)),
        "generation/n_truncated": float(reasons.count("length")),
        "generation/n_prompt_too_long": float(reasons.count("prompt_too_long")),
        "generation/seconds": arm.seconds,
    }
    return arm


def read(arm: Arm, graders: Iterable[Grader]) -> list[str]:
    """Let graders read the rows; one that has done so already is not asked again.

    Returns:
        Names of the graders that are new.
    """
    fresh = []
    for grader in graders:
        if grader.name not in arm.grades:
            put(arm, grader, grade(grader, arm.answered))
            fresh.append(grader.name)
    compare_with_judge(arm)
    return fresh


def put(arm: Arm, grader: Grader, grades: tuple[Grade, ...]) -> None:
    """Enter what a grader has read, with its numbers; a judge is checked as well."""
    arm.grades[grader.name] = grades
    judged = isinstance(grader, JudgeGrader)
    arm.summaries[grader.name] = metrics.summarize(grades_frame(grades), judged=judged)
    if isinstance(grader, JudgeGrader):
        arm.judge = grader
        _check_judge(arm, grader)


def _check_judge(arm: Arm, judge: JudgeGrader) -> None:
    grades = arm.grades[judge.name]
    asked = sum(1 for one in grades if one.judge or one.error)
    check = judge.check(grades)
    summary = arm.summaries[judge.name]
    summary.rate("prefilter_rate", len(grades) - asked, len(grades), "rows")
    summary.values["n_checked"] = float(check.n)
    summary.values["n_check_failed"] = float(check.n_failed)
    read_rows = check.n - check.n_failed
    summary.rate("strict_agreement", check.n_agree, read_rows, "plain labels read by the judge")


def compare_with_judge(arm: Arm) -> None:
    """Enter how far each other grader differs from the judge, where there is one."""
    if arm.judge is None:
        return
    judged = grades_frame(arm.grades[arm.judge.name])
    for name, grades in arm.grades.items():
        if name == arm.judge.name:
            continue
        found = metrics.disagreement(judged, grades_frame(grades))
        mine = arm.summaries[arm.judge.name]
        for key, target in ((found.values, mine.values), (found.undefined, mine.undefined)):
            if "disagreement" in key:
                target[f"{name}_disagreement"] = key["disagreement"]  # type: ignore[assignment]
