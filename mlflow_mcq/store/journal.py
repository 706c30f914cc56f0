"""What a run keeps on disk while it is under way, so that it can be taken up again.

By default a folder of the run's own, named by what it measures: started again after a
crash, the same experiment finds its rows; ended well, the folder goes, since everything
stands in MLflow by then. A folder that the user names is kept and shared instead.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from mlflow_mcq.cache_home import cache_home
from mlflow_mcq.errors import StoreError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.store.evaluation import refuse_other
from mlflow_mcq.store.hold import Hold, holding
from mlflow_mcq.store.ledger import Entry, entries
from mlflow_mcq.store.row_store import RowStore

__all__ = ["Journal", "folder_of", "open_directory", "open_journal"]

_DAYS_KEPT = 14
_HOLDER = "holder.json"


class Journal:
    """The folder of one run under way.

    Args:
        folder: Where it is.
        own: No other run may be at it meanwhile.
        lasting: It stays when the run has ended well.

    Attributes:
        folder: Where it is.
        rows: Answers of the evaluated model.
        judge_folder: Where replies of judges are kept.
    """

    def __init__(self, folder: Path, *, own: bool, lasting: bool = False) -> None:
        self.folder = folder
        self.judge_folder = folder / "judge"
        self._own, self._lasting = own, lasting
        # Known from the beginning: it may end when nobody is in the whole any more.
        passing = own and not lasting
        self._hold = holding() if passing else None
        self._number = (self._hold or Hold()).find(folder) if passing else 0
        self._lock = _locked(folder, "directory" if lasting else "cache") if own else None
        self.rows = RowStore(folder)

    @property
    def ahead(self) -> list[Entry]:
        """What was made ahead for this very run. A shared folder serves others as well."""
        return entries(self.folder) if self._own else []

    @property
    def kept(self) -> str:
        """What of a run that breaks off here stays, and how to go on, in one line."""
        return (
            f"{len(self.rows):,} answers are kept in {self.folder}: the same call, or the same "
            "command, makes only what is missing"
        )

    def close(self, *, finished: bool) -> None:
        """Let go of the folder.

        Args:
            finished: All of it is on record in MLflow; a folder of the run's own is
                removed then, or put aside until all is that it is part of.
        """
        self.rows.close()
        if self._lock is None:
            return
        if finished and self._hold is not None and not self._hold.over:
            self._lock.release()
            self._hold.put_aside(self.folder, self._number)
            return
        finished = finished and not self._lasting and not (self._hold and self._hold.broke)
        if finished:
            # The lock file last, or another run could move in beside a half-removed one.
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != "lock":
                    path.unlink(missing_ok=True)
        self._lock.release()
        if finished:
            shutil.rmtree(self.folder, ignore_errors=True)


def open_journal(cache: str, name: str) -> Journal | None:
    """The folder for a run that measures this.

    Args:
        cache: ``run`` for a folder of the run's own, ``off`` for none, else a folder that
            is kept and may be shared by several runs at a time.
        name: Hex digits over all that decides the rows.

    Raises:
        StoreError: The same run is under way already, or the folder cannot be used.
    """
    folder = folder_of(cache, name)
    if folder is None:
        return None
    if cache == "run":
        _sweep(folder.parent)
    return Journal(folder, own=cache == "run")


def open_directory(
    folder: str,
    parts: Mapping[str, str],
    accept: bool,
    defaults: Mapping[str, str] | None = None,
) -> Journal:
    """The folder that a user has named for the rows of one evaluation; it is never removed.

    Args:
        folder: Made where it does not exist.
        parts: All that decides the rows, by name; what has its default is left out.
        accept: Whether the folder may have been used for something else.
        defaults: Values of what is left out, to be shown.

    Raises:
        StoreError: It was, and may not; another run is at it; or it cannot be used.
    """
    journal = Journal(home_path(folder, "directory", StoreError), own=True, lasting=True)
    try:
        refuse_other(journal.folder, parts, accept, defaults)
    except BaseException:
        journal.close(finished=False)
        raise
    return journal


def folder_of(cache: str, name: str) -> Path | None:
    """The folder that `open_journal` uses; None where nothing is kept."""
    if cache == "off":
        return None
    if cache == "run":
        return cache_home() / "runs" / name
    return home_path(cache, "cache", StoreError)


_TAKEN = {
    "cache": (
        "this very evaluation (model, data and settings) is under way",
        'Wait for it, or run this one with cache: "off".',
    ),
    "directory": ("an evaluation is under way in it", "Wait for it, or name another directory."),
}

_ELSEWHERE = {
    "cache": 'Set MLFLOW_MCQ_CACHE to a folder that can, or cache: "off".',
    "directory": "Name another directory, or leave it out.",
}


def _locked(folder: Path, setting: str) -> FileLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The system lets go of it when its holder dies, however it dies.
        lock = FileLock(folder / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            # A call of this very process that is over, but still waits to be tidied away.
            gc.collect()
            lock.acquire()
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
        (folder / _HOLDER).write_text(json.dumps(holder), encoding="utf-8")
    except Timeout:
        rule, possible = _TAKEN[setting]
        raise StoreError(setting, f"{rule}: {_holder(folder)}", possible=possible) from None
    except OSError as error:
        raise StoreError(
            setting,
            f"the folder of the run cannot be written ({type(error).__name__}: {error.strerror})",
            str(folder),
            _ELSEWHERE[setting],
        ) from error
    return lock


def _holder(folder: Path) -> str:
    try:
        held = json.loads((folder / _HOLDER).read_text(encoding="utf-8"))
        return f"process {held['pid']} on {held['host']}, since {held['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "by a process that has not signed"


def _sweep(home: Path) -> None:
    """Remove what crashed runs have left and nobody has taken up."""
    too_old = time.time() - _DAYS_KEPT * 86400
    for folder in home.iterdir() if home.is_dir() else ():
        newest = max((p.stat().st_mtime for p in folder.rglob("*")), default=0.0)
        if newest < too_old:
            shutil.rmtree(folder, ignore_errors=True)
