"""The judge exam: a judge reads replies whose label is known, and is measured by it.

Every reply goes to the judge itself, past the strict rule: what is measured is the
judge, and half of the replies are there because no rule can read them. A reply of the
judge that cannot be read is counted apart and lowers the coverage, not the sensitivity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlflow_mcq.doors import Chat
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.graders.exam_cache import ExamReading, load_readings, save_readings
from mlflow_mcq.graders.exam_reply import ExamReply, exam_digest, load_exam
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Verdict
from mlflow_mcq.reliability import (
    Agreement,
    ChiSquare,
    Estimate,
    LetterBias,
    SlotRead,
    agreement,
    letter_bias,
    slot_preference,
    wilson,
)

__all__ = [
    "ExamMark",
    "ExamReply",
    "ExamReport",
    "Thresholds",
    "examine_judge",
    "kept_readings",
    "load_exam",
]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a judge must reach to be called reliable.

    Attributes:
        kappa: Least kappa. 0.8 is where Landis and Koch (1977) begin "almost perfect".
        sensitivity: Least sensitivity of each verdict.
        error_rate: Largest share of replies that the judge could not be read on.
    """

    kappa: float = 0.8
    sensitivity: float = 0.8
    error_rate: float = 0.02


_THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class ExamMark:
    """One reply of the exam beside what the judge made of it.

    Attributes:
        reply: The reply with its label.
        reading: What the judge said.
        right: The verdict is the label and, in the extract shape, so is the slot; False
            where the judge could not be read.
    """

    reply: ExamReply
    reading: ExamReading
    right: bool


