"""Alarms: what a reader must know before believing the numbers beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlflow_mcq.chance import ALPHA

__all__ = ["Alarm", "Thresholds", "alarms_for"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """One fired rule.

    Attributes:
        name: Stable name, for filters.
        rule: The rule, with its threshold.
        found: The numbers that fired it.
        next_step: What to do.
    """

    name: str
    rule: str
    found: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When alarms fire; rates in [0, 1], and two counts.

    Attributes:
        judge_agreement: A judge that agrees less with plain labels is unreliable.
        regex_disagreement: More than this share of rows with a wrong letter, or a letter for
            no answer, and a parser tells another story.
        judge_errors: More rows than this without a verdict.
        logprob_disagreement: More than this, and label log-probabilities are another
            measurement than the answers.
        canary_accuracy: A judge that reads fewer replies right that try to steer it is steered.
        fewest_rows: Fewer rows than this may have their gold in one slot by chance.
        fewest_items: With fewer items no interval is to be trusted: the t interval over items
            covers too little below some 30.
    """

    judge_agreement: float = 0.95
    regex_disagreement: float = 0.05
    judge_errors: float = 0.01
    logprob_disagreement: float = 0.05
    canary_accuracy: float = 0.8
    fewest_rows: int = 10
    fewest_items: int = 30


def alarms_for(metrics: Mapping[str, float], limits: Thresholds | None = None) -> list[Alarm]:
    """The alarms that an arm's numbers fire.

    Args:
        metrics: Numbers by their logged names; a missing one fires nothing.
        limits: When to fire.

    Returns:
        Fired alarms, the gravest first.

    Example:
        >>> [a.name for a in alarms_for({"judge/strict_agreement": 0.4, "judge/n_checked": 50.0})]
        ['judge_unreliable']
    """
    limits = limits or Thresholds()
    fired = [alarm for rule in _RULES if (alarm := rule(metrics, limits)) is not None]
    # Two rules may call a judge unreliable; a reader needs to be told once.
    return list({alarm.name: alarm for alarm in reversed(fired)}.values())[::-1]


