"""The 8-token analogy match: which options do the first tokens of a reply spell out?

After Shih et al. (2023): a reply counts as right where its first eight tokens hold the
right choice and no other. Tokens are those of the evaluated model. The often-copied
``reply[:8] == gold`` compares eight characters, and for equality: no gold longer than
eight characters could ever score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlflow_mcq.doors import Tokenizer
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.grader_settings import AnalogySettings
from mlflow_mcq.graders.mentions import mentions, plain
from mlflow_mcq.graders.missing import asks_for_sets, no_answer
from mlflow_mcq.graders.thought import Answer, visible_answer
from mlflow_mcq.records import Generation, Grade, Item, Reply, Verdict

__all__ = ["AnalogyGrader", "analogy_numbers", "fewest_tokens", "match_window", "unwinnable"]

UNVERIFIED = "window_unverified"
"""Ends the reason of a row whose window was not measured with the model's tokens."""
_DEFAULT = AnalogySettings()
_MOST_CHARACTERS = 512
"""Of one token: what is beyond it need not be encoded to find the first few."""
_CUT = "\ufffd"
"""Stands where a window ends within a character."""


def match_window(window: str, options: Sequence[str]) -> tuple[int | None, str]:
    """Read a window of text that is already cut.

    M is the set of distinct option texts that the window mentions (see
    `mlflow_mcq.graders.mentions`): bounded, longest first, case and white space folded.
    The same option twice counts once. A mention that the end of the window cuts is none.

    Args:
        window: The decoded window.
        options: Option texts; the result is an index into them.

    Returns:
        The option with ``match``; None with ``double_match`` (two different texts),
        ``duplicate_option`` (one text that two options share) or ``no_match``.

    Example:
        >>> pairs = ["hot : cold", "wet : damp"]
        >>> match_window("Hot :  cold\\nhot : cold", pairs)
        (0, 'match')
        >>> match_window("hot : cold or wet : damp", pairs)
        (None, 'double_match')
    """
    found = {mention.places for mention in mentions(window, options)}
    if not found:
        return None, "no_match"
    if len(found) > 1:
        return None, "double_match"
    places = found.pop()
    return (places[0], "match") if len(places) == 1 else (None, "duplicate_option")


@dataclass(frozen=True, slots=True)
class AnalogyGrader:
    """Grades by the first tokens of the reply.

    The window is cut from the stored token ids; where only text is at hand, from the text
    as ``tokenizer`` encodes it. Without a tokenizer it is the whole reply where that is
    known to have no more tokens, else the first words, and the row's reason ends with
    ``window_unverified``; so does that of a row whose ids ``tokenizer`` does not decode to
    its text, since they are another tokenizer's. Thinking is left out; thinking that never
    ended is OTHER ``unfinished_thought``. The window read is kept as evidence.

    Attributes:
        settings: Length of the window.
        tokenizer: That of the evaluated model.
        name: Prefix of its metrics.

    Raises:
        SettingsError: ``tokenizer`` puts special tokens before the text, which would shift
            the window.
    """

    settings: AnalogySettings = _DEFAULT
    tokenizer: Tokenizer | None = None
    name: str = "analogy"

    def __post_init__(self) -> None:
        added = list(self.tokenizer.encode("")) if self.tokenizer else []
        if added:
            rule = "must encode a text without adding special tokens"
            hint = "Wrap a transformers tokenizer in mlflow_mcq.engines.tokenizer.ReplyTokenizer."
            raise SettingsError("analogy.tokenizer", rule, added, hint)

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation, in their order."""
        for generation in generations:
            settled = no_answer(generation, self.name) or asks_for_sets(generation, self.name)
            yield settled or self._read(generation)

    def _read(self, generation: Generation) -> Grade:
        answer = visible_answer(generation)
        if answer.unfinished:
            return Grade.unread(generation, self.name, "unfinished_thought")
        window, verified = self._window(generation.reply, answer)
        choice, reason = match_window(window, generation.prompt.item.options)
        reason = reason if verified else f"{reason}; {UNVERIFIED}"
        if choice is None:
            return Grade.unread(generation, self.name, reason, evidence=window)
        return Grade.of_choice(generation, self.name, choice, reason, evidence=window)

    def _window(self, reply: Reply, answer: Answer) -> tuple[str, bool]:
        """The text of the window, and whether it was measured in the model's tokens."""
        length = self.settings.window
        thought = bool(answer.thought)
        text = answer.text.lstrip() if thought else answer.text
        if self.tokenizer is not None:
            ids = () if thought else reply.token_ids
            whole = ids or self.tokenizer.encode(text[: length * _MOST_CHARACTERS])
            window = self.tokenizer.decode(list(whole[:length]))
            return window, _begins(text, window) or not ids
        n_tokens = len(reply.token_ids) or reply.n_tokens
        if 0 < n_tokens <= length:
            return text, True
        # The first words, of which none is longer than as many tokens could be.
        words = text[: length * _MOST_CHARACTERS].split(maxsplit=length)[:length]
        return " ".join(words), False


def _begins(text: str, window: str) -> bool:
    """Whether a text begins with a decoded window, white space and cut characters aside."""
    wanted = "".join(window.rstrip(_CUT).split())
    return "".join(text[: 2 * len(window) + 256].split()).startswith(wanted)


def unwinnable(
    items: Iterable[Item], tokenizer: Tokenizer, window: int = _DEFAULT.window
) -> list[Item]:
    """The items whose golds all have more tokens than the window: no reply can be right.

    Report them before the run: they lower every model's accuracy alike.

    Args:
        items: To be run.
        tokenizer: That of the model to be evaluated.
        window: Tokens read.
    """
    return [
        item
        for item in items
        if all(fewest_tokens(item.options[gold], tokenizer) > window for gold in item.golds)
    ]


def fewest_tokens(text: str, tokenizer: Tokenizer) -> int:
    """The fewest tokens in which a reply can spell a text so that a window mentions it.

    At the start of a reply and after a blank, as written and as folded: a gold in capitals
    is long in tokens, and the same words in small letters match it too.
    """
    forms = {text.strip(), plain(text)}
    return min(len(tokenizer.encode(lead + form)) for form in forms for lead in ("", " "))


def analogy_numbers(grades: Iterable[Grade]) -> dict[str, float]:
    """The numbers that only this grader has.

    All are fractions in [0, 1] over graded rows (those with a verdict); without such rows
    the result is empty.

    * ``accuracy_double_in``: CORRECT / graded rows. Higher is better.
    * ``accuracy_double_out``: CORRECT / graded rows that are no double match; left out
      where there are none.
    * ``double_match_rate``, ``no_match_rate``: rows with that reason.
    * ``window_unverified_rate``: rows whose window was not measured in the model's tokens.
    """
    graded = [grade for grade in grades if grade.verdict is not None]
    if not graded:
        return {}
    n_rows = len(graded)
    right = sum(grade.verdict is Verdict.CORRECT for grade in graded)
    reasons = [grade.reason.partition("; ")[0] for grade in graded]
    n_double = reasons.count("double_match")
    numbers = {
        "accuracy_double_in": right / n_rows,
        "double_match_rate": n_double / n_rows,
        "no_match_rate": reasons.count("no_match") / n_rows,
        "window_unverified_rate": sum(g.reason.endswith(UNVERIFIED) for g in graded) / n_rows,
    }
    if n_rows > n_double:
        numbers["accuracy_double_out"] = right / (n_rows - n_double)
    return numbers
