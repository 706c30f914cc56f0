"""A short try of a model in memory: how long all rows will take, and how much memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.memory import free_memory
from mlflow_mcq.engines.prefix_tree import common
from mlflow_mcq.engines.weights import text_config
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Conversation, Decoding, Query

__all__ = ["Probe", "memory_for", "probe", "rows_at_once"]


@dataclass(frozen=True, slots=True)
class Probe:
    """What some prompts have taken.

    Attributes:
        n_prompts: So many were answered.
        n_read: Tokens of the prefix tree over them.
        longest: Tokens of the longest.
        read_seconds: Until each had its first token.
        write_seconds: The other tokens of the answers.
    """

    n_prompts: int
    n_read: int
    longest: int
    read_seconds: float
    write_seconds: float

    def seconds_for(self, n_prompts: int, n_read: int, at_once: int) -> tuple[float, float]:
        """Fewest and most seconds that other prompts will take.

        Reading grows with tokens. Writing grows with the number of rows at most; at least
        with the number of times that ``at_once`` rows are under way, since more rows in one
        step cost a GPU nothing and a processor little.

        Args:
            n_prompts: How many are answered.
            n_read: Tokens of the prefix tree over them.
            at_once: Rows that are under way at a time.

        Example:
            >>> Probe(8, 400, 90, 2.0, 4.0).seconds_for(80, 2000, at_once=40)
            (18.0, 50.0)
        """
        read = self.read_seconds * n_read / self.n_read
        low, high = max(1.0, n_prompts / at_once), n_prompts / self.n_prompts
        return read + self.write_seconds * min(low, high), read + self.write_seconds * high


def probe(chat: LocalChat, prompts: Sequence[Conversation], decoding: Decoding) -> Probe:
    """Answer some prompts, and throw the answers away.

    Three times: once for what is only done at the first (the check of the road, the
    processor's warm-up), once for a single token each, once whole.

    Args:
        chat: The model.
        prompts: A few that are like the others; whole items, as their orientations share.
        decoding: As in the evaluation.

    Raises:
        ModelError: A prompt cannot be answered.
    """
    queries = [Query(prompt, decoding.seed) for prompt in dict.fromkeys(prompts)]
    single = replace(decoding, max_new_tokens=1)
    _timed(chat, queries, single)
    read_seconds, _ = _timed(chat, queries, single)
    whole_seconds, longest = _timed(chat, queries, decoding)
    rows = sorted(chat.encode(query, decoding)[1] for query in queries)
    n_read = sum(map(len, rows)) - sum(map(common, rows, rows[1:]))
    write_seconds = max(0.0, whole_seconds - read_seconds)
    return Probe(len(queries), n_read, longest, read_seconds, write_seconds)


def _timed(chat: LocalChat, queries: Sequence[Query], decoding: Decoding) -> tuple[float, int]:
    start = time.perf_counter()
    longest = 0
    for _, reply in chat.ask(queries, decoding):
        if reply.error is not None:
            raise ModelError("probe", f"a prompt cannot be answered: {reply.error}")
        longest = max(longest, reply.n_prompt_tokens)
    return time.perf_counter() - start, longest


def memory_for(chat: LocalChat, at_once: int, n_columns: int) -> int | None:
    """Bytes of the weights, and of the keys and values of the rows that are under way.

    An estimate: what a forward pass holds for a moment is not in it.

    Args:
        chat: The model, on its device.
        at_once: Rows that are under way at a time.
        n_columns: Tokens that each may have, prompt and answer.

    Returns:
        None for a model whose configuration does not say what a token takes.
    """
    model = chat.model
    weights = sum(one.numel() * one.element_size() for one in model.parameters())
    weights += sum(one.numel() * one.element_size() for one in model.buffers())
    row = _row_bytes(chat, n_columns)
    return None if row is None else int(weights + at_once * row)


def rows_at_once(chat: LocalChat, n_prompts: int, n_columns: int) -> int:
    """Rows that are under way at a time on the road that the last ones took.

    Args:
        chat: The model.
        n_prompts: Rows in all.
        n_columns: Tokens that each may have, prompt and answer.
    """
    if chat.road is None or chat.road.name != "tree":
        return max(1, min(n_prompts, chat.batch_size))
    from mlflow_mcq.engines.rotated import most_rows

    device = next(chat.model.parameters()).device
    room = free_memory(device) // 2 // (_row_bytes(chat, n_columns) or 1)
    return max(1, min(n_prompts, most_rows(device.type), room))


def _row_bytes(chat: LocalChat, n_columns: int) -> int | None:
    # Imports torch: counting alone must not wait for that.
    from mlflow_mcq.engines.slab import token_bytes

    try:
        return n_columns * token_bytes(text_config(chat.model), int(chat.model.dtype.itemsize))
    except AttributeError:
        return None  # recurrent models keep a state instead
