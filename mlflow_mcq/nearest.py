"""The nearest legal name, for whoever has mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["known_names"]


def known_names(name: str, known: Iterable[str], shown: str = "") -> str:
    """What an error about an unknown name says is possible: the nearest one, then all.

    Args:
        name: As it was written.
        known: The legal names.
        shown: How they are listed, where not one after the other.

    Example:
        >>> known_names("temprature", ["seed", "temperature"])
        'Did you mean "temperature"? Known: seed, temperature.'
        >>> known_names("x", ["seed", "temperature"])
        'Known: seed, temperature.'
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    return f"{hint}Known: {shown or ', '.join(names)}."
