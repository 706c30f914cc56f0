"""Where a text mentions an option, word for word.

Two readers need it: the 8-token window and the span of the similarity grader. A mention is
literal but for case, white space and full-width letters, and it is bounded: "iron" is not
in "environment", "5" is not in "3.5", "-5" or "5,000". Scripts that put no space between
words (Chinese, Japanese, Thai, Lao, Burmese, Khmer) have no such bounds, except that a
run of katakana is one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.labels import fold

__all__ = ["Mention", "begins_with", "mentions", "plain"]

_LONGEST_WORD = 256
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
_KATAKANA = re.compile("[\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9d]")


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where a text mentions an option.

    Attributes:
        start: First character, in the text as `plain` gives it.
        end: One past the last.
        places: Indices of the options with this text; several where texts repeat.
    """

    start: int
    end: int
    places: tuple[int, ...]


def plain(text: str) -> str:
    """Case, white space and full-width letters folded; nothing else.

    Example:
        >>> plain("  Court :\\n Justice ")
        'court : justice'
    """
    if text.isascii():
        return " ".join(text.split()).casefold()
    # Word by word, and very long words not at all: composing accents takes time that
    # grows with the square of a run of combining marks, which hostile text is full of.
    words = (fold(word) if len(word) <= _LONGEST_WORD else word for word in text.split())
    return " ".join(words).casefold()


def mentions(text: str, options: Sequence[str]) -> list[Mention]:
    """Every mention, in the order of their starts.

    An option inside a longer mention is not mentioned there: with the options "acid" and
    "acid rain", the text "acid rain" mentions the second only. Mentions that overlap
    otherwise all count. The order of the options changes nothing but the indices.

    Args:
        text: What was said.
        options: Option texts.

    Example:
        >>> [m.places for m in mentions("Acid rain, not rain.", ["acid", "acid rain", "rain"])]
        [(1,), (2,)]
    """
    said = plain(text)
    found = [
        Mention(start, start + len(wanted), places)
        for wanted, places in _wanted(tuple(options))
        for start in _starts(said, wanted)
    ]
    found.sort(key=lambda m: (m.start, -m.end))
    outer: list[Mention] = []
    reach = -1
    for mention in found:
        if mention.end > reach:
            outer.append(mention)
            reach = mention.end
    return outer


def begins_with(text: str, options: Sequence[str]) -> int | None:
    """The option whose text a text begins with; the longest where several are.

    Example:
        >>> begins_with("J. R. Smith. He wrote it", ["J", "J. R. Smith"])
        1
    """
    said = plain(text)
    for wanted, places in _wanted(tuple(options)):
        if said.startswith(wanted) and _bounded(said, 0, len(wanted)):
            return places[0]
    return None


@lru_cache(maxsize=4096)
def _wanted(options: tuple[str, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Distinct option texts, longest first, with the options that have them."""
    table: dict[str, list[int]] = {}
    for place, option in enumerate(options):
        table.setdefault(plain(option), []).append(place)
    longest_first = sorted(filter(None, table), key=len, reverse=True)
    return tuple((text, tuple(table[text])) for text in longest_first)


def _starts(said: str, wanted: str) -> list[int]:
    starts = []
    start = said.find(wanted)
    while start >= 0:
        hit = _bounded(said, start, start + len(wanted))
        if hit:
            starts.append(start)
        start = said.find(wanted, start + (len(wanted) if hit else 1))
    return starts


def _bounded(said: str, start: int, end: int) -> bool:
    if start and (_joined(said[start - 1], said[start]) or _number_before(said, start)):
        return False
    return end >= len(said) or not (_joined(said[end - 1], said[end]) or _number_after(said, end))


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    if unicodedata.category(right)[0] == "M":  # a vowel sign or accent of what is before it
        return True
    if not (_wordy(left) and _wordy(right)):
        return False
    if _KATAKANA.match(left) and _KATAKANA.match(right):
        return True
    return not (_UNSPACED.match(left) or _UNSPACED.match(right))


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


def _number_before(said: str, start: int) -> bool:
    """Whether the number that begins here is the end of another: 3.5, -5, 1/2."""
    if not said[start].isdigit():
        return False
    mark, before = said[start - 1], said[start - 2 : start - 1] or " "
    if mark in "-−":
        return not _wordy(before)
    return mark in ".,/:" and (before.isdigit() or (mark == "." and before.isspace()))


def _number_after(said: str, end: int) -> bool:
    """Whether the number that ends here goes on: 5.2, 5,000, 5/8."""
    return said[end - 1].isdigit() and said[end] in ".,/:" and said[end + 1 : end + 2].isdigit()
