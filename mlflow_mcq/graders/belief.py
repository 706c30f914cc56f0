"""Whom to believe: which grader speaks for an arm where several have read it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["WRONG_ON_PURPOSE", "by_belief"]

# Similarity and the analogy match before any regex: where they read, the page may have no
# letters that a regex could find.
_FIRST = ("judge", "similarity", "analogy", "regex_bounded")
WRONG_ON_PURPOSE = "regex_naive"


def by_belief(graders: Iterable[str]) -> list[str]:
    """Graders, the most believed first.

    The judge, then similarity, the analogy match, the regex that knows where a letter stands
    alone, any other in the order given; the naive regex, which is wrong on purpose, last.

    Example:
        >>> by_belief(["regex_naive", "regex_bounded", "mine", "judge"])
        ['judge', 'regex_bounded', 'mine', 'regex_naive']
    """
    ranks = {name: place for place, name in enumerate(_FIRST)}
    ranks[WRONG_ON_PURPOSE] = len(_FIRST) + 1
    return sorted(graders, key=lambda name: ranks.get(name, len(_FIRST)))
