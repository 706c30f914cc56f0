"""The engine of a call that every rank makes: who is there takes a share of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlflow_mcq.board import Board
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.chunks import answered, chunks_of
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Generation, Reply, Request
from mlflow_mcq.spent import Spent

__all__ = ["OVER", "SpreadEngine", "help_out", "refuse_sharded"]

_SHARDED = {"FullyShardedDataParallel", "FSDPModule", "DTensor"}
OVER = "over"
"""Name under which the main process says that it asks for no more rows."""

_PATIENCE_S = 5.0
"""Shortest time that the main process gives others for the chunks they have drawn."""


class SpreadEngine(ChatEngine):
    """Puts up chunks of requests, answers some, and takes the others' answers.

    What the others have drawn and do not answer in about the time that a chunk takes here is
    answered here as well: rows are the same whoever makes them, and a process that died must
    hold up nobody.

    Args:
        engine: Of this process; every rank has the same model.
        board: Where chunks are put up.
        n_ranks: How many processes may come.
        patience_s: Shortest time to wait for others, in seconds.
        check: Called before each chunk; raises where another process has found that it was
            called for something else.

    Attributes:
        n_jobs: Calls of `generate` put up so far.
    """

    def __init__(
        self,
        engine: ChatEngine,
        board: Board,
        n_ranks: int,
        patience_s: float = _PATIENCE_S,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(engine.chat)
        self._engine, self._board, self._n_ranks = engine, board, n_ranks
        self._patience_s, self._check = patience_s, check
        self.n_jobs = 0

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield one generation for each request, whoever answered it.

        Raises:
            ModelError: Not a single row has an answer, or another process failed.
        """
        job, chunks = f"step/{self.n_jobs}", chunks_of(requests, self._n_ranks)
        self.n_jobs += 1
        for number, chunk in enumerate(chunks):
            self._board.put(f"{job}/chunk/{number}", chunk)
        self._board.put(job, ("job", decoding, len(chunks)))
        failures, drawn, slowest = [], set(range(len(chunks))), 0.0
        while (number := self._board.draw(f"{job}/next")) < len(chunks):
            self._check()
            drawn.discard(number)
            start = time.monotonic()
            replies, failure = answered(self._engine, chunks[number], decoding)
            slowest = max(slowest, time.monotonic() - start)
            failures.append(failure)
            yield from self._generations(chunks[number], replies)
        while drawn:
            self._check()
            number = self._ready(job, drawn, max(self._patience_s, 2 * slowest))
            replies, failure = self._taken(f"{job}/rows/{number}", chunks[number], decoding)
            drawn.discard(number)
            failures.append(failure)
            yield from self._generations(chunks[number], replies)
        for number in range(len(chunks)):
            self._board.remove(f"{job}/chunk/{number}")
        if chunks and all(failures):
            raise ModelError("model", f"no row could be answered: {failures[0]}")

    def _ready(self, job: str, drawn: set[int], patience_s: float) -> int:
        """A chunk that another process has answered, or one to be answered here after all."""
        end, pause = time.monotonic() + patience_s, 0.005
        while True:
            for number in sorted(drawn):
                if self._board.has(f"{job}/rows/{number}"):
                    return number
            if time.monotonic() > end:
                return max(drawn)  # drawn last, so the one that would come last
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)

    def _taken(
        self, place: str, chunk: Sequence[Request], decoding: Decoding
    ) -> tuple[list[Reply], str]:
        if not self._board.has(place):
            return answered(self._engine, chunk, decoding)
        kind, replies, failure = self._board.take(place)
        if kind == "failed":
            raise ModelError("another process", failure)
        self._board.remove(place)
        return replies, failure

    def _generations(self, chunk: Sequence[Request], replies: list[Reply]) -> Iterator[Generation]:
        # What other processes read of shared beginnings is not known here, so it is left open.
        told = [reply for reply in replies if reply.text is not None]
        prompt_tokens = sum(reply.n_prompt_tokens for reply in told)
        self.spent += Spent(len(told), prompt_tokens, None, sum(one.n_tokens for one in told))
        return (self._generation(r, reply) for r, reply in zip(chunk, replies, strict=True))


def help_out(engine: ChatEngine | None, board: Board, rank: int) -> Any:
    """Answer chunks until the main process has its result.

    Args:
        engine: Of this process; None only waits.
        board: Where chunks are put up.
        rank: Number of this process.

    Returns:
        What the main process puts up at the end.

    Raises:
        ModelError: The main process has gone, or the model fails here.
    """
    step = 0
    while True:
        kind, *told = board.take(f"step/{step}")
        if kind == "result":
            return told[0]
        decoding, n_chunks = told
        while (
            engine
            and not board.has(OVER)  # the main process has failed: nobody wants these rows
            and (number := board.draw(f"step/{step}/next")) < n_chunks
        ):
            place = f"step/{step}/rows/{number}"
            try:
                chunk = board.take(f"step/{step}/chunk/{number}")
                replies, failure = answered(engine, chunk, decoding)
            except BaseException as error:
                why = f"process {rank} failed with {type(error).__name__}: {error}"
                board.put(place, ("failed", [], why))
                raise
            board.put(place, ("rows", replies, failure))
        step += 1


def refuse_sharded(model: Any) -> None:
    """Refuse weights of which each process holds a part.

    Each step of such a model needs all processes at once, and here each answers rows of its
    own: they would wait for each other for ever.

    Raises:
        ModelError: It is one.
    """
    parts = {type(one) for one in (*model.modules(), *model.parameters())}
    names = {kind.__name__ for part in parts for kind in part.__mro__}
    if names & _SHARDED or any(hasattr(weight, "ds_id") for weight in model.parameters()):
        raise ModelError(
            "model",
            "is spread over the processes (FSDP, ZeRO-3 or tensor parallel), so none of them can "
            "answer rows of its own",
            type(model).__name__,
            "Save it, and evaluate the folder: mlflow_mcq.evaluate(folder, ...) on every rank.",
        )
