"""The evaluators that MLflow finds by entry point. No logic of their own.

Imported inside anybody's first `evaluate`: this module must stay light and must never
raise, since MLflow forgives a plugin an ImportError and nothing else.
"""

from __future__ import annotations

import logging
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mlflow.exceptions import MlflowException
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from mlflow_mcq.errors import JudgeNotConfigured, McqError, RunInUse, SettingsError
from mlflow_mcq.settings import Settings, check_reads_sets, read_settings

if TYPE_CHECKING:
    from mlflow_mcq.arm import Arm
    from mlflow_mcq.datasets.frame import Row
    from mlflow_mcq.doors import Engine, Grader
    from mlflow_mcq.graders.early import EarlyReader
    from mlflow_mcq.graders.judge import JudgeGrader
    from mlflow_mcq.records import Item, Request
    from mlflow_mcq.store.journal import Journal

__all__ = [
    "MODEL_TYPES",
    "AnalogyEvaluator",
    "JudgeEvaluator",
    "Plan",
    "RegexEvaluator",
    "SimilarityEvaluator",
    "plan_of",
]

MODEL_TYPES = frozenset({"multiple-choice", "mcq"})
_log = logging.getLogger(__name__)


class _McqEvaluator(ModelEvaluator):  # type: ignore[misc]  # MLflow ships no types
    """What our evaluators share: read settings, measure or inherit, grade, report."""

    name: ClassVar[str]

    @classmethod
    def can_evaluate(
        cls, *, model_type: str | None, evaluator_config: Mapping[str, Any] | None, **_: Any
    ) -> bool:
        """True for our model types, or where the configuration names this evaluator.

        With ``evaluators=None`` MLflow asks every plugin: anything looser would run
        inside other people's evaluations.
        """
        named = isinstance(evaluator_config, Mapping) and cls.name in evaluator_config
        return model_type in MODEL_TYPES or named

    def evaluate(
        self,
        *,
        model_type: str | None,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        **more: Any,
    ) -> EvaluationResult:
        """Measure one arm and log it into its run.

        Raises:
            MlflowException: The settings, the data or the model are not usable; the
                message says what to change, and the run is tagged.
        """
        with _reported(run_id):
            _refuse(self.name, more)
            settings = read_settings(evaluator_config, self.name)
            check_reads_sets(self.name, settings.several_gold)
            plan = self._prepared(settings)  # a missing judge must cost no inference
            call = _Call(run_id, dataset, model, more.get("predictions"), plan)
            arm = _ARMS.arm_of(call, settings)
            # Another evaluator of this call may have set it for both.
            check_reads_sets(self.name, arm.settings.several_gold)
            with _ARMS.whole(call):
                return self._record(arm, plan.graders(arm), run_id, model, more.get("model_id"))

    @abstractmethod
    def _prepared(self, settings: Settings) -> Plan:
        """Check and build what must be there before inference; the rest is left for after."""

    def _record(
        self, arm: Arm, graders: Sequence[Grader], run_id: str, model: Any, model_id: str | None
    ) -> EvaluationResult:
        from mlflow_mcq.arm import read
        from mlflow_mcq.report import report, save_answers
        from mlflow_mcq.tracking import RunLog, quiet
        from mlflow_mcq.unwrap import logged_model_id

        log = RunLog(run_id)
        if not arm.grades:  # the first evaluator of a call; later ones find them stored
            save_answers(arm, log)
        with quiet():
            fresh = read(arm, graders)
        # MLflow logs the means itself, linked to the model, where it passes a model id.
        link = model_id or logged_model_id(model)
        values = report(arm, log, fresh, link, means=model_id is None)
        return EvaluationResult(metrics=values, artifacts=log.artifacts, run_id=run_id)


class RegexEvaluator(_McqEvaluator):
    """``mcq_regex``: the letter regexes that published parsers used. No judge needed."""

    name = "mcq_regex"

    def _prepared(self, settings: Settings) -> Plan:
        return Plan(lambda arm: _regexes(settings))


class JudgeEvaluator(_McqEvaluator):
    """``mcq_judge``: a strict rule, then a three-way judge; regexes run beside it."""

    name = "mcq_judge"

    def _prepared(self, settings: Settings) -> Plan:
        from mlflow_mcq.judges import ask_first, judge_of

        if settings.judge is None:
            raise JudgeNotConfigured
        judge = judge_of(settings.judge)
        ask_first(judge)
        return Plan(
            lambda arm: [judge, *([] if arm.takes_all else _regexes(settings))], judge=judge
        )


