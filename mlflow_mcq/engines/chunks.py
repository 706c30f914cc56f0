"""Requests in chunks that several processes share out among them."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.ranks import chunk_ends
from mlflow_mcq.records import Decoding, Reply, Request

__all__ = ["answered", "chunks_of"]


def chunks_of(requests: Sequence[Request], n: int) -> list[list[Request]]:
    """Requests in chunks for ``n`` processes; those of one item stay together.

    Their stem is read once then. For the sizes see `mlflow_mcq.ranks.chunk_ends`.
    """
    items: dict[str, list[Request]] = {}
    for request in requests:
        items.setdefault(request.prompt.item.id, []).append(request)
    groups, begin, chunks = list(items.values()), 0, []
    for end in chunk_ends(len(groups), n):
        chunks.append([request for group in groups[begin:end] for request in group])
        begin = end
    return chunks


def answered(
    engine: ChatEngine, chunk: Sequence[Request], decoding: Decoding
) -> tuple[list[Reply], str]:
    """The replies to a chunk in order, and why there is none where all failed.

    Raises:
        ModelError: The model gave up before every row had a reply.
    """
    found: dict[tuple[str, str, int, int], Reply] = {}
    failure = ""
    try:
        for one in engine.generate(chunk, decoding):
            found[one.key] = one.reply
    except ModelError as error:
        if len(found) < len(chunk):
            raise
        failure = str(error)  # other chunks may fare better
    return [found[request.key] for request in chunk], failure
