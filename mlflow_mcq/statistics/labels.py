"""Place or letter? Told apart by rows whose labels were shuffled over the slots.

In usual prompts the top slot is called A, so a bias for the top and a bias for the letter
A look the same. Where labels are shuffled (slot 1 may be called C), they come apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mlflow_mcq.clusters import Codes, Floats
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.statistics.intervals import Measured, undefined
from mlflow_mcq.statistics.patterns import REPLICATES, Number, bootstrapped, patterns_of
from mlflow_mcq.statistics.rows import NONE, Rows, rows_of, whole
from mlflow_mcq.statistics.selection_bias import counts_by_item

__all__ = ["PlaceOrLetter", "place_or_letter"]


@dataclass(frozen=True, slots=True)
class PlaceOrLetter:
    """Where a selection bias sits.

    Each is half the sum of \\|pick rate - even rate\\| over slots or letters, in [0, 1].

    Attributes:
        usual: By slot in the usual rows, where slot and letter are one.
        place: By slot in the rows with shuffled labels: position bias.
        letter: By letter in the same rows: token bias.
    """

    usual: Measured
    place: Measured
    letter: Measured


def place_or_letter(
    usual: pd.DataFrame, shuffled: pd.DataFrame, replicates: int = REPLICATES, seed: int = 0
) -> PlaceOrLetter:
    """Split a selection bias into a bias for places and one for letters.

    After Zheng et al., arXiv 2309.03882, who move the labels and leave the options: a bias
    that stays with the place is one of position, one that moves along is one of the token.
    Measured against even picks: use items whose gold stands in every slot equally often
    (all rotations, say), or the gold itself looks like a bias. *Hides* a bias for a place
    *under* its usual letter only.

    Args:
        usual: Grades of rows with the letters in order, one grader.
        shuffled: Grades of rows whose ``shown_letter`` is that of the slot picked, with
            labels shuffled over the slots.
        replicates: Draws for the intervals.
        seed: Of the draws.

    Returns:
        Three shifts; undefined without named rows.

    Raises:
        DataError: A letter is unknown, or the letters were not shuffled at all.
    """
    rows = rows_of(shuffled)
    letters = {name: place for place, name in enumerate(letters_for(26))}
    shown = shuffled["shown_letter"].map(letters, na_action="ignore")
    read = rows.slot != NONE
    if shown[read].isna().any():
        bad = shuffled.loc[read & shown.isna().to_numpy(), "shown_letter"].iloc[0]
        raise DataError("shown_letter", "is a letter from A to Z where a slot is picked", bad)
    letter = whole(shown)
    if read.any() and np.array_equal(letter[read], rows.slot[read]):
        raise DataError("shuffled", "no letter was moved: slot and letter are the same", "A = top")
    return PlaceOrLetter(
        _uneven(rows_of(usual), None, replicates, seed),
        _uneven(rows, None, replicates, seed),
        _uneven(rows, letter, replicates, seed),
    )


def _uneven(rows: Rows, column: Codes | None, replicates: int, seed: int) -> Measured:
    read = rows.slot != NONE
    named = rows.keep(read)
    if not len(named.slot):
        return undefined("0 rows with a known pick")
    picked = named.slot if column is None else column[read]
    n_slots = int(named.n_options.max())
    picks = counts_by_item(named, picked, n_slots)
    even = np.stack(
        [named.per_item((named.n_options > k) / named.n_options) for k in range(n_slots)], axis=1
    )
    there = picks.any(axis=1)

    def moved(sums: Floats) -> Floats:
        mine, evenly = np.split(sums, 2, axis=1)
        return np.asarray((mine - evenly) / mine.sum(axis=1, keepdims=True))

    def size(rates: Floats) -> Floats:
        return np.asarray(np.abs(rates).sum(axis=1) / 2)

    number = Number(
        lambda sums: size(moved(sums)), 0.0, 1.0, lambda sums, seen: size(moved(sums) - moved(seen))
    )
    patterns = patterns_of([*picks[there].T, *even[there].T])
    return bootstrapped(patterns, {"shift": number}, replicates, seed)["shift"]
