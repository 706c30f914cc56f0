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

__all__ = ["SEEN", "Drafts"]

SEEN = 3
"""Newest tokens of a row that are looked up, or one fewer where these were never seen."""

_LOOKED_UP = (SEEN, SEEN - 1)

_FILLING, _FILLING_ELSEWHERE = {"cpu": 192}, 512
"""Tokens of one step beyond which each further one takes its full time."""

_STEP, _STEP_ELSEWHERE = {"cpu": 13}, 200
"""Tokens that take as long as a step takes however few it feeds: the weights are loaded."""

_ROW = 1 / 3
"""Tokens that take as long as one row's look back over its own keys."""

_MOST = 8
"""Tokens guessed at once: farther ones are seldom right, since each needs all before it."""

_MEMORY = 128
"""Guesses that a share is taken over, about; it follows a change of the work within them."""

_AT_FIRST = 0.8
"""Share before any guess: some thirty wrong ones in a row end the feeding to many rows."""


class Drafts:
    """What the rows of one family may say next.

    Args:
        groups: Places of the rows, by group; rows of one group learn from each other.
        kind: Of device.
        ends: Tokens that end a row: nothing is fed behind them, so they are no guess.

    Attributes:
        shares: How many of the last guesses were right, 0 to 1, by the number of tokens
            that were looked up. They are kept also while none is fed: whether one would have
            been right is seen for free.
    """

    def __init__(
        self, groups: Sequence[Sequence[int]], kind: str = "cpu", ends: Collection[int] = ()
    ) -> None:
        self._n_filling = _FILLING.get(kind, _FILLING_ELSEWHERE)
        self._step = _STEP.get(kind, _STEP_ELSEWHERE)
        self._ends = ends
        self._group = {place: number for number, group in enumerate(groups) for place in group}
        self._left = [len(group) for group in groups]
        self._seen: dict[int, dict[tuple[int, ...], int]] = {}
        self.shares = dict.fromkeys(_LOOKED_UP, _AT_FIRST)

    def learn(self, place: int, ids: Sequence[int], start: int) -> None:
        """Take up what a row holds, from its token ``start`` on."""
        if not self._n_filling:
            return
        seen = self._seen.setdefault(self._group[place], {})
        for n in _LOOKED_UP:
            for at in range(max(n, start), len(ids)):
                seen[tuple(ids[at - n : at])] = ids[at]

    def guess(self, place: int, newest: tuple[int, ...], n_rows: int, most: int) -> list[int]:
        """Tokens that may follow the newest of a row, as far as they are worth a try.

        Args:
            place: Of the row.
            newest: Its last `SEEN` tokens.
            n_rows: Rows of the step; the more there are, the less it saves.
            most: Tokens that the row has room for.
        """
        seen = self._seen.get(self._group[place], {})
        most = min(most, _MOST, self._n_filling // n_rows - 1)
        worth, likely = self.worth(n_rows), 1.0
        guessed: list[int] = []
        while len(guessed) < most:
            token, n = _told(seen, newest)
            likely *= self.shares.get(n, 0.0)
            if token is None or token in self._ends or likely < worth:
                break
            guessed.append(token)
            newest = (*newest[1:], token)
        return guessed

    def stop(self) -> None:
        """Guess and learn no more: rows are drawn, or memory just suffices for what must be fed."""
        self._n_filling = 0

    def worth(self, n_rows: int) -> float:
        """How likely a token must be right for feeding it to cost less than it saves.

        One that is right saves its row a step: its look back, and its part of what the step
        costs at all. One that is wrong costs its own time.

        Example:
            >>> drafts = Drafts([[0, 1]])
            >>> round(drafts.worth(n_rows=80), 2), round(drafts.worth(n_rows=4), 2)
            (0.67, 0.22)
        """
        return 1 / (1 + _ROW + self._step / n_rows)

    def heed(self, place: int, newest: tuple[int, ...], token: int) -> None:
        """See what really followed, and whether it would have been guessed."""
        if not self._n_filling:
            return
        seen = self._seen.setdefault(self._group[place], {})
        guessed, n = _told(seen, newest)
        if guessed is not None and guessed not in self._ends:
            self.shares[n] += ((guessed == token) - self.shares[n]) / _MEMORY
        for n in _LOOKED_UP:
            if len(newest) >= n:
                seen[newest[-n:]] = token

    def end(self, place: int) -> None:
        """Let go of what a group has said once its last row has ended."""
        group = self._group[place]
        self._left[group] -= 1
        if not self._left[group]:
            self._seen.pop(group, None)


def _told(seen: dict[tuple[int, ...], int], newest: tuple[int, ...]) -> tuple[int | None, int]:
    """What followed the most of the newest tokens that were seen before, and how many these are."""
    for n in _LOOKED_UP:
        token = seen.get(newest[-n:])
        if token is not None:
            return token, n
    return None, 0
