"""The scorer that MLflow calls row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

from mlflow.entities import Feedback
from mlflow.genai import Scorer
from pydantic import PrivateAttr

from mlflow_mcq.doors import Grader
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.genai.feedback import feedback_of, refusal
from mlflow_mcq.genai.graders import FAMILIES, GraderPool
from mlflow_mcq.genai.row import generation_of
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.shown_judge import shown_url

__all__ = ["McqScorer", "scorer_of"]

_SOURCE = """\
from mlflow_mcq.scorers import from_settings
return from_settings({settings})(inputs=inputs, outputs=outputs, expectations=expectations)"""
_SIGNATURE = "(inputs=None, outputs=None, expectations=None)"


class McqScorer(Scorer):  # type: ignore[misc]  # MLflow ships no types
    """Reads one answer and returns a verdict with its numbers.

    Made by the functions of `mlflow_mcq.scorers`. It may be registered with an experiment
    wherever MLflow takes scorers that are code: on Databricks, and on servers and stores for
    which somebody has set ``MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS``. What is stored are its
    settings and two lines that ask this package for it; mlflow-mcq must be installed where
    it is run again.
    """

    _family: str = PrivateAttr()
    _told: dict[str, Any] = PrivateAttr()
    _pool: GraderPool = PrivateAttr()

    def __call__(
        self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None
    ) -> list[Feedback]:
        """Read one row; one that cannot be read, or whose judge fails, says so by an error."""
        try:
            generation = generation_of(inputs, outputs, expectations)
        except DataError as error:
            return refusal(self.name, str(error))
        with self._pool.one() as grader:
            (grade,) = grader.grade([generation])
        return feedback_of(replace(grade, grader=self.name), self.judge_model)

    @property
    def judge_model(self) -> str:
        """Who judges; empty where nobody is asked."""
        return str(self._told["model"]) if self._family == "judge" else ""

    @property
    def usage(self) -> Usage | None:
        """What the judge has cost so far; None where nobody is asked."""
        return self._pool.usage

    def lent(self) -> AbstractContextManager[Grader]:
        """The grader behind this scorer, to be given back: what it spends counts in `usage`."""
        return self._pool.one()

    def prepare(self) -> None:
        """Ask the judge one cheap question, so that a wrong key fails before the first row.

        Raises:
            JudgeUnavailable: It serves nobody.
        """
        if self._family == "judge":
            from mlflow_mcq import judges

            with self._pool.one() as grader:
                if isinstance(grader, JudgeGrader):
                    judges.ask_first(grader)

    @property
    def settings(self) -> dict[str, Any]:
        """What `mlflow_mcq.scorers.from_settings` makes this scorer from; holds no key."""
        return {"family": self._family, "name": self.name, "told": self._told}

    @property
    def kind(self) -> Any:
        """What MLflow calls scorers whose source it may store."""
        from mlflow.genai.scorers.base import ScorerKind

        return ScorerKind.DECORATOR

    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        """The stored form: the settings, and how to ask this package for the scorer.

        Raises:
            SettingsError: The judge's address holds credentials, which would be stored.
        """
        from mlflow.genai.scorers.base import SerializedScorer

        self._refuse_credentials()
        source = _SOURCE.replace("{settings}", repr(json.dumps(self.settings)))
        # MLflow 3.4 knows no description of a scorer, and would refuse the field.
        more = {"description": self.description} if hasattr(self, "description") else {}
        return asdict(
            SerializedScorer(
                name=self.name,
                aggregations=self.aggregations,
                call_source=source,
                call_signature=_SIGNATURE,
                original_func_name=f"mcq_{self._family}",
                **more,
            )
        )

    def _create_copy(self) -> McqScorer:
        self._check_can_be_registered()
        return scorer_of(self._family, self._told, self.name)

    def _refuse_credentials(self) -> None:
        for judge in (self._told, *self._told.get("panel", ())):
            url = judge.get("base_url")
            hidden = set(judge.get("query", {})) - {"api-version"}
            if hidden or (url and shown_url(url) != url):
                raise SettingsError(
                    "judge.base_url",
                    "holds credentials or a query, and a registered scorer is stored as text",
                    shown_url(url),
                    "Give the key by api_key_env.",
                )


def scorer_of(family: str, told: Mapping[str, Any], name: str) -> McqScorer:
    """A scorer of one of the families in `mlflow_mcq.genai.graders`.

    Raises:
        SettingsError: The settings are not usable.
    """
    pool = FAMILIES[family](told)
    # No limit of MLflow's: a judge has its own, and each limit there costs a thread a row.
    scorer = McqScorer(name=name, timeout=0)
    scorer._family = family
    scorer._told = dict(told)
    scorer._pool = pool
    return scorer
