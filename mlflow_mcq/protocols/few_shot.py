"""Few-shot examples: which ones stand before an item, and where their gold stands.

The labels of the examples are a bias of their own, so where their gold stands is never left
to the order of a file. Everything is drawn from seeds and ids alone.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlflow_mcq.draws import below
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.orientations import MOST_SLOTS, check_scheme, fixed_options, gold_at, letters_for
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols.protocol import Shot, Shots
from mlflow_mcq.records import Item, Orientation

__all__ = ["few_shot", "same_question"]

_ALL_AT = re.compile(r"all-at:([A-Z]{1,2})")


def same_question(one: str, other: str) -> bool:
    """Whether two questions are the same but for width, case and white space.

    Example:
        >>> same_question("Which  METAL?", "which metal?"), same_question("a", "b")
        (True, False)
    """
    return _plain(one) == _plain(other)


def _plain(question: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split())


def few_shot(pool: Sequence[Item], settings: FewShotSettings, scheme: str = "as-is") -> Shots:
    """The examples of every item, as a function of it.

    Args:
        pool: Where examples are taken from. An item is never its own example: neither by
            its id (unless the ids merely number the rows of the pool) nor by its question.
        settings: How many, and where their gold stands.
        scheme: The orientations of the items; examples are moved with them where that is set.

    Returns:
        A function of an item; the same for all its orientations, so that they differ in
        nothing else.

    Raises:
        SettingsError: Here where no example of the pool can be placed as set; by the
            function where too few are left for an item.

    Example:
        >>> pool = [Item(f"t{n}", f"Example {n}?", ("yes", "no"), n % 2) for n in range(4)]
        >>> shots = few_shot(pool, FewShotSettings(rows=[{}], k=2, gold="all-at:B"))
        >>> [s.orientation.slot_of(s.item.gold) for s in shots(Item("q", "?", ("x", "y"), 0))]
        [1, 1]
    """
    placed = _placement(settings, scheme)
    usable = [item for item in pool if _fits(item, settings, placed)]
    if len(usable) < settings.k:
        raise SettingsError(
            "few_shot",
            f"needs {settings.k} examples, and {len(usable)} of {len(pool)} in the pool can be "
            f"placed as set (gold: {settings.gold})",
            possible="An option that speaks of the others, or one of several right ones, cannot be "
            "moved; use gold: as-is, a "
            "smaller k or a larger pool.",
        )
    numbered = all(item.id == str(place) for place, item in enumerate(pool))
    questions = [_plain(item.question) for item in usable]

    def shots(item: Item) -> tuple[Shot, ...]:
        asked = _plain(item.question)
        own = {} if numbered else {item.id}
        key = [settings.seed, item.id] if settings.per_item else [settings.seed]
        draw = random.Random(json.dumps(["few-shot", *key]))
        chosen = []
        for place in _drawn(len(usable), draw):
            if usable[place].id not in own and questions[place] != asked:
                chosen.append(usable[place])
            if len(chosen) == settings.k:
                return _shots(chosen, settings, placed, draw)
        raise SettingsError(
            f"few_shot of item {item.id!r}",
            f"needs {settings.k} examples that are not the item itself",
            len(chosen),
            "Use a smaller k or a larger pool.",
        )

    return shots


class _Placement(NamedTuple):
    """Where the gold of the examples goes: one slot or a balance of all, and how."""

    slot: int | None
    how: str


def _placement(settings: FewShotSettings, scheme: str) -> _Placement:
    if settings.moved:
        word, slot = check_scheme(scheme)
        return _Placement(slot, word.partition(":")[2])
    one = _ALL_AT.fullmatch(settings.gold)
    if one:
        return _Placement(letters_for(MOST_SLOTS).index(one[1]), "swap")
    return _Placement(None, "" if settings.gold == "as-is" else "swap")


def _fits(item: Item, settings: FewShotSettings, placed: _Placement) -> bool:
    if settings.rationale and not item.meta.get(settings.rationale):
        return False  # an example that shows no reasoning teaches to leave it out
    if not placed.how:
        return True
    movable = not fixed_options(item.options) and not item.also_right
    return movable and (placed.slot or 0) < len(item.options)


def _drawn(n_examples: int, draw: random.Random) -> Iterator[int]:
    """All places in a drawn order, one at a time: a pool may be far larger than k."""
    moved: dict[int, int] = {}
    for place in range(n_examples):
        other = place + below(n_examples - place, draw)
        yield moved.get(other, other)
        moved[other] = moved.get(place, place)


def _shots(
    chosen: Sequence[Item],
    settings: FewShotSettings,
    placed: _Placement,
    draw: random.Random,
) -> tuple[Shot, ...]:
    used: Counter[int] = Counter()
    shots = []
    for item in chosen:
        orientation = Orientation(0, "as-is", tuple(range(len(item.options))))
        if placed.how:
            slot = placed.slot
            slot = _least_used(used, len(item.options), draw) if slot is None else slot
            used[slot] += 1
            orientation = gold_at(item, slot, placed.how)
        shots.append(Shot(item, orientation, item.meta.get(settings.rationale or "", "")))
    return tuple(shots)


def _least_used(used: Counter[int], n_slots: int, draw: random.Random) -> int:
    fewest = min(used[slot] for slot in range(n_slots))
    free = [slot for slot in range(n_slots) if used[slot] == fewest]
    return free[below(len(free), draw)]
