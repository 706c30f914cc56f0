"""The style of a page: what the settings say about every prompt of an arm."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Style"]


@dataclass(frozen=True, slots=True)
class Style:
    """How pages are set.

    Attributes:
        labels: Name of a label style, or the labels themselves.
        language: Of the instruction; the data stays in its own.
        mark: Stands before every option of ``dashes``.
        template: Own wording for ``letters``.
        nota_share: Share in [0, 1] of items whose right option gives way to "none of the
            other options"; in the others a wrong one does.
        seed: Of shuffled labels and of that share.
    """

    labels: str | tuple[str, ...] = "upper"
    language: str = "en"
    mark: str = "-"
    template: str | None = None
    nota_share: float = 1.0
    seed: int = 0