class AnalogyEvaluator(_McqEvaluator):
    """``mcq_analogy``: the option that occurs in the first 8 tokens of the reply."""

    name = "mcq_analogy"

    def _prepared(self, settings: Settings) -> Plan:
        from mlflow_mcq.engines.tokenizer import load_tokenizer
        from mlflow_mcq.graders import AnalogyGrader
        from mlflow_mcq.unwinnable import tokenizer_of, warn_unwinnable

        named = settings.analogy.tokenizer
        tokenizer = load_tokenizer(named) if named else None
        return Plan(
            lambda arm: [AnalogyGrader(settings.analogy, tokenizer or arm.tokenizer)],
            lambda engine, items: warn_unwinnable(
                items, tokenizer or tokenizer_of(engine), settings.analogy.window
            ),
        )


class SimilarityEvaluator(_McqEvaluator):
    """``mcq_similarity``: the option nearest to the answer span in an embedding."""

    name = "mcq_similarity"

    def _prepared(self, settings: Settings) -> Plan:
        from mlflow_mcq.engines.embedder import SentenceEmbedder
        from mlflow_mcq.graders import SimilarityGrader

        chosen = settings.similarity
        embedder = SentenceEmbedder(chosen.encoder, chosen.batch_size, chosen.cache_dir)
        return Plan(lambda arm: [SimilarityGrader(embedder, chosen)])


def plan_of(name: str, settings: Settings) -> Plan:
    """What one of our evaluators does, by its name: for callers that have a model and no run."""
    kinds = (JudgeEvaluator, RegexEvaluator, AnalogyEvaluator, SimilarityEvaluator)
    (kind,) = [kind for kind in kinds if kind.name == name]
    return kind()._prepared(settings)


def _regexes(settings: Settings) -> list[Grader]:
    from mlflow_mcq.graders import ALL_REGEX_GRADERS

    return [ALL_REGEX_GRADERS[name] for name in settings.regex.parsers]


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluator does once its settings are known to be sound.

    Attributes:
        graders: Who reads an arm.
        forewarn: Says before inference what will go wrong, where that is known.
        judge: Among these graders; it may start while the model generates.
    """

    graders: Callable[[Arm], list[Grader]]
    forewarn: Callable[[Engine, Sequence[Item]], object] = lambda engine, items: None
    judge: JudgeGrader | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Call:
    """What MLflow hands to every evaluator of one call, and what the first will do with it."""

    run_id: str
    dataset: Any
    model: Any
    predictions: str | None
    plan: Plan


class _Arms:
    """The arms of calls that are under way, so that evaluators of one share its answers.

    Kept by dataset, which MLflow makes anew for each call and lets go at its end: two
    threads never meet, and nothing outlives its call.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[tuple[str, int, str | None], Arm]] = {}

    def arm_of(self, call: _Call, settings: Settings) -> Arm:
        """The arm of this call: measured already, or measured now."""
        from mlflow_mcq.tracking import refuse_used

        place, key = id(call.dataset), (call.run_id, id(call.model), call.predictions)
        held = self._held.get(place)
        if held is not None and held[0] == key:
            held[1].inherit(settings)
            if call.model is not None:
                from mlflow_mcq.graders.early import say_late

                say_late(call.plan.judge)
            return held[1]
        refuse_used(call.run_id)
        arm = _measure(call, settings)
        if held is None:
            weakref.finalize(call.dataset, self._end, place)
        self._held[place] = (key, arm)
        return arm

    @contextmanager
    def whole(self, call: _Call) -> Iterator[None]:
        """Let go of an arm whose evaluator did not come to its end; its rows stay on disk.

        At once: a traceback that somebody keeps would hold the data, and with it the
        folder that the next attempt wants to go on from.
        """
        try:
            yield
        except BaseException:
            self._end(id(call.dataset), finished=False)
            raise

    def _end(self, place: int, finished: bool = True) -> None:
        held = self._held.pop(place, None)
        if held is None:
            return
        if held[1].early is not None:
            held[1].early.stop()
        if held[1].journal is not None:
            if not finished:
                _say_kept(held[1].journal)
            held[1].journal.close(finished=finished)


_ARMS = _Arms()


