"""Which option stood where: read off the prompt that was sent, never assumed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.orientations import letters_for

__all__ = ["check_gold_alone", "check_order", "order_shown"]

# What stands before and after a letter at the beginning of a line.
_STYLES = (("", ")"), ("", "."), ("(", ")"), ("", ":"), ("[", "]"))
_LINE_END = re.compile(r"[ \t]*(?:\r?\n\s*|\Z)")
_GAP = re.compile(r"[ \t]*")


def check_order(order: str) -> None:
    """Refuse to take the order shown from anywhere but the prompt or the data.

    Raises:
        SettingsError: It is another word.
    """
    if order not in ("from-prompt", "as-is"):
        raise SettingsError("order", "must be from-prompt or as-is", order)


def check_gold_alone(options: Sequence[str], gold: int, who: str) -> None:
    """Refuse an item of which another option reads as the gold one does.

    Raises:
        DataError: No prompt could say which of the two stood where.
    """
    texts = [option.strip() for option in options]
    if texts.count(texts[gold]) > 1:
        raise DataError(
            who,
            "another option has the text of the gold one, so nothing can say where it stood",
            list(options),
        )


def order_shown(prompt: str, options: Sequence[str], who: str) -> tuple[int, ...]:
    """Find the options as a lettered list, each beginning a line, and say in which order.

    The last such list counts: a prompt may hold examples, and may repeat the question. Each
    text must stand there whole and alone, so that "4" is not found in "42".

    Args:
        prompt: All that was sent before the answer.
        options: In the order of the data.
        who: Names the row in errors.

    Returns:
        ``order[slot]``: the option shown there. Of options with equal texts the first one
        stands first: where none of them is gold it makes no difference to any verdict, see
        `check_gold_alone`.

    Raises:
        DataError: There is no such list, it can be read in two ways, or an option is empty.

    Example:
        >>> order_shown("Liquid?\\nA. mercury\\nB. iron\\nAnswer:", ["iron", "mercury"], "row")
        (1, 0)
    """
    texts = [option.strip() for option in options]
    if not all(texts):
        raise DataError(who, "an option is empty", list(options))
    found = [block for style in _STYLES if (block := _last_block(prompt, texts, style))]
    if not found:
        raise DataError(
            who,
            "the prompt does not show the options as a lettered list, so their order is not known",
            prompt[-200:],
            'If they were shown in the order of the data, say so with order="as-is".',
        )
    return max(found)[1]


def _last_block(
    prompt: str, texts: Sequence[str], style: tuple[str, str]
) -> tuple[int, tuple[int, ...]] | None:
    labels = [style[0] + letter + style[1] for letter in letters_for(len(texts))]
    start = len(prompt)
    while (start := prompt.rfind(labels[0], 0, start)) >= 0:
        at_line_start = not prompt[:start].rpartition("\n")[2].strip()
        order = _fill(prompt, start, labels, texts, ()) if at_line_start else None
        if order is None:
            continue
        # Tried from the other end: an option that holds "B) ..." may allow two readings.
        other = _fill(prompt, start, labels, texts[::-1], ()) or ()
        if [texts[::-1][option] for option in other] != [texts[option] for option in order]:
            return None
        return start, order
    return None


def _fill(
    prompt: str,
    place: int,
    labels: Sequence[str],
    texts: Sequence[str],
    order: tuple[int, ...],
) -> tuple[int, ...] | None:
    """The options from a place on, or None. Goes back where one text begins another."""
    if len(order) == len(labels):
        return order
    label = labels[len(order)]
    if not prompt.startswith(label, place):
        return None
    place = _end(_GAP, prompt, place + len(label))
    tried: set[str] = set()
    for option, text in enumerate(texts):
        if option in order or text in tried or not prompt.startswith(text, place):
            continue
        tried.add(text)
        end = _LINE_END.match(prompt, place + len(text))
        if end is not None:
            found = _fill(prompt, end.end(), labels, texts, (*order, option))
            if found is not None:
                return found
    return None


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match is not None else place
