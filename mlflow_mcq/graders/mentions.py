"""Where a text mentions an option, word for word.

Two graders need it: the 8-token window and the span of the similarity grader. A mention is
literal but for case, white space and full-width letters, and it is bounded: "iron" is not
in "environment", "5" is not in "3.5", "-5" or "5,000". Scripts that put no space between
words (Chinese, Japanese, Thai, Lao, Burmese, Khmer) have no such bounds, except that a
run of katakana is one word.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.labels import fold

__all__ = ["Mention", "begins_with", "each_mention", "last_mention", "mentions", "plain"]

_LONGEST_WORD = 256
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
_KATAKANA = re.compile("[\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9d]")
# Neighbours within one run are joined to one another: no mention begins inside it.
_RUN = re.compile(f"[{_KATAKANA.pattern[1:-1]}]+|[^\\W{_UNSPACED.pattern[1:-1]}]+")
_STRETCH = 4096
_LONGEST_PATTERN = 64


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
    return [*each_mention(text, options)]


def each_mention(text: str, options: Sequence[str]) -> Iterator[Mention]:
    """As `mentions`, one by one: a hostile text mentions an option a million times.

    Example:
        >>> next(each_mention("tin " * 1000, ["tin"]))
        Mention(start=0, end=3, places=(0,))
    """
    said = plain(text)
    found = [_found(said, wanted, places) for wanted, places in _wanted(tuple(options))]
    reach = -1
    for mention in heapq.merge(*found, key=lambda mention: (mention.start, -mention.end)):
        if mention.end > reach:
            yield mention
            reach = mention.end


def last_mention(text: str, options: Sequence[str]) -> Mention | None:
    """The mention that ends last, the longest of several; None where there is none.

    Looked for from the end, in stretches: the ones before it are never listed.

    Example:
        >>> last_mention("Tin, no: acid rain.", ["tin", "rain", "acid rain"]).places
        (2,)
    """
    said = plain(text)
    last: Mention | None = None
    for wanted, places in _wanted(tuple(options)):
        start = _last_start(said, wanted)
        if start >= 0:
            found = Mention(start, start + len(wanted), places)
            if last is None or (found.end, -found.start) > (last.end, -last.start):
                last = found
    return last


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


def _found(said: str, wanted: str, places: tuple[int, ...]) -> Iterator[Mention]:
    for start in _starts(said, wanted, 0, len(said)):
        yield Mention(start, start + len(wanted), places)


def _last_start(said: str, wanted: str) -> int:
    stop = len(said)
    while stop > 0:
        begin = max(0, stop - _STRETCH)
        last = -1
        for start in _starts(said, wanted, begin, stop):
            last = start
        if last >= 0:
            return last
        stop = begin
    return -1


def _starts(said: str, wanted: str, begin: int, stop: int) -> Iterator[int]:
    """Where mentions begin, within these bounds; the first two of "a a a" are one of "a a"."""
    stop += len(wanted) - 1
    start = said.find(wanted, begin, stop)
    while start >= 0:
        after = start + 1
        if start and _joined(said[start - 1], said[start]):
            run = _RUN.match(said, start, stop)
            after = run.end() if run else after
        elif _bounded(said, start, start + len(wanted)):
            yield start
            start = said.find(wanted, start + len(wanted), stop)
            continue
        start = _next(said, wanted, after, stop)


def _next(said: str, wanted: str, begin: int, stop: int) -> int:
    """The next place that may be a mention, after one that was none; -1 where there is none.

    In "abababab" every "a" is a part of a word, and a hostile text holds a million of them:
    those between ASCII letters are passed over without a look at each.
    """
    if len(wanted) > _LONGEST_PATTERN:
        return said.find(wanted, begin, stop)
    found = _apart(wanted).search(said, begin, stop)
    return found.start() if found else -1


@lru_cache(maxsize=4096)
def _apart(wanted: str) -> re.Pattern[str]:
    """A text where no ASCII letter, digit or underscore goes on with its first or last one."""
    before = "(?<![0-9A-Za-z_])" if re.match("[0-9A-Za-z_]", wanted) else ""
    after = "(?![0-9A-Za-z_])" if re.search(r"[0-9A-Za-z_]\Z", wanted) else ""
    return re.compile(before + re.escape(wanted) + after)


def _bounded(said: str, start: int, end: int) -> bool:
    """Whether what does not go on at its left does not at its right, and is no part of a number."""
    if start and _number_before(said, start):
        return False
    return end >= len(said) or not (_joined(said[end - 1], said[end]) or _number_after(said, end))


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    if left.isascii() and right.isascii():
        return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")
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
