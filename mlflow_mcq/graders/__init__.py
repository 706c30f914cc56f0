"""Graders: readers of generations. The strict rule, two regex baselines and the judge."""

from mlflow_mcq.graders.judge import JudgeCheck, JudgeGrader
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.regex import REGEX_GRADERS, RegexGrader
from mlflow_mcq.graders.strict import Reading, read_strict, strict_choice
from mlflow_mcq.graders.usage import Usage

__all__ = [
    "REGEX_GRADERS",
    "JudgeCheck",
    "JudgeGrader",
    "JudgeReading",
    "Reading",
    "RegexGrader",
    "Usage",
    "parse_judge_reply",
    "read_strict",
    "strict_choice",
]
