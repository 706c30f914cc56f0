"""What a directory of rows was begun with, so that another evaluation is not taken for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from mlflow_mcq.errors import StoreError

__all__ = ["differences", "flat", "refuse_other"]

_NAME = "evaluation.json"
_LONGEST = 60
_UNSET = "left out"


def flat(values: Mapping[str, object], above: str = "") -> dict[str, str]:
    """Nested values by dotted names, as text.

    Example:
        >>> flat({"seed": 1, "few_shot": {"n": 2, "moved": None}})
        {'seed': '1', 'few_shot.n': '2', 'few_shot.moved': 'null'}
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{name}.")
        else:
            found[above + name] = json.dumps(value, ensure_ascii=True, default=str)
    return found


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What differs between two evaluations, as ``name: old, now new``; names in order.

    Example:
        >>> differences({"seed": "1", "limit": "9"}, {"seed": "2", "limit": "9", "top_k": "5"})
        ['seed: 1, now 2', 'top_k: left out, now 5']
    """
    names = sorted({*old, *new})
    pairs = {name: (old.get(name, _UNSET), new.get(name, _UNSET)) for name in names}
    return [
        f"{name}: {_short(was)}, now {_short(now)}"
        for name, (was, now) in pairs.items()
        if was != now
    ]


def refuse_other(folder: Path, parts: Mapping[str, str], accept: bool) -> None:
    """Enter what a directory is for, or check that it is for this.

    Args:
        folder: There already, and nobody else is at it.
        parts: All that decides the rows of the evaluation, by name; what has its default is
            left out, so that a setting which a later version adds is no difference.
        accept: Whether it may differ from what the directory was begun with.

    Raises:
        StoreError: The directory was begun with something else, all differences are named; or
            what it was begun with cannot be read or written.
    """
    path = folder / _NAME
    try:
        old = _read(path)
        if old == dict(parts):
            return
        if old is not None and not accept:
            found = "; ".join(differences(old, parts))
            raise StoreError(
                "directory",
                f"{folder} was begun with other settings, so this would not go on with it "
                f"({found})",
                possible="Name another directory, or set accept_changes to use this one: rows "
                "that are the same in both are then found, all others are made, and none are "
                "mixed.",
            )
        _write(path, json.dumps(dict(parts), indent=2))
    except OSError as error:
        raise StoreError(
            "directory",
            f"{_NAME} in it cannot be read or written ({type(error).__name__}: {error.strerror})",
            str(folder),
            "Name another directory.",
        ) from error


def _read(path: Path) -> dict[str, str] | None:
    """What stands there; None where nothing does, or a crash has torn it.

    Raises:
        StoreError: Somebody else's file has this name: it is not ours to write over.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").strip("\0 \r\n")
    except FileNotFoundError:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        if not text or text.startswith("{"):
            return None
        told = None
    if isinstance(told, dict) and all(isinstance(value, str) for value in told.values()):
        return told
    raise StoreError(
        "directory",
        f"holds a file {_NAME} that is not from here, and would be written over",
        str(path.parent),
        "Name another directory.",
    )


def _write(path: Path, text: str) -> None:
    """Write it as a whole: a full disk must not take what stood there before."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
