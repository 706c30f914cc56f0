"""Graders: readers of generations. The strict rule, regex baselines and the judge.

`grade` puts any of them to plain texts, with no MLflow.
"""

from mlflow_mcq.graders.judge import JudgeCheck, JudgeGrader
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.plain import PlainGrade, grade
from mlflow_mcq.graders.regex import ALL_REGEX_GRADERS, REGEX_GRADERS, RegexGrader
from mlflow_mcq.graders.spot_check import SpotCheck, spot_check
from mlflow_mcq.graders.strict import Reading, read_strict, strict_choice
from mlflow_mcq.graders.usage import Usage

__all__ = [
    "ALL_REGEX_GRADERS",
    "REGEX_GRADERS",
    "JudgeCheck",
    "JudgeGrader",
    "JudgeReading",
    "PlainGrade",
    "Reading",
    "RegexGrader",
    "SpotCheck",
    "Usage",
    "grade",
    "parse_judge_reply",
    "read_strict",
    "spot_check",
    "strict_choice",
]
