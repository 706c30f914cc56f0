"""Numbers over label log-probabilities: a diagnostic, never a headline.

What a model finds likely to come next is not what it answers: the two differ on a large
share of rows for chat models, so each number here stands beside the share of rows on
which it would tell another story than the generated answers.

The prior over slots and the debiased pick follow PriDe (Zheng et al., "Large Language
Models Are Not Robust Multiple Choice Selectors", ICLR 2024, arXiv 2309.03882).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mlflow_mcq.metrics import MOST_SLOT_METRICS, Summary
from mlflow_mcq.records import Grade, Verdict
from mlflow_mcq.scores import LabelScores

__all__ = ["SlotPrior", "debiased", "label_logprobs", "picks", "slot_priors", "summarize_logprobs"]

_Floats = npt.NDArray[np.float64]

_LOWEST = -100.0
"""Nats below the best label. A probability of 0 must not make a mean infinite."""


@dataclass(frozen=True, slots=True)
class SlotPrior:
    """What a model favours before it has read the options.

    Attributes:
        by_slot: Probability of each slot's label; they sum to 1.
        items: Keys (item id, protocol) of the items it was estimated on.

    Example:
        >>> SlotPrior((0.5, 0.25, 0.125, 0.125), frozenset()).distance
        0.25
    """

    by_slot: tuple[float, ...]
    items: frozenset[tuple[str, str]]

    @property
    def distance(self) -> float:
        """Total variation distance from the uniform prior, the measure of token bias.

        Half the sum of ``|p_k - 1/n|``, in [0, 1 - 1/n]: the share of probability that
        would have to move to another label. 0 is no bias. Noise adds to it, so that few
        items give more than 0 for an unbiased model too.
        """
        uniform = 1 / len(self.by_slot)
        return float(np.abs(np.array(self.by_slot) - uniform).sum() / 2)


def label_logprobs(score: LabelScores) -> _Floats:
    """Log-probabilities by slot, normalised over the labels (they sum to 1).

    None is held to be less likely than e^-100 times the best one; labels that all have
    probability 0 are uniform.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt
        >>> item = Item("q", "?", ("x", "y"), 0)
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "?", ("A", "B"))
        >>> np.exp(label_logprobs(LabelScores(prompt, (-9.0, -9.0), ("A", "B")))).round(6).tolist()
        [0.5, 0.5]
    """
    found = np.array(score.logprobs)
    best = max(found.max(), np.finfo(np.float64).min)  # -inf less -inf would be no number
    values = np.maximum(found - best, _LOWEST)
    return np.asarray(values - np.logaddexp.reduce(values), dtype=np.float64)


def picks(scores: Iterable[LabelScores]) -> list[int | None]:
    """The most likely slot of each prompt; None on a tie or without scores.

    A tie names no slot: an argmax would give it to A.
    """
    return [score.pick for score in scores]


def slot_priors(
    scores: Iterable[LabelScores], *, prior_items: int = 50, seed: int = 0
) -> dict[int, SlotPrior]:
    """The prior over slots, for each number of options.

    An item counts if its scored orientations show every option equally often in every
    slot, as all n rotations do: then what the model thinks of the options weighs the same
    on every slot, and what is left in the mean log-probability of a slot is the prior.
    Per item it is the softmax of these means (a geometric mean over rotations); the prior is
    the mean over items.

    Items with a label whose number is a mere bound (a server did not list it) are left out.
    These are the ones on which the model is surest, so the prior is that of the others.

    Args:
        scores: One a prompt; those with an error are left out.
        prior_items: Most items used for each number of options. At most half of those
            that would do are used, so that others are left to debias.
        seed: Draws the items, by id alone: not by their order or number of scores.

    Returns:
        Prior by number of options; a number of options without any such item is absent.
    """
    by_item: dict[tuple[str, str], list[LabelScores]] = defaultdict(list)
    for score in _distinct(scores):
        by_item[score.key[:2]].append(score)
    complete: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for item, group in by_item.items():
        if _balanced(group) and not any(score.bounded for score in group):
            complete[len(group[0].logprobs)].append(item)
    priors = {}
    for n_options, items in sorted(complete.items()):
        n_used = min(prior_items, max(1, len(items) // 2))
        used = sorted(items, key=lambda item: _draw(seed, item))[:n_used]
        by_slot = np.mean([_item_prior(by_item[item]) for item in used], axis=0)
        priors[n_options] = SlotPrior(tuple(by_slot.tolist()), frozenset(used))
    return priors


def debiased(score: LabelScores, prior: SlotPrior) -> LabelScores:
    """Take the prior out of a prompt's scores: log p - log prior, normalised over labels.

    With a uniform prior the pick stays what it was.
    """
    values = label_logprobs(score) - np.log(prior.by_slot)
    values -= np.logaddexp.reduce(values)
    # Rounding may leave the likeliest label a hair above probability 1.
    return replace(score, logprobs=tuple(np.minimum(values, 0.0).tolist()))


def summarize_logprobs(
    scores: Sequence[LabelScores],
    grades: Iterable[Grade] = (),
    *,
    prior_items: int = 50,
    seed: int = 0,
) -> Summary:
    """Every number of the diagnostic; to be logged under ``logprob/``.

    * ``n_rows``, ``n_items``, ``n_unscored``: scored prompts, their items, and prompts that
      could not be scored (in no other number).
    * ``accuracy``: rows whose likeliest label is a gold's / scored rows. A tie is not correct.
    * ``tie_rate``: rows whose highest log-probability is shared / scored rows.
    * ``mass``: mean probability on all labels together, in [0, 1]. Near 0 the model would
      have written something else, and the rest of the numbers describes a tail. Labels
      that a server did not list are not in it, so that it is a lower bound.
    * ``coverage``: scored prompts / prompts. ``exact_rate``: scored rows with a number for
      each label / scored rows; the others are exact in which label is likeliest only.
    * ``generation_disagreement``: rows whose generated answer names a slot that is not (among)
      the likeliest / rows whose answer names a slot. Repeats count each.
    * ``generation_other_rate``: rows whose answer is OTHER / rows with a verdict.
    * ``accuracy_shift``: accuracy of the log-probabilities minus that of the generated
      answers (OTHER is not correct), over rows with a verdict; in [-1, 1]. It is far from
      0 where a model refuses much, which the disagreement does not show.
    * ``n_compared``, ``n_generation_other``, ``n_generation_unnamed``: rows behind the
      disagreement; OTHER; wrong without saying which option (a judge of shape ``direct``).
    * ``prior_slot_1``, ...: the prior (`slot_priors`), where all items have as many options;
      else ``prior_of_n_slot_k``. ``prior_distance``: `SlotPrior.distance`, items weighing
      the same. ``n_prior_items``: items it was estimated on.
    * ``accuracy_debiased``: as ``accuracy``, for debiased scores of the items that the prior was
      not estimated on. ``debias_shift``: minus the accuracy of these same rows as they were.

    Args:
        scores: One a distinct prompt, any order; equal keys count once.
        grades: Of the generated answers, by one grader; joined by key. None are needed.
        prior_items: See `slot_priors`.
        seed: See `slot_priors`.

    Returns:
        The numbers; without rows behind it a number is undefined, with the reason.
    """
    scored = _distinct(scores)
    summary = Summary()
    summary.values["n_rows"] = float(len(scored))
    summary.values["n_items"] = float(len({score.key[0] for score in scored}))
    unscored = {score.key for score in scores} - {score.key for score in scored}
    summary.values["n_unscored"] = float(len(unscored))
    errors = [score.error for score in scores if score.error]
    rows = "scored rows" if scored or not errors else f"scored rows: {errors[0]}"
    summary.rate("coverage", len(scored), len(scored) + len(unscored), "prompts")
    summary.rate("exact_rate", sum(not score.bounded for score in scored), len(scored), rows)
    summary.rate("accuracy", _n_right(scored), len(scored), rows)
    summary.rate("tie_rate", sum(score.tied for score in scored), len(scored), rows)
    summary.rate("mass", sum(map(_mass, scored)), len(scored), rows)
    _add_generated(summary, {score.key: score for score in scored}, grades)
    priors = slot_priors(scored, prior_items=prior_items, seed=seed)
    _add_prior(summary, priors, {len(score.logprobs) for score in scored})
    _add_debiased(summary, scored, priors)
    return summary


def _add_generated(
    summary: Summary, scores: Mapping[tuple[str, str, int], LabelScores], grades: Iterable[Grade]
) -> None:
    pairs = [
        (scores[grade.generation.key[:3]], grade)
        for grade in grades
        # A failed judge says nothing about the answer.
        if grade.verdict is not None and grade.generation.key[:3] in scores
    ]
    named = [(score, grade.slot) for score, grade in pairs if grade.slot is not None]
    n_other = sum(grade.verdict is Verdict.OTHER for _, grade in pairs)
    n_differ = sum(slot not in score.best for score, slot in named)
    summary.values["n_compared"] = float(len(named))
    summary.values["n_generation_other"] = float(n_other)
    summary.values["n_generation_unnamed"] = float(len(pairs) - len(named) - n_other)
    summary.rate(
        "generation_disagreement", n_differ, len(named), "scored rows whose answer names an option"
    )
    summary.rate("generation_other_rate", n_other, len(pairs), "scored rows with a verdict")
    n_generated = sum(grade.verdict is Verdict.CORRECT for _, grade in pairs)
    n_scored = _n_right([score for score, _ in pairs])
    summary.rate("accuracy_shift", n_scored - n_generated, len(pairs), "scored rows with a verdict")


def _add_prior(summary: Summary, priors: Mapping[int, SlotPrior], counts: set[int]) -> None:
    sizes = {n_options: len(prior.items) for n_options, prior in priors.items()}
    total = sum(sizes.values())
    summary.values["n_prior_items"] = float(total)
    weighted = sum(prior.distance * sizes[n_options] for n_options, prior in priors.items())
    summary.rate("prior_distance", weighted, total, "items scored in all rotations")
    for n_options in sorted(counts):
        of_n = "" if len(counts) == 1 else f"of_{n_options}_"
        prior = priors.get(n_options)
        for slot in range(min(n_options, MOST_SLOT_METRICS)):
            name = f"prior_{of_n}slot_{slot + 1}"
            part, whole = (prior.by_slot[slot], 1) if prior else (0.0, 0)
            summary.rate(name, part, whole, f"items with {n_options} options in all rotations")


def _add_debiased(
    summary: Summary, scores: Sequence[LabelScores], priors: Mapping[int, SlotPrior]
) -> None:
    rest = [
        (score, priors[len(score.logprobs)])
        for score in scores
        if len(score.logprobs) in priors and not score.bounded
        if score.key[:2] not in priors[len(score.logprobs)].items
    ]
    after = _n_right([debiased(score, prior) for score, prior in rest])
    before = _n_right([score for score, _ in rest])
    why = "rows beside the items of the prior" if priors else "items scored in all rotations"
    summary.rate("accuracy_debiased", after, len(rest), why)
    summary.rate("debias_shift", after - before, len(rest), why)


def _distinct(scores: Iterable[LabelScores]) -> list[LabelScores]:
    return list({score.key: score for score in scores if not score.error}.values())


def _n_right(scores: Sequence[LabelScores]) -> int:
    both = zip(scores, picks(scores), strict=True)
    return sum(pick in score.prompt.gold_slots for score, pick in both)


def _mass(score: LabelScores) -> float:
    known = [value for slot, value in enumerate(score.logprobs) if slot not in score.bounded]
    # The tokens of labels are disjoint, so that only rounding exceeds 1.
    return min(1.0, float(np.exp(known).sum()))


def _balanced(group: Sequence[LabelScores]) -> bool:
    """Every option stands equally often, and at least once, in every slot."""
    n_options = len(group[0].logprobs)
    shown = np.zeros((n_options, n_options), dtype=int)
    for score in group:
        shown[np.arange(n_options), score.prompt.orientation.order] += 1
    return bool(shown.min() == shown.max())


def _item_prior(group: Sequence[LabelScores]) -> _Floats:
    means = np.mean([label_logprobs(score) for score in group], axis=0)
    return np.asarray(np.exp(means - np.logaddexp.reduce(means)), dtype=np.float64)


def _draw(seed: int, item: tuple[str, str]) -> bytes:
    return hashlib.sha256("\x1f".join((str(seed), *item)).encode("utf-8", "surrogatepass")).digest()
