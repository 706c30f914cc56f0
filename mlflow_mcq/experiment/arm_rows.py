"""The table of arms: what each says, and what is only seen beside another one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.metrics import Summary
from mlflow_mcq.statistics.intervals import Measured, difference, ratio, undefined
from mlflow_mcq.statistics.paired import accuracy_shift
from mlflow_mcq.statistics.pairing import align
from mlflow_mcq.statistics.significance import holm, significance

__all__ = ["arm_numbers", "arms_table", "attack_gap", "seconds_of"]


def arms_table(arms: Sequence[ArmResult], baseline: str | None = None) -> pd.DataFrame:
    """One row an arm: what only several arms can say first, then each arm's own metrics."""
    derived = arm_numbers(arms, baseline)
    return pd.DataFrame(
        [
            {
                "arm": arm.name,
                "run_id": arm.run_id,
                "model": arm.model,
                "protocol": arm.protocol,
                **derived[arm.name].values,
                **arm.metrics,
                "alarms": arm.alarms,
            }
            for arm in arms
        ]
    )


def arm_numbers(arms: Sequence[ArmResult], baseline: str | None = None) -> dict[str, Summary]:
    """What a recipe says of each arm beyond the arm's own metrics.

    * ``seconds``: generation and, where similarity reads, embedding; ``similarity_share``: the
      part of embedding in it, in [0, 1].
    * ``<grader>/accuracy_variance``: of accuracy over orientations (population), in fractions
      squared: the square of ``accuracy_variation``.
    * ``<grader>/recall_std_points``: RStd of Zheng et al. (arXiv 2309.03882) in percentage
      points, as papers print it: 100 times ``recall_std``.
    * ``<grader>/attack_gap``: `attack_gap`, for an arm that names its original.
    * ``<grader>/accuracy_shift``: less the baseline's, on the rows that both have, with
      ``accuracy_shift_p``, tested as `mlflow_mcq.compare` does and adjusted over all arms
      (Holm): one difference has one p value, wherever it stands.

    Args:
        arms: Of one comparison.
        baseline: The arm that the others are compared with; None compares none.

    Returns:
        Numbers by arm, with the reason for each that does not exist.
    """
    known = {arm.name: arm for arm in arms}
    numbers = {arm.name: Summary() for arm in arms}
    for arm in arms:
        _add_times(numbers[arm.name], arm)
        for grader in arm.graders:
            _add_squares(numbers[arm.name], arm, grader)
            if arm.original in known:
                gap = attack_gap(known[arm.original], arm, grader)
                numbers[arm.name].measured({f"{grader}/attack_gap": gap})
    if baseline is not None:
        _add_shifts(numbers, arms, known[baseline])
    return numbers


def seconds_of(arm: ArmResult) -> tuple[float, float]:
    """Seconds of generation and embedding together, and those of embedding alone."""
    embedding = arm.metrics.get("similarity/embed_seconds", 0.0)
    return arm.metrics.get("generation/seconds", 0.0) + embedding, embedding


def attack_gap(original: ArmResult, attacked: ArmResult, grader: str) -> Measured:
    """Accuracy on the order of the data less that of an arm that moves the right option.

    Over the items of both, one number an item and arm, so that hard items cancel. Above 0
    where the attack costs accuracy; below 0 where gold was moved to a place that the model
    likes. *Hides* that an item whose gold stood there from the start is not attacked at all.

    Returns:
        A fraction in [-1, 1] with its interval over items; undefined where the original was
        never shown in the order of the data.
    """
    if grader not in original.graders:
        return undefined(f"the original was not read by {grader}")
    before = _by_item(_as_is(original.read_by(grader)))
    after = _by_item(attacked.read_by(grader))
    if not len(before):
        return undefined("the original shows no graded row in the order of the data")
    both = before.join(after, how="inner", lsuffix="_before", rsuffix="_after")
    if not len(both):
        return undefined("0 items graded in both")
    columns = {name: both[name].to_numpy(dtype=np.float64) for name in both}
    return difference(
        ratio(columns["right_before"], columns["n_before"], "graded rows"),
        ratio(columns["right_after"], columns["n_after"], "graded rows"),
    )


def _as_is(rows: pd.DataFrame) -> pd.DataFrame:
    natural = [list(order) == list(range(len(order))) for order in rows["order"]]
    return rows[np.array(natural, dtype=bool)]


def _by_item(rows: pd.DataFrame) -> pd.DataFrame:
    """Right answers and graded rows of each item."""
    graded = rows[rows["verdict"].notna()]
    right = (graded["verdict"] == "CORRECT").groupby(graded["item_id"])
    return pd.DataFrame({"right": right.sum(), "n": right.size()})


def _add_times(summary: Summary, arm: ArmResult) -> None:
    whole, embedding = seconds_of(arm)
    summary.values["seconds"] = whole
    if "similarity/embed_seconds" in arm.metrics:
        summary.rate("similarity_share", embedding, whole, "seconds")


def _add_squares(summary: Summary, arm: ArmResult, grader: str) -> None:
    variation = arm.metrics.get(f"{grader}/accuracy_variation")
    # An attack is one orientation by design: a reason for each would bury the others.
    if variation is None and arm.original is None:
        why = "undefined: fewer than 2 orientations"
        summary.undefined[f"{grader}/accuracy_variance"] = why
    elif variation is not None:
        summary.values[f"{grader}/accuracy_variance"] = variation**2
    recall = arm.metrics.get(f"{grader}/recall_std")
    if recall is not None:
        summary.values[f"{grader}/recall_std_points"] = 100 * recall


def _add_shifts(
    numbers: dict[str, Summary], arms: Sequence[ArmResult], baseline: ArmResult
) -> None:
    for grader in baseline.graders:
        p_values = {}
        for arm in arms:
            if arm is baseline or grader not in arm.graders:
                continue
            pairs = align(baseline.read_by(grader), arm.read_by(grader))
            # Two arms may show no item in one order: gold moved, or other data.
            shift = accuracy_shift(pairs) if pairs.n_pairs else undefined("0 rows in both arms")
            numbers[arm.name].measured({f"{grader}/accuracy_shift": shift})
            if pairs.n_pairs:
                p_values[arm.name] = significance(pairs).p_value
        for name, p_value in holm(p_values).items():
            numbers[name].values[f"{grader}/accuracy_shift_p"] = p_value
