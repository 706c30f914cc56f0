"""The settings of a page as types: each is checked wherever it is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.protocols.labels import check_labels
from mlflow_mcq.protocols.wordings import WORDINGS

__all__ = ["Labels", "Language", "Mark"]

_LONGEST_MARK = 8


def _labels(labels: str | tuple[str, ...]) -> str | tuple[str, ...]:
    check_labels(labels)
    return labels


def _language(language: str) -> str:
    if language not in WORDINGS:
        known = f"Known: {', '.join(WORDINGS)}."
        raise SettingsError("language", "has no instructions here", language, known)
    return language


def _mark(mark: str) -> str:
    # A mark with a blank or a line break in it would look like an option of its own.
    if not mark or len(mark) > _LONGEST_MARK or mark.split() != [mark]:
        raise SettingsError("mark", f"must be 1 to {_LONGEST_MARK} characters, no blank", mark)
    return mark


Labels = Annotated[str | tuple[str, ...], AfterValidator(_labels)]
"""Name of a label style, or the labels themselves."""
Language = Annotated[str, AfterValidator(_language)]
"""A language that has instructions."""
Mark = Annotated[str, AfterValidator(_mark)]
"""What stands before every option where none has a name."""
