"""The engine without a model: answers that the data already holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlflow_mcq.engines.chat_engine import row_name
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Generation, Reply, Request, Verdict

__all__ = ["StoredEngine", "StoredKey"]

StoredKey = tuple[str, int, int]
"""(item id, orientation index, repeat)."""


class StoredEngine:
    """Yields stored answers.

    Args:
        texts: Answers by key. None and NaN are missing answers: they come out as empty
            text with the finish reason ``missing``, and are never left out of a count.
        fingerprint: What the answers are from, if that is known.
        human_labels: What people say of some of them, by key.
    """

    speaks_chat: bool = False

    def __init__(
        self,
        texts: Mapping[StoredKey, Any],
        fingerprint: str = "stored",
        human_labels: Mapping[StoredKey, Verdict | None] | None = None,
    ) -> None:
        self._texts = texts
        self._human_labels = human_labels or {}
        self.fingerprint: str = fingerprint

    @property
    def digest(self) -> str:
        """Twelve hex digits over all the answers."""
        text = json.dumps([[*key, str(value)] for key, value in self._texts.items()])
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield the stored answers in the order of the requests.

        Raises:
            ModelError: A row has no entry at all, or one that is no text.
        """
        for request in requests:
            prompt = request.prompt
            key = (prompt.item.id, prompt.orientation.index, request.repeat)
            if key not in self._texts:
                raise ModelError("stored answers", f"there is none for {row_name(request)}", key)
            reply = _reply(self._texts[key], request)
            label = self._human_labels.get(key)
            yield Generation(prompt, request.repeat, reply, self.fingerprint, label)


def _reply(text: Any, request: Request) -> Reply:
    if isinstance(text, str):
        return Reply(text)
    if text is None or type(text).__name__ in ("NAType", "NaTType") or _is_nan(text):
        return Reply("", finish_reason="missing")
    raise ModelError("stored answers", f"must be texts; {row_name(request)} is none", text)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
