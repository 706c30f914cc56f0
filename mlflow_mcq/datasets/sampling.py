"""Which rows are measured: a part drawn with a seed, and a share of the work.

The first N rows of a file are no sample: data files are sorted by subject, source or
length more often than not.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mlflow_mcq.datasets.frame import Row

__all__ = ["Keys", "Places", "draw", "share"]

Places = npt.NDArray[np.intp]

_SUBJECTS = (
    "subject", "category", "subject_name", "subcategory", "discipline", "subfield", "domain",
    "topic", "topic_name", "task", "dialect", "language",
)  # fmt: skip
_SPELT = tuple(spelt for name in _SUBJECTS for spelt in (name, name.capitalize()))


class Keys:
    """What a draw must know of each row, in some 24 bytes: the rows themselves may be gone.

    Args:
        seed: Of the draw.
        n_at_most: No more rows than this will come; None where nobody knows.

    Example:
        >>> from mlflow_mcq.records import Item
        >>> keys = Keys()
        >>> for i in range(100):
        ...     keys.add(Row(Item(str(i), "q?", ("x", "y"), i % 2), {}, ""))
        >>> len(keys.taken(10)), len(keys.taken(10, "1/5"))
        (10, 2)
    """

    def __init__(self, seed: int = 0, n_at_most: int | None = None) -> None:
        self._seed = seed
        # A column with more values than this is a title and no subject, however many rows come.
        self._most = math.inf if n_at_most is None else 3 * math.sqrt(n_at_most)
        # An id is known by the first sixteen bytes of its hash: no two ids share those.
        self._high, self._low = array("Q"), array("Q")
        self._kinds: dict[Hashable, int] = {}
        self._kind = array("i")
        self._values: dict[str, dict[str, int]] = {}
        self._codes: dict[str, array[int]] = {}
        self._titles: set[str] = set()

    def __len__(self) -> int:
        return len(self._high)

    def add(self, row: Row) -> None:
        """Take note of the next row."""
        item = row.item
        head = _hash(self._seed, item.id)[:16]
        self._add_subjects(item.meta)
        self._high.append(int.from_bytes(head[:8], "big"))
        self._low.append(int.from_bytes(head[8:], "big"))
        kind = (len(item.options), item.golds)
        self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))

    def _add_subjects(self, meta: Any) -> None:
        for name in meta.keys() & _KNOWN if meta else ():
            if name not in self._titles and name not in self._codes:
                self._values[name], self._codes[name] = {}, array("i", [-1]) * len(self)
        for name, codes in list(self._codes.items()):
            values = self._values[name]
            codes.append(values.setdefault(meta[name], len(values)) if name in meta else -1)
            if len(values) > self._most:
                self._titles.add(name)
                del self._codes[name], self._values[name]

    @cached_property
    def _ids(self) -> tuple[Places, Places, Places]:
        """By row the number of its id; by id, in the order of the data, first and last row."""
        high = np.sort(np.asarray(self._high))
        if not (high[1:] == high[:-1]).any():
            # No id comes twice, as in nearly every file: half of the memory, and of the time.
            every = np.arange(len(high))
            return every, every, every
        del high
        return self._repeated()

    def _repeated(self) -> tuple[Places, Places, Places]:
        """As `_ids`, where rows may share an id."""
        high, low = np.asarray(self._high), np.asarray(self._low)
        order = np.lexsort((low, high))  # stable: rows of one id stay in order
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.diff(high[order]) != 0
        new[1:] |= np.diff(low[order]) != 0
        starts = np.flatnonzero(new)
        first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
        by_place = np.argsort(first)
        rank = np.empty_like(by_place)
        rank[by_place] = np.arange(len(first))
        number = np.empty_like(order)
        number[order] = rank[np.cumsum(new) - 1]
        return number, first[by_place], last[by_place]

    @property
    def n_items(self) -> int:
        """Different ids."""
        return len(self._ids[1])

    def n_ids_of(self, rows: Sequence[int] | Places) -> int:
        """Different ids of some rows."""
        return len(np.unique(self._ids[0][np.asarray(rows, dtype=np.intp)]))

    def kinds(self) -> dict[tuple[int, tuple[int, ...]], int]:
        """How many items there are of each (number of options, golds), the first item's first.

        Where several rows carry one id, the last of them speaks for it.
        """
        known: list[Any] = list(self._kinds)
        found = _of(self._kind, self._ids[2])
        kinds, numbers = np.unique(found, return_counts=True)
        counted = dict(zip(kinds.tolist(), numbers.tolist(), strict=True))
        return {known[kind]: counted[kind] for kind in dict.fromkeys([int(found[0]), *counted])}

    def golds(self) -> set[int]:
        """Which options are the first right one somewhere."""
        known: list[Any] = list(self._kinds)
        return {golds[0] for _, golds in known}

    def taken(self, limit: int | None, shard: str | None = None) -> Places:
        """The rows that are measured, by count and in order; see `draw` and `share`."""
        number, first, _ = self._ids
        mine = np.ones(len(first), dtype=bool)
        if limit is not None and limit < len(first):
            ordered = self._ordered(first)
            # A step in whole numbers of 1/limit: no rounding can take an item twice or miss one.
            start = int(_hash(self._seed, "start").hex(), 16) % len(ordered)
            mine[:] = False
            mine[ordered[[(start + k * len(ordered)) // limit for k in range(limit)]]] = True
        if shard is not None:
            part, n_parts = map(int, shard.split("/"))
            ids = np.flatnonzero(mine)
            mine[:] = False
            mine[ids[part - 1 :: n_parts]] = True
        return np.flatnonzero(mine[number])

    def _ordered(self, first: Places) -> Places:
        """The ids by stratum, and by their hash within it."""
        subject, kinds = self._subject(first), list[Any](self._kinds)
        names, codes = subject or (("",), np.zeros(1, dtype=np.intp))
        pairs = codes * len(kinds) + _of(self._kind, first)
        known = np.unique(pairs)
        strata = [(names[pair // len(kinds)], *kinds[pair % len(kinds)]) for pair in known.tolist()]
        rank = np.empty(len(strata), dtype=np.int32)
        rank[sorted(range(len(strata)), key=strata.__getitem__)] = np.arange(len(strata))
        stratum = rank[np.searchsorted(known, pairs)]
        del pairs
        return np.lexsort((_of(self._low, first), _of(self._high, first), stratum))

    def _subject(self, first: Places) -> tuple[Sequence[str], Places] | None:
        """The subjects and which of them each item has, where the data names some.

        A column in which nearly every item says something else is a title and no subject.
        """
        for name in _SPELT:
            if name not in self._codes:
                continue
            codes = _of(self._codes[name], first)
            n_values = len(np.unique(codes))
            if codes.min() >= 0 and 1 < n_values <= math.sqrt(len(first)) * 3:
                return list(self._values[name]), codes.astype(np.intp)
        return None


_KNOWN = frozenset(_SPELT)


def _of(column: array[int], rows: Places) -> npt.NDArray[Any]:
    """The values of some rows, in order; without a copy where these are all of them."""
    values = np.asarray(column)
    return values if len(rows) == len(values) else values[rows]


def draw(rows: Sequence[Row], limit: int | None, seed: int = 0) -> list[Row]:
    """Draw items, each with the same chance and every stratum with its share.

    Items are put in order by stratum (subject where the data names one, then number of
    options and gold position), and by a seeded hash of their id within it; then every
    (n / limit)-th is taken from a seeded start. A stratum with the share q of the items gets
    q * limit of the places, rounded down or up (systematic sampling: Cochran, Sampling
    Techniques, 1977, ch. 8). The draw depends on ids and seed alone, not on the order of the
    rows.

    Args:
        rows: Rows of one id are drawn together.
        limit: Number of items; None, or as many as there are, keeps all.
        seed: Another seed draws another sample.

    Returns:
        The rows drawn, in the order of the data.

    Example:
        >>> from collections import Counter
        >>> from mlflow_mcq.records import Item
        >>> rows = [Row(Item(str(i), "q?", ("x", "y"), i % 2), {}, "") for i in range(100)]
        >>> Counter(row.item.gold for row in draw(rows, 10))
        Counter({0: 5, 1: 5})
    """
    return [rows[place] for place in _keys(rows, seed).taken(limit)]


def share(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """The i-th of n shares of the items, dealt out in turn; ``"1/1"`` and None are all.

    Example:
        >>> from mlflow_mcq.records import Item
        >>> rows = [Row(Item(id_, "q?", ("x", "y"), 0), {}, "") for id_ in "abcde"]
        >>> [[row.item.id for row in share(rows, shard)] for shard in ("1/2", "2/2")]
        [['a', 'c', 'e'], ['b', 'd']]
    """
    return [rows[place] for place in _keys(rows, 0).taken(None, shard)]


def _keys(rows: Sequence[Row], seed: int) -> Keys:
    keys = Keys(seed)
    for row in rows:
        keys.add(row)
    return keys


def _hash(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"limit\x1f{seed}\x1f{text}".encode("utf-8", "surrogatepass")).digest()
