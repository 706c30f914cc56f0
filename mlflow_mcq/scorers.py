"""Scorers for `mlflow.genai.evaluate`: our graders, one row at a time.

Each returns the verdict as text (CORRECT, INCORRECT or OTHER) with its reason, and numbers
beside it which MLflow averages into the run: ``judge_correct/mean`` is accuracy over all
graded rows, ``judge_correct_decided/mean`` over those with an answer, ``judge_other/mean`` the
share of OTHER, ``judge_error/mean`` that of rows on which the judge failed. Rows come from
`mlflow_mcq.rotated`, or hold ``options`` and ``gold`` in their expectations.

Example:
    >>> row = {"options": ["iron", "mercury"], "gold": 1}
    >>> [one.value for one in regex("bounded")(outputs="The answer is B.", expectations=row)]
    ['CORRECT', True, True, False]
"""

from __future__ import annotations

import functools
import json
from typing import Any

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.genai.graders import FAMILIES, judge_settings, regex_name
from mlflow_mcq.genai.scorer import McqScorer, scorer_of

__all__ = ["analogy", "from_settings", "judge", "regex", "similarity", "strict"]


def judge(
    model: str,
    base_url: str | None = None,
    api_key_env: str | None = None,
    *,
    name: str = "judge",
    **settings: Any,
) -> McqScorer:
    """A strict rule, then a three-way judge where that abstains.

    Args:
        model: Its name at the server.
        base_url: OpenAI-compatible server, or ``"local"``.
        api_key_env: Name of the environment variable with the key; None sends none.
        name: Of its feedback and metrics.
        settings: Anything in `mlflow_mcq.judge_settings.JudgeSettings`. With a budget
            (``max_calls``, ``max_judge_tokens``) rows are judged one at a time.

    Raises:
        JudgeNotConfigured: It says not who judges.
        SettingsError: Anything else is wrong.
    """
    told = {"model": model, "base_url": base_url, "api_key_env": api_key_env, **settings}
    checked = judge_settings({key: value for key, value in told.items() if value is not None})
    return scorer_of("judge", checked.model_dump(mode="json", exclude_unset=True), name)


def strict() -> McqScorer:
    """Only replies that are nothing but a label or an option's text; it abstains elsewhere.

    A row on which it abstains has no verdict, and is counted in ``strict_abstains``.
    """
    return scorer_of("strict", {}, "strict")


def regex(name: str = "bounded") -> McqScorer:
    """One of the published letter regexes, by name; ``bounded`` is ``regex_bounded``.

    Raises:
        SettingsError: There is none of this name.
    """
    full = regex_name(name)
    return scorer_of("regex", {"name": full}, full)


def similarity(**settings: Any) -> McqScorer:
    """The option nearest to the answer span in an embedding.

    Args:
        settings: ``encoder``, ``measure``, ``floor``, ``margin``, ``cache_dir``.

    Raises:
        SettingsError: A setting is wrong.
    """
    return scorer_of("similarity", settings, "similarity")


def analogy(**settings: Any) -> McqScorer:
    """The option that occurs in the first eight tokens of the reply.

    Args:
        settings: ``tokenizer`` of the evaluated model, without which rows are marked
            ``window_unverified``, and ``window``.

    Raises:
        SettingsError: A setting is wrong.
    """
    return scorer_of("analogy", settings, "analogy")


@functools.lru_cache(maxsize=32)
def from_settings(settings: str) -> McqScorer:
    """The scorer that was registered: called by what MLflow has stored of it.

    Args:
        settings: JSON text of `McqScorer.settings`.

    Raises:
        SettingsError: It is none of ours, or its settings are not usable here.
    """
    held = json.loads(settings)
    if held.get("family") not in FAMILIES:
        raise SettingsError("scorer", "is none of ours", held.get("family"), f"{list(FAMILIES)}")
    return scorer_of(held["family"], held["told"], held["name"])
