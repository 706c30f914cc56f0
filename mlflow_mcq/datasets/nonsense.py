"""NonsenseQA: questions without content, to see what a protocol measures by itself.

Question and options are random words and the gold option is drawn, so that there is nothing
to know. Whoever scores above or below chance here has read the answer off something else:
off the prompt's own wording, the examples in it, the order of the options, or a parser that
sees more right answers than there are.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import pandas as pd

from mlflow_mcq.chance import NONSENSE
from mlflow_mcq.draws import balanced_places, below, draw_for, shuffled
from mlflow_mcq.errors import DataError, SettingsError

__all__ = ["MOST_OPTION_WORDS", "MOST_QUESTION_WORDS", "nonsense_items"]

MOST_QUESTION_WORDS = 12
"""A question has 6 to this many words."""
MOST_OPTION_WORDS = 3
"""An option has 1 to this many words."""
_FEWEST_QUESTION_WORDS = 6

Words = str | Path | Iterable[str]
"""A file with a word a line (``#`` starts a comment), or the words themselves."""


def nonsense_items(
    n: int = 1000, options: int = 4, seed: int = 0, words: Words | None = None
) -> pd.DataFrame:
    """Make questions that nobody can know the answer of.

    No word occurs twice in an item, so that no option is part of another or of the question.
    The gold option stands in every place equally often (up to a remainder), in random order;
    how long it is says nothing. The same arguments give the same items everywhere.

    Args:
        n: Number of items, at least 1.
        options: Options an item, at least 2.
        seed: Whole number.
        words: Of any language; None takes the shipped English ones. Words that would read as
            a label (one ASCII letter, digits) and repetitions are left out.

    Returns:
        Columns ``id``, ``question``, ``options`` (a list), ``answer`` (index from 0) and
        ``probe`` (``nonsense``: switches the chance band on, see `mlflow_mcq.chance`).

    Raises:
        SettingsError: A number is out of range.
        DataError: The words cannot be read, or are too few for one item.

    Example:
        >>> frame = nonsense_items(n=8, options=4)
        >>> sorted(frame["answer"])
        [0, 0, 1, 1, 2, 2, 3, 3]
    """
    for name, value, fewest in (("n", n, 1), ("options", options, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < fewest:
            raise SettingsError(f"nonsense.{name}", f"must be a whole number from {fewest}", value)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SettingsError("nonsense.seed", "must be a whole number", seed)
    known = _usable(_shipped() if words is None else words)
    needed = MOST_QUESTION_WORDS + MOST_OPTION_WORDS * options
    if len(known) < needed:
        raise DataError(
            "nonsense.words",
            f"an item with {options} options needs {needed} different words to draw from",
            len(known),
        )
    golds = balanced_places(n, options, draw_for(seed, "nonsense gold"))
    rows = [_item(known, options, draw_for(seed, "nonsense", i)) for i in range(n)]
    return pd.DataFrame(
        {
            "id": [f"nonsense-{i:0{len(str(n - 1))}d}" for i in range(n)],
            "question": [question for question, _ in rows],
            "options": [texts for _, texts in rows],
            "answer": golds,
            "probe": NONSENSE,
        }
    )


def _item(words: list[str], n_options: int, draw: random.Random) -> tuple[str, list[str]]:
    n_question = _FEWEST_QUESTION_WORDS + below(
        MOST_QUESTION_WORDS - _FEWEST_QUESTION_WORDS + 1, draw
    )
    lengths = [1 + below(MOST_OPTION_WORDS, draw) for _ in range(n_options)]
    pool = iter(_some(words, n_question + sum(lengths), draw))
    question = " ".join(next(pool) for _ in range(n_question)) + "?"
    return question, [" ".join(next(pool) for _ in range(length)) for length in lengths]


def _some(words: list[str], n: int, draw: random.Random) -> list[str]:
    # Drawn again where a word comes twice: a list of half a million words must not be
    # shuffled anew for every item.
    if 2 * n > len(words):
        return shuffled(words, draw)[:n]
    places: dict[int, None] = {}
    while len(places) < n:
        places[below(len(words), draw)] = None
    return [words[place] for place in places]


def _shipped() -> list[str]:
    text = files("mlflow_mcq.datasets").joinpath("common_words.txt").read_text(encoding="utf-8")
    return text.splitlines()


def _usable(words: Words) -> list[str]:
    lines: list[str]
    if isinstance(words, (str, Path)):
        try:
            lines = Path(words).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError("nonsense.words", f"cannot be read ({error})", str(words)) from error
    else:
        lines = list(words)
    if not all(isinstance(line, str) for line in lines):
        raise DataError("nonsense.words", "must be texts", lines)
    kept: dict[str, str] = {}
    for line in lines:
        word = line.strip()
        if word and not word.startswith("#") and not _is_label(word):
            kept.setdefault(word.casefold(), word)
    return list(kept.values())


def _is_label(word: str) -> bool:
    # "I" as an option text would be read as the ninth label.
    return word.isdigit() or (word.isascii() and len(word) == 1)