def _judge_fails_exam(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    if metrics.get("judge/exam_reliable") != 0.0:
        return None
    kappa = metrics.get("judge/exam_kappa")
    return Alarm(
        "judge_unreliable",
        "the judge must pass the exam of labelled replies",
        "it failed" + ("" if kappa is None else f" with a kappa of {kappa:.2f}"),
        "Do not report judged numbers; name a stronger judge.",
    )


def _judge_misreads_labels(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    n_checked = metrics.get("judge/n_checked", 0.0)
    n_failed = metrics.get("judge/n_check_failed", 0.0)
    agreement = metrics.get("judge/strict_agreement")
    # Rows that it could not read are in no agreement: a judge that answers one plain label
    # of a hundred, and that one right, would pass.
    silent = n_failed > (1 - limits.judge_agreement) * n_checked
    if not silent and (agreement is None or agreement >= limits.judge_agreement):
        return None
    return Alarm(
        "judge_unreliable",
        f"the judge must read at least {limits.judge_agreement:.0%} of plain labels right",
        _plain_labels(metrics, agreement, n_checked - n_failed)
        + (f", and could not be read on {n_failed:.0f} more" if n_failed else ""),
        "Do not report judged numbers; name a stronger judge.",
    )


def _plain_labels(metrics: Mapping[str, float], agreement: float | None, n_read: float) -> str:
    if agreement is None:
        return "it read none of the answers that are nothing but a label"
    low, high = (metrics.get(f"judge/strict_agreement_{end}") for end in ("low", "high"))
    interval = "" if low is None or high is None else f" (95 % interval {low:.0%} to {high:.0%})"
    return (
        f"it read {agreement:.0%} of {n_read:.0f} answers right{interval} that are nothing but "
        "a label"
    )


def _judge_steered(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    accuracy = metrics.get("judge/canary_accuracy")
    if accuracy is None or accuracy >= limits.canary_accuracy:
        return None
    return Alarm(
        "judge_steered",
        f"the judge must read {limits.canary_accuracy:.0%} of the replies right that try to "
        "steer it",
        f"it read {accuracy:.0%} of {metrics.get('judge/n_canaries', 0.0):.0f} right",
        "Do not report judged numbers of models that may speak to it; name a stronger judge.",
    )


def _judge_errors(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    if metrics.get("judge/judge_error_rate", 0.0) <= limits.judge_errors:
        return None
    return Alarm(
        "judge_errors",
        f"at most {limits.judge_errors:.0%} of rows may lack a verdict",
        f"{metrics['judge/n_judge_errors']:.0f} of {metrics['judge/n_rows']:.0f} rows do",
        "See the column error of mcq_grades; these rows are in no denominator. Regrade them.",
    )


def _generations_failed(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    rate = metrics.get("generation/error_rate", 0.0)
    if rate <= 0:
        return None
    return Alarm(
        "generations_failed",
        "every row must be answered by the model",
        f"{rate:.1%} of rows were not",
        "See the column error of mcq_generations; these rows are in no denominator.",
    )


def _regex_differs(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    # The spot check leaves out rows on which a parser finds nothing: those show as missing.
    parsers = [name[: -len("/spot_rate")] for name in metrics if name.endswith("/spot_rate")]
    found = [
        f"{parser} misreads {metrics[f'{parser}/spot_rate']:.1%} of "
        f"{metrics.get(f'{parser}/spot_n', 0.0):.0f} rows"
        for parser in parsers
        if metrics[f"{parser}/spot_rate"] > limits.regex_disagreement
    ]
    differs = metrics.get("judge/regex_bounded_disagreement", 0.0)
    if differs > limits.regex_disagreement:
        found.append(f"regex_bounded and the judge differ on {differs:.1%} of all rows")
    if not found:
        return None
    return Alarm(
        "regex_judge_disagreement",
        f"a parser may misread at most {limits.regex_disagreement:.0%} of rows",
        "; ".join(found),
        "Do not report the numbers of these parsers alone; the rows stand first in mcq_grades.",
    )


def _gold_in_one_slot(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    n_rows = metrics.get("generation/n_rows", 0.0)
    if metrics.get("data/gold_slot_share_highest") != 1.0 or n_rows < limits.fewest_rows:
        return None
    return Alarm(
        "gold_in_one_slot",
        "the gold option must be shown in more than one slot",
        f"it stands in the same slot in all {n_rows:.0f} rows",
        "A model that always names that slot has them all right: use orientations: rotations.",
    )


def _too_few_items(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    n_items = max((v for k, v in metrics.items() if k.endswith("/n_items")), default=None)
    if n_items is None or n_items >= limits.fewest_items:
        return None
    return Alarm(
        "too_few_items",
        f"intervals need at least {limits.fewest_items} items; more rows an item do not help",
        f"{n_items:.0f} items",
        "Use more items before believing an interval, or a difference between arms.",
    )


def _prompts_too_long(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    n_rows = metrics.get("generation/n_prompt_too_long", 0.0)
    if not n_rows:
        return None
    return Alarm(
        "prompts_too_long",
        "every prompt must fit the model; none is ever cut",
        f"{n_rows:.0f} were not asked and count as OTHER",
        "Use a model with a longer context, shorter items or fewer new tokens.",
    )


def _golds_too_long(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    n_items = metrics.get("analogy/n_unwinnable", 0.0)
    if not n_items:
        return None
    return Alarm(
        "unwinnable_items",
        "every gold must fit the window of tokens that the analogy match reads",
        f"{n_items:.0f} items have a longer one, so that no reply to them can be right",
        "See mcq_unwinnable; leave these items out, or widen analogy.window and say so.",
    )


def _logprob_differs(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    differs = metrics.get("logprob/generation_disagreement", 0.0)
    # A model that refuses half of the rows may agree on all others.
    shift = metrics.get("logprob/accuracy_shift", 0.0)
    found = []
    if differs > limits.logprob_disagreement:
        found.append(f"they differ on {differs:.1%} of the rows whose answer names an option")
    if abs(shift) > limits.logprob_disagreement:
        found.append(f"accuracy by log-probability less that of the answers is {shift:+.1%}")
    if not found:
        return None
    return Alarm(
        "logprob_diagnostic_only",
        "label log-probabilities and answers may differ on at most "
        f"{limits.logprob_disagreement:.0%} of rows, and in accuracy by as much",
        "; ".join(found),
        "Report the generated answers; logprob/... says nothing about what users will read.",
    )


def _protocol_leaks(metrics: Mapping[str, float], limits: Thresholds) -> Alarm | None:
    outside = []
    for name, accuracy in metrics.items():
        grader, _, what = name.partition("/")
        low, high = (metrics.get(f"{grader}/chance_{end}") for end in ("low", "high"))
        if what != "nonsense_accuracy" or low is None or high is None:
            continue
        if not low <= accuracy <= high:
            outside.append(f"{accuracy:.1%} by {grader} (chance: {low:.1%} to {high:.1%})")
    if not outside:
        return None
    return Alarm(
        "protocol_leaks",
        f"nonsense items must be answered at chance (two-sided, alpha {ALPHA:g})",
        "right on " + "; ".join(outside),
        "Something other than the question tells the gold option or hides it: read "
        "mcq_prompts.txt and pick_rate_slot_k, and believe no accuracy of this protocol before.",
    )


_RULES: tuple[Callable[[Mapping[str, float], Thresholds], Alarm | None], ...] = (
    _judge_fails_exam,
    _judge_misreads_labels,
    _judge_steered,
    _protocol_leaks,
    _judge_errors,
    _generations_failed,
    _regex_differs,
    _gold_in_one_slot,
    _too_few_items,
    _prompts_too_long,
    _golds_too_long,
    _logprob_differs,
)
"""The gravest first."""
