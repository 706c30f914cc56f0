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
from mlflow_mcq.chance import chance_numbers
from mlflow_mcq.corrections import corrected_numbers, human_numbers
from mlflow_mcq.cost import cost_after
from mlflow_mcq.datasets.lint import LintReport
from mlflow_mcq.datasets.reading import Reading
from mlflow_mcq.datasets.stored import PROTOCOL as STORED
from mlflow_mcq.diagnostics import Alarm
from mlflow_mcq.doors import Engine, Grader, Scorer, Tokenizer
from mlflow_mcq.engines.described import described
from mlflow_mcq.engines.elsewhere_scores import PooledScorer, VllmScorer
from mlflow_mcq.engines.kept import KeptEngine
from mlflow_mcq.engines.label_scores import LabelScorer
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.engines.pool import PooledChat
from mlflow_mcq.engines.remote_scores import RemoteScorer
from mlflow_mcq.engines.stored import StoredEngine
from mlflow_mcq.engines.vllm_chat import VllmChat
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.extras import exam_of, judge_numbers, parser_numbers, reader_numbers
from mlflow_mcq.grader_tables import exam_tables, grader_tables, label_scores_frame
from mlflow_mcq.graders import JudgeGrader, SimilarityGrader
from mlflow_mcq.graders.early import EarlyReader
from mlflow_mcq.injection import canary_numbers, suspected
from mlflow_mcq.logprob import summarize_logprobs
from mlflow_mcq.pipeline import generate, grade
from mlflow_mcq.places import label_picks, without_places
from mlflow_mcq.records import Generation, Grade, Item, Request
from mlflow_mcq.scores import LabelScores
from mlflow_mcq.settings import Settings
from mlflow_mcq.spent import Spent
from mlflow_mcq.store.journal import Journal
from mlflow_mcq.table import grades_frame
from mlflow_mcq.unwinnable import tokenizer_of

__all__ = ["Arm", "compare", "count", "examined", "measure", "put", "read"]


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
        reading: How the data was read; None where it was not (regrading).
        lint: Faults of the items, where they were looked for.
        road: How a model in memory generated the rows, and why; empty for any other.
        model: How a model that is here was loaded, and what hangs on it, as params.
        journal: What is kept on disk while the run is under way.
        tables: Tables that only some graders have, by name.
        alarms: Alarms over the answers, beside those over numbers.
        spent: What the rows made have taken; None where nobody counts, or nothing was made.
        stages: Time by stage, in seconds.
        early: Who has read since the first answer came; None where nobody has.
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
    reading: Reading | None = None
    lint: LintReport | None = None
    road: str = ""
    model: dict[str, object] = field(default_factory=dict)
    journal: Journal | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    alarms: list[Alarm] = field(default_factory=list)
    spent: Spent | None = None
    stages: dict[str, float] = field(default_factory=dict)
    early: EarlyReader | None = None

    @property
    def answered(self) -> tuple[Generation, ...]:
        """The generations that graders can read: those with an answer."""
        return tuple(g for g in self.generations if g.reply.error is None)

    @property
    def items(self) -> tuple[Item, ...]:
        """The items measured, once each."""
        return tuple({g.prompt.item.id: g.prompt.item for g in self.generations}.values())

    @property
    def takes_all(self) -> bool:
        """Whether every right option was asked for, so that answers may name several."""
        return any(g.prompt.item.takes_all for g in self.generations)

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


def measure(
    engine: Engine,
    requests: Sequence[Request],
    settings: Settings,
    journal: Journal | None = None,
    early: EarlyReader | None = None,
) -> Arm:
    """Generate all rows, and score the letters where that is asked for.

    Args:
        engine: Answers.
        requests: What is asked.
        settings: How.
        journal: What is kept on disk meanwhile.
        early: Reads each answer as it comes. The caller stops it where this raises.
    """
    before: Spent | None = getattr(engine, "spent", None)
    start = time.monotonic()
    generations = generate(engine, requests, settings, early.show if early else None)
    seconds = time.monotonic() - start
    arm = Arm(settings, generations, seconds, journal=journal, early=early)
    if isinstance(engine, KeptEngine):
        arm.numbers.values["generation/n_resumed"] = float(engine.n_found)
    if not isinstance(engine, StoredEngine):
        arm.stages["generation"] = arm.seconds
        arm.spent = None if before is None else getattr(engine, "spent", before) - before
        _add_ahead(arm)
    arm.tokenizer = tokenizer_of(engine)
    arm.road = str(getattr(getattr(engine, "chat", None), "road", None) or "")
    arm.model = described(getattr(engine, "chat", None))
    if settings.logprob.enabled:
        _score(arm, getattr(engine, "chat", None))
    count(arm)
    arm.numbers.values["generation/seconds"] = arm.seconds
    return arm


def _add_ahead(arm: Arm) -> None:
    """Count what was made ahead for this run, and is in its folder."""
    if arm.journal is None or arm.spent is None:
        return
    for entry in arm.journal.ahead:
        arm.spent += entry.spent
        arm.stages["generation"] += entry.seconds
        arm.numbers.values["generation/n_processes"] = float(entry.n_processes)


