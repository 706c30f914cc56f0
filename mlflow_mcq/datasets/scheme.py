"""How a data set of the hub is told from a file."""

from __future__ import annotations

__all__ = ["SCHEME"]

SCHEME = "hf:"
"""Alone in its file: built sets, files and the hub all need it, and would import in a ring."""
