"""An engine whose answers are kept on disk as they come, and never asked for twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.records import Decoding, Generation, Reply, Request
from mlflow_mcq.spent import Spent
from mlflow_mcq.store.row_key import row_key
from mlflow_mcq.store.row_store import RowStore

__all__ = ["FoundEngine", "KeptEngine", "identity_of"]

NOT_MADE = "not made yet"
"""Error of a row that is not on disk."""


def identity_of(engine: ChatEngine | KeptEngine) -> str:
    """The model as it stands in the key of its rows, its weights included."""
    return f"{engine.fingerprint} {getattr(engine.chat, 'origin', '')}"


class FoundEngine:
    """Answers from the rows on disk alone; one that is not there has the error `NOT_MADE`.

    Args:
        engine: Whose rows they are.
        rows: Where they are kept.
        replies: Entered with every reply that is found, by its key.
    """

    def __init__(
        self,
        engine: ChatEngine | KeptEngine,
        rows: RowStore,
        replies: dict[bytes, Reply] | None = None,
    ) -> None:
        self.fingerprint: str = engine.fingerprint
        self.speaks_chat: bool = engine.speaks_chat
        self._identity, self._rows, self._replies = identity_of(engine), rows, replies

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield every row in order, made or not."""
        for request in requests:
            key = row_key(self._identity, request, decoding)
            reply = self._rows.get(key)
            if reply is not None and self._replies is not None:
                self._replies[key] = reply
            found = reply or Reply(None, NOT_MADE)
            yield Generation(request.prompt, request.repeat, found, engine=self.fingerprint)


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

    @property
    def spent(self) -> Spent:
        """What the rows that were made have taken so far."""
        return self._engine.spent

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield the rows that are there, then the others as they are made and kept.

        Raises:
            ModelError: Not a single row that had to be made has an answer.
            StoreError: A row cannot be kept; those before it are.
        """
        identity = identity_of(self)
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
