"""Numbers of a judge that know of its errors: from its exam, and from people."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_mcq.corrected import Calibration, Corrected, judged_accuracy, rogan_gladen
from mlflow_mcq.graders.exam import ExamReport
from mlflow_mcq.metrics import Summary
from mlflow_mcq.ppi import ppi_mean
from mlflow_mcq.records import Grade, Verdict
from mlflow_mcq.reliability import kappa

__all__ = ["calibration_of", "corrected_numbers", "human_numbers"]

FEWEST_REPLIES = 10
"""Fewer exam replies on either side say nothing: simulated intervals are twice as wide."""


def calibration_of(exam: ExamReport) -> Calibration:
    """How often the judge called right answers right, and others not, in its exam.

    Replies on which it failed are on neither side, as they are in no denominator of a run.
    """
    rates = next(one for one in exam.verdicts.classes if one.label == Verdict.CORRECT.value)
    counts = []
    for share in (rates.sensitivity, rates.specificity):
        hits = round((share.value or 0.0) * share.n)  # a share of whole rows: exact
        counts += [hits, share.n - hits]
    return Calibration(*counts)


def corrected_numbers(grades: Sequence[Grade], exam: ExamReport | None) -> Summary:
    """``accuracy_corrected`` with its interval: the accuracy without the judge's errors.

    Rows settled by the strict rule (or by having no answer) count as they are; those that
    the judge has read are corrected by how it did in its exam. See `rogan_gladen` for the
    formula and for what it assumes. Fractions in [0, 1], higher is better.

    Args:
        grades: Of the judge.
        exam: How that judge did; None where it sat none.

    Returns:
        The numbers, or the reason why there are none; rows with a judge error are left out.
    """
    summary = Summary()
    read = [one for one in grades if one.verdict is not None]
    reason = "undefined: the judge sat no exam (judge.exam_replies)"
    if exam is not None:
        calibration = calibration_of(exam)
        reason = _unfit(read, exam, calibration)
        if not reason:
            verdicts = [one.verdict for one in read]
            exact = [not one.judge for one in read]
            found = rogan_gladen(verdicts, _items(read), calibration, exact=exact)
            _enter(summary, "accuracy_corrected", found)
    if reason:
        summary.undefined["accuracy_corrected"] = reason
    return summary


def human_numbers(grades: Sequence[Grade]) -> Summary:
    """How a grader stands to the people who labelled some of its rows.

    * ``accuracy_ppi`` with its interval: the accuracy by human labels where there are any,
      sharpened by the grader's verdicts elsewhere (`ppi_mean`). Right whatever the grader
      gets wrong, if the labelled rows are a *random* sample.
    * ``n_human``: rows with a label and a verdict. Rows without a verdict are left out.
    * ``human_agreement``: verdicts that are the label / ``n_human``, with an interval over
      items (orientations of one item hang together).
    * ``human_kappa``: Cohen's kappa of the three verdicts; in [-1, 1], 0 is chance.

    All but the first are of the labelled rows alone, and undefined without two items among
    them.
    """
    summary = Summary()
    read = [one for one in grades if one.verdict is not None]
    labelled = [one for one in read if one.generation.human_label is not None]
    if not labelled:
        summary.undefined["accuracy_ppi"] = "undefined: 0 rows with a verdict and a human_label"
        return summary
    verdicts = [one.verdict for one in read]
    labels = [one.generation.human_label for one in read]
    _enter(summary, "accuracy_ppi", ppi_mean(verdicts, labels, _items(read)))
    summary.values["n_human"] = float(len(labelled))
    n_items = len(set(_items(labelled)))
    if n_items < 2:
        reason = f"undefined: {n_items} item with a human label; at least 2 needed"
        summary.undefined |= {"human_agreement": reason, "human_kappa": reason}
        return summary
    same = [one.verdict is one.generation.human_label for one in labelled]
    _enter(summary, "human_agreement", judged_accuracy(same, _items(labelled)))
    chance_free = kappa(
        [(_word(one.generation.human_label), _word(one.verdict)) for one in labelled]
    )
    if chance_free.value is None:
        summary.undefined["human_kappa"] = chance_free.reason
    else:
        summary.values["human_kappa"] = chance_free.value
    return summary


def _unfit(read: Sequence[Grade], exam: ExamReport, calibration: Calibration) -> str:
    """Why the exam cannot correct these rows; empty where it can, or nothing needs it."""
    strangers = sum(one.judge not in ("", exam.judge) for one in read)
    if strangers:
        return f"undefined: {strangers} rows were read by another judge than sat the exam"
    judged = [one for one in read if one.judge]
    if not judged:
        return ""
    if any(one.generation.prompt.item.takes_all for one in judged):
        return (
            "undefined: the exam knows single answers only, and here all of several are asked for"
        )
    sides = {
        "right answers": calibration.tp + calibration.fn,
        "other answers": calibration.tn + calibration.fp,
    }
    few = [f"{n} {side}" for side, n in sides.items() if n < FEWEST_REPLIES]
    if few:
        return f"undefined: the judge read {' and '.join(few)} in its exam; {FEWEST_REPLIES} needed"
    return ""


def _enter(summary: Summary, name: str, found: Corrected) -> None:
    """Enter an estimate with its interval under the usual names."""
    if found.estimate is None:
        summary.undefined[name] = found.reason
        return
    summary.values[name] = found.estimate
    if found.low is None or found.high is None:
        summary.undefined[f"{name}_low"] = summary.undefined[f"{name}_high"] = found.reason
        return
    summary.values |= {f"{name}_low": found.low, f"{name}_high": found.high}
    doubts = [found.reason] if found.reason else []
    if found.clipped:
        doubts.append("clipped: the formula left [0, 1]")
    if doubts:
        summary.notes[name] = "; ".join(doubts)


def _items(grades: Sequence[Grade]) -> list[str]:
    return [one.generation.prompt.item.id for one in grades]


def _word(verdict: Verdict | None) -> str:
    return verdict.value if verdict is not None else ""
