"""The page: one item as it is put on paper, before any instruction.

Texts from the data are joined, never formatted: a question that contains ``{gold}`` or
``%s`` must come out as it is. They stand in logical order in every script, as models read
them: no direction mark is added to Arabic or Hebrew, since it would be one more token
inside what is measured, and which way a line runs on a screen is the screen's affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlflow_mcq.protocols.labels import kind_of, labels_for
from mlflow_mcq.protocols.style import Style
from mlflow_mcq.protocols.wordings import WORDINGS, Wording
from mlflow_mcq.protocols.wordings_all import WORDINGS_ALL, WordingAll
from mlflow_mcq.records import Item, Orientation

__all__ = ["Page", "fill", "named_list", "one_line_label", "option_lines"]

# In two braces first: such a word is text, also where a field has its name.
_FIELD = re.compile(r"\{\{(?P<text>\w+)\}\}|\{(?P<field>\w+)\}")


def named_list(names: Sequence[str], comma: str = ", ", last: str = " or ") -> str:
    """Join names as a sentence does.

    Example:
        >>> named_list(["A", "B", "C"])
        'A, B or C'
    """
    return last.join(filter(None, (comma.join(names[:-1]), *names[-1:])))


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


def option_lines(shown: Sequence[str], labels: Sequence[str], mark: str = "- ") -> str:
    """The options by slot, one block each, labelled or marked.

    Args:
        shown: Option texts by slot.
        labels: Labels by slot; empty where none are shown.
        mark: What stands before every option then; with its blank.
    """
    marks = [f"{label}) " for label in labels] or [mark] * len(shown)
    return "\n".join(one_line_label(mark, text) for mark, text in zip(marks, shown, strict=True))


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Put fields into a template of ours or of the user's, in one pass.

    A field inside the data is never filled in, ``{{word}}`` becomes ``{word}``, and any other
    brace stays as it is.

    Example:
        >>> fill("{question} {x} {{labels}}", {"question": "Why {labels}?", "labels": "A"})
        'Why {labels}? {x} {labels}'
    """

    def filled(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return f"{{{found['text']}}}"
        return fields.get(found["field"], found[0])

    return _FIELD.sub(filled, template)


@dataclass(frozen=True, slots=True)
class Page:
    """One item in one orientation, with the names of its slots.

    Attributes:
        item: What is asked; ``none-of-the-above`` has changed an option of it already.
        orientation: ``order[slot]`` is the option in that slot.
        labels: By slot; empty where none are shown.
        style: How it is set.
        rationale: Why the right option is right; of examples only, and often empty.
    """

    item: Item
    orientation: Orientation
    labels: tuple[str, ...]
    style: Style
    rationale: str = ""

    @property
    def words(self) -> Wording:
        """Our own words, in the language of the instruction."""
        return WORDINGS[self.style.language]

    @property
    def asked(self) -> Wording | WordingAll:
        """The words that ask for one right option, or for all of them."""
        return WORDINGS_ALL[self.style.language] if self.item.takes_all else self.words

    @property
    def options(self) -> str:
        """The options by slot, labelled, or under one mark."""
        shown = [self.item.options[option] for option in self.orientation.order]
        return option_lines(shown, self.labels, f"{self.style.mark} ")

    @property
    def gold_label(self) -> str:
        """The label of the right option; of all of them where all are asked for."""
        return ", ".join(self.labels[slot] for slot in self._gold_slots)

    @property
    def gold_text(self) -> str:
        """The text of the right option; of all of them, one a line, where all are asked for."""
        order = self.orientation.order
        return "\n".join(self.item.options[order[slot]] for slot in self._gold_slots)

    @property
    def _gold_slots(self) -> list[int]:
        golds = self.item.golds if self.item.takes_all else (self.item.gold,)
        return sorted(self.orientation.slot_of(gold) for gold in golds)

    def said(self, words: str) -> str:
        """An instruction with the labels of this very item in it."""
        ours, style = self.words, self.style
        # In the order of the alphabet, also where the labels are shuffled: the instruction
        # must not say which one stands where.
        names = labels_for(style.labels, len(self.labels), style.language)
        named = named_list(names, ours.comma, ours.last)
        return fill(words, {"labels": named, "kind": kind_of(names)})