def count(arm: Arm) -> None:
    """Enter how many rows there are; how many were cut, too long, never answered or steer."""
    replies = [generation.reply for generation in arm.generations]
    n_failed = len(arm.generations) - len(arm.answered)
    arm.numbers.rate("generation/error_rate", n_failed, len(arm.generations), "rows")
    arm.numbers.values |= {
        "generation/n_rows": float(len(arm.generations)),
        "generation/n_truncated": float(sum(reply.cut for reply in replies)),
        "generation/n_prompt_too_long": float(sum(reply.too_long for reply in replies)),
    }
    numbers, tables, alarms = suspected(arm.answered)
    arm.numbers.add(numbers)
    arm.tables |= tables
    arm.alarms += alarms


def _score(arm: Arm, chat: object) -> None:
    """Score the letters; a diagnostic must not cost generations that are done."""
    prompts = list({g.key[:3]: g.prompt for g in arm.generations}.values())
    scorer = _scorer_of(chat, arm.settings.thinking)
    if scorer is None:
        why = "undefined: the model is not loaded here, nor a remote_model that could be asked"
        arm.numbers.undefined["logprob/accuracy"] = why
        return
    try:
        arm.scores = tuple(scorer.score(prompts))
    except ModelError as error:
        arm.numbers.undefined["logprob/accuracy"] = f"undefined: {error}"
    else:
        arm.tables["mcq_label_scores"] = label_scores_frame(arm.scores)


def _scorer_of(chat: object, thinking: bool | None) -> Scorer | None:
    if isinstance(chat, LocalChat):
        return LabelScorer(chat, thinking)
    if isinstance(chat, PooledChat):
        return PooledScorer(chat, thinking)
    if isinstance(chat, VllmChat):
        return VllmScorer(chat, thinking)
    return RemoteScorer(chat, thinking) if isinstance(chat, OpenAIChat) else None


def read(arm: Arm, graders: Iterable[Grader]) -> list[str]:
    """Let graders read the rows; one that has done so already is not asked again.

    Returns:
        Names of the graders that are new.
    """
    fresh = []
    for grader in graders:
        if grader.name not in arm.grades:
            if isinstance(grader, JudgeGrader) and arm.journal is not None:
                grader.keep_in(arm.journal.judge_folder)
            start = time.monotonic()
            early = arm.early if arm.early and arm.early.judge is grader else None
            put(arm, grader, grade(early or grader, arm.answered))
            if isinstance(grader, (JudgeGrader, SimilarityGrader)):
                stage = "judging" if isinstance(grader, JudgeGrader) else "embedding"
                arm.stages[stage] = time.monotonic() - start
            if early is not None:
                # What it read beside the model took no time of its own, but is judging.
                arm.stages["judging"] += early.overlapped
                arm.numbers.values["cost/judging_overlapped_seconds"] = early.overlapped
            fresh.append(grader.name)
    if arm.stages:
        usage = None if arm.judge is None else arm.judge.usage
        arm.numbers.add(cost_after(arm.spent, arm.stages, usage))
    compare(arm)
    return fresh


def put(arm: Arm, grader: Grader, grades: tuple[Grade, ...]) -> None:
    """Enter what a grader has read, with its numbers; a judge is examined as well."""
    arm.grades[grader.name] = grades
    frame = arm.frames[grader.name] = grades_frame(grades)
    summary = metrics.summarize(frame, judged=isinstance(grader, JudgeGrader))
    if isinstance(grader, JudgeGrader):
        arm.judge = grader
        summary.add(examined(arm, grader, grades))
    stored = arm.generations[0].prompt.protocol == STORED
    seconds = None if stored else arm.seconds
    summary.add(reader_numbers(grader, grades, arm.items, seconds))
    arm.tables |= grader_tables(grader, arm.items)
    summary.add(chance_numbers(frame, arm.items))
    summary.add(label_picks(grades))
    arm.summaries[grader.name] = without_places(summary, grades)


def examined(
    arm: Arm, judge: JudgeGrader, grades: Sequence[Grade], called: str = "judge"
) -> metrics.Summary:
    """Measure a judge that has read an arm, and correct its accuracy by what is found.

    Its exam, plain labels of these rows, replies that try to steer it, and what people said;
    the tables of its exam are entered.

    Args:
        arm: What it read.
        judge: Who read.
        grades: Its readings.
        called: In the names of its tables.
    """
    exam = exam_of(judge)
    found = judge_numbers(judge, grades, exam, arm.settings.seed)
    found.add(canary_numbers(judge))
    found.add(corrected_numbers(grades, exam))
    found.add(human_numbers(grades))
    arm.tables |= exam_tables(exam, called)
    return found


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
                arm.summaries[name].add(parser_numbers(judged, grades, arm.settings.seed))
    if arm.scores:
        against = arm.grades.get("judge") or arm.grades.get("regex_bounded", ())
        prior, seed = arm.settings.logprob.prior_items, arm.settings.seed
        found = summarize_logprobs(arm.scores, against, prior_items=prior, seed=seed)
        arm.summaries["logprob"] = found
