"""One file of rows, only ever appended to: one line a row, each with its own checksum.

``<key, 32 hex> <checksum, 8 hex> <reply as JSON>`` and a line break. A line reaches the
operating system in one call and is not buffered here, so a killed process leaves whole
lines and at most one torn one, which the checksum gives away.
"""

from __future__ import annotations

import json
import os
from binascii import crc32, unhexlify
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from mlflow_mcq.errors import StoreError
from mlflow_mcq.records import Reply

__all__ = ["RowFile", "parse", "scan"]

_KEY, _SUM = 32, 8
_HEAD = _KEY + _SUM + 2
_NAMES = [one.name for one in fields(Reply)]
_TOKENS = _NAMES.index("token_ids")
_BUFFER = 1 << 20
_decoded = json.JSONDecoder().raw_decode


class RowFile:
    """The file that this process appends to.

    Args:
        path: Made where it does not exist. A torn last line, left by a crash, is cut off:
            the next one would be lost with it.

    Raises:
        StoreError: The file cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._fd = os.open(path, flags, 0o666)
            self._end = _end_of_whole_lines(path)
            os.ftruncate(self._fd, self._end)
            os.lseek(self._fd, self._end, os.SEEK_SET)
        except OSError as error:
            raise _refused(path, error) from error

    def append(self, key: bytes, reply: Reply) -> int:
        """Write one row.

        Returns:
            Where its line begins.

        Raises:
            StoreError: The disk is full, or gone. What was written of the line is taken
                back; every row before it stays.
        """
        start, data = self._end, _line(key, reply)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            self._take_back(start)
            raise _refused(self.path, error) from error
        self._end += len(data)
        return start

    def close(self) -> None:
        """Put everything on the disk itself, and let go of the file."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _take_back(self, start: int) -> None:
        try:
            os.ftruncate(self._fd, start)
            os.lseek(self._fd, start, os.SEEK_SET)
        except OSError:
            # The half line then ends the file; its checksum gives it away to a reader.
            return


def scan(path: Path) -> Iterator[tuple[bytes, int]]:
    """Every whole row of a file: its key, and where its line begins.

    A line that is torn, or whose checksum does not fit, is passed over: its row is made
    again, which costs one generation, where reading it would cost the measurement.
    """
    place = 0
    with path.open("rb", buffering=_BUFFER) as file:
        for line in file:
            if _whole(line):
                yield unhexlify(line[:_KEY]), place
            place += len(line)


def parse(line: bytes) -> Reply:
    """The reply of a whole line."""
    values, _ = _decoded(line[_HEAD:].decode("ascii"))
    values[_TOKENS] = tuple(values[_TOKENS])
    return Reply(*values)


def _line(key: bytes, reply: Reply) -> bytes:
    # ASCII escapes every line break and half surrogate that a model may write.
    body = json.dumps([getattr(reply, name) for name in _NAMES]).encode("ascii")
    return b"%s %08x %s\n" % (key.hex().encode("ascii"), _checksum(key.hex(), body), body)


def _checksum(key: str, body: bytes) -> int:
    return crc32(body, crc32(key.encode("ascii")))


def _whole(line: bytes) -> bool:
    if not line.endswith(b"]\n") or len(line) < _HEAD:
        return False
    try:
        found = int(line[_KEY + 1 : _HEAD - 1], 16)
    except ValueError:
        return False
    return found == crc32(line[_HEAD:-1], crc32(line[:_KEY]))


def _end_of_whole_lines(path: Path) -> int:
    end = place = 0
    with path.open("rb") as file:
        for line in file:
            place += len(line)
            end = place if line.endswith(b"\n") else end
    return end


def _refused(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"rows in {path.parent.name}",
        f"cannot be written ({type(error).__name__}: {error.strerror})",
        possible="Every row made so far is kept and will not be made again. Free some space or "
        'name another folder with the setting cache (or cache: "off"), and run it again.',
    )
