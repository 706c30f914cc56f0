"""Is what came back a text at all? Rules over the answers themselves.

A broken template, a wrong dtype or a lost stop token gives loops, noise or silence. A
parser still finds letters in it, so a broken arm looks like a weak one.

No rule knows languages, only scripts: a Spanish answer to an English question is not seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.errors import DataError

__all__ = ["LIMITS", "OutputCheck", "check_outputs", "kind_of_damage", "output_alarm"]

LIMITS = {"empty": 0.02, "loop": 0.02, "gibberish": 0.02, "off_language": 0.05, "truncated": 0.05}
"""Shares of rows above which an arm is called damaged. A sound model under a sound template
has well under 1 % of the first three; at 2 % they may move accuracy by two points, which is the
size of differences that people publish. Scripts are mixed, and long answers cut, now and
then by sound models as well, hence 5 %."""

_SAMPLES = 5
_EITHER_END = 100_000
_TAIL = 400
_LOOP_TIMES, _LOOP_CHARS = 4, 60
_FEWEST_CHARS = 20
_LEAST_WORDY = 0.25
_LONG_WORD = re.compile(r"[^\W\d_]{81,}")
_LEAST_VOWELS, _FEWEST_LETTERS = 0.15, 40
_MOST_ODD = 0.05
_FOREIGN_LETTERS, _FOREIGN_SHARE = 10, 0.5
_MOST_SCRIPTS = 4
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "HANGUL": "CJK"}


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """How many answers are damaged, and where to look.

    Attributes:
        n: Answers.
        rates: Share of rows by kind of damage; each row has one kind at most.
        samples: Up to five row numbers by kind, spread evenly over the rows.
    """

    n: int
    rates: Mapping[str, float]
    samples: Mapping[str, tuple[int, ...]]


def check_outputs(
    texts: Sequence[str],
    prompts: Sequence[str] | None = None,
    cut: Sequence[bool] | None = None,
) -> OutputCheck:
    """Count damaged answers.

    Args:
        texts: The raw answers.
        prompts: What was asked, for scripts; None looks for none.
        cut: Rows that ended at the token limit *and* name no option. A model that answers
            and then talks on is cut as well, and nothing is lost by it.

    Raises:
        DataError: The columns differ in length.

    Example:
        >>> check_outputs(["B", "", "the the " * 40, "C"]).rates["loop"]
        0.25
    """
    n = len(texts)
    for who, column in (("prompts", prompts), ("cut", cut)):
        if column is not None and len(column) != n:
            raise DataError(who, f"one a row is needed, for {n} answers", len(column))
    found: dict[str, list[int]] = {kind: [] for kind in LIMITS}
    known: dict[tuple[str, str], str] = {}  # short answers repeat by the thousand
    for row, text in enumerate(texts):
        key = (text, prompts[row] if prompts is not None else "")
        kind = known.get(key)
        if kind is None:
            kind = known[key] = kind_of_damage(*key)
        if not kind and cut is not None and cut[row]:
            kind = "truncated"
        if kind:
            found[kind].append(row)
    rates = {kind: len(rows) / n if n else 0.0 for kind, rows in found.items()}
    return OutputCheck(n, rates, {kind: _some(rows) for kind, rows in found.items()})


def _some(rows: Sequence[int]) -> tuple[int, ...]:
    step = max(len(rows) / _SAMPLES, 1.0)
    return tuple(rows[int(i * step)] for i in range(min(len(rows), _SAMPLES)))


def output_alarm(check: OutputCheck, row_ids: Sequence[str] | None = None) -> Alarm | None:
    """The alarm ``output_corrupted``, if any kind of damage is beyond its limit.

    Args:
        check: From `check_outputs`.
        row_ids: Names of the rows, to point at samples.

    Example:
        >>> output_alarm(check_outputs(["", "B"])).found
        'empty 50.0% (rows 0)'
    """
    over = [kind for kind, limit in LIMITS.items() if check.rates[kind] > limit]
    if not over:
        return None
    names = [
        ", ".join(str(row_ids[row] if row_ids is not None else row) for row in check.samples[kind])
        for kind in over
    ]
    limits = ", ".join(f"{kind} {LIMITS[kind]:.0%}" for kind in over)
    return Alarm(
        "output_corrupted",
        f"answers must be texts; at most: {limits} of the rows",
        "; ".join(
            f"{kind} {check.rates[kind]:.1%} (rows {rows})"
            for kind, rows in zip(over, names, strict=True)
        ),
        "Read these rows in mcq_generations. Look at the chat template, dtype, stop tokens, "
        "adapter and max_new_tokens before looking at any score.",
    )


def kind_of_damage(text: str, prompt: str = "") -> str:
    """What is wrong with an answer; empty where nothing is.

    * ``empty``: nothing that could be seen.
    * ``loop``: the last 400 characters end in one unit, with a letter or digit in it, that
      comes at least four times and fills at least 60 characters. People do not write so;
      "very, very, very good" and lines of dashes are let be. A loop that counts its lines
      is not found.
    * ``gibberish``: over 5 % characters that no script has (replacement, control, private
      use); or, in at least 20 characters (repeated ones once), under a quarter letters,
      marks and digits (dense formulas have twice that); words of over 80 Latin letters (the
      longest German compounds in use have about 63); under 15 % vowels among at least 40
      Latin letters (languages in that script have over 30 %); or four scripts with two
      words each.
    * ``off_language``: most letters, and at least 10, are of a script that the prompt does
      not have. A lone Latin label under a Chinese question is not enough.

    Of a text of over 200,000 characters the first and the last half of these are looked at.

    Example:
        >>> kind_of_damage("so it is so it is " * 10), kind_of_damage("B) the Sun")
        ('loop', '')
    """
    if len(text) > 2 * _EITHER_END:
        text = f"{text[:_EITHER_END]}\n{text[-_EITHER_END:]}"
    for kind, rule in _KINDS:
        if rule(text, prompt):
            return kind
    return ""


def _empty(text: str, prompt: str) -> bool:
    return not any(not c.isspace() and unicodedata.category(c)[0] != "C" for c in text) and not any(
        c == "�" for c in text
    )


def _loops(text: str, prompt: str) -> bool:
    tail = text.rstrip()[-_TAIL:][::-1]
    if len(tail) < _LOOP_CHARS:
        return False
    # Border array of Knuth, Morris and Pratt on the reversed tail: the text ends in a
    # unit of length i + 1 - border that fills its last i + 1 characters.
    border = [0] * len(tail)
    for i in range(1, len(tail)):
        k = border[i - 1]
        while k and tail[i] != tail[k]:
            k = border[k - 1]
        border[i] = k + (tail[i] == tail[k])
        filled, unit = i + 1, i + 1 - border[i]
        if filled >= _LOOP_CHARS and filled >= _LOOP_TIMES * unit:
            return any(c.isalnum() for c in tail[:unit])
    return False


def _gibberish(text: str, prompt: str) -> bool:
    seen = [c for c in text if not c.isspace()]
    odd = sum(c == "�" or unicodedata.category(c) in ("Cc", "Co", "Cn", "Cs") for c in seen)
    if odd > _MOST_ODD * len(seen):
        return True
    # A line of dashes under a title counts as one sign: models draw them.
    signs = [c for c, _ in groupby(seen)]
    if len(signs) >= _FEWEST_CHARS:
        wordy = sum(unicodedata.category(c)[0] in "LMN" for c in signs)
        if wordy < _LEAST_WORDY * len(signs):
            return True
    return _no_words(text) or _word_salad(text)


def _no_words(text: str) -> bool:
    if any(all(script_of(c) == "LATIN" for c in word) for word in _LONG_WORD.findall(text)):
        return True
    plain = unicodedata.normalize("NFKD", text).lower()
    latin = [c for c in plain if c.isalpha() and script_of(c) == "LATIN"]
    vowels = sum(c in "aeiouyæœøıəɛɔ" for c in latin)
    return len(latin) >= _FEWEST_LETTERS and vowels < _LEAST_VOWELS * len(latin)


def _word_salad(text: str) -> bool:
    words = Counter(
        script_of(word[0]) for word in text.split() if len(word) > 1 and word[0].isalpha()
    )
    return sum(n >= 2 for script, n in words.items() if script) >= _MOST_SCRIPTS


def _off_language(text: str, prompt: str) -> bool:
    if not prompt:
        return False
    letters = Counter(script_of(c) for c in text if c.isalpha())
    script, n = letters.most_common(1)[0] if letters else ("", 0)
    if not script or n < _FOREIGN_LETTERS or n <= _FOREIGN_SHARE * letters.total():
        return False
    return all(script_of(c) != script for c in prompt if c.isalpha())


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The script of a letter, by the first word of its Unicode name.

    Scripts that are written together (Han, kana, hangul) count as one.
    """
    first = unicodedata.name(character, "").partition(" ")[0]
    return _TOGETHER.get(first, first)


_KINDS: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("empty", _empty),
    ("loop", _loops),
    ("gibberish", _gibberish),
    ("off_language", _off_language),
)
"""In this order: a loop of noise is a loop."""
