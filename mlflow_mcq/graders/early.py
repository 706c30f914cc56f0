"""A judge that reads answers while the model still generates.

One thread: it waits for answers until there are as many as the judge is asked at a time,
lets the judge read them as it reads any, and goes on. What is read, asked and counted is the
same as where the judge starts at the end; only the order of calls may differ. So a judge that
has a budget starts at the end: which rows it pays for must not depend on which answer came
first.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence

from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.records import Generation, Grade

__all__ = ["EarlyReader", "reads_early", "say_late"]

_PATIENCE_S = 0.05
_MOST = 64
"""Answers to wait for at most: a judge that bears hundreds of calls must not wait for as many."""


def reads_early(judge: JudgeGrader) -> bool:
    """Whether a judge may read while the model generates.

    Every seat must be one whose calls can be ended from outside (`OpenAIChat.stop`): weights
    that are loaded here share their device with the model, and would only slow it down.
    """
    settings = judge.settings
    free = settings.max_calls is None and settings.max_judge_tokens is None
    return settings.overlap and free and all(hasattr(s.chat, "stop") for s in judge.seats)


def say_late(judge: JudgeGrader | None) -> None:
    """Say what a judge gives away that is not the first evaluator of a call.

    The first one has the answers made, and knows of no judge that comes after it.
    """
    from mlflow.utils.logging_utils import eprint

    if judge is not None and reads_early(judge):
        eprint(
            "mcq_judge begins to read now that all answers are there. Named first in "
            "evaluators=[...] it reads while the model generates, and is tried before that."
        )


class EarlyReader:
    """Reads what it is shown, in a thread of its own.

    Args:
        judge: Who reads. Nobody else may use it until `grade` or `stop` is through.

    Attributes:
        name: Of the judge.
        judge: It.
        overlapped: Seconds that it read while the model generated; known once `grade` is
            called.
    """

    def __init__(self, judge: JudgeGrader) -> None:
        self.judge, self.name = judge, judge.name
        self.overlapped = 0.0
        self._enough = min(_MOST, judge.settings.concurrency)
        self._shown: queue.SimpleQueue[Generation | None] = queue.SimpleQueue()
        self._grades: queue.SimpleQueue[Grade | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._stopped = threading.Event()
        self._busy = 0.0
        self._since: float | None = None
        # A daemon: a program that ends by force must not wait for a judge.
        self._thread = threading.Thread(target=self._work, name="mcq-early", daemon=True)
        for seat in judge.seats:
            seat.remember()
        self._thread.start()

    def show(self, generation: Generation) -> None:
        """Hand over an answer; a row that has none is nobody's to read."""
        if generation.reply.error is None:
            self._shown.put(generation)

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield the grades of all that was shown; nothing more is shown after this.

        Args:
            generations: The same answers; what is yielded is what was shown.

        Raises:
            BaseException: Whatever broke off the reading in its thread.
        """
        self.overlapped = self._busy_seconds()
        self._shown.put(None)
        while (one := self._grades.get()) is not None:
            yield one
        self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Give up: calls under way are ended, and the thread with them."""
        self._stopped.set()
        self._shown.put(None)
        while self._thread.is_alive():
            # Again each time: a round of calls may begin just after it was looked for.
            for seat in self.judge.seats:
                stop = getattr(seat.chat, "stop", None)
                if stop is not None:
                    stop()
            self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        try:
            more = True
            while more and not self._stopped.is_set():
                rows, more = self._next()
                self._since = time.monotonic()
                self._read(rows)
                self._busy, self._since = self._busy_seconds(), None
        except BaseException as error:  # noqa: BLE001  raised where the grades are asked for
            self._error = error
        finally:
            for seat in self.judge.seats:
                seat.forget()
            self._grades.put(None)

    def _read(self, rows: Sequence[Generation]) -> None:
        for one in self.judge.grade(rows):
            if self._stopped.is_set():
                return  # which lets go of the judge's generator, and with it of its calls
            self._grades.put(one)

    def _next(self) -> tuple[list[Generation], bool]:
        """Enough answers, or the last ones; and whether more may come."""
        rows: list[Generation] = []
        while len(rows) < self._enough or not self._shown.empty():
            row = self._shown.get()
            if row is None:
                return rows, False
            rows.append(row)
        return rows, True

    def _busy_seconds(self) -> float:
        since = self._since
        return self._busy + (0.0 if since is None else time.monotonic() - since)
