"""Labels that stand inside the option texts: ``(A) iron``, ``B) tin``.

Left there, a page in another order shows two letters for every option, and they differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.orientations import letters_for

__all__ = ["bare_options", "without_labels"]

_LABELLED = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[).:、．])\s*(\S.*)", re.DOTALL)


def bare_options(options: Sequence[str]) -> tuple[str, ...] | None:
    """The options without their own labels; None where they have none.

    Only where every option carries its own label, in order: "A sharp knife" begins with
    an article, and "B flat" is a note.

    Example:
        >>> bare_options(["(A) iron", "(B) tin"])
        ('iron', 'tin')
        >>> bare_options(["A. Smith", "C. Jones"]) is None
        True
    """
    if len(options) > 26:
        return None
    found = [_LABELLED.fullmatch(option) for option in options]
    labels = tuple(match.group(1) or match.group(2) for match in found if match)
    if labels != letters_for(len(options)):
        return None
    return tuple(match.group(3) for match in found if match)


def without_labels(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows with bare options, and how many items had labels inside."""
    bare = [(row, bare_options(row.item.options)) for row in rows]
    stripped = {row.item.id for row, options in bare if options}
    clean = [
        replace(row, item=replace(row.item, options=options)) if options else row
        for row, options in bare
    ]
    return clean, len(stripped)
