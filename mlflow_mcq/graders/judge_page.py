"""The judge's own list of options: what stands in which line, and under which name.

A judge prefers places as other models do. Its list may therefore stand in an order of
its own, in which two things must not get lost: the letter that the candidate saw, since
its reply speaks of that letter, and the order that it saw, since "the last one" speaks
of that order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.orientations import fixed_options, letters_for, orientations_for
from mlflow_mcq.records import Generation

__all__ = ["JudgePage", "page_of"]


@dataclass(frozen=True, slots=True)
class JudgePage:
    """The options of one row as the judge sees them.

    Attributes:
        lines: ``lines[line]`` is the slot (of the candidate's page) shown in that line.
        names: The letters that the judge may answer with, in the order of the alphabet.
        lettered: They are the candidate's own letters, so that each goes with its slot
            wherever it stands; otherwise they are the judge's only and go with the lines.
        shuffled: The lines are in an order of the judge's own, which it must be told.

    Example:
        >>> page = JudgePage((2, 0, 1), ("A", "B", "C"), lettered=True, shuffled=True)
        >>> page.labels, page.seen, page.slots
        (('C', 'A', 'B'), ('A', 'B', 'C'), (0, 1, 2))
        >>> page = JudgePage((2, 0, 1), ("A", "B", "C"), lettered=False, shuffled=True)
        >>> page.labels, page.seen, page.slots
        (('A', 'B', 'C'), ('B', 'C', 'A'), (2, 0, 1))
    """

    lines: tuple[int, ...]
    names: tuple[str, ...]
    lettered: bool
    shuffled: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The letter of each line, from the top."""
        return tuple(self.names[slot] for slot in self.lines) if self.lettered else self.names

    @property
    def slots(self) -> tuple[int, ...]:
        """The slot that each of ``names`` stands for.

        Replies are read against ``names`` and not against ``labels``: the alphabet is the
        same for all rows, so the tables of the parser are built once.
        """
        return tuple(range(len(self.lines))) if self.lettered else self.lines

    @property
    def seen(self) -> tuple[str, ...]:
        """The letters in the order in which the candidate saw their options."""
        labels = self.labels
        return tuple(labels[self.lines.index(slot)] for slot in range(len(self.lines)))


def page_of(generation: Generation, turn: int | None = None, wording: str = "") -> JudgePage:
    """The judge's list for one row.

    Args:
        generation: What is to be read.
        turn: None keeps the order that the candidate saw. Otherwise the number of the
            vote: turn 0 is a shuffle of this row alone, the next ones turn it by a line
            each, so that over as many votes as there are options every option stands in
            every line once; then comes another shuffle.
        wording: Digest of the judge's wording; enters the seed.

    Returns:
        The page; the same arguments give the same one on any machine. Options whose
        meaning depends on their place ("All of the above") keep their line.
    """
    prompt = generation.prompt
    n_options = len(prompt.shown)
    lettered = bool(prompt.labels)
    names = prompt.labels or letters_for(n_options)
    if turn is None:
        return JudgePage(tuple(range(n_options)), names, lettered)
    fixed = _fixed(prompt.item.options)
    free = [s for s, option in enumerate(prompt.orientation.order) if option not in fixed]
    lines = list(range(n_options))
    for line, slot in zip(free, _turned(free, generation, turn, wording), strict=True):
        lines[line] = slot
    return JudgePage(tuple(lines), names, lettered, shuffled=True)


@lru_cache(maxsize=4096)
def _fixed(options: tuple[str, ...]) -> frozenset[int]:
    return fixed_options(options)


def _turned(free: list[int], generation: Generation, turn: int, wording: str) -> list[int]:
    if len(free) < 2:
        return free
    block, shift = divmod(turn, len(free))
    seed = json.dumps([*generation.key, wording, block])
    drawn = orientations_for(len(free), "shuffles:1", item_id=seed)[0].order
    return [free[place] for place in drawn[shift:] + drawn[:shift]]
