"""Guesses at the next tokens of a row, read off its prompt and its siblings' answers.

Answers repeat what stands on the page, and the orientations of one item are answered much
alike. The newest tokens of a row are looked up in what its group has said and read; what
followed them there is fed beside the row's own token, and the model's choice decides whether
it stands (speculative decoding by lookup: Saxena, "Prompt Lookup Decoding", 2023). A guess
never changes an answer: one that the model does not choose is dropped. It saves steps, in
which a device that waits for its memory has room for more tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["SEEN", "Drafts", "filling"]

SEEN = 3
"""Newest tokens of a row that are looked up: after two of them one guess in four is wrong."""

_FILLING, _FILLING_ELSEWHERE = {"cpu": 192}, 512
"""Tokens of one step beyond which each further one takes its full time."""

_MOST = 4
"""Tokens guessed at once: farther ones are seldom right, since each needs all before it."""

_WORTH = 0.6
"""Share of right guesses from which feeding them costs less than the steps that they save."""

_MEMORY = 128
"""Guesses that the share is taken over, about; it follows a change of the work within them."""

_AT_FIRST = 0.8
"""Share before any guess: some thirty wrong ones in a row end the feeding."""


class Drafts:
    """What the rows of one family may say next.

    Args:
        groups: Places of the rows, by group; rows of one group learn from each other.
        n_filling: Tokens of one step that guesses may fill up.
        ends: Tokens that end a row: nothing is fed behind them, so they are no guess.

    Attributes:
        share: How many of the last guesses were right, 0 to 1. It is kept also while none
            is fed: whether one would have been right is seen for free.
    """

    def __init__(
        self, groups: Sequence[Sequence[int]], n_filling: int, ends: Collection[int] = ()
    ) -> None:
        self._n_filling, self._ends = n_filling, ends
        self._group = {place: number for number, group in enumerate(groups) for place in group}
        self._left = [len(group) for group in groups]
        self._seen: dict[int, dict[tuple[int, ...], int]] = {}
        self.share = _AT_FIRST

    def learn(self, place: int, ids: Sequence[int], start: int) -> None:
        """Take up what a row holds, from its token ``start`` on."""
        seen = self._seen.setdefault(self._group[place], {})
        for at in range(max(SEEN, start), len(ids)):
            seen[tuple(ids[at - SEEN : at])] = ids[at]

    def guess(self, place: int, newest: tuple[int, ...], most: int) -> list[int]:
        """At most so many tokens that may follow the newest of a row."""
        seen = self._seen.get(self._group[place], {})
        guessed: list[int] = []
        while len(guessed) < most:
            token = seen.get(newest)
            if token is None or token in self._ends:
                break
            guessed.append(token)
            newest = (*newest[1:], token)
        return guessed

    def heed(self, place: int, newest: tuple[int, ...], token: int) -> None:
        """See what really followed, and whether it would have been guessed."""
        seen = self._seen.setdefault(self._group[place], {})
        guessed = seen.get(newest)
        if guessed is not None and guessed not in self._ends:
            self.share += ((guessed == token) - self.share) / _MEMORY
        seen[newest] = token

    def most(self, n_rows: int) -> int:
        """Tokens to guess for each of so many rows; none where too few guesses were right.

        Example:
            >>> drafts = Drafts([[0], [1]], n_filling=200)
            >>> drafts.most(n_rows=50), drafts.most(n_rows=150)
            (3, 0)
        """
        return min(_MOST, self._n_filling // n_rows - 1) if self.share >= _WORTH else 0

    def end(self, place: int) -> None:
        """Let go of what a group has said once its last row has ended."""
        group = self._group[place]
        self._left[group] -= 1
        if not self._left[group]:
            self._seen.pop(group, None)


def filling(kind: str) -> int:
    """Tokens that fill a step on a kind of device."""
    return _FILLING.get(kind, _FILLING_ELSEWHERE)
