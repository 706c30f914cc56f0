"""What prompts have in common: a prefix tree over their token ids.

The rotations of an item share its stem, all items share their examples, and every chat
template adds a beginning of its own. A tree over token ids finds all of it, at any depth,
without knowing what an item or a template is.

In sorted order the tree is a list of numbers: how many tokens each prompt shares with the
one before it. A run of prompts that share at least ``d`` tokens is a node of depth ``d``.

========== =======================================================================
`Family`   prompts that go on from one long beginning, whose keys are held once
group      prompts with a stem of their own, kept together so that it is read once
`Piece`    the part of one prompt that is read, after what another has read for it
========== =======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["Family", "Piece", "common", "families_of", "passes_of", "pieces_of"]

_WORTH_HOLDING = 48
"""Fewer tokens than this are copied into each row faster than they are merged at each step."""

_MANY = 32
"""Fewer prompts than this do not pay for a change of the beginning that is held."""

_TOGETHER = 24
"""A node of at most so many prompts is one group: it always enters as a whole."""


@dataclass(slots=True)
class Family:
    """Prompts that share a beginning long enough to be held once.

    Attributes:
        n_shared: Its length in tokens; 0 where nothing is worth holding.
        groups: Places of the prompts, by group, the longest first.
    """

    n_shared: int
    groups: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Piece:
    """What is read of one prompt.

    Attributes:
        row: Number of the prompt in its batch.
        source: Number of the prompt that has read everything before ``begin``; None where
            that is the beginning held for all.
        begin: First token that is read, counted from the start of the prompt.
        end: One past the last.
    """

    row: int
    source: int | None
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


@dataclass(slots=True)
class _Node:
    depth: int
    first: int
    last: int = 0
    children: list[_Node] = field(default_factory=list)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens two prompts share.

    Example:
        >>> common([1, 2, 3, 4], [1, 2, 4])
        2
    """
    # Slices are compared in C; token by token in Python takes seconds for each thousand
    # prompts with examples.
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def families_of(heads: Sequence[Sequence[int]]) -> list[Family]:
    """Sort prompts into families and groups.

    Args:
        heads: Token ids of each prompt without its last one, which belongs to the first
            step of decoding.

    Returns:
        Every place exactly once. Families stand in sorted order, so that one that goes on
        from another's beginning comes after it.

    Example:
        >>> few_shot = [7] * 60
        >>> [family] = families_of([few_shot + [1, 2], few_shot + [3], few_shot + [1, 4]])
        >>> family.n_shared, sorted(family.groups[0])
        (60, [0, 1, 2])
    """
    order = sorted(range(len(heads)), key=lambda place: list(heads[place]))
    families: list[Family] = []
    for family, first, last in _spans(_tree([heads[place] for place in order]), len(order)):
        if not family.groups:
            families.append(family)
        family.groups.append(order[first:last])
    for family in families:
        family.groups.sort(key=lambda group: -max(len(heads[place]) for place in group))
    return families


def _tree(rows: Sequence[Sequence[int]]) -> _Node:
    """The nodes over sorted rows; rows that stand alone have none of their own."""
    stack = [_Node(0, 0)]
    for place in range(1, len(rows) + 1):
        depth = common(rows[place - 1], rows[place]) if place < len(rows) else 0
        first, below = place - 1, None
        while stack[-1].depth > depth:
            node = stack.pop()
            node.last, first = place, node.first
            # What ends here hangs below the next node down, or below one made now.
            if stack[-1].depth >= depth:
                stack[-1].children.append(node)
            else:
                below = node
        if stack[-1].depth < depth:
            stack.append(_Node(depth, first, children=[below] if below else []))
    stack[0].last = len(rows)
    return stack[0]


def _spans(root: _Node, n_rows: int) -> Iterator[tuple[Family, int, int]]:
    """Each group as (its family, first row, one past the last), in sorted order."""
    # A list in place of recursion: prompts that each begin with the one before make a
    # tree as deep as there are prompts.
    while len(root.children) == 1 and root.children[0].last - root.children[0].first == n_rows:
        root = root.children[0]
    waiting: list[tuple[_Node, Family]] = [(root, Family(0))]
    while waiting:
        node, family = waiting.pop()
        size = node.last - node.first
        many = size >= _MANY or (node is root and size > 1)
        if many and node.depth - family.n_shared >= _WORTH_HOLDING:
            family = Family(node.depth)
        if size <= _TOGETHER:
            if size:
                yield family, node.first, node.last
            continue
        inner: list[tuple[_Node, Family]] = []
        place = node.first
        for child in [*node.children, _Node(0, node.last, node.last)]:
            inner += [(_Node(0, row, row + 1), family) for row in range(place, child.first)]
            inner.append((child, family))
            place = child.last
        waiting += reversed(inner)


def pieces_of(heads: Sequence[Sequence[int]], start: int) -> list[Piece]:
    """Share the reading of sorted prompts, so that each token of the tree is read once.

    The first prompt below a node reads the node's tokens; the others copy them.

    Args:
        heads: Sorted; all share the first ``start`` tokens.
        start: Tokens that are held already.

    Returns:
        One piece for each prompt, in order. It may be empty: two prompts may differ in
        their last token alone.

    Example:
        >>> [(p.source, p.begin, p.end) for p in pieces_of([[9, 1, 2], [9, 1, 3]], 1)]
        [(None, 1, 3), (0, 2, 3)]
    """
    pieces: list[Piece] = []
    for row, head in enumerate(heads):
        begin = max(start, common(heads[row - 1], head)) if row else start
        if begin == start:
            pieces.append(Piece(row, None, start, len(head)))
            continue
        # Who read the token just before: the nearest prompt above that began earlier.
        source = row - 1
        while pieces[source].begin >= begin:
            source -= 1
        pieces.append(Piece(row, source, begin, len(head)))
    return pieces


def passes_of(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Share pieces among passes, each after those that have read what it goes on from.

    Args:
        pieces: Of `pieces_of`.
        most: Tokens of one pass. A longer piece has a pass to itself.

    Returns:
        Every piece exactly once; the fewest passes are not promised.

    Example:
        >>> pieces = pieces_of([[1, 2], [1, 3], [4, 5], [4, 6]], 0)
        >>> [[piece.row for piece in one] for one in passes_of(pieces, most=4)]
        [[0, 2], [1, 3]]
    """
    passes: list[list[Piece]] = []
    ready = [piece for piece in pieces if piece.source is None]
    waiting: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.source is not None:
            waiting.setdefault(piece.source, []).append(piece)
    while ready:
        # Like lengths together: a pass is as wide as its longest piece.
        now, later = _taken(sorted(ready, key=len, reverse=True), most)
        passes.append(now)
        ready = later + [freed for piece in now for freed in waiting.pop(piece.row, [])]
    return passes


def _taken(pieces: Sequence[Piece], most: int) -> tuple[list[Piece], list[Piece]]:
    """Pieces that fit into one pass, the first in any case, and the others."""
    room = most
    now: list[Piece] = []
    later: list[Piece] = []
    for piece in pieces:
        fits = len(piece) <= room or not now
        (now if fits else later).append(piece)
        room -= len(piece) * fits
    return now, later
