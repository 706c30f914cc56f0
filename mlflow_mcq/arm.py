"""An arm: what one run has measured.

Evaluators of one call share an arm, so that answers are generated once however many
graders read them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from mlflow_mcq import metrics
from mlflow_mcq.doors import Engine, Grader, Tokenizer
from mlflow_mcq.engines.label_scores import LabelScorer
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.tokenizer import ReplyTokenizer
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.extras import exam_of, judge_numbers, reader_numbers, spot_numbers
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.logprob import summarize_logprobs
from mlflow_mcq.pipeline import generate, grade
from mlflow_mcq.places import label_picks, without_places
from mlflow_mcq.records import Generation, Grade, Item, Request
from mlflow_mcq.scores import LabelScores
from mlflow_mcq.settings import Settings
from mlflow_mcq.table import grades_frame

__all__ = ["Arm", "compare", "count", "measure", "put", "read"]


@dataclass
class Arm:
    """Everything measured in one run so far.

    Attributes:
        settings: What decided the rows.
        generations: The answers.
        seconds: Time that generation took.
        grades: Grades by grader, in the order of ``generations``.
        frames: The same as tables, made once.
        summaries: Numbers by grader.
        judge: The judge that read them, if one did.
        tokenizer: Of the evaluated model, where it is here.
        scores: Letter scores of each prompt, where they were asked for.
        numbers: Numbers that belong to no single grader's rows.
    """

    settings: Settings
    generations: tuple[Generation, ...]
    seconds: float
    grades: dict[str, tuple[Grade, ...]] = field(default_factory=dict)
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    summaries: dict[str, metrics.Summary] = field(default_factory=dict)
    judge: JudgeGrader | None = None
    tokenizer: Tokenizer | None = None
    scores: tuple[LabelScores, ...] = ()
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
    """Generate all rows, and score the letters where that is asked for."""
    start = time.monotonic()
    generations = generate(engine, requests, settings)
    arm = Arm(settings, generations, time.monotonic() - start)
    chat = getattr(engine, "chat", None)
    if isinstance(chat, LocalChat):
        arm.tokenizer = ReplyTokenizer(chat.tokenizer)
    if settings.logprob.enabled:
        _score(arm, chat)
    count(arm)
    arm.numbers.values["generation/seconds"] = arm.seconds
    return arm


def count(arm: Arm) -> None:
    """Enter how many rows there are, and how many were cut, too long or never answered."""
    reasons = [g.reply.finish_reason for g in arm.generations]
    n_failed = len(arm.generations) - len(arm.answered)
    arm.numbers.rate("generation/error_rate", n_failed, len(arm.generations), "rows")
    arm.numbers.values |= {
        "generation/n_rows": float(len(arm.generations)),
        "generation/n_truncated": float(reasons.count("length")),
        "generation/n_prompt_too_long": float(reasons.count("prompt_too_long")),
    }


def _score(arm: Arm, chat: object) -> None:
    """Score the letters; a diagnostic must not cost generations that are done."""
    if not isinstance(chat, LocalChat):
        arm.numbers.undefined["logprob/accuracy"] = "undefined: the model is not in memory here"
        return
    prompts = list({g.key[:3]: g.prompt for g in arm.generations}.values())
    try:
        arm.scores = tuple(LabelScorer(chat, thinking=arm.settings.thinking).score(prompts))
    except ModelError as error:
        arm.numbers.undefined["logprob/accuracy"] = f"undefined: {error}"


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
    compare(arm)
    return fresh


def put(arm: Arm, grader: Grader, grades: tuple[Grade, ...]) -> None:
    """Enter what a grader has read, with its numbers; a judge is examined as well."""
    arm.grades[grader.name] = grades
    frame = arm.frames[grader.name] = grades_frame(grades)
    summary = metrics.summarize(frame, judged=isinstance(grader, JudgeGrader))
    if isinstance(grader, JudgeGrader):
        arm.judge = grader
        summary.add(judge_numbers(grader, grades, exam_of(grader)))
    summary.values |= reader_numbers(grader.name, grades)
    summary.add(label_picks(grades))
    arm.summaries[grader.name] = without_places(summary, grades)


def compare(arm: Arm) -> None:
    """Enter how far the readings differ from the judge's, and the letter scores from both."""
    if arm.judge is not None:
        judged = arm.grades[arm.judge.name]
        mine = arm.summaries[arm.judge.name]
        for name, grades in arm.grades.items():
            if name != arm.judge.name:
                found = metrics.disagreement(arm.frames[arm.judge.name], arm.frames[name])
                mine.add(found.renamed({"disagreement": f"{name}_disagreement"}))
            if name.startswith("regex_"):
                arm.summaries[name].add(spot_numbers(judged, grades))
    if arm.scores:
        against = arm.grades.get("judge") or arm.grades.get("regex_bounded", ())
        prior, seed = arm.settings.logprob.prior_items, arm.settings.seed
        found = summarize_logprobs(arm.scores, against, prior_items=prior, seed=seed)
        arm.summaries["logprob"] = found
