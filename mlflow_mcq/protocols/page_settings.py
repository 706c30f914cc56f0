"""The settings of a page as types: each is checked wherever it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols.families import PROTOCOLS, reads_of
from mlflow_mcq.protocols.labels import check_labels
from mlflow_mcq.protocols.language_names import code_of
from mlflow_mcq.protocols.page import named_list
from mlflow_mcq.protocols.wordings import WORDINGS

__all__ = ["PAGE", "Labels", "Language", "Mark", "check_order", "check_read", "check_shots"]

PAGE = ("labels", "language", "mark", "template", "nota_share", "few_shot")
"""Names of the settings of a page."""

_LONGEST_MARK = 8


def _labels(labels: str | tuple[str, ...]) -> str | tuple[str, ...]:
    check_labels(labels)
    return labels


def _language(language: str) -> str:
    if language not in WORDINGS:
        # By its letters "german" is nearest to "en".
        meant = code_of(language)
        listed = known_names("", WORDINGS)
        known = f'Did you mean "{meant}"? {listed}' if meant else known_names(language, WORDINGS)
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


def check_read(protocol: str, names: Iterable[str]) -> None:
    """Refuse settings that would do nothing.

    Args:
        protocol: Its name.
        names: Settings that the user has changed.

    Raises:
        SettingsError: The protocol does not look at one of them; says which ones do.

    Example:
        >>> check_read("dashes", ["mark"])
    """
    for name in names:
        read = name.rpartition(".")[2]
        if read not in reads_of(protocol):
            readers = [f'"{known}"' for known in PROTOCOLS if read in reads_of(known)]
            rule = f"goes with protocol {named_list(readers)} only"
            raise SettingsError(name, rule, protocol)


def check_shots(protocol: str, shots: FewShotSettings | None) -> None:
    """Refuse examples that lack what their protocol shows of them.

    Raises:
        SettingsError: Examples of a protocol of two turns have no first reply.
    """
    if shots and not shots.rationale and getattr(PROTOCOLS[protocol], "then", None):
        raise SettingsError(
            "few_shot.rationale",
            f'must name a column with protocol "{protocol}": its text stands as the reply to the '
            "first turn",
            possible="Name the column of the examples that holds their reasoning.",
        )


def check_order(protocol: str, orientations: str, moved: bool) -> None:
    """Refuse orientations that a protocol, or its examples, cannot have.

    Raises:
        SettingsError: Examples are to be moved with items that stay, or options are to be
            turned that nobody sees.
    """
    if moved and not orientations.startswith("gold-at:"):
        rule = "goes with orientations gold-at:k:swap or gold-at:k:rotation only"
        raise SettingsError("few_shot.moved", rule, orientations)
    if not getattr(PROTOCOLS[protocol], "shows_options", True) and orientations != "as-is":
        rule = f'must be as-is with protocol "{protocol}", which shows no options'
        raise SettingsError("orientations", rule, orientations)
