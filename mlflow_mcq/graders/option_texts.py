"""Option texts as a table: which slots show exactly this text.

Exactly, but for a full stop, a sentence capital and wrappers around the reply. Nothing
more is folded: CO is not Co, and the interval [0, 1] is not (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.labels import fold, peel, variants

__all__ = ["OptionTexts", "looking_like", "option_texts", "own_text"]

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class OptionTexts:
    """Option texts by slot, ready to be looked up.

    Attributes:
        exact: Slots by text, white space folded.
        loose: Slots by text without its full stop and sentence capital.
        longest: Characters of the longest option.
    """

    exact: dict[str, frozenset[int]]
    loose: dict[str, frozenset[int]]
    longest: int

    def find(self, text: str) -> frozenset[int]:
        """The slots that show this text; several where options repeat."""
        if len(text) > self.longest and len(peel(text, brackets=False)) > self.longest + 1:
            return _NOBODY  # longer than any option with a full stop: most prose ends here
        written = variants(text)
        for table, keys in ((self.exact, written), (self.loose, map(_loose, written))):
            for key in keys:
                if key in table:
                    return table[key]
        return _NOBODY

    def cut_short(self, text: str) -> bool:
        """Whether another option goes on where this text ends."""
        start = _loose(peel(text, brackets=False))
        return sum(option.startswith(start) for option in self.loose) > 1


def _loose(text: str) -> str:
    """A text without its full stop and its sentence capital.

    Only a first letter before a lower-case one, and the article, are folded: CO is not Co.
    """
    text = text.removesuffix(".")
    if len(text) > 3 and (text[1].islower() or text[:2] == "A "):
        return text[0].lower() + text[1:]
    return text


@lru_cache(maxsize=4096)
def option_texts(options: tuple[str, ...]) -> OptionTexts:
    """Build the table of one option set, once.

    Example:
        >>> sorted(option_texts(("iron", "tin", "iron")).find('"Iron."'))
        [0, 2]
    """
    tables: tuple[dict[str, set[int]], ...] = ({}, {})
    folded = [fold(option) for option in options]
    for slot, text in enumerate(folded):
        for table, key in zip(tables, (text, _loose(text)), strict=True):
            if key:
                table.setdefault(key, set()).add(slot)
    exact, loose = ({k: frozenset(v) for k, v in t.items()} for t in tables)
    return OptionTexts(exact, loose, max(map(len, folded), default=0))


def looking_like(label: str, options: Sequence[str]) -> frozenset[int]:
    """The slots whose own text reads like a label, brackets and case aside.

    Example:
        >>> sorted(looking_like("a", ["(A)", "b"]))
        [0]
    """
    name = label.casefold()
    alike = [
        slot
        for slot, text in enumerate(options)
        if (text if text.isascii() else fold(text)).strip("()[]{}.: \t\n").casefold() == name
    ]
    return frozenset(alike)


def own_text(text: str, options: Sequence[str], slot: int) -> bool:
    """Whether a text is that of the option in this slot.

    Example:
        >>> own_text("Iron.", ["copper", "iron"], 1), own_text("tin", ["copper", "iron"], 1)
        (True, False)
    """
    return slot in option_texts(tuple(options)).find(fold(text))
