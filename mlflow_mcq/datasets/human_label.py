"""Human labels: what a person says an answer is worth, for some of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlflow_mcq.datasets.cells import is_missing
from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Verdict
from mlflow_mcq.settings import Columns

__all__ = ["label_column", "read_human_label", "refuse_human_labels", "say_labels_alone"]

_USUAL = "human_label"


def label_column(cells: Mapping[str, Any], columns: Columns) -> str | None:
    """The column of human labels, by its setting or by its usual name; None without one.

    Raises:
        DataError: The setting names no column.
    """
    named = columns.human_label
    if named is None:
        # A column that is said to be the answer, say, is not taken twice.
        taken = set(columns.model_dump().values())
        return _USUAL if _USUAL in cells and _USUAL not in taken else None
    if named not in cells:
        raise DataError("columns.human_label", "is not a column of the data", named, f"{[*cells]}")
    return named


def read_human_label(cell: object, who: str) -> Verdict | None:
    """A label from a cell: a verdict in any case, or nothing.

    True and False are refused: "not right" does not say whether the answer is wrong or
    none at all, and these two are kept apart here.

    Args:
        cell: What the data holds.
        who: The row, for errors.

    Returns:
        The verdict; None where the cell is blank or missing.

    Raises:
        DataError: It is anything else.

    Example:
        >>> read_human_label(" other", "row 3").value, read_human_label(None, "row 4")
        ('OTHER', None)
    """
    if _blank(cell):
        return None
    word = cell.strip().upper() if isinstance(cell, str) else ""
    if word not in Verdict.__members__:
        raise DataError(
            who,
            "a human label says what the answer is worth",
            cell,
            f"Write {', '.join(Verdict.__members__)}, or leave it empty.",
        )
    return Verdict[word]


def refuse_human_labels(rows: Sequence[Row], columns: Columns) -> None:
    """Refuse labels where a model answers afresh: they belong to answers that exist.

    A label of yesterday's answer beside today's would be believed, and be wrong.

    Raises:
        SettingsError: A row carries a label, or a setting says where they are.
    """
    column = label_column(rows[0].cells, columns)
    if column is None:
        return
    found = [row.who for row in rows if not _blank(row.cells[column])]
    if found or columns.human_label is not None:
        raise SettingsError(
            "columns.human_label",
            f"column {column!r} labels answers that are there already, and a model gives new ones",
            found[0] if found else ...,
            "Read stored answers (model None, with a column of answers), or drop the column.",
        )


def say_labels_alone(n: int) -> None:
    """Say that nobody is held against what people said: silence would look like agreement.

    Args:
        n: Stored answers that carry a label.
    """
    from mlflow.utils.logging_utils import eprint

    if n:
        eprint(
            f"{n} of the stored answers carry a human_label; it is kept with them, but only "
            "mcq_judge is compared with it (human_agreement, accuracy_ppi)"
        )


def _blank(cell: object) -> bool:
    return is_missing(cell) or (isinstance(cell, str) and not cell.strip())
