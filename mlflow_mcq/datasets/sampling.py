"""Which rows are measured: a part drawn with a seed, and a share of the work.

The first N rows of a file are no sample: data files are sorted by subject, source or
length more often than not.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Sequence

from mlflow_mcq.datasets.frame import Row

__all__ = ["draw", "share", "strata"]

_SUBJECTS = (
    "subject", "category", "subject_name", "subcategory", "discipline", "subfield", "domain",
    "topic", "topic_name", "task", "dialect", "language",
)  # fmt: skip


def draw(rows: Sequence[Row], limit: int | None, seed: int = 0) -> list[Row]:
    """Draw items, each with the same chance and every stratum with its share.

    Items are put in order by stratum, by number of options and gold position within it,
    and by a seeded hash of their id at last; then every (n / limit)-th is taken from a
    seeded start. A stratum with the share q of the items gets q * limit of the places,
    rounded down or up (systematic sampling: Cochran, Sampling Techniques, 1977, ch. 8).
    The draw depends on ids and seed alone, not on the order of the rows.

    Args:
        rows: Rows of one id are drawn together.
        limit: Number of items; None, or as many as there are, keeps all.
        seed: Another seed draws another sample.

    Returns:
        The rows drawn, in the order of the data.

    Example:
        >>> from mlflow_mcq.records import Item
        >>> rows = [Row(Item(str(i), "q?", ("x", "y"), i % 2), {}, "") for i in range(100)]
        >>> Counter(row.item.gold for row in draw(rows, 10))
        Counter({0: 5, 1: 5})
    """
    first = {row.item.id: row for row in reversed(rows)}
    if limit is None or limit >= len(first):
        return list(rows)
    stratum = strata(list(first.values()))
    ordered = sorted(first, key=lambda id_: (stratum[id_], _hash(seed, id_)))
    # A step in whole numbers of 1/limit: no rounding can take an item twice or miss one.
    start = int(_hash(seed, "start"), 16) % len(ordered)
    taken = {ordered[(start + k * len(ordered)) // limit] for k in range(limit)}
    return [row for row in rows if row.item.id in taken]


def strata(rows: Sequence[Row]) -> dict[str, tuple[Hashable, ...]]:
    """The stratum of each item: subject where the data names one, then options and gold.

    A column in which nearly every item says something else is a title and no subject.
    """
    name = _subject_column(rows)
    return {
        row.item.id: (
            row.item.meta.get(name, "") if name else "",
            len(row.item.options),
            row.item.golds,
        )
        for row in rows
    }


def share(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """The i-th of n shares of the items, dealt out in turn; ``"1/1"`` and None are all.

    Example:
        >>> from mlflow_mcq.records import Item
        >>> rows = [Row(Item(id_, "q?", ("x", "y"), 0), {}, "") for id_ in "abcde"]
        >>> [[row.item.id for row in share(rows, shard)] for shard in ("1/2", "2/2")]
        [['a', 'c', 'e'], ['b', 'd']]
    """
    if shard is None:
        return list(rows)
    part, n_parts = map(int, shard.split("/"))
    ids = list(dict.fromkeys(row.item.id for row in rows))
    mine = set(ids[part - 1 :: n_parts])
    return [row for row in rows if row.item.id in mine]


def _subject_column(rows: Sequence[Row]) -> str | None:
    for name in _SUBJECTS:
        for spelt in (name, name.capitalize()):
            values = Counter(row.item.meta[spelt] for row in rows if spelt in row.item.meta)
            if sum(values.values()) == len(rows) and 1 < len(values) <= math.sqrt(len(rows)) * 3:
                return spelt
    return None


def _hash(seed: int, text: str) -> str:
    return hashlib.sha256(f"limit\x1f{seed}\x1f{text}".encode("utf-8", "surrogatepass")).hexdigest()
