"""What is said of data that was read: counts that are kept while its rows go by."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from mlflow_mcq.datasets.frame import Row, answer_column
from mlflow_mcq.datasets.layouts import Layout
from mlflow_mcq.datasets.sampling import Keys
from mlflow_mcq.datasets.shape import HowRead
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import letters_for

__all__ = ["FROM_ZERO", "Tally"]

FROM_ZERO = (
    "answers are read as counting from 0, and none is 0: if yours count from 1, "
    "set columns.answer_as to number"
)
"""Said of numbers that fit both ways to count."""


_ENOUGH_NUMBERS = 4
_MOST_NUMBERS = 10_000
_UNLIKELY = 1e-3
"""Chance that no gold is the first option, below which nobody reads on without asking."""


class Tally:
    """Counts over rows, whatever their number.

    Args:
        asked: How they are read.
        n_at_most: As for `Keys`.
    """

    def __init__(self, asked: HowRead, n_at_most: int | None = None) -> None:
        self._asked = asked
        self.keys = Keys(asked.settings.seed, n_at_most)
        self._n_odd = 0
        self._ends: list[str] = []
        self._stripped = array("l")
        self._numbers: set[int] = set()
        self._answer = "targets"

    def add(self, rows: Sequence[Row], stripped: Sequence[bool], plain: bool) -> None:
        """Count rows.

        Args:
            rows: The next ones, at least one.
            stripped: Which of them had labels inside their options.
            plain: They were read from plain columns, by our reading of their answers.
        """
        for row, was_labelled in zip(rows, stripped, strict=True):
            if was_labelled:
                self._stripped.append(len(self.keys))
            self.keys.add(row)
        if plain and not self._asked.has_targets:
            name = answer_column(list(rows[0].cells), self._asked.settings.columns)
            self._answer = str(name)
            self.add_answers([row.cells[self._answer] for row in rows])

    def add_answers(self, given: Sequence[object]) -> None:
        """Take note of the numbers among answers."""
        # As many as no item has options settle nothing, and may not fit into memory.
        if len(self._numbers) < _MOST_NUMBERS:
            self._numbers |= {int(v) for v in given if isinstance(v, (int, np.integer))}
            floats = [v for v in given if isinstance(v, (float, np.floating))]
            self._numbers |= {int(v) for v in floats if np.isfinite(v)}

    def add_labels(self, labels: Sequence[str]) -> None:
        """Take note of the labels that a layout found in a row."""
        if not labels or tuple(labels) == letters_for(len(labels)):
            return
        self._n_odd += 1
        ends = sorted({*labels, *self._ends}, key=lambda label: (len(label), label))
        self._ends = [ends[0], ends[-1]]

    def said(self, layout: Layout | None, inside: bool, n_bad: int, from_zero: bool = False) -> str:
        """One line for people; ``from_zero`` where a 0 settled how texts count.

        Raises:
            DataError: The answers may all be one option off.
        """
        kinds, n_items = self.keys.kinds(), self.keys.n_items
        counts = sorted({n_options for n_options, _ in kinds})
        parts = [
            ("plain columns" if layout is None else layout.title)
            + (" (inside a log of lm-eval)" if inside else ""),
            f"{n_items:,} item" + ("s" if n_items != 1 else ""),
            (f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else f"{counts[0]}") + " options",
        ]
        if self._n_odd:
            parts.append(f"labels {self._ends[0]}-{self._ends[-1]} in {self._n_odd:,}")
        parts += self._counted(from_zero) if layout is None else []
        golds = {golds for _, golds in kinds}
        only = next(iter(golds))
        if golds == {only} and len(only) == 1:
            parts.append(f"gold is option {only[0] + 1} in all")
        if self._stripped:
            n_stripped = self.keys.n_ids_of(self._stripped)
            parts.append(f"labels inside the option texts taken off in {n_stripped:,}")
        if n_bad:
            parts.append(f"{n_bad:,} row{'s' * (n_bad != 1)} left out")
        note = f" ({layout.note})" if layout is not None and layout.note else ""
        return "read as: " + ", ".join(parts) + note + (self._doubt() if layout is None else "")

    def _counted(self, from_zero: bool) -> list[str]:
        """How answers count, where that is certain."""
        told = self._asked.settings.columns.answer_as
        if told in ("index", "number"):
            return [f"answers counted from {int(told == 'number')}"]
        golds = self.keys.golds()
        sure = from_zero or (0 in golds and self._numbers == golds)
        return ["answers counted from 0"] if sure else []

    def _doubt(self) -> str:
        """What to say of numbers that are read as counting from zero, though none of them is 0.

        Each row fits both ways to count; a whole column that counts from one would be read one
        option too far, and only the missing 0 shows it. Golds that are spread evenly over n options
        leave out the first with a chance of the product of ``1 - 1/n`` over items. (They leave out
        the last as rarely, which is what they would have done if the column counts from one: such a
        column does not say what it means, and a guess would be wrong for all of it or for none.)

        Raises:
            DataError: That chance is too small for an accident.
        """
        golds = self.keys.golds()
        few = len(self.keys) < _ENOUGH_NUMBERS
        told = self._asked.settings.columns.answer_as != "auto"
        if told or few or 0 in golds or self._numbers != golds:
            return ""
        kinds = self.keys.kinds()
        if math.prod((1 - 1 / n_options) ** n for (n_options, _), n in kinds.items()) < _UNLIKELY:
            raise DataError(
                self._answer,
                f"the answers of all {self.keys.n_items:,} items fit a count from 0 and a count "
                "from 1: none is 0, and none is the number of options; read in the wrong way every "
                "gold would be one option off",
                sorted(self._numbers),
                "Set columns.answer_as to number if 1 is the first option, or to index if 0 is.",
            )
        return f"; {FROM_ZERO}"
