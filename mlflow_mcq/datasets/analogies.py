"""Four-choice analogies out of word pairs, after Shih et al. (2023).

A question is a pair, ``Athens : Greece``, and the options are four pairs of which one stands
in the same relation. In the *duplicate variant* three of the four options begin with one
word, so that a model that copies a frequent word from its prompt learns nothing by it; which
three is drawn without a look at the gold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mlflow_mcq.datasets.pairs import Pair, Relations, pair_text, read_pairs
from mlflow_mcq.draws import balanced_places, below, draw_for, shuffled
from mlflow_mcq.errors import DataError, SettingsError

__all__ = ["RESERVED_PAIRS", "analogy_items"]

RESERVED_PAIRS = 6
"""Pairs of each relation kept apart for in-context examples: the question, its answer and the
four pairs that distractors are made of, all of one relation under ``broken-pairs``."""

_N_OPTIONS = 4
_MOST_TRIES = 1000
_MOST_PAIRS = 400
Source = str | Path | Mapping[str, Iterable[Pair]]


def analogy_items(
    pairs: Source,
    per_relation: int = 100,
    distractors: str = "other-relation",
    duplicate: bool = False,
    seed: int = 0,
    part: str = "test",
) -> pd.DataFrame:
    """Make four-choice analogy items.

    The question and the right option are two pairs of one relation without a common word.
    No other option is right: none is a pair of the relation or of its kin, and none changes
    its word as the question does. The right option stands in each place equally often within
    a relation. Question, right option and its place depend on ``pairs``, ``seed`` and
    ``part`` alone, so that variants can be compared item by item.

    Args:
        pairs: A file in the word2vec layout, or pairs by relation.
        per_relation: Items of each relation.
        distractors: ``other-relation`` takes pairs of other relations; ``broken-pairs``
            (hard) takes words of the same relation, joined wrongly.
        duplicate: Whether three options share their first word.
        seed: Whole number.
        part: ``test``, or ``train`` for in-context examples; they share no pair.

    Returns:
        Columns ``id``, ``question`` (``"Athens : Greece"``), ``options``, ``answer`` (index
        from 0), ``relation`` and ``variant`` (``standard`` or ``duplicate``).

    Raises:
        SettingsError: A word or number is none of these.
        DataError: The pairs cannot be read, or are too few.

    Example:
        ``analogy_items("questions-words.txt", duplicate=True)``
    """
    _check(per_relation, distractors, duplicate, seed, part)
    given = read_pairs(pairs) if isinstance(pairs, (str, Path)) else pairs
    known = Relations.of(given)
    maker = _Maker(known, _part(known, seed, part), distractors, duplicate)
    rows = [row for name in known.pairs for row in _rows(maker, name, per_relation, (seed, part))]
    return pd.DataFrame(rows)


@dataclass(frozen=True, slots=True)
class _Maker:
    """What all items of one call have in common.

    Attributes:
        known: All pairs: what is right is judged by them, reserved or not.
        usable: The pairs of this part.
        distractors: Rule.
        duplicate: Variant.
    """

    known: Relations
    usable: Mapping[str, tuple[Pair, ...]]
    distractors: str
    duplicate: bool


def _rows(
    maker: _Maker, relation: str, n: int, key: tuple[int, str]
) -> Iterator[dict[str, object]]:
    questions = _questions(maker.usable[relation], n, relation, draw_for(*key, relation, "pairs"))
    places = balanced_places(n, _N_OPTIONS, draw_for(*key, relation, "gold"))
    for i, ((question, gold), place) in enumerate(zip(questions, places, strict=True)):
        draw = draw_for(*key, relation, i, maker.distractors, maker.duplicate)
        options = _options(maker, relation, (question, gold), place, draw)
        yield {
            "id": f"{relation}-{i:0{len(str(n - 1))}d}",
            "question": pair_text(question),
            "options": [pair_text(option) for option in options],
            "answer": place,
            "relation": relation,
            "variant": "duplicate" if maker.duplicate else "standard",
        }


def _questions(
    pairs: Sequence[Pair], n: int, relation: str, draw: random.Random
) -> list[tuple[Pair, Pair]]:
    if len(pairs) > _MOST_PAIRS:  # all twos of them would be millions
        pairs = shuffled(pairs, draw)[:_MOST_PAIRS]
    # A common word would give the answer away: Houston : Texas is as Dallas : Texas.
    twos = [(a, b) for a in pairs for b in pairs if not _words(a) & _words(b)]
    if len(twos) < n:
        raise DataError(
            f"relation {relation!r}",
            f"has {len(pairs)} pairs in this part, enough for {len(twos)} questions",
            n,
            "Ask for fewer with per_relation, or leave the relation out.",
        )
    return shuffled(twos, draw)[:n]


def _options(
    maker: _Maker, relation: str, asked: tuple[Pair, Pair], place: int, draw: random.Random
) -> list[Pair]:
    """The options in order: three wrong ones around the right one, all different."""
    question, gold = asked
    pool = [p for p in _pool(maker, relation) if not _words(p) & (_words(question) | _words(gold))]
    build = _duplicates if maker.duplicate else _RULES[maker.distractors]
    for _ in range(_MOST_TRIES):
        wrong = build(pool, gold, draw)
        texts = {pair_text(p).casefold() for p in (*wrong, gold, question)}
        right = any(maker.known.is_right(p, question, relation) for p in wrong)
        if len(wrong) == _N_OPTIONS - 1 and len(texts) == _N_OPTIONS + 1 and not right:
            return [*wrong[:place], gold, *wrong[place:]]
    raise DataError(
        f"relation {relation!r}",
        f"leaves too few pairs to draw three wrong options by {maker.distractors!r}",
        pair_text(question),
    )


def _pool(maker: _Maker, relation: str) -> list[Pair]:
    """Pairs whose words the wrong options are made of."""
    if maker.distractors == "broken-pairs":
        return list(maker.usable[relation])
    kin = maker.known.kin[relation]
    return [pair for name, some in maker.usable.items() if name not in kin for pair in some]


def _whole(pool: Sequence[Pair], gold: Pair, draw: random.Random) -> list[Pair]:
    """Three pairs as they are, without a common first or second word."""
    return _apart(pool, draw)


def _broken(pool: Sequence[Pair], gold: Pair, draw: random.Random) -> list[Pair]:
    """Three pairs with their second words handed on in a ring."""
    chosen = _apart(pool, draw)
    return [(a, b) for (a, _), (_, b) in zip(chosen, chosen[1:] + chosen[:1], strict=True)]


def _duplicates(pool: Sequence[Pair], gold: Pair, draw: random.Random) -> list[Pair]:
    """Wrong options of the duplicate variant.

    One of the four options is left out of the shared word, each with the same chance, so
    the right one is among the three that share it in three items of four, just as any other.
    """
    odd = below(_N_OPTIONS, draw)  # place _N_OPTIONS - 1 stands for the right option
    chosen = _apart(pool, draw, _N_OPTIONS)
    if len(chosen) < _N_OPTIONS:
        return []
    shared = chosen[3][0] if odd == _N_OPTIONS - 1 else gold[0]
    # Second words move on by one, so that none stands beside its own first word.
    seconds = [chosen[(i + 1) % 3][1] for i in range(3)]
    return [(chosen[i][0] if i == odd else shared, seconds[i]) for i in range(3)]


def _apart(pool: Sequence[Pair], draw: random.Random, n: int = 3) -> list[Pair]:
    """Draw n pairs without a common word; fewer where the draw was unlucky."""
    chosen: list[Pair] = []
    used: set[str] = set()
    for _ in range(8 * n if pool else 0):
        pair = pool[below(len(pool), draw)]
        if not _words(pair) & used:
            chosen.append(pair)
            used |= _words(pair)
        if len(chosen) == n:
            break
    return chosen


_RULES: dict[str, Callable[[Sequence[Pair], Pair, random.Random], list[Pair]]] = {
    "other-relation": _whole,
    "broken-pairs": _broken,
}


def _words(pair: Pair) -> set[str]:
    return {pair[0].casefold(), pair[1].casefold()}


def _part(known: Relations, seed: int, part: str) -> dict[str, tuple[Pair, ...]]:
    """The pairs of a part."""
    # What one relation reserves is reserved in all: a pair that stands in two relations
    # would otherwise be its own example.
    reserved: dict[str, list[Pair]] = {}
    for name, pairs in known.pairs.items():
        reserved[name] = shuffled(pairs, draw_for(seed, "reserved", name))[:RESERVED_PAIRS]
    if part == "train":
        return {name: tuple(pairs) for name, pairs in reserved.items()}
    held = {pair_text(p).casefold() for pairs in reserved.values() for p in pairs}
    return {
        name: tuple(p for p in pairs if pair_text(p).casefold() not in held)
        for name, pairs in known.pairs.items()
    }


def _check(per_relation: int, distractors: str, duplicate: bool, seed: int, part: str) -> None:
    if isinstance(per_relation, bool) or not isinstance(per_relation, int) or per_relation < 1:
        raise SettingsError("analogy.per_relation", "must be a whole number from 1", per_relation)
    if distractors not in _RULES:
        raise SettingsError(
            "analogy.distractors", f"must be one of {', '.join(_RULES)}", distractors
        )
    if not isinstance(duplicate, bool):
        raise SettingsError("analogy.duplicate", "must be true or false", duplicate)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SettingsError("analogy.seed", "must be a whole number", seed)
    if part not in ("test", "train"):
        raise SettingsError("analogy.part", "must be test or train", part)
