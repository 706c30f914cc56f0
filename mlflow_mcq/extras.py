"""Numbers that only one kind of grader has: exam, usage, window, span levels, scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlflow_mcq.cache_home import cache_home
from mlflow_mcq.doors import Grader
from mlflow_mcq.errors import McqError
from mlflow_mcq.graders import JudgeGrader, spot_check
from mlflow_mcq.graders.budget import SPENT
from mlflow_mcq.graders.exam import (
    ExamReply,
    ExamReport,
    examine_judge,
    kept_readings,
    load_exam,
)
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.judges import judge_of
from mlflow_mcq.metrics import Summary
from mlflow_mcq.records import Grade, Item
from mlflow_mcq.reliability import wilson

if TYPE_CHECKING:
    from mlflow_mcq.graders import AnalogyGrader, SimilarityGrader

__all__ = ["exam_left", "exam_of", "judge_numbers", "parser_numbers", "reader_numbers"]


def exam_of(judge: JudgeGrader) -> ExamReport | None:
    """Let a judge sit the exam that its settings ask for; None where they ask for none.

    None as well where its budget ends on the way: what it was not asked is no failure of it.

    Kept on disk by fingerprint: the arms of a comparison share one judge, and one exam.
    """
    n = judge.settings.exam_replies
    if n == 0:
        return None
    replies = _drawn(load_exam(), n)
    exam = examine_judge(judge, cache_dir=_folder(judge.settings), replies=replies)
    unpaid = any(mark.reading.error.startswith(SPENT) for mark in exam.marks)
    return None if unpaid else exam


def exam_left(judge: JudgeSettings) -> int:
    """How many replies of its exam a judge has not read on this machine; nobody is asked.

    A judge that is loaded here is counted as one that has read none: who it is, only its
    weights say, and a forecast loads none.
    """
    replies = _drawn(load_exam(), judge.exam_replies)
    if not replies or any(one.base_url == "local" for one in (judge, *judge.panel)):
        return len(replies)
    try:
        grader = judge_of(_without_key(judge))
    except McqError:  # whether it can be asked is not for a forecast to say
        return len(replies)
    known = kept_readings(grader, _folder(judge), replies)
    return sum(reply.id not in known for reply in replies)


def _without_key(judge: JudgeSettings) -> JudgeSettings:
    """The same judge, so far as its fingerprint goes: it needs no key, and opens no cache."""
    panel = tuple(_without_key(member) for member in judge.panel)
    return judge.model_copy(update={"api_key_env": None, "cache_dir": None, "panel": panel})


def _folder(judge: JudgeSettings) -> str:
    return judge.cache_dir or str(cache_home() / "exams")


def _drawn(replies: Sequence[ExamReply], n: int | None) -> Sequence[ExamReply]:
    if n is None or n >= len(replies):
        return replies
    return sorted(replies, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:n]


def judge_numbers(
    judge: JudgeGrader, grades: Sequence[Grade], exam: ExamReport | None, seed: int = 0
) -> Summary:
    """What is known of a judge: how it did on plain labels and in the exam, and its cost.

    ``strict_agreement`` comes with its 95 % Wilson interval. The rows of the sample are
    taken for independent: they ask whether the judge reads a label, not what an item holds.

    Args:
        judge: Who read.
        grades: What it read.
        exam: How it did there; None where it sat none.
        seed: Draws the plain labels that are put to it.
    """
    summary = Summary()
    asked = sum(1 for one in grades if one.judge or one.error)
    check = judge.check(grades, seed)
    summary.rate("prefilter_rate", len(grades) - asked, len(grades), "rows")
    read = check.n - check.n_failed
    agreement = wilson(check.n_agree, read, "plain labels read by the judge")
    summary.values |= agreement.numbers("strict_agreement")
    if agreement.reason:
        summary.undefined["strict_agreement"] = agreement.reason
    summary.values |= {"n_checked": float(check.n), "n_check_failed": float(check.n_failed)}
    if exam is not None:
        summary.values |= exam.numbers()
        summary.undefined |= exam.undefined()
    elif judge.spent:
        summary.undefined["exam_kappa"] = f"undefined: {judge.spent}"
    if judge.spent:
        summary.values["n_over_budget"] = float(sum(g.error.startswith(SPENT) for g in grades))
    usage = judge.usage.named()
    summary.values |= {name.partition("/")[2]: value for name, value in usage.items()}
    return summary


def parser_numbers(judged: Sequence[Grade], parsed: Sequence[Grade], seed: int = 0) -> Summary:
    """What a published parser would have said on rows that the judge has read.

    * ``n_wrong_letter``: both name an option, and not the same one.
    * ``n_coerced_other``: the judge says OTHER and the parser names an option.
    * ``n_missed``: the judge names an option and the parser finds none.
    * ``n_judged``: rows compared. A judge's errors are not among them, nor is INCORRECT in
      its direct shape, which names no option.
    * ``misread_rate``: (wrong letters + coerced OTHER) / rows compared, in [0, 1].
    * ``spot_...``: the same on a sample of at most 100 of these rows, which a person can read.

    Args:
        judged: Grades of the judge.
        parsed: Grades of one parser over the same generations.
        seed: Draws the sample.
    """
    summary = Summary()
    for start, rate, n in (("", "misread_rate", len(judged)), ("spot_", "spot_rate", 100)):
        check = spot_check(judged, parsed, n, seed)
        summary.values |= {
            f"{start}n_wrong_letter": float(check.n_wrong_letter),
            f"{start}n_coerced_other": float(check.n_coerced_other),
            f"{start}n_missed": float(check.n_missed),
            f"{start}n" if start else "n_judged": float(check.n),
        }
        if check.rate is None:
            summary.undefined[rate] = "undefined: 0 rows that the judge has read"
        else:
            summary.values[rate] = check.rate
    return summary


def reader_numbers(
    grader: Grader, grades: Sequence[Grade], items: Sequence[Item], seconds: float | None = None
) -> Summary:
    """The numbers of a grader's own; nothing for one that has none.

    Args:
        grader: Who read.
        grades: What it read.
        items: All that were shown, answered or not.
        seconds: That generation took; None where the answers were there already.
    """
    from mlflow_mcq.graders.analogy import AnalogyGrader
    from mlflow_mcq.graders.similarity import SimilarityGrader

    if isinstance(grader, AnalogyGrader):
        return _analogy(grader, grades, items)
    if isinstance(grader, SimilarityGrader):
        return _similarity(grader, grades, seconds)
    return Summary()


def _analogy(grader: AnalogyGrader, grades: Sequence[Grade], items: Sequence[Item]) -> Summary:
    from mlflow_mcq.graders.analogy import analogy_numbers, unwinnable

    summary = Summary(analogy_numbers(grades))
    if grader.tokenizer is None:
        why = "undefined: no tokenizer is known; name one with analogy.tokenizer"
        summary.undefined["n_unwinnable"] = why
    else:
        found = unwinnable(items, grader.tokenizer, grader.settings.window)
        summary.values["n_unwinnable"] = float(len(found))
    return summary


def _similarity(
    grader: SimilarityGrader, grades: Sequence[Grade], seconds: float | None
) -> Summary:
    """The numbers of the readings, and what embedding took.

    * ``embed_seconds``: loading the encoder included.
    * ``embed_share``: these / (seconds of generation + these), in [0, 1].
    * ``n_encoded``, ``n_cached``: distinct texts over all orientations that were encoded, and
      whose vectors were on disk.
    """
    from mlflow_mcq.engines.embedder import SentenceEmbedder
    from mlflow_mcq.graders.similarity import similarity_numbers

    summary = Summary(similarity_numbers(grades))
    embedder = grader.embedder
    if not isinstance(embedder, SentenceEmbedder):
        summary.undefined["embed_seconds"] = "undefined: the embedder does not say"
        return summary
    summary.values["embed_seconds"] = embedder.seconds
    summary.values["n_encoded"] = float(embedder.n_encoded)
    summary.values["n_cached"] = float(embedder.n_cached)
    if seconds is None:
        summary.undefined["embed_share"] = "undefined: the answers were there already"
    else:
        whole = seconds + embedder.seconds
        summary.rate("embed_share", embedder.seconds, whole, "seconds")
    return summary
