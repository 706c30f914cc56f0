"""How many calls a server bears, and whether it is there at all.

A server that says 429 or 503 is asked by fewer callers at a time, and by more again while
it answers: additive increase, multiplicative decrease, as TCP has it (Chiu and Jain 1989).
One that fails every call is not asked any more: ten thousand rows that each wait for their
own time-out would say the same a day later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

__all__ = ["Breaker", "CallError", "Fault", "NotAsked", "Pace", "Turn"]

Fault = Literal["row", "passing", "absent", "down"]


class CallError(Exception):
    """A call that brought no answer.

    Args:
        said: One line for people; may hold what the server said.
        fault: ``row``: this request is refused, others may be served. ``passing``: the same
            request may be served later. ``absent``: nothing listens there. ``down``: no
            request will be served: key, model or quota are wrong.
        status: HTTP status; 0 where there was none.
        wait: Seconds that the server asks to wait; None where it does not say.
    """

    def __init__(self, said: str, fault: Fault, status: int = 0, wait: float | None = None) -> None:
        super().__init__(said)
        self.fault: Fault = fault
        self.status = status
        self.wait = wait

    @property
    def answered(self) -> bool:
        """Whether the server says that all is well, with something that is no completion."""
        return 200 <= self.status < 300

    @property
    def pressing(self) -> bool:
        """Whether the server has more calls than it can bear."""
        return self.status in (429, 503)


class NotAsked(CallError):
    """A call that was not made, since the server had been given up."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One call in flight; ``began`` counts the decreases before it."""

    began: int


class Pace:
    """A limit of calls in flight that adapts below a fixed one.

    Args:
        limit: Never more than this.
        start: To begin with; None is the limit.

    Attributes:
        window: Calls that may be in flight now; a fraction counts towards the next one.
        in_flight: Calls that are.

    Example:
        >>> pace = Pace(8)
        >>> pace.pressed(Turn(0)); pace.pressed(Turn(0))  # one decrease a round trip
        >>> pace.window
        4.0
        >>> pace.answered()
        >>> pace.window
        4.25
    """

    def __init__(self, limit: int, start: float | None = None) -> None:
        self.limit = limit
        self.window = float(limit if start is None else min(max(start, 1.0), limit))
        self.in_flight = 0
        self._steep = float(limit)  # below it the window doubles in each round trip
        self._n_decreases = self._n_waiting = 0
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Wait for a place in flight, and hold it."""
        while self.in_flight >= int(self.window):
            await self._room()
        self.in_flight += 1
        try:
            yield Turn(self._n_decreases)
        finally:
            self.in_flight -= 1
            if self._n_waiting:
                async with self._freed:
                    self._freed.notify(max(0, int(self.window) - self.in_flight))

    async def _room(self) -> None:
        self._n_waiting += 1
        try:
            async with self._freed:
                await self._freed.wait_for(lambda: self.in_flight < int(self.window))
        finally:
            self._n_waiting -= 1

    def answered(self) -> None:
        """Count an answer: the window grows."""
        step = 1.0 if self.window < self._steep else 1.0 / self.window
        self.window = min(self.window + step, float(self.limit))

    def pressed(self, turn: Turn) -> None:
        """Halve the window, once for all calls that were in flight together.

        Sixteen calls that are refused at one moment are one sign, not sixteen.
        """
        if turn.began == self._n_decreases:
            self._n_decreases += 1
            self.window = self._steep = max(1.0, self.window / 2)


_HARD, _PATIENT = 5, 20
"""Failed calls in a row before a server is given up: refusals for good, and all others."""


class Breaker:
    """Ends the asking of a server that serves nobody.

    Args:
        wary: It was given up before: one more failure is enough.

    Attributes:
        why: Why it is not asked any more; empty while it is.
    """

    def __init__(self, wary: bool = False) -> None:
        self.why = ""
        self._wary = wary
        self._n_failed = self._n_hard = 0

    def check(self) -> None:
        """Let a call pass.

        Raises:
            NotAsked: The server has been given up.
        """
        if self.why:
            raise NotAsked(f"not asked: {self.why}", "down")

    def served(self) -> None:
        """Count an answer, if only to say that this very request is refused."""
        self.why, self._wary = "", False
        self._n_failed = self._n_hard = 0

    def failed(self, error: CallError) -> None:
        """Count a call that failed, all its retries included."""
        if error.fault == "row":
            self.served()
            return
        self._n_failed += 1
        self._n_hard += error.fault == "down"
        if self._wary or self._n_hard >= _HARD or self._n_failed >= _PATIENT:
            n = f"{self._n_failed} calls in a row failed"
            self.why = f"the server is given up, since {n}, the last one with {error}"
