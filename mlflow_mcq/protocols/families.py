"""The protocols that ship: each a few lines, each by the door that a user's own takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlflow_mcq.doors import PromptFamily
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names
from mlflow_mcq.protocols.analogy import analogy_shots
from mlflow_mcq.protocols.labels import labels_for, shuffled
from mlflow_mcq.protocols.nota import with_nota
from mlflow_mcq.protocols.page import Page, fill, named_list, option_lines
from mlflow_mcq.protocols.protocol import Protocol, Shots
from mlflow_mcq.protocols.style import Style
from mlflow_mcq.protocols.template import check_template
from mlflow_mcq.protocols.wordings import Wording
from mlflow_mcq.records import UNSEEN, Item, Orientation

__all__ = ["PROTOCOLS", "PROTOCOLS_FOR_ALL", "prompt_family", "reads_of"]

_ROOM = {"max_new_tokens": 1024}
"""Reasoning that is cut off names no option: every such row would be OTHER."""
# Nowak et al. (arXiv 2602.17445) sample their dashed protocol like this.
_AS_PUBLISHED = {**_ROOM, "temperature": 0.6, "top_k": 20}


# Which labels stand on the page


def _labelled(item: Item, orientation: Orientation, style: Style) -> Page:
    labels = labels_for(style.labels, len(orientation.order), style.language)
    return Page(item, orientation, labels, style)


def _shuffled(item: Item, orientation: Orientation, style: Style) -> Page:
    page = _labelled(item, orientation, style)
    labels = shuffled(page.labels, style.seed, item.id, orientation.order)
    return replace(page, labels=labels)


def _bare(item: Item, orientation: Orientation, style: Style) -> Page:
    return Page(item, orientation, (), style)


def _replaced(item: Item, orientation: Orientation, style: Style) -> Page:
    return _labelled(with_nota(item, style), orientation, style)


def _unseen(item: Item, orientation: Orientation, style: Style) -> Page:
    # The name goes into every row: what was never shown has no place that a model could
    # prefer, also when the stored rows are read again.
    return Page(item, replace(orientation, name=UNSEEN), (), style)


# What is asked


def _parts(*parts: str) -> str:
    return "\n\n".join(parts)


def _ask_letter(page: Page) -> str:
    if page.style.template is not None:
        fields = {"question": page.item.question, "options": page.options}
        return fill(page.style.template, fields | {"labels": named_list(page.labels)})
    # A template of the user's own asks for every right option in its own words.
    return _parts(page.item.question, page.options, page.said(page.asked.letters))


def _ask_reasoned(page: Page) -> str:
    return _parts(page.item.question, page.options, page.said(page.asked.reasoned))


def _ask_dashes(page: Page) -> str:
    return _parts(page.item.question, page.options, page.asked.dashes)


def _ask_text(page: Page) -> str:
    shown = [page.item.options[option] for option in page.orientation.order]
    return _parts(page.item.question, option_lines(shown, (), ""), page.words.text)


def _ask_guess(page: Page) -> str:
    return _parts(page.words.guess, page.options, page.said(page.words.letters))


def _ask_short(page: Page) -> str:
    return _parts(page.item.question, page.words.short)


def _ask_first(page: Page) -> str:
    return _parts(page.item.question, page.words.first)


def _ask_second(page: Page) -> str:
    return _parts(page.words.second, page.options, page.said(page.words.letters))


def _ask_analogy(page: Page) -> str:
    shown = [page.item.options[option] for option in page.orientation.order]
    return f"Question: {page.item.question}\nChoices:\n{option_lines(shown, (), '')}"


# What a solved example answers


def _label(page: Page) -> str:
    return page.gold_label


def _text(page: Page) -> str:
    return page.gold_text


def _reasoned(page: Page) -> str:
    words = page.words
    return "\n".join(filter(None, (page.rationale, words.cue + words.gap + page.gold_label)))


def _phrased(page: Page) -> str:
    words = page.words
    return "\n".join(filter(None, (page.rationale, words.phrase + words.gap + page.gold_text)))


# "Answer:" would skip the reasoning asked for.
def _reasoning_cue(words: Wording) -> str:
    return words.reasoning


_LETTERS = Protocol(
    "letters",
    _labelled,
    _ask_letter,
    _label,
    reads=frozenset({"labels", "language", "template", "few_shot"}),
)
_LABELS = frozenset({"labels", "language", "few_shot"})
_WORDS = frozenset({"language", "few_shot"})
_REASONED = _LABELS | {"rationale"}

PROTOCOLS: dict[str, PromptFamily] = {
    one.name: one
    for one in (
        _LETTERS,
        Protocol(
            "letters-reasoned",
            _labelled,
            _ask_reasoned,
            _reasoned,
            cue=_reasoning_cue,
            reads=_REASONED,
            defaults=_ROOM,
        ),
        replace(_LETTERS, name="letters-shuffled-labels", lay=_shuffled, reads=_LABELS),
        Protocol(
            "dashes",
            _bare,
            _ask_dashes,
            _phrased,
            reads=_WORDS | {"mark", "rationale"},
            defaults=_AS_PUBLISHED,
        ),
        Protocol("no-labels", _bare, _ask_text, _text, reads=_WORDS),
        Protocol("choices-only", _labelled, _ask_guess, _label, reads=_LABELS),
        replace(_LETTERS, name="none-of-the-above", lay=_replaced, reads=_LABELS | {"nota_share"}),
        Protocol(
            "options-last",
            _labelled,
            _ask_first,
            _label,
            cue=_reasoning_cue,
            then=_ask_second,
            reads=_REASONED,
            defaults=_ROOM,
        ),
        Protocol(
            "cloze",
            _unseen,
            _ask_short,
            _text,
            shows_options=False,
            reads=_WORDS,
            # One prompt an item: it would be the same in every orientation.
            defaults={"orientations": "as-is"},
        ),
        Protocol(
            "analogy",
            _bare,
            _ask_analogy,
            _text,
            plain_only=True,
            reads=frozenset({"few_shot"}),
            defaults={"max_new_tokens": 8},
            shots=analogy_shots,
        ),
    )
}
"""By name; one of your own enters by assignment."""


PROTOCOLS_FOR_ALL = ("letters", "letters-reasoned", "dashes")
"""Protocols with a wording that asks for every right option."""


def reads_of(name: str) -> frozenset[str]:
    """The settings of the page that a protocol looks at; a plain function looks at none."""
    reads: frozenset[str] = getattr(PROTOCOLS.get(name), "reads", frozenset())
    return reads


def prompt_family(
    name: str, style: Style | None = None, shots: Shots | None = None
) -> PromptFamily:
    """Find a protocol, set in a style and with examples.

    Args:
        name: A key of `PROTOCOLS`.
        style: How pages are set; None is the protocol's own.
        shots: Its examples; None keeps its own.

    Raises:
        SettingsError: The name is unknown, or the template is not sound; see
            `mlflow_mcq.protocols.template.check_template`.

    Example:
        >>> item = Item("q", "Which?", ("p", "q"), 0)
        >>> family = prompt_family("letters", Style(labels="lower"))
        >>> family(item, Orientation(0, "as-is", (0, 1)), chat=True).labels
        ('a', 'b')
    """
    if name not in PROTOCOLS:
        known = known_names(str(name), PROTOCOLS, named_list(sorted(PROTOCOLS)))
        raise SettingsError("protocol", "is unknown", name, known)
    family = PROTOCOLS[name]
    if not isinstance(family, Protocol):
        return family  # a function of the user's own sets its own pages
    if style is not None and style.template is not None:
        check_template(style.template)
    changed: dict[str, Any] = {"style": style, "shots": shots}
    return replace(family, **{k: v for k, v in changed.items() if v is not None})
