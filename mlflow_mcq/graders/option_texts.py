"""Option texts as a table: which slots show exactly this text.

Exactly, but for a full stop, a sentence capital and wrappers around the reply. Nothing
more is folded: CO is not Co, and the interval [0, 1] is not (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mlflow_mcq.graders.labels import fold, peel, variants

__all__ = [
    "OptionTexts",
    "Wanted",
    "looking_like",
    "option_texts",
    "own_in_any_case",
    "own_text",
    "slots_showing",
    "wanted",
]

_NOBODY: frozenset[int] = frozenset()
_FEW = 8


class Wanted(NamedTuple):  # made for every reply, and three times faster than a dataclass
    """A text of a reply, ready to be looked up in any number of option sets.

    Attributes:
        exact: Ways to read it, wrappers and full stop aside.
        loose: The same without sentence capitals.
        shortest: Characters of the shortest; an option shorter than this is none of them.
    """

    exact: tuple[str, ...]
    loose: tuple[str, ...]
    shortest: int


def wanted(text: str) -> Wanted:
    """Prepare a text, white space folded, for `OptionTexts.find_wanted`.

    Example:
        >>> wanted('"Iron".').exact[-1], wanted("Iron").loose
        ('Iron', ('iron',))
    """
    written = variants(text)
    loose = tuple([_loose(text) for text in written])
    return Wanted(written, loose, min([len(text) for text in loose]))


@dataclass(frozen=True, slots=True)
class OptionTexts:
    """Option texts by slot, ready to be looked up.

    Attributes:
        exact: Slots by text, white space folded.
        loose: Slots by text without its full stop and sentence capital.
    """

    exact: dict[str, frozenset[int]]
    loose: dict[str, frozenset[int]]

    def find(self, text: str) -> frozenset[int]:
        """The slots that show this text; several where options repeat."""
        return self.find_wanted(wanted(text))

    def find_wanted(self, sought: Wanted) -> frozenset[int]:
        """As `find`, for a text that was prepared."""
        for key in sought.exact:
            if key in self.exact:
                return self.exact[key]
        for key in sought.loose:
            if key in self.loose:
                return self.loose[key]
        return _NOBODY

    def cut_short(self, text: str) -> bool:
        """Whether another option goes on where this text ends."""
        start = _loose(peel(text, brackets=False))
        return sum(option.startswith(start) for option in self.loose) > 1


def _loose(text: str) -> str:
    """A text without its full stop and its sentence capital.

    Only a first letter before a lower-case one, and the article, are folded: CO is not Co.
    """
    if text[-1:] == ".":
        text = text[:-1]
    if len(text) > 3 and (text[1].islower() or text[:2] == "A "):
        return text[0].lower() + text[1:]
    return text


_ONE = tuple(frozenset({slot}) for slot in range(16))


@lru_cache(maxsize=4096)
def option_texts(options: tuple[str, ...]) -> OptionTexts:
    """Build the table of one option set, once.

    Example:
        >>> sorted(option_texts(("iron", "tin", "iron")).find('"Iron."'))
        [0, 2]
    """
    exact: dict[str, frozenset[int]] = {}
    loose: dict[str, frozenset[int]] = {}
    for slot, option in enumerate(options):
        text = fold(option)
        if not text:
            continue
        here = _ONE[slot] if slot < len(_ONE) else frozenset({slot})
        exact[text] = exact[text] | here if text in exact else here
        key = _loose(text)
        loose[key] = loose[key] | here if key in loose else here
    loose.pop("", None)
    return OptionTexts(exact, loose)


def slots_showing(sought: Wanted, options: Sequence[str]) -> frozenset[int]:
    """As `OptionTexts.find_wanted`, without a table where few options are long enough.

    Every item in every orientation is a new option set, so a table is seldom used twice.

    Example:
        >>> sorted(slots_showing(wanted("Iron."), ["tin", "iron", "a longer text"]))
        [1]
    """
    least = sought.shortest
    near = [slot for slot, text in enumerate(options) if len(text) >= least]
    if len(near) > _FEW:
        return option_texts(tuple(options)).find_wanted(sought)
    texts = [(slot, fold(options[slot])) for slot in near]
    for key in sought.exact:
        found = [slot for slot, text in texts if text == key]
        if found and key:
            return frozenset(found)
    texts = [(slot, _loose(text)) for slot, text in texts]
    for key in sought.loose:
        found = [slot for slot, text in texts if text == key]
        if found and key:
            return frozenset(found)
    return _NOBODY


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


def own_in_any_case(text: str, options: Sequence[str], slot: int) -> bool:
    """Whether a text is that of the option in this slot, and of no other, case aside.

    Example:
        >>> own_in_any_case("IRON", ["iron", "tin"], 0), own_in_any_case("co", ["CO", "Co"], 0)
        (True, False)
    """
    keys = {key.casefold() for key in wanted(text).loose}
    if slot >= len(options) or _loose(fold(options[slot])).casefold() not in keys:
        return False
    return [_loose(fold(option)).casefold() in keys for option in options].count(True) == 1


def own_text(text: str, options: Sequence[str], slot: int) -> bool:
    """Whether a text is that of the option in this slot.

    Example:
        >>> own_text("Iron.", ["copper", "iron"], 1), own_text("tin", ["copper", "iron"], 1)
        (True, False)
    """
    return slot in option_texts(tuple(options)).find(fold(text))
