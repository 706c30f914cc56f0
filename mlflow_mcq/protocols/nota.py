"""None of the others: an item whose right option has given way to "none of the other options".

A model that picks what looks most familiar among wrong options is wrong on such an item,
whatever it knows.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace

from mlflow_mcq.draws import below
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import fixed_options
from mlflow_mcq.protocols.style import Style
from mlflow_mcq.protocols.wordings import WORDINGS
from mlflow_mcq.records import Item

__all__ = ["NOTA_TEXTS", "with_nota"]

NOTA_TEXTS = frozenset(words.nota for words in WORDINGS.values())
"""What the replaced option says, in every language."""


def with_nota(item: Item, style: Style) -> Item:
    """The item with one option replaced; ids, gold and all indices stay.

    In a share of items the right option is replaced, so that the new text is right; in the
    others a wrong one is, so that it is wrong. With a share of 1 a model that always picks
    the new text has an accuracy of 1: put the share at one over the number of options to
    measure whether a model takes it only where it is right. The draw depends on the seed
    and the item's id alone.

    Args:
        item: To be changed.
        style: Language, share and seed.

    Raises:
        DataError: An option speaks of the others already, or several are right: two would be
            right afterwards.

    Example:
        >>> with_nota(Item("q", "Liquid metal?", ("iron", "mercury"), 1), Style()).options
        ('iron', 'None of the other options')
    """
    if item.also_right:
        raise DataError(
            f"item {item.id!r}",
            "has several right options, and only one is replaced",
            item.golds,
            "Leave the item out of the data of this arm.",
        )
    if fixed_options(item.options):
        raise DataError(
            f"item {item.id!r}",
            "has an option that speaks of the others, so none of them can be replaced by "
            '"none of the other options"',
            item.options,
            "Leave the item out of the data of this arm.",
        )
    draw = random.Random(json.dumps(["nota", style.seed, item.id]))
    place = item.gold
    if draw.random() >= style.nota_share:
        wrong = [option for option in range(len(item.options)) if option != item.gold]
        place = wrong[below(len(wrong), draw)]
    options = list(item.options)
    options[place] = WORDINGS[style.language].nota
    return replace(item, options=tuple(options))
