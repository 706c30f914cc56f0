"""Judges as settings name them: connected, and with their panel."""

from __future__ import annotations

from mlflow_mcq.engines.handle import connect_judge, connect_panel
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings

__all__ = ["judge_of"]


def judge_of(settings: JudgeSettings) -> JudgeGrader:
    """The judge that the settings name, ready to read.

    Raises:
        SettingsError: The variable of its key is not set, or a setting does not fit.
        ModelError: A local judge cannot be loaded.
    """
    return JudgeGrader(connect_judge(settings), settings, connect_panel(settings))
