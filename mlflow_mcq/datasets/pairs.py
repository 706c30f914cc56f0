"""Word pairs by relation, as the word2vec analogy file holds them, and which are alike.

A distractor must be wrong. Two traps make one right by accident: a relation that is another
one in disguise (``capital-common-countries`` is a part of ``capital-world``), and one that
changes its word in the same way (``banana : bananas`` and ``decrease : decreases``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlflow_mcq.errors import DataError

__all__ = ["Pair", "Relations", "pair_text", "read_pairs"]

Pair = tuple[str, str]
"""Two words that stand in a relation, in its direction."""


def pair_text(pair: Pair) -> str:
    """How a pair is written in questions and options.

    Example:
        >>> pair_text(("Athens", "Greece"))
        'Athens : Greece'
    """
    return f"{pair[0]} : {pair[1]}"


@dataclass(frozen=True, slots=True)
class Relations:
    """All pairs of a file.

    Attributes:
        pairs: Different pairs by relation, in the order of the file.
        kin: By relation, the relations that may be the same: itself, and those that share
            a pair with it or with one of its kin.
    """

    pairs: Mapping[str, tuple[Pair, ...]]
    kin: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, pairs: Mapping[str, Iterable[Pair]]) -> Relations:
        """Gather pairs; repetitions are dropped.

        Raises:
            DataError: Something is no pair of two texts.

        Example:
            >>> r = Relations.of({"big": [("Rome", "Italy")], "all": [("Rome", "Italy")]})
            >>> sorted(r.kin["big"])
            ['all', 'big']
        """
        kept: dict[str, tuple[Pair, ...]] = {}
        for name, some in pairs.items():
            checked = [_checked(pair, name) for pair in some]
            kept[name] = tuple({_folded(pair): pair for pair in checked}.values())
        return cls(kept, _kin(kept))

    def is_right(self, candidate: Pair, question: Pair, relation: str) -> bool:
        """Whether a pair answers a question of a relation, or could be argued to.

        Args:
            candidate: The pair to judge.
            question: The pair that is asked about.
            relation: That the question belongs to.
        """
        return self.holds(candidate, relation) or (
            _change(candidate) is not None and _change(candidate) == _change(question)
        )

    def holds(self, candidate: Pair, relation: str) -> bool:
        """Whether a relation, or one of its kin, holds this pair."""
        wanted = _folded(candidate)
        return any(wanted == _folded(p) for name in self.kin[relation] for p in self.pairs[name])


def read_pairs(path: str | Path) -> dict[str, list[Pair]]:
    """Read a file in the word2vec layout: ``: relation`` lines, then four words a line.

    A line ``a b c d`` says that ``a : b`` is as ``c : d``; both pairs are taken.

    Raises:
        DataError: The file cannot be read, or a line is of another form; names it.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"pairs file {path.name!r}", f"cannot be read ({error})") from error
    found: dict[str, list[Pair]] = {}
    current: list[Pair] | None = None
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if words[0].startswith(":"):
            current = found.setdefault(" ".join(words).lstrip(": "), [])
        elif len(words) != 4 or current is None:
            raise DataError(
                f"pairs file {path.name!r}, line {number}",
                "must hold four words, below a line that names a relation",
                line,
                'As in ": capital" and "Athens Greece Oslo Norway".',
            )
        else:
            current += [(words[0], words[1]), (words[2], words[3])]
    if not any(found.values()):
        raise DataError(f"pairs file {path.name!r}", "holds no pairs")
    return found


def _checked(pair: object, relation: str) -> Pair:
    words = tuple(pair) if isinstance(pair, (tuple, list)) else ()
    if len(words) != 2 or not all(isinstance(word, str) and word.strip() for word in words):
        raise DataError(f"relation {relation!r}", "a pair is two texts", pair)
    return words[0].strip(), words[1].strip()


def _folded(pair: Pair) -> Pair:
    return pair[0].casefold(), pair[1].casefold()


def _change(pair: Pair) -> tuple[str, str] | None:
    """How the first word becomes the second: (ending taken off, ending put on).

    None where the words have too little in common: the capital of a country is no ending.
    """
    first, second = _folded(pair)
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return (first[shared:], second[shared:]) if 2 * shared >= len(first) and shared else None


def _kin(pairs: Mapping[str, tuple[Pair, ...]]) -> dict[str, frozenset[str]]:
    kin = {name: {name} for name in pairs}
    holders: dict[Pair, str] = {}
    for name, some in pairs.items():
        for pair in map(_folded, some):
            other = holders.setdefault(pair, name)
            if kin[other] is not kin[name]:
                joined = kin[other] | kin[name]
                kin |= dict.fromkeys(joined, joined)
    return {name: frozenset(members) for name, members in kin.items()}
