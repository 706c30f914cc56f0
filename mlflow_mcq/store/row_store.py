"""The rows of a run on disk: what is there is never made again.

A folder of files, one for each process that has ever written there, so that no two
writers meet. In memory stands where each row is, not the rows: a million of them take
about 150 MB.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from mlflow_mcq.errors import StoreError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.records import Reply
from mlflow_mcq.store.row_file import RowFile, parse, scan

__all__ = ["RowStore"]

_SUFFIX = ".rows"
_BITS = 48
_MASK = (1 << _BITS) - 1


class RowStore:
    """Replies by key.

    Args:
        folder: Made where it does not exist.
        writer: Name of the file that this process writes; None makes one of its own. The
            same name must not be used by two living processes.

    Raises:
        StoreError: The folder cannot be used.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with RowStore(folder) as store:
        ...         store.put(b"0" * 16, Reply("B"))
        ...         store.put(b"0" * 16, Reply("another"))
        ...     with RowStore(folder) as again:
        ...         len(again), again.get(b"0" * 16).text
        True
        False
        (1, 'B')
    """

    def __init__(self, folder: str | Path, writer: str | None = None) -> None:
        self.folder = home_path(folder, "cache", StoreError)
        name = writer or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        # Opened at the first row: a run that finds everything leaves no file behind.
        self._path = self.folder / f"{name}{_SUFFIX}"
        self._mine: RowFile | None = None
        self._open: dict[int, BinaryIO] = {}
        self._files: list[Path] = []
        # File and place in one number: a million pairs would take 100 MB more, and each
        # collection of garbage would look at them.
        self._places: dict[bytes, int] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
                self._enter(path)
        except OSError as error:
            raise StoreError(
                "cache",
                "must be a folder that can be read and written",
                str(folder),
                f"({type(error).__name__}: {error.strerror})",
            ) from error

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._places)

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get(self, key: bytes) -> Reply | None:
        """The reply of a row; None where it is not known."""
        found = self._places.get(key)
        if found is None:
            return None
        number, place = found >> _BITS, found & _MASK
        if number not in self._open:
            self._open[number] = self._files[number].open("rb")
        file = self._open[number]
        file.seek(place)
        return parse(file.readline())

    def put(self, key: bytes, reply: Reply) -> bool:
        """Keep a reply; it is on its way to the disk when this returns.

        A key is written once: the first reply stands. A reply with an error is not kept,
        or it would outlive the fault that caused it.

        Returns:
            Whether it was kept.

        Raises:
            StoreError: The disk is full, or gone.
        """
        if reply.error is not None or key in self._places:
            return False
        if self._mine is None:
            self._mine = RowFile(self._path)
            self._files.append(self._path)
        self._places[key] = (len(self._files) - 1) << _BITS | self._mine.append(key, reply)
        return True

    def refresh(self) -> None:
        """Find the rows that other processes have written since this one looked."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            if path != self._path:
                self._enter(path)

    def close(self) -> None:
        """Let go of all files; everything is on the disk then."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        if self._mine is not None:
            self._mine.close()

    def _enter(self, path: Path) -> None:
        if path not in self._files:
            self._files.append(path)
        number = self._files.index(path)
        known, first = self._places.setdefault, number << _BITS
        for key, place in scan(path):
            known(key, first | place)
