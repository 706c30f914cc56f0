"""Files of other programs, read with limits: they may come from anywhere."""

from __future__ import annotations

import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from mlflow_mcq.errors import DataError

__all__ = ["MOST_BYTES", "json_lines", "json_of", "zip_members"]

MOST_BYTES = 256 * 2**20
"""Of one JSON text in memory; a zip member that unpacks to more is refused unread."""
_MOST_MEMBERS = 1_000_000
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<26xHH")


def json_of(data: bytes, who: str) -> Any:
    """A JSON text; numbers that JSON does not know (NaN) are read as Python writes them.

    Raises:
        DataError: It is no JSON, or nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(who, f"is no JSON ({type(error).__name__}: {error})") from None


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Each JSON line with its name in errors; blank lines are left out.

    Raises:
        DataError: A line is no JSON, or too long.
    """
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(MOST_BYTES + 1):
            number += 1
            who = f"{path.name}, line {number}"
            _check_size(len(line), who)
            if line.strip(b" \t\r\n\xef\xbb\xbf"):
                yield who, json_of(line, who)


def zip_members(path: Path, folder: str, ending: str) -> Iterator[tuple[str, bytes]]:
    """The members of a zip file in a folder of it, unpacked one at a time.

    Deflate and Zstandard are known. A name that occurs twice was written again: the last one
    counts. Nothing is ever written to disk.

    Raises:
        DataError: It is no zip file, is broken, or unpacks to more than `MOST_BYTES`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if len(members) > _MOST_MEMBERS:
                raise DataError(f"file {path.name!r}", "holds too many members", len(members))
            for name, info in members.items():
                if name.startswith(folder) and name.endswith(ending):
                    yield name, _unpacked(archive, info, f"{path.name}, {name}")
    except _BROKEN as error:
        raise DataError(f"file {path.name!r}", f"cannot be unpacked ({error})") from None


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, who: str) -> bytes:
    _check_size(info.file_size, who)
    # The size on the label may be a lie: what is read is counted.
    if info.compress_type == _ZSTANDARD:
        packed = pa.BufferReader(_packed(archive, info))
        data = bytes(pa.CompressedInputStream(packed, "zstd").read(MOST_BYTES + 1))
    else:
        with archive.open(info) as member:
            data = member.read(MOST_BYTES + 1)
    _check_size(len(data), who)
    return data


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member as they lie in the file.

    zipfile knows Zstandard from Python 3.14 on only.
    """
    file = archive.fp
    if file is None:
        raise zipfile.BadZipFile("the archive is closed")
    file.seek(info.header_offset)
    n_name, n_extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(n_name + n_extra, io.SEEK_CUR)
    return file.read(min(info.compress_size, MOST_BYTES))


def _check_size(n_bytes: int, who: str) -> None:
    if n_bytes > MOST_BYTES:
        raise DataError(who, f"is larger than {MOST_BYTES // 2**20} MiB", n_bytes)


_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # encrypted, or packed in a way that zipfile does not know
    ValueError,
)
