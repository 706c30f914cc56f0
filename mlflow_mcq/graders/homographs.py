"""Labels that are words of some language as well: "a", "I", "o", "и".

A model that is cut after one token says "a" where it began "a lever", and "I" where it
began "I cannot say". Such a label is read only where something shows that it was meant
as one: a bracket, a full stop, a box, the word "option" before it.
"""

from __future__ import annotations

__all__ = ["as_shown", "is_word", "starts_a_phrase"]

_ALWAYS = frozenset(
    {
        *("a", "i", "I"),  # English, Portuguese, Hungarian; Polish, Czech; English
        *("e", "o"),  # Portuguese and Italian; Spanish, Portuguese, Polish
        *("w", "z"),  # Polish
        *("а", "и", "в"),  # Russian
        "ο",  # Greek
    }
)
# A lower-case reply to capital labels was not copied from the page, so less is enough
# for doubt. Labels that were shown like this are taken at their word.
_UNLESS_SHOWN = frozenset(
    {
        *("k", "s", "u", "v", "y"),  # Czech, Polish, Spanish
        *("з", "к", "о", "с", "у", "я", "є", "і", "й"),  # Russian, Ukrainian
        "η",
        # Items with more than 26 options have labels of two letters.
        *("ad", "ah", "ai", "al", "am", "an", "as", "at", "au", "be", "bi", "by", "co", "da"),
        *("de", "di", "do", "du", "eh", "el", "em", "en", "er", "es", "et", "eu", "ex", "go"),
        *("ha", "he", "hi", "id", "if", "il", "im", "in", "is", "it", "ja", "je", "la", "le"),
        *("lo", "ma", "me", "mi", "mu", "my", "na", "ne", "no", "nu", "of", "og", "oh", "ok"),
        *("on", "or", "os", "ou", "ox", "pa", "pi", "po", "se", "si", "so", "su", "ta", "te"),
        *("to", "tu", "um", "un", "up", "us", "va", "we", "wo", "ya", "ye", "yo", "za", "zu"),
    }
)


def is_word(name: str, labels: tuple[str, ...]) -> bool:
    """Whether a lone reply that equals this label may have been meant as a word.

    Args:
        name: The label as it was written in the reply.
        labels: The labels as shown.

    Example:
        >>> is_word("a", ("A", "B")), is_word("A", ("A", "B")), is_word("k", ("k", "l"))
        (True, False, False)
    """
    return name in _ALWAYS or (name in _UNLESS_SHOWN and not as_shown(name, labels))


def as_shown(name: str, labels: tuple[str, ...]) -> bool:
    """Whether a label was written just as on the page, its own brackets aside.

    Example:
        >>> as_shown("i", ("(i)", "(ii)")), as_shown("a", ("A", "B"))
        (True, False)
    """
    return any(name == label.strip("()[]{}.: ") for label in labels)


def starts_a_phrase(name: str) -> bool:
    """Whether "NAME text" reads as a phrase: an article, a conjunction or a number first.

    Example:
        >>> starts_a_phrase("A"), starts_a_phrase("2"), starts_a_phrase("B")
        (True, True, False)
    """
    lower = name.lower()
    return lower in _ALWAYS or lower in _UNLESS_SHOWN or name[-1:].isdecimal()
