"""Faults that no single item shows: where the gold stands, how long it is, what it is made of.

Each is a way to score above chance without reading a question.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mlflow_mcq.draws import below
from mlflow_mcq.records import Item
from mlflow_mcq.reliability import wilson

__all__ = ["ItemNumber", "choices_only", "gold_position", "longest_is_gold"]

_FEWEST = 100
_FEWEST_TO_BLAME = 20
_MOST = 2000
_FOLDS = 5
_ALPHA = 0.01
_LEAST_EXPECTED = 5.0

# Words, and single signs of scripts that put no space between words.
_WORD = r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+"


@dataclass(frozen=True, slots=True)
class ItemNumber:
    """One number about a whole set.

    Attributes:
        name: Of the number.
        value: None where undefined.
        low: Lower end of its 95 % interval.
        high: Upper end.
        chance: What a set without the fault would show.
        n: Items behind it.
        fault: What is wrong with the set; empty where nothing is.
        note: Why it is undefined.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    n: int = 0
    fault: str = ""
    note: str = ""


def gold_position(items: Sequence[Item]) -> ItemNumber:
    """How unlikely the gold's positions are if each were as likely as any other.

    Pearson's chi-square test (scipy.stats.chisquare). An item with k options expects 1/k of
    a gold in each of its k positions; the last positions are pooled until five are expected,
    since longer items are few. Items with several right options are left out.

    Returns:
        A p-value in [0, 1]; below 0.01 the set favours a position. Undefined where fewer
        than two positions expect five golds.

    Example:
        >>> items = [Item(str(i), "q?", ("x", "y"), 0) for i in range(40)]
        >>> gold_position(items).fault
        'option 1 is gold in 40 of 40 items'
    """
    items = [item for item in items if not item.also_right]
    longest = max((len(item.options) for item in items), default=0)
    observed, expected = np.zeros(longest), np.zeros(longest)
    for item in items:
        observed[item.gold] += 1
        expected[: len(item.options)] += 1 / len(item.options)
    seen, due = _pooled(observed, expected)
    if len(due) < 2:
        note = "undefined: fewer than two positions expect five golds"
        return ItemNumber("gold_position_p", None, n=len(items), note=note)
    p = float(stats.chisquare(seen, due).pvalue)
    top = int(np.argmax(observed - expected))
    fault = f"option {top + 1} is gold in {observed[top]:.0f} of {len(items)} items"
    return ItemNumber("gold_position_p", p, n=len(items), fault=fault if p < _ALPHA else "")


def _pooled(observed: np.ndarray, expected: np.ndarray) -> tuple[list[float], list[float]]:
    seen, due = [float(x) for x in observed], [float(x) for x in expected]
    while len(due) > 1 and due[-1] < _LEAST_EXPECTED:
        last_seen, last_due = seen.pop(), due.pop()
        seen[-1] += last_seen
        due[-1] += last_due
    return seen, due


def longest_is_gold(items: Sequence[Item]) -> ItemNumber:
    """How often the longest option is the right one.

    Returns:
        A share in [0, 1] of the items with one longest option (in characters), with its
        Wilson interval; chance is the mean of 1/k over them. A fault where the whole
        interval lies above chance, of 20 items at least. Undefined without any.

    Example:
        >>> items = [Item(str(i), "q?", ("a long one", "y"), 0) for i in range(40)]
        >>> number = longest_is_gold(items)
        >>> number.value, number.chance
        (1.0, 0.5)
    """
    hits, chances = 0, []
    for item in items:
        lengths = [len(option.strip()) for option in item.options]
        if lengths.count(max(lengths)) == 1:
            hits += lengths.index(max(lengths)) in item.golds
            chances.append(_chance(item))
    what = "items with one longest option"
    return _above_chance("longest_is_gold", hits, chances, what, _named_longest)


def _named_longest(share: float, chance: float) -> str:
    return f"the longest option is the gold one in {share:.0%} of items (chance {chance:.0%})"


def choices_only(items: Sequence[Item], seed: int = 0) -> ItemNumber:
    """How often a bag of words finds the gold without the question.

    A logistic regression over hashed words and pairs of words scores each option as gold or
    not; the option with the highest score is its answer, ties are drawn. Five folds by item;
    items that are the same in question and options count once.

    Args:
        items: At most 2,000 are used, drawn with the seed.
        seed: Of the draw, the folds and the ties.

    Returns:
        Accuracy in [0, 1] with its Wilson interval; chance is the mean of 1/k. A fault where
        the whole interval lies above chance. Undefined below 100 items.
    """
    known = {(item.question, item.options): item for item in items}
    usable = sorted(known.values(), key=lambda item: _key(item, seed))[:_MOST]
    if len(usable) < _FEWEST:
        note = f"undefined: {len(usable)} different items; needs {_FEWEST}"
        return ItemNumber("choices_only_accuracy", None, n=len(usable), note=note)
    hits = sum(_found(usable, seed))
    chances = [_chance(item) for item in usable]
    return _above_chance("choices_only_accuracy", hits, chances, "items", _named_shortcut)


def _named_shortcut(share: float, chance: float) -> str:
    return f"a bag of words finds {share:.0%} of golds without the question (chance {chance:.0%})"


def _chance(item: Item) -> float:
    return len(item.golds) / len(item.options)


def _key(item: Item, seed: int) -> bytes:
    text = "\x1f".join((str(seed), item.question, *item.options))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _found(items: Sequence[Item], seed: int) -> list[bool]:
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold

    words = HashingVectorizer(
        n_features=2**16, ngram_range=(1, 2), token_pattern=_WORD, alternate_sign=False
    )
    owner = np.array([i for i, item in enumerate(items) for _ in item.options])
    right = np.array([slot in item.golds for item in items for slot in range(len(item.options))])
    features = words.transform([option for item in items for option in item.options])
    draw, hits = random.Random(f"choices only {seed}"), [False] * len(items)
    starts = np.cumsum([0, *(len(item.options) for item in items)])
    folds = KFold(_FOLDS, shuffle=True, random_state=seed % 2**32)
    for train, test in folds.split(np.arange(len(items))):
        known = np.isin(owner, train)
        model = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0)
        model.fit(features[known], right[known])
        whole = model.decision_function(features)
        for i in test:
            scores = whole[starts[i] : starts[i + 1]]
            best = np.flatnonzero(scores >= scores.max() - 1e-12)
            hits[i] = int(best[below(len(best), draw)]) in items[i].golds
    return hits


def _above_chance(
    name: str,
    hits: int,
    chances: Sequence[float],
    what: str,
    fault: Callable[[float, float], str],
) -> ItemNumber:
    share = wilson(hits, len(chances), what)
    if share.value is None or share.low is None:
        return ItemNumber(name, None, note=share.reason)
    chance = float(np.mean(chances))
    proven = share.low > chance and share.n >= _FEWEST_TO_BLAME
    said = fault(share.value, chance) if proven else ""
    return ItemNumber(name, share.value, share.low, share.high, chance, share.n, said)
