"""The replies of the judge exam: written by hand, with labels that careful people share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from mlflow_mcq.errors import DataError
from mlflow_mcq.protocols import PROTOCOLS
from mlflow_mcq.records import Generation, Item, Orientation, Reply, Verdict

__all__ = ["ExamReply", "exam_digest", "load_exam"]

_PROTOCOL = {"letters": "letters", "none": "dashes"}


@dataclass(frozen=True, slots=True)
class ExamReply:
    """One reply with the label that a judge has to find.

    Attributes:
        id: Unique name.
        kind: The way in which it is hard to read: ``ordinal``, ``refusal``, ...
        question: The question.
        options: Option texts as shown, by slot.
        gold_slot: Slot of the right option.
        labels: ``letters``, or ``none`` where the candidate saw dashes.
        reply: What the candidate wrote, raw.
        verdict: What a careful reader says.
        slot: The slot that was chosen; None exactly when the verdict is OTHER.
        finish_reason: Why the candidate stopped: ``eos`` or ``length``.
        language: ISO 639-1 code of the reply.

    Raises:
        DataError: The label contradicts itself.
    """

    id: str
    kind: str
    question: str
    options: tuple[str, ...]
    gold_slot: int
    labels: Literal["letters", "none"]
    reply: str
    verdict: Verdict
    slot: int | None
    finish_reason: str = "eos"
    language: str = "en"

    def __post_init__(self) -> None:
        who = f"exam reply {self.id!r}"
        if self.labels not in _PROTOCOL:
            raise DataError(who, 'labels must be "letters" or "none"', self.labels)
        if self.slot is not None and not 0 <= self.slot < len(self.options):
            raise DataError(who, "slot is not shown", self.slot)
        right = Verdict.CORRECT if self.slot == self.gold_slot else Verdict.INCORRECT
        due = Verdict.OTHER if self.slot is None else right
        if self.verdict is not due:
            raise DataError(who, f"slot and gold_slot make it {due.value}", self.verdict)

    @property
    def generation(self) -> Generation:
        """The reply as a judge gets it in an evaluation."""
        item = Item(f"exam/{self.id}", self.question, self.options, self.gold_slot)
        orientation = Orientation(0, "as-is", tuple(range(len(self.options))))
        prompt = PROTOCOLS[_PROTOCOL[self.labels]](item, orientation, chat=True)
        return Generation(prompt, 0, Reply(self.reply, finish_reason=self.finish_reason), "exam")


@lru_cache(maxsize=1)
def load_exam() -> tuple[ExamReply, ...]:
    """The shipped exam, in the order of its file.

    Example:
        >>> load_exam()[0].kind
        'content'
    """
    text = files("mlflow_mcq.graders").joinpath("exam_replies.jsonl").read_text(encoding="utf-8")
    # By "\n" only: a reply may hold another sign that Python takes for the end of a line.
    return tuple(_reply(json.loads(line)) for line in text.split("\n") if line)


def _reply(row: dict[str, Any]) -> ExamReply:
    changed = {"options": tuple(row["options"]), "verdict": Verdict(row["verdict"])}
    return ExamReply(**(row | changed))


def exam_digest(replies: Iterable[ExamReply]) -> str:
    """Twelve hex digits over the replies and their labels, whatever their order."""
    rows = sorted(json.dumps(asdict(reply), sort_keys=True) for reply in replies)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]
