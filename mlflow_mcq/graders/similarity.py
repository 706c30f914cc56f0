"""Embedding similarity: which option is closest to the part that holds the answer?

After the Matched-and-Dashed protocol of Nowak et al., ABCD (arXiv 2602.17445): a span is
extracted on four levels (see `mlflow_mcq.graders.spans`) and the option with the nearest
vector is chosen. That protocol never abstains. Here its choice is kept in every row's
evidence, and the grade itself says OTHER where the span names no option: closeness finds an
option near anything, a refusal too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mlflow_mcq.doors import Embedder
from mlflow_mcq.errors import ModelError
from mlflow_mcq.grader_settings import SimilaritySettings
from mlflow_mcq.graders.answer_words import without_lead
from mlflow_mcq.graders.labels import fold, forms_of, peel
from mlflow_mcq.graders.mentions import each_mention, mentions, plain
from mlflow_mcq.graders.missing import asks_for_sets, no_answer
from mlflow_mcq.graders.option_texts import option_texts
from mlflow_mcq.graders.refusals import is_refusal
from mlflow_mcq.graders.spans import Span, extract_span
from mlflow_mcq.graders.strict import label_names, read_strict
from mlflow_mcq.graders.thought import sent_text, visible_answer
from mlflow_mcq.records import Generation, Grade, Prompt, Verdict

__all__ = ["SimilarityGrader", "similarity_numbers"]

_DEFAULT = SimilaritySettings()
_DIGITS = 6
"""Of a score: beyond them, batches of another size would give other numbers."""
_MOST_EVIDENCE = 300
_LEVELS = (1, 2, 3, 4)
_NUMBER = re.compile(r"[-+−]?\d[\d.,/ ]{0,40}")


@dataclass(frozen=True, slots=True)
class _Row:
    """One generation before anything is embedded.

    Attributes:
        generation: What is read.
        span: What was extracted.
        choice: The option, where no vector is needed to know it.
        reason: Why it is that option, or why there is none; empty leaves it to the vectors.
        letter: The span is a bare letter, which is never embedded.
    """

    generation: Generation
    span: Span | None
    choice: int | None = None
    reason: str = ""
    letter: bool = False

    @property
    def embedded(self) -> bool:
        """Whether the vectors say something about this row."""
        return self.span is not None and not self.letter


@dataclass(frozen=True, slots=True)
class SimilarityGrader:
    """Grades by the option whose vector is nearest to that of the extracted span.

    A span that is a label is read as one where labels were shown. OTHER, with the reason:
    ``empty``, ``unfinished_thought``, ``no_span``, ``letter_without_labels``,
    ``unclear_label`` (no label of this prompt, or a word as well),
    ``label_text_conflict``, ``refusal``, ``unlisted_number`` (a bare number that no option
    holds: 14 is near 12 for a vector and wrong for a reader), ``lists_options`` (level 3, but
    the reply names every option once: a copy of the list is no choice of its last),
    ``truncated`` (cut at the token limit before any of the first three levels),
    ``below_floor``, ``too_close``.

    The evidence of a row is JSON: ``level`` and ``span`` as extracted, ``scores`` by option
    (not slot), and ``forced``, the choice of the published protocol: the nearest option, the
    first of several; null where nothing can be embedded. ``scores`` are cosines, which for
    unit vectors are the dot products too.

    Attributes:
        embedder: Makes the vectors, in one call for all distinct texts.
        settings: Floor and margin.
        name: Prefix of its metrics.
    """

    embedder: Embedder
    settings: SimilaritySettings = _DEFAULT
    name: str = "similarity"

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation, in their order.

        All texts are embedded before the first grade: hand over everything at once.

        Raises:
            ModelError: The embedder returned something other than one vector a text.
        """
        missing = [
            no_answer(generation, self.name) or asks_for_sets(generation, self.name)
            for generation in generations
        ]
        rows = [
            None if grade else _look(generation)
            for generation, grade in zip(generations, missing, strict=True)
        ]
        vectors = self._vectors(row for row in rows if row and row.embedded)
        for grade, row in zip(missing, rows, strict=True):
            if grade is not None:
                yield grade
            elif row is not None:
                yield self._graded(row, _scores(row, vectors))

    def _vectors(self, rows: Iterable[_Row]) -> dict[str, NDArray[np.float64]]:
        """A unit vector for each distinct text; zero where a text has none."""
        wanted: dict[str, None] = {}
        for row in rows:
            texts = [row.span.text] if row.span else []
            wanted |= dict.fromkeys([*texts, *row.generation.prompt.item.options])
        if not wanted:
            return {}
        table = np.asarray(self.embedder.embed(list(wanted)), dtype=np.float64)
        if table.ndim != 2 or len(table) != len(wanted):
            rule = f"must return one vector for each of {len(wanted)} texts"
            raise ModelError("similarity.encoder", rule, table.shape)
        # An embedder of the user's own may not normalise: the longest vector would win.
        table = np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0)
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        table = table / np.where(lengths > 0, lengths, 1.0)
        return dict(zip(wanted, table, strict=True))

    def _graded(self, row: _Row, scores: list[float]) -> Grade:
        choice, reason = row.choice, row.reason
        if not reason and row.span is not None:
            choice, reason = self._nearest(row.span, scores, row.generation.prompt.item.options)
        nearest = scores.index(max(scores)) if scores else None
        evidence = _evidence(row.span, nearest if choice is None else choice, scores)
        if choice is None:
            return Grade.unread(row.generation, self.name, reason, evidence)
        return Grade.of_choice(row.generation, self.name, choice, reason, evidence)

    def _nearest(
        self, span: Span, scores: list[float], options: Sequence[str]
    ) -> tuple[int | None, str]:
        same = [place for place, text in enumerate(options) if plain(text) == plain(span.text)]
        if len(same) == 1:  # its own text: however close another option may be
            return same[0], f"similarity level {span.level}"
        second, best = sorted(scores)[-2:]
        if best < self.settings.floor:
            return None, "below_floor"
        if best == second or best - second < self.settings.margin:
            return None, "too_close"
        return scores.index(best), f"similarity level {span.level}"


