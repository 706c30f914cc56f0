"""Graders: readers of generations. The strict rule, regex baselines, the judge and more.

Light to import: what needs numpy is loaded at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlflow_mcq.graders.judge import JudgeCheck, JudgeGrader
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.regex import REGEX_GRADERS, RegexGrader
from mlflow_mcq.graders.strict import Reading, read_strict, strict_choice

if TYPE_CHECKING:
    from mlflow_mcq.graders.analogy import AnalogyGrader
    from mlflow_mcq.graders.similarity import SimilarityGrader

__all__ = [
    "REGEX_GRADERS",
    "AnalogyGrader",
    "JudgeCheck",
    "JudgeGrader",
    "JudgeReading",
    "Reading",
    "RegexGrader",
    "SimilarityGrader",
    "parse_judge_reply",
    "read_strict",
    "strict_choice",
]

_LATER = {"AnalogyGrader": "analogy", "SimilarityGrader": "similarity"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
