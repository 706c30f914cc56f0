"""Seeded draws that come out the same on any machine and any version of Python.

Built on `random.Random.random` alone: it is the one method whose sequence Python promises
to keep. `shuffle`, `sample` and `choice` have changed before.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["balanced_places", "below", "draw_for", "lot", "shuffled"]

T = TypeVar("T")


def draw_for(*key: object) -> random.Random:
    """A source of randomness of this key's own, whatever else was drawn before.

    Example:
        >>> draw_for(0, "item", 1).random() == draw_for(0, "item", 1).random()
        True
    """
    return random.Random("\x1f".join(map(str, key)))


def lot(seed: int, *key: object) -> bytes:
    """What a thing draws in a lottery: who sorts by it and takes the first has a sample.

    The sample depends on the seed and on the things, not on the order they came in.

    Args:
        seed: Of the sample.
        key: What names the thing; texts and numbers.
    """
    return hashlib.sha256(json.dumps([seed, *key], ensure_ascii=True).encode()).digest()


def below(n: int, draw: random.Random) -> int:
    """A whole number from 0 to n - 1."""
    return int(draw.random() * n)


def shuffled(things: Sequence[T], draw: random.Random) -> list[T]:
    """The things in a random order (Fisher and Yates); nothing is changed in place.

    Example:
        >>> sorted(shuffled("abc", draw_for(0)))
        ['a', 'b', 'c']
    """
    order = list(things)
    for i in range(len(order) - 1, 0, -1):
        j = below(i + 1, draw)
        order[i], order[j] = order[j], order[i]
    return order


def balanced_places(n: int, n_places: int, draw: random.Random) -> list[int]:
    """Draw n places from 0 to ``n_places - 1``, each as often as any other, in random order.

    Where n is no multiple, the places that occur once more are drawn too: otherwise the
    first ones always would, and a model that prefers A would gain by it.

    Example:
        >>> places = balanced_places(10, 4, draw_for(0))
        >>> sorted(places.count(place) for place in range(4))
        [2, 2, 3, 3]
    """
    places = shuffled(range(n_places), draw)
    return shuffled([places[i % n_places] for i in range(n)], draw)