def _look(generation: Generation) -> _Row:
    """Extract the span, and settle what needs no vector."""
    prompt = generation.prompt
    answer = visible_answer(generation)
    if answer.unfinished or not answer.text.strip():
        return _Row(generation, None, None, "unfinished_thought" if answer.unfinished else "empty")
    span = extract_span(generation.text, prompt.item.options, sent_text(generation))
    if span is None:
        return _Row(generation, None, None, "no_span")
    letter = _is_letter(span.text, prompt)
    row = _Row(generation, span, letter=letter)
    settled = _strictly(answer.text, row)
    # A marker says that an answer follows; without one the whole reply may decline, also
    # in words that name options: "I can't choose between zinc and nickel".
    declined = is_refusal(span.text if span.level <= 2 else answer.text, prompt.item.options)
    if settled is None and declined and not letter:
        return replace(row, reason="refusal")
    if settled is None and span.level == 3 and _lists_all(answer.text, prompt.item.options):
        return replace(row, reason="lists_options")
    settled = settled or _strictly(span.text, row)
    if settled is not None:
        return settled
    if letter:
        return replace(row, reason="unclear_label" if prompt.labels else "letter_without_labels")
    if _NUMBER.fullmatch(span.text) and not _holds_number(prompt.item.options, span.text):
        return replace(row, reason="unlisted_number")
    return replace(row, reason="truncated") if generation.reply.cut and span.level == 4 else row


def _strictly(text: str, row: _Row) -> _Row | None:
    """The row settled by the strict rule; None where that abstains."""
    prompt, reply = row.generation.prompt, row.generation.reply
    reading = read_strict(text, prompt.shown, prompt.labels, cut=reply.cut)
    if reading.slot is not None and row.span is not None:
        how = "label" if row.letter else "similarity"
        choice = prompt.orientation.order[reading.slot]
        return replace(row, choice=choice, reason=f"{how} level {row.span.level}")
    conflict = reading.reason == "label_text_conflict"
    return replace(row, reason=reading.reason) if conflict else None


def _lists_all(text: str, options: Sequence[str]) -> bool:
    first = islice(each_mention(text, options), len(options) + 1)
    named = sorted(place for mention in first for place in mention.places)
    return named == [*range(len(options))]


def _holds_number(options: Sequence[str], number: str) -> bool:
    return any(mentions(option, [number]) for option in options)


def _is_letter(text: str, prompt: Prompt) -> bool:
    """Whether a span is a bare letter: a name on paper, which has no meaning to embed."""
    core = peel(without_lead(peel(fold(text)))[0])
    if option_texts(prompt.shown).find(core):
        return False
    letters = label_names(26, None)
    return core in forms_of(prompt.labels) or core in forms_of(letters)


def _scores(row: _Row, vectors: dict[str, NDArray[np.float64]]) -> list[float]:
    """The closeness of each option to the span, in [-1, 1]; empty where none is embedded."""
    if not row.embedded or row.span is None:
        return []
    table = np.stack([vectors[text] for text in row.generation.prompt.item.options])
    return [round(float(score), _DIGITS) for score in table @ vectors[row.span.text]]


def _evidence(span: Span | None, forced: int | None, scores: list[float]) -> str:
    facts = {
        "level": span.level if span else None,
        "span": span.text[:_MOST_EVIDENCE] if span else None,
        "forced": forced,
        "scores": scores,
    }
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def similarity_numbers(grades: Iterable[Grade]) -> dict[str, float]:
    """The numbers that only this grader has.

    All are fractions in [0, 1] over graded rows (those with a verdict); without such rows
    the result is empty.

    * ``accuracy_forced``: rows whose forced choice is a gold. Comparable with published
      numbers; never read it alone, since a refusal scores at chance here.
    * ``level_1_rate`` to ``level_4_rate``, ``no_span_rate``: rows by the level that found
      the span; together 1.
    """
    graded = [grade for grade in grades if grade.verdict in tuple(Verdict)]
    if not graded:
        return {}
    facts = [json.loads(grade.evidence) if grade.evidence else {} for grade in graded]
    levels = [fact.get("level") for fact in facts]
    right = sum(
        fact.get("forced") in grade.generation.prompt.item.golds
        for fact, grade in zip(facts, graded, strict=True)
    )
    numbers = {"accuracy_forced": right / len(graded)}
    numbers |= {f"level_{n}_rate": levels.count(n) / len(graded) for n in _LEVELS}
    numbers["no_span_rate"] = levels.count(None) / len(graded)
    return numbers
