"""Votes: what several readings of one row come to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlflow_mcq.records import Generation, Grade, Verdict

__all__ = ["SPLIT", "Vote", "counted"]

SPLIT = "judges_split"
"""Reason of a row on which no reading has more votes than every other."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One reading of a row.

    Attributes:
        judge: Fingerprint of the judge that gave it.
        grade: The grade that this reading alone would be.
        lines: Slot by line of the judge's list; empty where the order was kept.
    """

    judge: str
    grade: Grade
    lines: tuple[int, ...] = ()

    @property
    def position(self) -> tuple[Verdict | None, tuple[int, ...]]:
        """What the vote is for: the options where some are named, else a verdict."""
        return self.grade.verdict, self.grade.choices


def counted(row: Generation, grader: str, votes: Sequence[Vote]) -> Grade:
    """The grade that the votes come to.

    The reading with the most votes counts; two with equally many at the top are no
    reading, since whichever was taken would be taken for its name. A vote that failed is
    left out: a judge that is down must not outvote one that is not.

    Args:
        row: What was read.
        grader: Name of the grader.
        votes: At least one.

    Returns:
        The grade of the winners, OTHER with `SPLIT`, or a failure where every vote is
        one. Its evidence is JSON with all votes.
    """
    evidence = _shown(votes)
    tally = Counter(vote.position for vote in votes if vote.grade.verdict is not None)
    if not tally:
        error = f"{votes[0].grade.error} (all {len(votes)} votes failed)"
        return Grade.failed(row, grader, error, evidence)
    (first, most), *others = tally.most_common(2)
    if others and others[0][1] == most:
        return Grade.unread(row, grader, SPLIT, evidence)
    winner = next(vote.grade for vote in votes if vote.position == first)
    return replace(winner, evidence=evidence)


def _shown(votes: Sequence[Vote]) -> str:
    rows = []
    for vote in votes:
        grade = vote.grade
        said: dict[str, object] = {
            "judge": vote.judge,
            "verdict": grade.verdict.value if grade.verdict else None,
            "choice": grade.choice,
            "reply": grade.evidence,
        }
        if grade.several:
            said["choices"] = list(grade.several)
        if grade.error:
            said["error"] = grade.error
        if vote.lines:
            said["lines"] = list(vote.lines)
        rows.append(said)
    return json.dumps({"votes": rows}, ensure_ascii=False, separators=(",", ":"))
