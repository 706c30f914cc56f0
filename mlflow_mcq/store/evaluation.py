"""What a directory of rows is used for, so that another evaluation is not taken for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlflow_mcq.errors import StoreError

__all__ = ["differences", "flat", "refuse_other"]

_NAME = "evaluation.json"
_KNOWN = "evaluations"
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


def differences(
    old: Mapping[str, str], new: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> list[str]:
    """What differs between two evaluations, as ``name: old, now new``; names in order.

    Args:
        old: Values by name, those that have their default left out.
        new: Likewise.
        defaults: What is meant where a name is left out, as far as there is such a value.

    Example:
        >>> old, new = {"seed": "1", "top_k": "9"}, {"seed": "2", "top_k": "9", "few_shot.k": "5"}
        >>> differences(old, new)
        ['few_shot.k: left out, now 5', 'seed: 1, now 2']
        >>> differences({"seed": "1"}, {}, {"seed": "0"})
        ['seed: 1, now 0']
    """
    meant = defaults or {}
    pairs = {
        name: [side.get(name, meant.get(name, _UNSET)) for side in (old, new)]
        for name in sorted({*old, *new})
    }
    return [
        f"{name}: {_short(was)}, now {_short(now)}"
        for name, (was, now) in pairs.items()
        if was != now
    ]


def refuse_other(
    folder: Path,
    parts: Mapping[str, str],
    accept: bool,
    defaults: Mapping[str, str] | None = None,
) -> None:
    """Enter what a directory is for, or check that it is for this.

    Args:
        folder: There already, and nobody else is at it.
        parts: All that decides the rows of the evaluation, by name; what has its default is
            left out, so that a setting which a later version adds is no difference.
        accept: Whether this may be one more evaluation beside those that it was used for.
        defaults: Values of what is left out, to be shown.

    Raises:
        StoreError: The directory was used for others only, all differences from the nearest
            of them are named; or what it was used for cannot be read or written.
    """
    path = folder / _NAME
    try:
        known = _read(path)
        if dict(parts) in known:
            return
        if known and not accept:
            raise _refused(folder, known, parts, defaults)
        _write(path, json.dumps({_KNOWN: [*known, dict(parts)]}, indent=2))
    except OSError as error:
        raise StoreError(
            "directory",
            f"{_NAME} in it cannot be read or written ({type(error).__name__}: {error.strerror})",
            str(folder),
            "Name another directory.",
        ) from error


def _refused(
    folder: Path,
    known: Sequence[Mapping[str, str]],
    parts: Mapping[str, str],
    defaults: Mapping[str, str] | None,
) -> StoreError:
    # Of several that were accepted any one would do: the nearest is the one that was meant.
    found = min((differences(old, parts, defaults) for old in known[::-1]), key=len)
    begun = "was begun with other settings, so this would not go on with it"
    if len(known) > 1:
        begun = f"was used with {len(known)} other settings, and is nearest to this in one of them"
    return StoreError(
        "directory",
        f"{folder} {begun} ({'; '.join(found)})",
        possible="Name another directory, or set accept_changes to use this one: rows "
        "that are the same in both are then found, all others are made, and none are "
        "mixed.",
    )


def _read(path: Path) -> list[dict[str, str]]:
    """The evaluations that it was used for; none where no note stands, or a crash has torn it.

    Raises:
        StoreError: Somebody else's file has this name: it is not ours to write over.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").strip("\0 \r\n")
    except FileNotFoundError:
        return []
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        if not text or text.startswith("{"):
            return []
        told = None
    known = told.get(_KNOWN) if isinstance(told, dict) and len(told) == 1 else None
    if isinstance(known, list) and known and all(map(_is_ours, known)):
        return known
    raise StoreError(
        "directory",
        f"holds a file {_NAME} that is not from here, and would be written over",
        str(path.parent),
        "Name another directory.",
    )


def _is_ours(told: object) -> bool:
    return isinstance(told, dict) and all(isinstance(value, str) for value in told.values())


def _write(path: Path, text: str) -> None:
    """Write it as a whole: a full disk must not take what stood there before."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
