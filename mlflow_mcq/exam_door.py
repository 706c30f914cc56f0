"""The exam for judges as users name them: by settings, by handle or by chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlflow_mcq import judges
from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.errors import JudgeNotConfigured, JudgeUnavailable, SettingsError
from mlflow_mcq.graders import exam
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.settings import read_settings

__all__ = ["examine_judge"]


def examine_judge(
    judge: JudgeSettings | Mapping[str, Any] | ModelHandle | JudgeGrader | Chat,
    settings: JudgeSettings | None = None,
    cache_dir: str | None = None,
) -> exam.ExamReport:
    """Measure a judge on the shipped exam of labelled replies.

    Args:
        judge: ``{"model": ..., "base_url": ..., "api_key_env": ...}`` or the same as
            `JudgeSettings`; `mlflow_mcq.local_model` or `mlflow_mcq.remote_model`; a
            judge grader, or any chat.
        settings: How a handle or a chat is asked.
        cache_dir: Folder where the answers are kept; None takes the judge's own
            ``cache_dir``, if it has one.

    Returns:
        ``reliable``, ``shortfalls``, ``failures``, ``numbers()``, ``by_kind`` and the
        estimates with their intervals.

    Raises:
        JudgeNotConfigured: The judge is not named.
        SettingsError: A setting is not legal, or is given twice.
        ModelError: A local judge cannot be loaded.
        JudgeUnavailable: The judge answers nobody; says what was met in place of an answer.

    Example:
        ``examine_judge({"model": "...", "base_url": "http://localhost:8000/v1"}).reliable``
    """
    if isinstance(judge, (JudgeSettings, Mapping)):
        if settings is not None:
            raise SettingsError("settings", "are given twice: the judge is settings already")
        judge = judges.judge_of(_named(judge))
        _ask_first(judge, cache_dir or judge.settings.cache_dir)
    elif isinstance(judge, ModelHandle):
        judge = judge.chat
    if not isinstance(judge, (JudgeGrader, Chat)):
        raise JudgeNotConfigured(type(judge).__name__)
    own = judge.settings if isinstance(judge, JudgeGrader) else settings
    if cache_dir is None and own is not None:
        cache_dir = own.cache_dir
    report = exam.examine_judge(judge, settings, cache_dir)
    _refuse_silence(report, "" if own is None else own.model)
    return report


def _ask_first(judge: JudgeGrader, cache_dir: str | None) -> None:
    """Find out in seconds that nobody is there, unless all is answered already."""
    replies = exam.load_exam()
    known = {} if cache_dir is None else exam.kept_readings(judge, cache_dir, replies)
    if any(reply.id not in known for reply in replies):
        judges.ask_first(judge)


def _refuse_silence(report: exam.ExamReport, name: str) -> None:
    """A server that is away says nothing of how well its judge reads: that is no finding."""
    if not all(mark.reading.broken for mark in report.marks):
        return
    why, n = report.failures[0]
    raise JudgeUnavailable(
        f"judge {name!r}" if name else "the judge",
        f"does not answer: none of {report.n_replies} calls got a reply, {n} of them for: {why}",
        possible="Check its name, its address and its key.",
    )


def _named(judge: JudgeSettings | Mapping[str, Any]) -> JudgeSettings:
    if isinstance(judge, JudgeSettings):
        return judge
    named = read_settings({"judge": judge}).judge
    if named is None:
        raise JudgeNotConfigured
    return named
