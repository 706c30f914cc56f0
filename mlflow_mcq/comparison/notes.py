"""What the descriptions of a comparison and of its arms say, in Markdown.

How it gets into a description that may hold the user's own words as well is the business of
`mlflow_mcq.run_note`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mlflow_mcq.comparison.answers import answers, headline
from mlflow_mcq.comparison.contrasts import Contrast
from mlflow_mcq.run_note import escaped, table_lines

__all__ = ["arm_note", "comparison_note"]

_SHOWN = ("arm", "accuracy", "low", "high", "decided", "OTHER", "alarms")


def comparison_note(
    found: Sequence[Contrast], arms: pd.DataFrame, alarms: pd.DataFrame, experiment_id: str
) -> str:
    """What stands in the description of a comparison run.

    Args:
        found: One a treatment.
        arms: From `mlflow_mcq.comparison.deltas.arms_table`.
        alarms: From `mlflow_mcq.comparison.deltas.alarms_table`.
        experiment_id: For links between the pages of MLflow.
    """
    lines = [f"**{escaped(headline(one))}**\n" for one in found]
    lines += _arms_lines(arms)
    lines += ["", "#### Alarms", ""]
    lines += [_alarm_line(alarm) for alarm in alarms.to_dict("records")] or ["None."]
    beside = ", ".join(_beside(one, experiment_id) for one in found)
    # Shares over rows that were picked for their disagreement estimate nothing.
    lines += [
        "",
        f"Rows side by side (disagreements first, so their shares mean nothing): {beside}",
    ]
    lines += ["", "Artifacts: `mcq_report.html` first, then `mcq_differing_rows`, `mcq_deltas`."]
    for one in found:  # last: a description has a limit, and the report says it all
        lines += [
            "",
            f"#### {escaped(one.treatment.name)} against {escaped(one.baseline.name)}",
            "",
        ]
        lines += [f"- **{q}** {escaped(a)}" for q, a in answers(one)]
    return "\n".join(lines)


def _alarm_line(alarm: Mapping[Any, str]) -> str:
    said = escaped(f"{alarm['arm']}: {alarm['found']}. {alarm['next_step']}")
    return f"- **{escaped(alarm['alarm'])}** in {said}"


def arm_note(name: str, run_id: str, experiment_id: str, said: Sequence[str]) -> str:
    """What stands in the description of an arm about a comparison it is part of."""
    link = f"[{escaped(name)}](#/experiments/{experiment_id}/runs/{run_id})"
    return "\n".join([f"**Compared in** {link}", "", *(f"- {escaped(line)}" for line in said)])


def _beside(one: Contrast, experiment_id: str) -> str:
    ids = f"selectedRunUuid={one.treatment.run_id}&compareToRunUuid={one.baseline.run_id}"
    where = f"#/experiments/{experiment_id}/evaluation-runs?{ids}"
    return f"[{escaped(one.treatment.name)} against {escaped(one.baseline.name)}]({where})"


def _arms_lines(arms: pd.DataFrame) -> list[str]:
    rows = [
        (
            row["arm"],
            *(_fraction(row[k]) for k in ("accuracy", "accuracy_low", "accuracy_high")),
            *(_fraction(row[k]) for k in ("accuracy_decided", "other_rate")),
            re.sub("^none$", "", row["alarms"]),
        )
        for row in arms.to_dict("records")
    ]
    return table_lines(_SHOWN, rows)


def _fraction(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) and value == value else "–"
