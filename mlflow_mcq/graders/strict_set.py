"""The strict rule where every right option is asked for: a bare list of labels.

As in `mlflow_mcq.graders.strict` a reply is settled only where it is nothing else, and
whatever might mean something else is left to the judge: "A or C" is a hedge, "AC" with
small letters a word, "1,3" a number, and a reply cut at the token limit may have had more
to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlflow_mcq.graders.answer_words import without_lead
from mlflow_mcq.graders.labels import fold, forms_of, peel
from mlflow_mcq.graders.option_texts import looking_like, option_texts, slots_showing, wanted
from mlflow_mcq.graders.strict import label_names, read_strict
from mlflow_mcq.graders.thought import answer_part

__all__ = ["SetReading", "read_strict_set", "strict_choices"]

_LONGEST = 400
_MOST_GLUED = 8
"""Options up to which "ACD" is a list: with nine, "HI" and "AI" would be ones too."""
_AND = "and|und|et|en|och|og|oraz|ve|и|та|và|dan|和|与|と"
_SHORT_AND = "y|e|i"  # Spanish, Portuguese and Italian, Polish: labels of long items as well
_BETWEEN = re.compile(
    rf"\s*[,;、،]\s*(?:(?:{_AND}|{_SHORT_AND})\s+)?"
    rf"|\s+(?:{_AND}|{_SHORT_AND})\s+|\s*[和与と&]\s*|(?<=\))\s*(?=\()|(?<=\])\s*(?=\[)"
)
_LINES = re.compile(r"\s*\n\s*")
_BULLET = re.compile(r"[-•*]\s+")


@dataclass(frozen=True, slots=True)
class SetReading:
    """What the strict rule made of a reply that may name several options.

    Attributes:
        slots: The slots that were named, in ascending order; empty where none was.
        reason: ``strict`` with slots; why no option was named where that is settled; empty
            where the rule abstains.
    """

    slots: tuple[int, ...]
    reason: str

    @property
    def settled(self) -> bool:
        """Whether a judge has nothing left to say."""
        return bool(self.reason)


_ABSTAIN = SetReading((), "")


def strict_choices(
    text: str | None, options: Sequence[str], labels: Sequence[str] | None = None
) -> tuple[int, ...]:
    """The slots named by a reply that is nothing but labels; empty abstains.

    Args:
        text: The reply, raw; thinking is left out.
        options: Option texts in the order shown.
        labels: As for `mlflow_mcq.graders.strict.strict_choice`.

    Example:
        >>> metals = ["copper", "iron", "mercury"]
        >>> strict_choices("A and C.", metals), strict_choices("(b)", metals)
        ((0, 2), (1,))
        >>> strict_choices("A or C", metals)
        ()
    """
    return read_strict_set(text, options, labels).slots


def read_strict_set(
    text: str | None,
    options: Sequence[str],
    labels: Sequence[str] | None = None,
    sent: str = "",
    cut: bool = False,
) -> SetReading:
    """As `strict_choices`, with the reason.

    Args:
        text: The reply, raw.
        options: Option texts in the order shown.
        labels: As for `strict_choices`.
        sent: The text that reached the model, which may have opened its thinking.
        cut: The reply ended at the token limit: "A" may be all that was left of "A, C".

    Example:
        >>> read_strict_set("A, C", ["x", "y", "z"])
        SetReading(slots=(0, 2), reason='strict')
    """
    one = read_strict(text, options, labels, sent, cut)
    # A label with the text of another option may be meant for both of them here.
    if one.settled and one.slot is None and one.reason != "label_text_conflict":
        return SetReading((), one.reason)
    if cut or text is None:
        return _ABSTAIN
    body = answer_part(text, sent).text.strip()
    names = label_names(len(options), labels)
    if one.slot is not None:
        listed = _lists_options(body, options, names)
        return _ABSTAIN if listed else SetReading((one.slot,), one.reason)
    if len(body) > _LONGEST or not names or slots_showing(wanted(fold(body)), options):
        return _ABSTAIN
    slots = _listed(body, names)
    # "A, B" where B is what option A says: a label with its own text.
    alike = any(looking_like(names[slot], options) for slot in slots)
    return SetReading(tuple(sorted(slots)), "strict") if slots and not alike else _ABSTAIN


def _lists_options(body: str, options: Sequence[str], labels: tuple[str, ...]) -> bool:
    """Whether what reads as one option is also a list of others: "salt and iron"."""
    parts, forms = _BETWEEN.split(fold(body)), forms_of(labels)
    # A table, and no part after the first strange one: an option of ten thousand commas has as
    # many parts, and each would be held against all of its text.
    texts = option_texts(tuple(options))
    return len(parts) > 1 and all(part in forms or bool(texts.find(part)) for part in parts)


@lru_cache(maxsize=4096)  # the same few lists are said again and again
def _listed(body: str, labels: tuple[str, ...]) -> frozenset[int]:
    """The slots of a reply that is a list of two labels or more; empty where it is not."""
    core = _without_words("\n".join(map(fold, body.splitlines())))
    found = _from_json(core)
    if found is None:
        lines = _LINES.split(core)
        parts = [part for line in lines for part in _parts(line, len(lines) > 1, labels)]
        glued = _glued(peel(fold(core)).removesuffix("."), labels)
        found = glued or [peel(part, brackets=False) for part in parts]
    return _slots(found, labels)


def _without_words(body: str) -> str:
    core, lead = without_lead(peel(body, brackets=False))
    core = peel(core, brackets=False) if lead.found else core
    if core.endswith("."):
        core = core[:-1]
    return peel(core) if core[:1] not in "([" or core[:2] == "\\[" else core


def _from_json(core: str) -> list[str] | None:
    if core[:1] != "[":
        return None
    try:
        found = json.loads(core)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(found, list) and all(isinstance(one, str) for one in found)
    return found if plain else None


def _parts(line: str, one_of_several: bool, labels: tuple[str, ...]) -> list[str]:
    """A line cut where labels end; a list in brackets loses them first."""
    line = fold(line)
    if one_of_several:
        line = _BULLET.sub("", line, count=1)
    elif line[:1] in "([" and re.search(r"[,;&]|\s", line):
        line = peel(line)
    upper = {label.upper() for label in labels}
    for word in _SHORT_AND.split("|"):
        # "A e C" is a list of two in Portuguese, and of three where E is an option.
        if word.upper() in upper and re.search(rf"\s{word}\s", line):
            return [line]
    parts = _BETWEEN.split(line)
    if len(parts) == 1 and all(part in labels for part in line.split()):
        parts = line.split()  # "A C", in capitals as shown
    return parts


def _glued(core: str, labels: tuple[str, ...]) -> list[str]:
    """The letters of "ACD": in capitals, in the order of the page, of a short item."""
    single = all(len(label) == 1 and label.isupper() for label in labels)
    if not single or len(labels) > _MOST_GLUED or len(core) < 2 or not set(core) <= set(labels):
        return []
    places = [labels.index(letter) for letter in core]
    return list(core) if places == sorted(set(places)) else []


def _slots(parts: Sequence[str], labels: tuple[str, ...]) -> frozenset[int]:
    forms = forms_of(labels)
    hits = [forms.get(part.strip()) for part in parts]
    known = [hit for hit in hits if hit is not None]
    if len(parts) < 2 or len(known) < len(parts):
        return frozenset()
    names = [name for _, name, _ in known]
    slots = frozenset(slot for slot, _, _ in known)
    # "1, 3" may be a number in a language with decimal commas, or a list of results.
    numbers = any(name.isdecimal() and not pointed for _, name, pointed in known)
    one_case = len({name.isupper() for name in names}) == 1
    return slots if len(slots) == len(parts) and one_case and not numbers else frozenset()
