"""Several evaluations that are one piece of work: until it is done, none lets go of its rows.

An arm that ended well stands in MLflow and needs its rows no more. But where a later arm of
the same recipe fails, the recipe is started again as a whole, and the arms that had ended
would ask their models everything once more.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["Hold", "held_together", "holding"]


class Hold:
    """The folders of evaluations that ended well, until the whole of them has.

    Two arms may measure the very same, and each must be measured: the k-th of them puts its
    rows aside under a number, and a new attempt's k-th finds them there.

    Attributes:
        over: Whether the whole has ended, well or not.
        broke: Whether it broke off: who ends after that keeps its rows, too.
    """

    def __init__(self) -> None:
        self.over = False
        self.broke = False
        self._opened: Counter[str] = Counter()
        self._aside: list[tuple[Path, FileLock]] = []

    def find(self, folder: Path) -> int:
        """Put what an earlier attempt has laid aside back in its place.

        Returns:
            The number under which its rows are put aside when it ends.
        """
        number = self._opened[folder.name]
        self._opened[folder.name] += 1
        if folder.exists():
            return number
        for n in _numbers(folder, number):
            aside = _numbered(folder, n)
            if _is_free(aside):
                aside.rename(folder)
                return n
        return number

    def put_aside(self, folder: Path, number: int) -> None:
        """Take the folder of an evaluation that ended well; its lock is free."""
        while (aside := _numbered(folder, number)).exists() and not _is_free(aside):
            number += 1  # the same recipe runs twice at a time: neither takes the other's
        shutil.rmtree(aside, ignore_errors=True)  # of an attempt before this one's
        folder.rename(aside)
        lock = FileLock(aside / "lock", timeout=0)
        lock.acquire()
        self._aside.append((aside, lock))

    def end(self, *, finished: bool) -> int:
        """Let go of all folders; those of a whole that is on record are removed.

        Returns:
            How many are kept.
        """
        self.over, self.broke = True, not finished
        kept = 0 if finished else len(self._aside)
        for folder, lock in self._aside:
            lock.release()
            if finished:
                shutil.rmtree(folder, ignore_errors=True)
        self._aside.clear()
        return kept


_HOLD: ContextVar[Hold | None] = ContextVar("mcq_hold", default=None)


def holding() -> Hold | None:
    """What the evaluation that begins now is part of; None where it stands alone."""
    return _HOLD.get()


@contextmanager
def held_together() -> Iterator[None]:
    """Take all evaluations inside for one piece of work; the outermost of several counts."""
    if _HOLD.get() is not None:
        yield
        return
    hold = Hold()
    token = _HOLD.set(hold)
    finished = False
    try:
        yield
        finished = True
    finally:
        _HOLD.reset(token)
        kept = hold.end(finished=finished)
        if kept:
            _say(kept)


def _say(kept: int) -> None:
    from mlflow.utils.logging_utils import eprint

    what = "1 evaluation" if kept == 1 else f"{kept} evaluations"
    eprint(f"the answers of {what} that had ended are kept as well, and are found again")


def _is_free(aside: Path) -> bool:
    """Whether nobody is at it: another run of the same recipe would be."""
    try:
        with FileLock(aside / "lock", timeout=0):
            return True
    except (Timeout, OSError):
        return False


def _numbers(folder: Path, least: int) -> list[int]:
    """Under which numbers rows of this folder lie aside, from one on."""
    found = [path.name.rpartition(".")[2] for path in folder.parent.glob(f"{folder.name}.*")]
    return sorted(n for n in map(int, filter(str.isdigit, found)) if n >= least)


def _numbered(folder: Path, number: int) -> Path:
    return folder.with_name(f"{folder.name}.{number}")
