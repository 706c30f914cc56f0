"""An engine whose answers are kept on disk as they come, and never asked for twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.records import Decoding, Generation, Request
from mlflow_mcq.store.row_key import row_key
from mlflow_mcq.store.row_store import RowStore

__all__ = ["KeptEngine"]


class KeptEngine:
    """Answers from the rows on disk where they are there, and keeps what it has to make.

    Args:
        engine: Makes the rows. One of a chat only: a function, or a model that the caller
            has in memory and may have hooks on, can change without changing its name,
            and rows of yesterday's function would then pass for today's.
        rows: Where they are kept.

    Attributes:
        fingerprint: Of the engine.
        speaks_chat: Of the engine.
        chat: Of the engine.
        n_found: Rows that were there already.
    """

    def __init__(self, engine: ChatEngine, rows: RowStore) -> None:
        self.fingerprint: str = engine.fingerprint
        self.speaks_chat: bool = engine.speaks_chat
        self.chat: Chat = engine.chat
        self.n_found = 0
        self._engine = engine
        self._rows = rows

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield the rows that are there, then the others as they are made and kept.

        Raises:
            ModelError: Not a single row that had to be made has an answer.
            StoreError: A row cannot be kept; those before it are.
        """
        identity = f"{self.fingerprint} {getattr(self.chat, 'origin', '')}"
        keys = {request.key: row_key(identity, request, decoding) for request in requests}
        fresh = []
        for request in requests:
            reply = self._rows.get(keys[request.key])
            if reply is None:
                fresh.append(request)
                continue
            self.n_found += 1
            yield Generation(request.prompt, request.repeat, reply, engine=self.fingerprint)
        for generation in self._engine.generate(fresh, decoding) if fresh else ():
            self._rows.put(keys[generation.key], generation.reply)
            yield generation