@dataclass(frozen=True, slots=True)
class ExamReport:
    """How a judge did in the exam.

    Attributes:
        judge: Fingerprint of the judge.
        exam: Digest of the exam.
        shape: How the judge was asked.
        n_replies: Replies put to it.
        n_errors: Replies on which it failed; in no rate but the error rate.
        verdicts: Accuracy, kappa and the rates of each verdict, over the replies read.
        slot_accuracy: Replies that chose a slot and were read as that very slot /
            replies read that chose one; undefined in the direct shape.
        letters: Bias of each slot, from the top; empty in the direct shape.
        preference: Whether wrongly named slots prefer a place.
        by_kind: (kind, replies, errors, right ones), in order of kind. Right is the
            verdict and, in the extract shape, the slot.
        thresholds: What it is held against.
        marks: Every reply with its reading, in order of id.
    """

    judge: str
    exam: str
    shape: Literal["extract", "direct"]
    n_replies: int
    n_errors: int
    verdicts: Agreement
    slot_accuracy: Estimate
    letters: tuple[LetterBias, ...]
    preference: ChiSquare
    by_kind: tuple[tuple[str, int, int, int], ...]
    thresholds: Thresholds = _THRESHOLDS
    marks: tuple[ExamMark, ...] = ()

    @property
    def error_rate(self) -> float:
        """Errors / replies; 1 minus the coverage."""
        return self.n_errors / self.n_replies

    @property
    def failures(self) -> tuple[tuple[str, int], ...]:
        """(why, replies) of what the judge could not be read on, the most frequent first."""
        why = Counter(one.reading.error for one in self.marks if one.reading.error)
        return tuple(sorted(why.items(), key=lambda one: (-one[1], one[0])))

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What keeps the judge from being reliable, one sentence each."""
        limits = self.thresholds
        held = [("kappa", self.verdicts.kappa, limits.kappa)]
        held += [
            (f"sensitivity to {one.label}", one.sensitivity, limits.sensitivity)
            for one in self.verdicts.classes
        ]
        short = []
        for name, found, least in held:
            if found.value is None:
                short.append(f"{name} is {found.reason}")
            elif found.value < least:
                short.append(f"{name} is {found.value:.2f}, below {least:.2f}")
        if self.error_rate > limits.error_rate:
            rate, most = f"{self.error_rate:.3f}", f"{limits.error_rate:.3f}"
            text = f"share of unreadable replies of the judge is {rate}, above {most}"
            why = "".join(f" ({n} times {said})" for said, n in self.failures[:1])
            short.append(text + why)
        return tuple(short)

    @property
    def reliable(self) -> bool:
        """Whether it reaches every threshold; what is undefined does not."""
        return not self.shortfalls

    def numbers(self) -> dict[str, float]:
        """Every defined number under its name in a run (below the grader's own name).

        ``exam_accuracy``, ``exam_kappa``, ``exam_sensitivity_correct``,
        ``exam_specificity_other``, ``exam_slot_accuracy``, ``exam_letter_bias_slot_1``
        (1 is the top) and so on, each with ``_low`` and ``_high`` (95 %);
        ``exam_letter_bias_p_value``; ``exam_n_replies``, ``exam_n_errors``,
        ``exam_error_rate``; ``exam_reliable`` is 1 or 0.
        """
        found = {
            "exam_n_replies": float(self.n_replies),
            "exam_n_errors": float(self.n_errors),
            "exam_error_rate": self.error_rate,
            "exam_reliable": float(self.reliable),
        }
        for name, one in self._estimates().items():
            found |= one.numbers(f"exam_{name}")
        if self.preference.p_value is not None:
            found["exam_letter_bias_p_value"] = self.preference.p_value
        return found

    def undefined(self) -> dict[str, str]:
        """Reasons by the names that `numbers` leaves out."""
        reasons = {f"exam_{n}": one.reason for n, one in self._estimates().items() if one.reason}
        if self.preference.reason:
            reasons["exam_letter_bias_p_value"] = self.preference.reason
        return reasons

    def _estimates(self) -> dict[str, Estimate]:
        biases = {f"letter_bias_slot_{one.slot + 1}": one.bias for one in self.letters}
        return self.verdicts.estimates() | {"slot_accuracy": self.slot_accuracy} | biases


def examine_judge(
    judge: JudgeGrader | Chat,
    settings: JudgeSettings | None = None,
    cache_dir: str | None = None,
    *,
    replies: Sequence[ExamReply] | None = None,
    thresholds: Thresholds = _THRESHOLDS,
) -> ExamReport:
    """Put the exam to a judge.

    Args:
        judge: A grader, or a chat that becomes one.
        settings: How a chat is asked; None asks in the default way. A grader has its own.
        cache_dir: Folder where the answers are kept; the same judge is not asked again.
        replies: The exam; None is the shipped one.
        thresholds: What the judge is held against.

    Returns:
        The report; it does not depend on the order of ``replies``.

    Raises:
        SettingsError: A grader came with settings.
        DataError: No replies, or two with one id.
    """
    grader = _as_grader(judge, settings)
    asked = sorted(load_exam() if replies is None else replies, key=lambda reply: reply.id)
    if not asked or len({reply.id for reply in asked}) < len(asked):
        raise DataError("replies", "must be some replies with different ids", len(asked))
    digest = exam_digest(asked)
    path = None if cache_dir is None else _path(grader, digest, cache_dir)
    known = {} if path is None else load_readings(path)
    fresh = _sit(grader, [reply for reply in asked if reply.id not in known])
    if path is not None and fresh:
        save_readings(path, [*known.values(), *fresh.values()])
    return _report(grader, digest, asked, known | fresh, thresholds)


def kept_readings(
    judge: JudgeGrader, cache_dir: str, replies: Sequence[ExamReply]
) -> dict[str, ExamReading]:
    """What this judge has answered in this exam before, by reply; nobody is asked."""
    return load_readings(_path(judge, exam_digest(replies), cache_dir))


def _path(judge: JudgeGrader, digest: str, cache_dir: str) -> Path:
    home = home_path(cache_dir, "judge.cache_dir", SettingsError)
    return home / f"exam-{judge.fingerprint}-{digest}.json"


def _as_grader(judge: JudgeGrader | Chat, settings: JudgeSettings | None) -> JudgeGrader:
    if not isinstance(judge, JudgeGrader):
        name = judge.fingerprint or "judge"
        named = JudgeSettings(model=name, base_url="local", api_key_env=None)
        return JudgeGrader(judge, settings or named)
    if settings is not None:
        raise SettingsError("settings", "go with a chat; a judge grader has its own already")
    return judge


def _sit(grader: JudgeGrader, replies: Sequence[ExamReply]) -> dict[str, ExamReading]:
    ids = {reply.generation.key: reply.id for reply in replies}
    readings: dict[str, ExamReading] = {}
    for grade in grader.read([reply.generation for reply in replies]):
        name = ids[grade.generation.key]
        slot = grade.slot if grader.settings.shape == "extract" else None
        readings[name] = ExamReading(name, grade.verdict, slot, grade.error)
    return readings


def _report(
    grader: JudgeGrader,
    digest: str,
    asked: Sequence[ExamReply],
    readings: dict[str, ExamReading],
    thresholds: Thresholds,
) -> ExamReport:
    extract = grader.settings.shape == "extract"
    rows = [_mark(reply, readings[reply.id], extract) for reply in asked]
    read = [(m.reply, m.reading, m.reading.verdict) for m in rows if m.reading.verdict is not None]
    pairs = [(reply.verdict.value, verdict.value) for reply, _, verdict in read]
    slots = [SlotRead(len(r.options), r.slot, seen.slot) for r, seen, _ in read if extract]
    chosen = [one for one in slots if one.true is not None]
    no_slots = "undefined: the direct shape names no slot"
    return ExamReport(
        judge=grader.fingerprint,
        exam=digest,
        shape=grader.settings.shape,
        n_replies=len(rows),
        n_errors=len(rows) - len(read),
        verdicts=agreement(pairs, [verdict.value for verdict in Verdict]),
        slot_accuracy=wilson(
            sum(one.read == one.true for one in chosen), len(chosen), "replies with a slot read"
        )
        if extract
        else Estimate(None, None, None, 0, no_slots),
        letters=letter_bias(slots),
        preference=slot_preference(slots) if extract else ChiSquare(None, 0, None, 0, no_slots),
        by_kind=_by_kind(rows),
        thresholds=thresholds,
        marks=tuple(rows),
    )


def _mark(reply: ExamReply, seen: ExamReading, extract: bool) -> ExamMark:
    right = seen.verdict is reply.verdict and (not extract or seen.slot == reply.slot)
    return ExamMark(reply, seen, right)


def _by_kind(marks: Sequence[ExamMark]) -> tuple[tuple[str, int, int, int], ...]:
    counts: dict[str, list[int]] = {}
    for mark in marks:
        kind = counts.setdefault(mark.reply.kind, [0, 0, 0])
        for place, one in enumerate((True, mark.reading.verdict is None, mark.right)):
            kind[place] += one
    return tuple((kind, n, failed, right) for kind, (n, failed, right) in sorted(counts.items()))
