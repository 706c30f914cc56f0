"""Judges as settings name them: connected, with their panel, and asked once beforehand."""

from __future__ import annotations

import logging

from mlflow_mcq.engines.handle import connect_judge, connect_panel
from mlflow_mcq.errors import JudgeUnavailable
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.seat import Seat
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import DOWN, Generation, Item, Orientation, Prompt, Reply

__all__ = ["ask_first", "judge_of"]

_log = logging.getLogger(__name__)
_FIRST_RETRIES = 1
_SHOWN = 80
"""Characters of a judge's words that are shown."""


def judge_of(settings: JudgeSettings) -> JudgeGrader:
    """The judge that the settings name, ready to read.

    Raises:
        SettingsError: The variable of its key is not set, or a setting does not fit.
        ModelError: A local judge cannot be loaded.
    """
    return JudgeGrader(connect_judge(settings), settings, connect_panel(settings))


def ask_first(judge: JudgeGrader) -> None:
    """Ask each remote judge one cheap question, before hours of generation.

    A judge that serves nobody (nothing there, wrong key, wrong model, no quota) stops the
    evaluation. Any other fault may be over by the time it is needed, and is only said.

    Raises:
        JudgeUnavailable: A judge serves nobody; says what it answered.
    """
    for seat in judge.seats:
        if seat.settings.preflight and seat.settings.base_url != "local":
            _ask(seat)


def _ask(seat: Seat) -> None:
    retries = min(seat.settings.max_retries, _FIRST_RETRIES)
    chat = connect_judge(seat.settings.model_copy(update={"max_retries": retries}))
    ballot = seat.ballots(0, _plain_row())[0]
    for _, reply in chat.ask([ballot.query], seat.settings.decoding):
        seat.charge(reply)
        _check(reply, seat.settings)
        if reply.error is None and not seat.read(reply, ballot).ok:
            _log.warning(
                "the judge %s gave a first question no legal answer, but %r; the evaluation goes "
                "on, and rows that it answers so are judge errors", seat.settings.model,
                (reply.text or "")[:_SHOWN],
            )  # fmt: skip


def _check(reply: Reply, settings: JudgeSettings) -> None:
    if reply.error is None:
        return
    if reply.finish_reason == DOWN:
        raise JudgeUnavailable(
            f"judge {settings.model!r}",
            f"does not answer, and nothing was generated yet: {reply.error}",
            possible="Check judge.model, judge.base_url and judge.api_key_env; "
            "judge.preflight: false skips this question.",
        )
    _log.warning(
        "the judge %s failed a first question; the evaluation goes on, and what it cannot read "
        "then can be regraded: %s", settings.model, reply.error,
    )  # fmt: skip


def _plain_row() -> Generation:
    """Something that any judge can read."""
    item = Item("preflight", "Which metal is liquid at room temperature?", ("tin", "mercury"), 1)
    prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", item.question, ("A", "B"))
    return Generation(prompt, 0, Reply("It is mercury."))
