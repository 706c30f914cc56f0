"""Numbers of a comparison as a whole: time by protocol, and whether rankings agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.arm_rows import seconds_of
from mlflow_mcq.metrics import Summary
from mlflow_mcq.statistics.intervals import Measured, undefined
from mlflow_mcq.statistics.ranking import rank_agreement

__all__ = ["FEWEST_RANKED", "comparison_numbers"]

FEWEST_RANKED = 3
"""Two models have two orders only: a tau of 1 or -1 would say next to nothing."""


def comparison_numbers(arms: Sequence[ArmResult]) -> Summary:
    """Numbers that belong to no single arm.

    * ``seconds_<protocol>``: generation and embedding, over all arms of a protocol;
      ``similarity_share_<protocol>``: the part of embedding in it, in [0, 1].
    * ``tau_<protocol>_<protocol>``: Kendall's tau-b between the rankings of the models by
      accuracy under two protocols, in [-1, 1]. Each arm counts as its most believed grader
      has it, and arms that move gold (those with an ``original``) do not count.
    * ``tau_by_<grader>_<grader>``: the same between two graders, over the arms that both read.

    A tau is undefined for fewer than 3 models (or arms), or where all are tied.
    """
    summary = Summary()
    _add_times(summary, arms)
    ranked = [arm for arm in arms if arm.original is None]
    _add_by_protocol(summary, ranked)
    _add_by_grader(summary, ranked)
    return summary


def _add_times(summary: Summary, arms: Sequence[ArmResult]) -> None:
    for protocol in dict.fromkeys(arm.protocol for arm in arms):
        times = [seconds_of(arm) for arm in arms if arm.protocol == protocol]
        whole, embedding = (sum(part) for part in zip(*times, strict=True))
        summary.values[f"seconds_{protocol}"] = whole
        if any(
            "similarity/embed_seconds" in arm.metrics for arm in arms if arm.protocol == protocol
        ):
            summary.rate(f"similarity_share_{protocol}", embedding, whole, "seconds")


def _add_by_protocol(summary: Summary, arms: Sequence[ArmResult]) -> None:
    by_protocol: dict[str, dict[str, list[float]]] = {}
    graders: dict[str, set[str]] = {}
    for arm in arms:
        grader = arm.main_grader
        accuracy = arm.metrics.get(f"{grader}/accuracy")
        if grader is not None and accuracy is not None:
            by_protocol.setdefault(arm.protocol, {}).setdefault(arm.model, []).append(accuracy)
            graders.setdefault(arm.protocol, set()).add(grader)
    # A model with several arms of a protocol (temperatures, say) counts with their mean.
    means = {
        protocol: {model: sum(some) / len(some) for model, some in models.items()}
        for protocol, models in by_protocol.items()
    }
    for one, other in combinations(sorted(means), 2):
        name = f"tau_{one}_{other}"
        _add(summary, name, _tau(means[one], means[other], "models"))
        if name in summary.values:
            read = [f"{protocol} read by {', '.join(sorted(graders[protocol]))}"
                    for protocol in (one, other)]  # fmt: skip
            n = len(means[one].keys() & means[other].keys())
            summary.notes[name] = f"over {n} models; {'; '.join(read)}"


def _add_by_grader(summary: Summary, arms: Sequence[ArmResult]) -> None:
    graders = list(dict.fromkeys(grader for arm in arms for grader in arm.graders))
    accuracy = {
        grader: {
            arm.name: arm.metrics[f"{grader}/accuracy"]
            for arm in arms
            if f"{grader}/accuracy" in arm.metrics
        }
        for grader in graders
    }
    for one, other in combinations(sorted(graders), 2):
        _add(summary, f"tau_by_{one}_{other}", _tau(accuracy[one], accuracy[other], "arms"))


def _tau(one: dict[str, float], other: dict[str, float], what: str) -> Measured:
    shared = len(one.keys() & other.keys())
    if shared < FEWEST_RANKED:
        return undefined(f"{what} in both: {shared}; a rank correlation needs {FEWEST_RANKED}")
    return rank_agreement(one, other)


def _add(summary: Summary, name: str, tau: Measured) -> None:
    if tau.value is None:
        summary.undefined[name] = tau.reason
    else:
        summary.values[name] = tau.value