def _measure(call: _Call, settings: Settings) -> Arm:
    from mlflow.utils.logging_utils import eprint

    from mlflow_mcq.arm import measure
    from mlflow_mcq.data_report import describe
    from mlflow_mcq.datasets.frame import as_frame
    from mlflow_mcq.datasets.reading import read_data
    from mlflow_mcq.engines.pyfunc import CallableEngine
    from mlflow_mcq.tracking import quiet
    from mlflow_mcq.unwrap import kept

    dataset = call.dataset
    named = getattr(dataset, "_targets_name", None)
    reading = read_data(as_frame(dataset.features_data), settings, dataset.labels_data, named)
    eprint(reading.said)  # before the hours of generation, not after
    engine, requests = _asked(call, list(reading.rows), settings)
    engine, journal = kept(engine, requests, settings)
    # A user's own model keeps its traces.
    silence = nullcontext() if isinstance(engine, CallableEngine) else quiet()
    early = _early(call, journal)
    try:
        with silence:
            return describe(measure(engine, requests, settings, journal, early), reading)
    except BaseException:
        if early is not None:
            early.stop()
        if journal is not None:
            _say_kept(journal)
            journal.close(finished=False)
        raise


def _asked(call: _Call, rows: list[Row], settings: Settings) -> tuple[Engine, list[Request]]:
    """Who answers, and what is asked: a model, or the answers that the data holds."""
    from mlflow_mcq.datasets.frame import items_of
    from mlflow_mcq.datasets.human_label import refuse_human_labels, say_labels_alone
    from mlflow_mcq.pipeline import requests_for
    from mlflow_mcq.unwrap import engine_of, speaks_chat, stored_answers

    if call.model is None:
        given = call.dataset.predictions_data
        texts = None if given is None else [given[row.position] for row in rows]
        engine, answers = stored_answers(rows, texts, settings)
        if call.plan.judge is None:
            say_labels_alone(sum(answer.human_label is not None for answer in answers))
        return engine, [answer.request for answer in answers]
    refuse_human_labels(rows, settings.columns)
    engine = engine_of(call.model, settings, call.predictions)
    items = items_of(rows)
    call.plan.forewarn(engine, items)
    return engine, requests_for(items, settings, chat=speaks_chat(engine, settings))


def _early(call: _Call, journal: Journal | None) -> EarlyReader | None:
    """The judge at work already, where it may be and where answers are still to come."""
    from mlflow_mcq.graders.early import EarlyReader, reads_early

    judge = call.plan.judge
    if judge is None or call.model is None or not reads_early(judge):
        return None
    if journal is not None:
        judge.keep_in(journal.judge_folder)
    return EarlyReader(judge)


def _say_kept(journal: Journal) -> None:
    """Say what is saved: whoever stops a long run, or loses it, wants to know."""
    from mlflow.utils.logging_utils import eprint

    if len(journal.rows):
        eprint(f"this evaluation broke off; {journal.kept}")


def _refuse(name: str, more: Mapping[str, Any]) -> None:
    for argument in ("extra_metrics", "custom_artifacts"):
        if more.get(argument):
            raise SettingsError(
                argument,
                f"is not computed by {name}: each row here is one orientation of an item, "
                "with a verdict and not a prediction to compare with a target",
                possible="Leave it out, and compute it from the table mcq_grades of the result; "
                "or use mlflow_mcq.extra_metrics with MLflow's own evaluator, without ours.",
            )


@contextmanager
def _reported(run_id: str) -> Iterator[None]:
    """Tag the run with how it ended, and speak MLflow's own kind of error.

    Inside a caller's run that catches the error MLflow ends the run as FINISHED: only a
    tag keeps it from passing for a measurement.
    """
    try:
        yield
    except JudgeNotConfigured as error:
        _tag(run_id, {"mcq.status": "blocked", "mcq.blocked": "judge_not_configured"})
        raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from error
    except RunInUse as error:  # what stands there is whole, and stays so
        raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from error
    except McqError as error:
        # A stranger's exception inside ours may hold anything, a key included: it is shown
        # to the caller, and only our own words are kept.
        ours = error.__cause__ is None
        said = str(error) if ours else f"{error.args[0]}: {type(error.__cause__).__name__}"
        _tag(run_id, {"mcq.status": "failed", "mcq.error": said[:1000]})
        raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from error
    except BaseException as error:
        # Only the kind: a stranger's message may hold anything.
        _tag(run_id, {"mcq.status": "failed", "mcq.error": type(error).__name__})
        raise


def _tag(run_id: str, tags: Mapping[str, str]) -> None:
    from mlflow_mcq.tracking import RunLog

    try:
        RunLog(run_id).tags(tags)
    except (MlflowException, OSError) as error:
        # The first fault is what the user must see, not that it could not be noted.
        _log.warning("run %s could not be tagged with %s: %s", run_id, tags, error)
