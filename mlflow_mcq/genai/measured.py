"""What is to be known of a grader once its rows are folded, beside its means."""

from __future__ import annotations

from mlflow_mcq.arm import Arm, examined
from mlflow_mcq.chance import chance_numbers
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.extras import reader_numbers
from mlflow_mcq.genai.scorer import McqScorer
from mlflow_mcq.grader_tables import grader_tables
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.plain import ABSTAINS
from mlflow_mcq.metrics import Summary
from mlflow_mcq.places import label_picks, without_places
from mlflow_mcq.tracking import legal_names

__all__ = ["measure_reader"]

_UNKNOWN = "undefined: the judge is not here to be examined; folded(result, scorers=[...])"


def measure_reader(arm: Arm, name: str, scorer: McqScorer | None) -> None:
    """Enter the numbers that a grader has beside its means, as evaluators have them.

    Args:
        arm: Its rows, with the means of each grader.
        name: Of the grader.
        scorer: That read; None where it is not known any more. A judge is then not examined,
            and says so in place of its corrected accuracy.

    Raises:
        SettingsError: The scorer is another judge than the one that read.
    """
    grades, summary = arm.grades[name], arm.summaries[name]
    if scorer is not None:
        summary.add(_own_numbers(arm, name, scorer))
    elif any(grade.judge for grade in grades):
        summary.undefined["accuracy_corrected"] = _UNKNOWN
    n_unread = sum(grade.error == ABSTAINS for grade in grades)
    if n_unread:
        summary.rate("abstain_rate", n_unread, len(grades), "rows")
        summary.notes["accuracy"] = f"without {n_unread} rows that only a judge can read"
    summary.add(chance_numbers(arm.frames[name], arm.items))
    summary.add(label_picks(grades))
    arm.summaries[name] = without_places(summary, grades)


def _own_numbers(arm: Arm, name: str, scorer: McqScorer) -> Summary:
    grades, found = arm.grades[name], Summary()
    with scorer.lent() as grader:
        if isinstance(grader, JudgeGrader):
            _check_same(grader, scorer, {one.judge for one in grades if one.judge})
            (called,) = legal_names([name], flat=True).values()  # several judges, several exams
            found.add(examined(arm, grader, grades, called))
            if name == JudgeGrader.name:
                arm.judge = grader
        found.add(reader_numbers(grader, grades, arm.items))
        arm.tables |= grader_tables(grader, arm.items)
    if scorer.usage is not None:  # of all that read at once, not of the one that was examined
        usage = scorer.usage.named()
        found.values |= {key.partition("/")[2]: value for key, value in usage.items()}
    return found


def _check_same(grader: JudgeGrader, scorer: McqScorer, read_by: set[str]) -> None:
    """An exam says nothing about another judge's readings."""
    others = read_by - {grader.fingerprint}
    if others:
        raise SettingsError(
            "scorers",
            f"holds another judge under the name {scorer.name!r} than the one that read this run",
            grader.fingerprint,
            f"The run was read by {', '.join(sorted(others))}.",
        )
