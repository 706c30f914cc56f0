"""What a judge answered in an exam, kept on disk so that it sits each exam once."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mlflow_mcq.graders.budget import SPENT
from mlflow_mcq.records import Verdict

__all__ = ["ExamReading", "load_readings", "save_readings"]

_log = logging.getLogger(__name__)
_BROKEN = "judge_error"
_NOT_ASKED = (_BROKEN, SPENT)


@dataclass(frozen=True, slots=True)
class ExamReading:
    """What the judge made of one reply.

    Attributes:
        id: Of the reply.
        verdict: The verdict; None exactly when ``error`` is set.
        slot: The slot that it named; None where it named none.
        error: Why the judge could not be read.
    """

    id: str
    verdict: Verdict | None
    slot: int | None
    error: str = ""

    def __post_init__(self) -> None:
        named = self.verdict in (Verdict.CORRECT, Verdict.INCORRECT)
        slot_fits = self.slot is None or (named and type(self.slot) is int and self.slot >= 0)
        if not slot_fits or (self.verdict is None) is not bool(self.error):
            raise ValueError(f"no legal reading: {self}")

    @property
    def broken(self) -> bool:
        """Whether no reply came at all: a fault of the server or the network."""
        return self.error.startswith(_BROKEN)

    @property
    def lasting(self) -> bool:
        """Whether asking again would say nothing new about the judge.

        A reply that cannot be read is how this judge is; a call that broke is how the
        network was, and must not stay on its record.
        """
        return not self.error.startswith(_NOT_ASKED)


def load_readings(path: Path) -> dict[str, ExamReading]:
    """Readings by id; none where the file is missing, torn or not ours."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["readings"]
        readings = [_reading(**row) for row in rows]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
    return {reading.id: reading for reading in readings}


def _reading(id: str, verdict: str | None, slot: int | None, error: str) -> ExamReading:
    return ExamReading(id, None if verdict is None else Verdict(verdict), slot, error)


def save_readings(path: Path, readings: Iterable[ExamReading]) -> None:
    """Write the lasting readings, so that a reader sees all of the file or none.

    A folder that cannot be written costs a warning: an exam that was paid for is not
    thrown away because it could not be kept.
    """
    lasting = sorted((r for r in readings if r.lasting), key=lambda reading: reading.id)
    rows = [asdict(reading) for reading in lasting]
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.stem, suffix=".part", delete=False
        ) as file:
            temporary = file.name
            json.dump({"readings": rows}, file)
        os.replace(temporary, path)
    except OSError as error:
        _log.warning("the exam of the judge could not be kept in %s: %s", path, error)
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
