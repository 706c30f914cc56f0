"""Replies of a judge, kept on disk: what was asked once is not paid for again.

One file for each judge, one JSON object a line, only ever appended to. A line is written
whole in one call, so several processes may share a file; a line torn by a crash costs
that one reply. Keys are hashes and no prompt is stored. Errors are never stored: they
would outlive the fault that caused them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.records import Query, Reply

__all__ = ["JudgeCache", "query_key"]

_log = logging.getLogger(__name__)
_FORMAT = 1


def query_key(fingerprint: str, query: Query) -> str:
    """SHA-256 over the judge, the exact conversation and the seed, in hex.

    Example:
        >>> query_key("judge", Query("Which?")) == query_key("judge", Query("Which?", seed=1))
        False
    """
    content = query.content
    said = content if isinstance(content, str) else [[m.role, m.content] for m in content]
    # ASCII, so that half a surrogate pair cannot break the encoding.
    text = json.dumps([_FORMAT, fingerprint, said, query.seed])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class JudgeCache:
    """The replies of one judge.

    Args:
        folder: Made where it does not exist; ``~`` is the home folder.
        fingerprint: Of the judge; hex, part of the file's name.

    Attributes:
        path: The file.

    Raises:
        SettingsError: The folder or the file cannot be used.
    """

    def __init__(self, folder: str | Path, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        home = home_path(folder, "judge.cache_dir", SettingsError)
        self.path = home / f"judge_{fingerprint}.jsonl"
        self._writable = True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab"):  # found out now, not after the first paid call
                pass
            self._replies = _read(self.path)
        except OSError as error:
            raise SettingsError(
                "judge.cache_dir",
                "must be a folder that can be written to",
                str(folder),
                f"({type(error).__name__}: {error.strerror})",
            ) from error

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, query: Query) -> Reply | None:
        """The reply to exactly this query; None where it is not known."""
        return self._replies.get(query_key(self.fingerprint, query))

    def put(self, query: Query, reply: Reply) -> None:
        """Keep a reply. One with an error, or without a text, is not kept.

        A disk that fails costs the cache and not the evaluation: it is said once.
        """
        key = query_key(self.fingerprint, query)
        if reply.error is not None or reply.text is None:
            return
        kept = Reply(
            reply.text,
            finish_reason=reply.finish_reason,
            n_prompt_tokens=reply.n_prompt_tokens,
            n_tokens=reply.n_tokens,
        )
        if self._replies.get(key) == kept:
            return
        self._replies[key] = kept
        if self._writable:
            try:
                _append(self.path, _line(key, kept))
            except OSError as error:
                self._writable = False
                _log.warning("judge cache: %s; replies are no longer kept", error.strerror)


def _line(key: str, reply: Reply) -> bytes:
    row = {
        "key": key,
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "n_prompt_tokens": reply.n_prompt_tokens,
        "n_tokens": reply.n_tokens,
    }
    return json.dumps(row).encode("ascii")  # a line break in a reply is escaped


def _append(path: Path, line: bytes) -> None:
    # O_APPEND puts each write at the end of the file as it is then, whoever wrote last.
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    try:
        size = os.fstat(fd).st_size
        torn = False
        if size:
            os.lseek(fd, size - 1, os.SEEK_SET)
            torn = os.read(fd, 1) != b"\n"
        # After a torn line this one starts afresh, or both would be lost.
        data = (b"\n" if torn else b"") + line + b"\n"
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def _read(path: Path) -> dict[str, Reply]:
    replies: dict[str, Reply] = {}
    with path.open("rb") as file:
        for line in file:
            read = _parsed(line)
            if read is not None:
                replies[read[0]] = read[1]
    return replies


def _parsed(line: bytes) -> tuple[str, Reply] | None:
    """One line; None where it is torn, or not what we write."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    key, text, finish = row.get("key"), row.get("text"), row.get("finish_reason")
    n_prompt, n_reply = row.get("n_prompt_tokens"), row.get("n_tokens")
    if not (isinstance(key, str) and isinstance(text, str) and isinstance(finish, str)):
        return None
    if not (isinstance(n_prompt, int) and isinstance(n_reply, int)):
        return None
    return key, Reply(text, None, finish, n_prompt_tokens=n_prompt, n_tokens=n_reply)
