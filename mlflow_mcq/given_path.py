"""Paths as people write them: what cannot be followed is said in our own words."""

from __future__ import annotations

import difflib
import re
import stat
from itertools import islice
from pathlib import Path

from mlflow_mcq.errors import DataError, McqError

__all__ = ["existing_file", "home_path", "is_address", "refuse_address"]


_MOST_BESIDE = 1_000


def home_path(given: str | Path, setting: str, kind: type[McqError]) -> Path:
    """A path whose ``~`` or ``~name`` is a home folder.

    Args:
        given: As it was written.
        setting: Its name in errors.
        kind: What is raised.

    Raises:
        McqError: Of that kind: there is no such user, or the path holds a zero.

    Example:
        >>> from mlflow_mcq.errors import StoreError
        >>> home_path("rows/one", "directory", StoreError).as_posix()
        'rows/one'
    """
    if "\0" in str(given):
        raise kind(setting, "holds a zero byte, which no path may", str(given))
    try:
        return Path(given).expanduser()
    except RuntimeError:  # pathlib's word for it, which names neither the user nor the path
        raise kind(
            setting,
            "begins with the home folder of a user that this machine does not know",
            str(given),
            "Write the folder out, or ~/ for your own.",
        ) from None


def is_address(given: object) -> bool:
    """Whether it is written as an address: ``file:///...``, ``https://...``, ``s3://...``.

    Example:
        >>> is_address("s3://bucket/items.csv"), is_address("data/items.csv"), is_address("C:/x")
        (True, False, False)
    """
    return isinstance(given, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", given) is not None


def refuse_address(given: str | Path, who: str) -> None:
    """Refuse an address: as a path it would lose a slash, and be looked for below this folder.

    Raises:
        DataError: It is one.
    """
    if not is_address(given):
        return
    scheme, _, behind = str(given).partition("://")
    here = scheme.lower() == "file" and behind.startswith("/") and behind.strip("/")
    path = f"Give its path: {behind}."
    other = "Give the path of a file, hf:owner/name for a data set of the hub, or a DataFrame."
    rule = "is an address, and only files of this machine are read"
    raise DataError(who, rule, str(given), path if here else other)


def existing_file(given: str | Path, who: str = "file") -> Path:
    """A path that is a file of this machine.

    Args:
        given: As it was written.
        who: Its name in errors.

    Raises:
        DataError: It is an address, is no file, or cannot be looked for (too long, not allowed).
    """
    refuse_address(given, who)
    path = Path(given)
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return path
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a zero in it is a ValueError
        pass
    except OSError as error:  # pathlib's own is_file lets a name that is too long through
        rule = f"cannot be looked for ({type(error).__name__}: {error.strerror})"
        raise DataError(who, rule, str(path)) from error
    hint = f"{_beside(path)}Looked for {path.absolute()}."
    raise DataError(who, "does not exist", str(path), hint)


def _beside(path: Path) -> str:
    """The file of the same folder that was meant; empty where none is near."""
    try:
        # A folder may hold millions; a mistyped name is sought where somebody could read on.
        names = [one.name for one in islice(path.parent.iterdir(), _MOST_BESIDE)]
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.name, sorted(names), n=1, cutoff=0.75)
    return f'Did you mean "{path.with_name(near[0])}"? ' if near else ""
