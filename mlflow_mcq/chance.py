"""The chance band: what a model scores that cannot know the answer.

On NonsenseQA the gold option is drawn after everything else, so whatever an answer depends
on, each item's mean over its rows has expectation 1/k for k options. A mean in [0, 1] with
that expectation spreads at most as far as a single right-or-wrong answer does. Hence one band
of the binomial distribution over *items* holds for a single orientation, for the mean over
all of them and for repeats: exact for a model that sticks to one option, generous for one
that always says A (which under all rotations is right in exactly 1/k of each item).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from scipy import stats

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.metrics import Summary
from mlflow_mcq.records import Item

__all__ = ["ALPHA", "NONSENSE", "all_nonsense", "chance_band", "chance_numbers", "chance_said"]

ALPHA = 0.01
"""How often a run without a leak is called one, at most."""
NONSENSE = "nonsense"
"""The value of an item's ``probe`` that switches the band on."""


def chance_band(n_items: int, n_options: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Bounds of the accuracy of guessing; outside with a probability of at most ``alpha``.

    Equal-tailed and exact: ``P(X < low * n) <= alpha / 2`` and ``P(X > high * n) <= alpha / 2``
    for X binomial with n items and probability ``1 / n_options``.

    Args:
        n_items: At least 1.
        n_options: At least 2, the same in every item.
        alpha: Between 0 and 1.

    Returns:
        Lowest and highest fraction inside the band.

    Raises:
        SettingsError: A number is out of range.

    Example:
        >>> chance_band(1000, 4)
        (0.215, 0.286)
    """
    for name, value, fewest in (("n_items", n_items, 1), ("n_options", n_options, 2)):
        if value < fewest:
            raise SettingsError(f"chance band, {name}", f"must be at least {fewest}", value)
    if not 0.0 < alpha < 1.0:
        raise SettingsError("chance band, alpha", "must lie between 0 and 1", alpha)
    guess = stats.binom(n_items, 1 / n_options)
    return float(guess.ppf(alpha / 2)) / n_items, float(guess.isf(alpha / 2)) / n_items


def chance_numbers(grades: pd.DataFrame, items: Iterable[Item]) -> Summary:
    """How one grader's reading of nonsense items compares with guessing.

    * ``nonsense_accuracy``: CORRECT / (CORRECT + INCORRECT) over the rows of nonsense items.
      A refusal is the best answer to nonsense, so OTHER must not pull a model below chance.
    * ``chance_low``, ``chance_high``: see `chance_band`, at `ALPHA`; over as many items as
      have a decided row. Where items have different numbers of those, over Kish's effective
      number, ``(sum of weights)^2 / sum of squared weights``, which is fewer.
    * ``n_nonsense_items``: items with a decided row.

    Args:
        grades: Rows of `mlflow_mcq.table.grades_frame`, one grader.
        items: All items; those whose ``meta["probe"]`` is ``nonsense`` are looked at.

    Returns:
        Nothing at all without nonsense items; undefined without decided rows, or where
        items have different numbers of options.
    """
    n_options = {item.id: len(item.options) for item in items if _is_nonsense(item)}
    summary = Summary()
    if not n_options:
        return summary
    named = ("nonsense_accuracy", "chance_low", "chance_high")
    decided = grades[
        grades["item_id"].isin(list(n_options)) & grades["verdict"].isin(["CORRECT", "INCORRECT"])
    ]
    weights = decided.groupby("item_id").size()
    summary.values["n_nonsense_items"] = float(len(weights))
    if not len(weights):
        summary.undefined |= dict.fromkeys(named, "undefined: 0 decided rows of nonsense items")
        return summary
    sizes = {n_options[item_id] for item_id in weights.index}
    if len(sizes) > 1:
        why = f"undefined: nonsense items have {min(sizes)} to {max(sizes)} options"
        summary.undefined |= dict.fromkeys(named, why)
        return summary
    effective = max(1, int(weights.sum() ** 2 / (weights**2).sum() + 1e-9))
    low, high = chance_band(effective, sizes.pop())
    accuracy = float((decided["verdict"] == "CORRECT").mean())
    summary.values |= dict(zip(named, (accuracy, low, high), strict=True))
    return summary


def all_nonsense(items: Iterable[Item]) -> bool:
    """Whether nobody can know an answer to any of the items."""
    return all(_is_nonsense(item) for item in items)


def chance_said(values: Mapping[str, float]) -> list[str]:
    """A line for each grader: how right it was on nonsense, and what guessing comes to.

    Args:
        values: Numbers by their logged names; graders without a band get no line.

    Example:
        >>> band = {"judge/chance_low": 0.215, "judge/chance_high": 0.286}
        >>> chance_said({**band, "judge/nonsense_accuracy": 0.25})
        ['read by judge, 0.250 of nonsense is right; guessing is 0.215 to 0.286: inside']
    """
    said = []
    for name, accuracy in values.items():
        grader, _, metric = name.rpartition("/")
        ends = values.get(f"{grader}/chance_low"), values.get(f"{grader}/chance_high")
        if metric != "nonsense_accuracy" or ends[0] is None or ends[1] is None:
            continue
        where = "inside" if ends[0] <= accuracy <= ends[1] else "outside, so something leaks"
        said.append(
            f"read by {grader}, {accuracy:.3f} of nonsense is right; guessing is "
            f"{ends[0]:.3f} to {ends[1]:.3f}: {where}"
        )
    return said


def _is_nonsense(item: Item) -> bool:
    return item.meta.get("probe") == NONSENSE
