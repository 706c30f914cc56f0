"""Prompt families: how an item in one orientation is put on paper.

Texts from the data are joined, never formatted: a question that contains
``{gold}`` or ``%s`` must come out as it is. The instruction names exactly the
letters that this item shows, since "answer A to D" makes a model pick options that
a three-option item does not have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from mlflow_mcq.doors import PromptFamily
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import Conversation, Item, Message, Orientation, Prompt

__all__ = [
    "PROTOCOLS",
    "PROTOCOLS_FOR_ALL",
    "named_list",
    "one_line_label",
    "option_lines",
    "prompt_family",
]

_LETTERS = "{question}\n\n{options}\n\nAnswer with the letter of one option only: {labels}."
_REASONED = (
    "{question}\n\n{options}\n\nThink step by step, then end with a line that says "
    '"Answer: " and the letter of one option: {labels}.'
)
_DASHES = (
    "{question}\n\n{options}\n\nChoose one of the options above. End with the words "
    '"the answer is" followed by the full text of that option.'
)
# What is asked where every right option is wanted. A template of the user's own asks for it
# in its own words.
_FOR_ALL = {
    _LETTERS: "{question}\n\n{options}\n\nOne or more options are right. Answer with the letters "
    "of all that are, separated by commas, and with nothing else: {labels}.",
    _REASONED: "{question}\n\n{options}\n\nOne or more options are right. Think step by step, then "
    'end with a line that says "Answer: " and the letters of all that are, separated by '
    "commas: {labels}.",
    _DASHES: "{question}\n\n{options}\n\nOne or more of the options above are right. End with the "
    'words "the answer is" followed by the full text of each that is, one a line.',
}
PROTOCOLS_FOR_ALL = ("letters", "letters-reasoned", "dashes")
"""Families with a wording that asks for every right option."""
_FIELD = re.compile(r"\{(question|options|labels)\}")
_CUE = "\nAnswer:"
_CUES = {"letters-reasoned": "\nReasoning:"}  # "Answer:" would skip the reasoning asked for


def named_list(names: Sequence[str]) -> str:
    """Join names as a sentence does.

    Example:
        >>> named_list(["A", "B", "C"])
        'A, B or C'
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def one_line_label(label: str, text: str) -> str:
    """One option as a block that cannot be read as two.

    Further lines are marked, so that an option text holding "B) ..." on a line of its
    own does not look like another option.

    Example:
        >>> print(one_line_label("A) ", "first\\nB) fake"))
        A) first
         | B) fake
    """
    first, *rest = text.splitlines() or [""]
    return "\n".join([label + first, *(f" | {line}" for line in rest)])


def option_lines(shown: Sequence[str], labels: Sequence[str]) -> str:
    """The options by slot, one block each, lettered or dashed.

    Args:
        shown: Option texts by slot.
        labels: Letters by slot; empty for dashes.
    """
    marks = [f"{label}) " for label in labels] or ["- "] * len(shown)
    return "\n".join(one_line_label(mark, text) for mark, text in zip(marks, shown, strict=True))


def _render(
    item: Item,
    orientation: Orientation,
    *,
    chat: bool,
    name: str,
    template: str,
    lettered: bool,
) -> Prompt:
    shown = [item.options[option] for option in orientation.order]
    labels = letters_for(len(shown)) if lettered else ()
    fields = {
        "question": item.question,
        "options": option_lines(shown, labels),
        "labels": named_list(labels),
    }
    # One pass over the template only: a field inside the data is never filled in.
    asked = _FOR_ALL.get(template, template) if item.takes_all else template
    text = _FIELD.sub(lambda match: fields[match.group(1)], asked)
    content: Conversation = (Message("user", text),) if chat else text + _CUES.get(name, _CUE)
    return Prompt(item, orientation, name, content, labels)


def _family(name: str, template: str, lettered: bool) -> PromptFamily:
    return partial(_render, name=name, template=template, lettered=lettered)


PROTOCOLS: dict[str, PromptFamily] = {
    "letters": _family("letters", _LETTERS, lettered=True),
    "letters-reasoned": _family("letters-reasoned", _REASONED, lettered=True),
    "dashes": _family("dashes", _DASHES, lettered=False),
}
"""Families by name; a family of your own enters by assignment."""


def prompt_family(name: str, template: str | None = None) -> PromptFamily:
    """Find a family, with the user's own wording where there is one.

    Args:
        name: A key of `PROTOCOLS`.
        template: Own wording for a lettered prompt. ``{question}``, ``{options}`` and
            ``{labels}`` are filled in; any other brace stays as it is.

    Raises:
        SettingsError: The name is unknown, or the template shows no options.
    """
    if template is not None:
        if name != "letters":
            raise SettingsError("template", 'goes with protocol "letters" only', name)
        if not {"question", "options"} <= set(_FIELD.findall(template)):
            raise SettingsError("template", "must contain {question} and {options}", template)
        return _family("letters", template, lettered=True)
    if name not in PROTOCOLS:
        raise SettingsError(
            "protocol", "is unknown", name, f"Known: {named_list(sorted(PROTOCOLS))}."
        )
    return PROTOCOLS[name]
