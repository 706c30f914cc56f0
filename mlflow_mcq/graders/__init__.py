"""Graders: who reads generations. The strict rule, regex baselines, the judge and more.

`grade` puts any of them to plain texts, with no MLflow. Light to import: what needs numpy
is loaded at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlflow_mcq.graders.judge import JudgeCheck, JudgeGrader
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.plain import PlainGrade, grade
from mlflow_mcq.graders.regex import ALL_REGEX_GRADERS, REGEX_GRADERS, RegexGrader
from mlflow_mcq.graders.spot_check import SpotCheck, spot_check
from mlflow_mcq.graders.strict import Reading, read_strict, strict_choice
from mlflow_mcq.graders.usage import Usage

if TYPE_CHECKING:
    from mlflow_mcq.graders.analogy import AnalogyGrader
    from mlflow_mcq.graders.similarity import SimilarityGrader

__all__ = [
    "ALL_REGEX_GRADERS",
    "REGEX_GRADERS",
    "AnalogyGrader",
    "JudgeCheck",
    "JudgeGrader",
    "JudgeReading",
    "PlainGrade",
    "Reading",
    "RegexGrader",
    "SimilarityGrader",
    "SpotCheck",
    "Usage",
    "grade",
    "parse_judge_reply",
    "read_strict",
    "spot_check",
    "strict_choice",
]

_LATER = {"AnalogyGrader": "analogy", "SimilarityGrader": "similarity"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
