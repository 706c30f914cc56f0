"""Whether some work comes to an end: a guard against hanging, which times nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable

__all__ = ["finishes"]

HANGS = 10.0
"""CPU seconds. In proportion to its length the slowest reading of a megabyte takes a twentieth, and
one that grows with the square of the length takes more."""


class Hung(BaseException):
    """Not an Exception: no reader may swallow it."""


def finishes(read: Callable[[str], object], text: str, limit: float = HANGS) -> bool:
    """Whether a reader comes to the end of a text before its processor time runs out."""

    def stop(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)  # counts our own work, not a busy machine
    try:
        read(text)
    except Hung:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return True
