"""Resident workers: processes of this machine that hold the same weights and share the rows.

Each is ``python -m mlflow_mcq._worker``, which does not run the caller's script again, and
loads the weights by name. They talk over their standard input and output, so that a worker
whose caller has gone reads the end of its input and ends too.
"""

from __future__ import annotations

import itertools
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlflow_mcq.errors import McqError, ModelError
from mlflow_mcq.launch import worker_environments
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.ranks import chunk_ends
from mlflow_mcq.records import Decoding, Prompt, Query, Reply
from mlflow_mcq.scores import LabelScores

__all__ = ["PooledChat", "WorkerPool", "shown_error"]

_ROWS_TOGETHER = 4
"""Rows of one item stand one behind the other: chunks end after so many at least."""

_GOODBYE_S = 10.0
_GONE = "gone"
_Said = tuple[int, Any]


class WorkerPool:
    """Workers that wait for work until nobody holds the pool any more.

    Args:
        n: How many; one on each GPU, or all on the CPU where there is none.

    Raises:
        SettingsError: There are fewer GPUs.
    """

    def __init__(self, n: int) -> None:
        self.size = n
        self._heard: queue.Queue[_Said] = queue.Queue()
        command = [sys.executable, "-m", "mlflow_mcq._worker"]
        self._workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given)
            for given in worker_environments(n)
        ]
        self._close = weakref.finalize(self, _end, self._workers)
        for number, worker in enumerate(self._workers):
            # A thread each: buffered pipes cannot be waited for together.
            listener = threading.Thread(
                target=_listen, args=(number, worker.stdout, self._heard), daemon=True
            )
            listener.start()
        self._calls = itertools.count()

    def close(self) -> None:
        """End the workers."""
        self._close()

    def open(self, settings: LocalSettings, batch_size: int) -> dict[str, Any]:
        """Have every worker load a model; an adapter goes over a base that is there already.

        Returns:
            What the first of them says of it.

        Raises:
            McqError: What a worker raised, or that they do not have the same weights.
        """
        call = next(self._calls)
        for number in range(self.size):
            self._tell(number, ("open", call, settings, batch_size))
        told: dict[int, dict[str, Any]] = {}
        while len(told) < self.size:
            number, kind, said = self._hear(call)
            if kind == "opened":
                told[number] = said
        odd = next((n for n in told if told[n]["fingerprint"] != told[0]["fingerprint"]), None)
        if odd is not None:
            raise ModelError(f"worker {odd}", "has other weights than worker 0")
        return told[0]

    def ask(
        self, settings: LocalSettings, batch_size: int, queries: Sequence[Query], decoding: Decoding
    ) -> Iterator[tuple[int, Reply | str]]:
        """Share out queries; yield replies by place as they come, and -1 with a road at ends.

        Raises:
            McqError: A worker ended, or raised something. What it answered was yielded.
        """
        return self._shared_out("ask", (settings, batch_size), queries, decoding)

    def score(
        self,
        settings: LocalSettings,
        batch_size: int,
        prompts: Sequence[Prompt],
        thinking: bool | None,
    ) -> Iterator[tuple[int, LabelScores]]:
        """Share out prompts whose labels are scored; yield scores by place as they come.

        Raises:
            McqError: A worker ended, or raised something.
        """
        loaded = (settings, batch_size)
        for place, said in self._shared_out("score", loaded, prompts, thinking):
            if not isinstance(said, str):
                yield place, said

    def _shared_out(
        self, kind: str, loaded: tuple[LocalSettings, int], things: Sequence[Any], how: object
    ) -> Iterator[tuple[int, Any]]:
        call = next(self._calls)
        ends = [
            _ROWS_TOGETHER * end for end in chunk_ends(-(-len(things) // _ROWS_TOGETHER), self.size)
        ]
        spans = list(zip([0, *ends], ends, strict=False))[::-1]
        begins: dict[int, int] = {}

        def hand_out(number: int) -> None:
            begins.pop(number, None)
            if spans:
                begin, end = spans.pop()
                begins[number] = begin
                self._tell(number, (kind, call, *loaded, things[begin:end], how))

        for number in range(self.size):
            hand_out(number)
        while begins:
            number, word, said = self._hear(call)
            if word == "reply":
                place, reply = said
                yield begins[number] + place, reply
            else:
                yield -1, said
                hand_out(number)

    def _tell(self, number: int, message: object) -> None:
        pipe = self._workers[number].stdin
        try:
            assert pipe is not None
            pickle.dump(message, pipe)
            pipe.flush()
        except OSError:
            self._give_up(number)

    def _hear(self, call: int) -> tuple[int, str, Any]:
        """The next word about this call; what is left of one that was broken off is passed over."""
        while True:
            number, message = self._heard.get()
            if message == _GONE:
                self._give_up(number)
            kind, about, said = message
            if about == call and kind == "failed":
                raise said
            if about == call:
                return number, kind, said

    def _give_up(self, number: int) -> None:
        code = self._workers[number].wait()
        self.close()
        raise ModelError(
            f"worker {number} of {self.size}",
            f"ended before its rows were made (exit code {code})",
            possible="What it said stands above. With a cache every row made is kept: the same "
            "call makes the others, with any number of processes.",
        )


class PooledChat:
    """A model in the workers of a pool, asked as if it were here.

    Args:
        pool: The workers.
        settings: What they load.
        batch_size: Rows at a time of each where the fast road is closed.

    Attributes:
        fingerprint: As the model has it in one process: rows are the same, and found again.
        origin: Likewise.
        settings: As given.
        described: What is to be said of it, as params.
        road: How the last chunk was generated, and why.

    Raises:
        McqError: The model cannot be loaded.
    """

    deterministic: bool = True

    def __init__(self, pool: WorkerPool, settings: LocalSettings, batch_size: int) -> None:
        told = pool.open(settings, batch_size)
        self._pool, self.settings, self._batch_size = pool, settings, batch_size
        self.fingerprint: str = told["fingerprint"]
        self.origin: str = told["origin"]
        self.speaks_chat: bool = told["speaks_chat"]
        self.control_tokens: tuple[str, ...] = told["control_tokens"]
        self.described: Mapping[str, object] = {
            **told["described"], "mcq.model_processes": pool.size,
        }  # fmt: skip
        self._tokenizer: bytes = told["tokenizer"]
        self.road: str | None = None

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return pickle.loads(self._tokenizer)

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Answer in all workers; a row does not depend on which one has it.

        Raises:
            McqError: A worker ended or failed; rows that it had answered were yielded.
        """
        for place, said in self._pool.ask(self.settings, self._batch_size, queries, decoding):
            if isinstance(said, Reply):
                yield place, said
            else:
                self.road = f"{said} (in {self._pool.size} processes)"

    def score(
        self, prompts: Sequence[Prompt], thinking: bool | None
    ) -> Iterator[tuple[int, LabelScores]]:
        """Score labels in all workers; by place, in the order in which they are ready.

        Raises:
            McqError: A worker ended or failed.
        """
        return self._pool.score(self.settings, self._batch_size, prompts, thinking)


def _listen(number: int, pipe: Any, heard: queue.Queue[_Said]) -> None:
    try:
        with pipe:
            while True:
                heard.put((number, pickle.load(pipe)))
    except (EOFError, OSError, ValueError, pickle.UnpicklingError):
        heard.put((number, _GONE))


def _end(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        try:
            if worker.stdin is not None:
                worker.stdin.close()
        except OSError:
            continue  # it has gone, with something unread
    for worker in workers:
        try:
            worker.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            # In the middle of a batch that nobody waits for.
            worker.kill()
            worker.wait()


def shown_error(error: BaseException) -> McqError:
    """A worker's error as the caller can raise it."""
    if isinstance(error, McqError):
        return error
    return ModelError("a worker", f"failed with {type(error).__name__}: {error}")
