"""What the main process puts up for the others, in torch.distributed's key-value store.

No collectives: the main process waits for nobody. It does alone what no other takes, so that
a call on it only is as good as a call on every rank, and one that dies holds up no other.
"""

from __future__ import annotations

import pickle
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from mlflow_mcq.errors import ModelError

__all__ = ["Board", "open_board"]

_PATIENCE_S = 1800.0
"""How long the main process may be behind; torch.distributed waits as long by default."""

_GOODBYE_S = 30.0

_PART = 4 << 20
"""Bytes of a value that go up together."""

_CALLS: Counter[str] = Counter()


class Board:
    """One call that several processes make together.

    Args:
        store: Of torch.distributed, or like it: ``set``, ``get``, ``add``, ``check``.

    What is put up is pickled: it comes from processes of the same job, as with
    torch.distributed's own object collectives.

    Example:
        >>> from torch.distributed import HashStore
        >>> board = Board(HashStore())
        >>> board.put("a", (1, 2))
        >>> board.take("a"), board.draw("n"), board.draw("n")
        ((1, 2), 0, 1)
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, name: str, value: object) -> None:
        """Put something up; the same name is used once."""
        # Rotated prompts say the same again and again; and one value may have 8 MiB there.
        data = zlib.compress(pickle.dumps(value), 1)
        parts = [data[at : at + _PART] for at in range(0, len(data), _PART)]
        for number, part in enumerate(parts[1:], 1):
            self._store.set(f"{name}/part/{number}", part)
        # Last, since who waits waits for this one.
        self._store.set(name, len(parts).to_bytes(4, "big") + parts[0])

    def draw(self, name: str) -> int:
        """The next number of a counter, from 0; no process draws one twice."""
        return self._add(name, 1) - 1

    def drawn(self, name: str) -> int:
        """How many numbers of a counter were drawn."""
        return self._add(name, 0)

    def _add(self, name: str, n: int) -> int:
        try:
            return int(self._store.add(name, n))
        except RuntimeError as error:
            raise ModelError("process 0", "is not connected any more", str(error)) from error

    def take(
        self, name: str, seconds: float | None = None, meanwhile: Callable[[], None] | None = None
    ) -> Any:
        """What stands under a name, as soon as it does.

        Args:
            name: Where.
            seconds: Most to wait; None waits as long as the processes are connected.
            meanwhile: Called again and again; what it raises ends the waiting.

        Raises:
            ModelError: Nobody put it up in time, or the main process has gone.
        """
        start, pause = time.monotonic(), 0.005
        # Asked for now and then: `wait` of a store gives up after a time that the caller's
        # own program has set.
        while not self.has(name):
            if meanwhile is not None:
                meanwhile()
            if seconds is not None and time.monotonic() - start > seconds:
                raise ModelError(
                    "evaluate",
                    f"was called on this process, and not on process 0 within {seconds:.0f} s "
                    "with the same data and settings",
                    possible="Call it on every rank with the whole data, or on rank 0 alone.",
                )
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)
        return pickle.loads(zlib.decompress(b"".join(self._parts(name))))

    def _parts(self, name: str) -> list[bytes]:
        first = self._store.get(name)
        rest = range(1, int.from_bytes(first[:4], "big"))
        return [first[4:], *(self._store.get(f"{name}/part/{number}") for number in rest)]

    def has(self, name: str) -> bool:
        """Whether something is up under a name.

        Raises:
            ModelError: The process that holds the store has gone.
        """
        try:
            return bool(self._store.check([name]))
        except RuntimeError as error:
            raise ModelError("process 0", "is not connected any more", str(error)) from error

    def remove(self, name: str) -> None:
        """Take something down, where the store can: rows must not fill its memory."""
        try:
            n_parts = int.from_bytes(self._store.get(name)[:4], "big")
            for number in range(1, n_parts):
                self._store.delete_key(f"{name}/part/{number}")
            self._store.delete_key(name)
        except (RuntimeError, NotImplementedError):
            return

    def announce(self, model: str | None) -> None:
        """Say that the main process is here, and with which model; None: it has found none."""
        self.put("open", model)

    def attend(self, meanwhile: Callable[[], None] | None = None) -> str | None:
        """Come, and wait for the main process to come.

        Args:
            meanwhile: As in `take`.

        Returns:
            The model that it has.

        Raises:
            ModelError: It does not come.
        """
        self.draw("came")
        model: str | None = self.take("open", _PATIENCE_S, meanwhile)
        return model

    def leave(self) -> None:
        """Say that this process has what it came for."""
        self.draw("left")

    def see_off(self) -> None:
        """Wait, on the main process, for those who came: its end may be that of the store."""
        end = time.monotonic() + _GOODBYE_S
        while self.drawn("left") < self.drawn("came"):
            if time.monotonic() > end:  # one has died; its launcher says so
                return
            time.sleep(0.01)


def open_board(name: str) -> Board:
    """The board of the next call of this name on this process.

    Calls are told apart by what they evaluate and counted one by one, so that a call on the
    main process alone does not shift those that all make.
    """
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]
    from torch.distributed.distributed_c10d import _get_default_store

    number = _CALLS[name]
    _CALLS[name] += 1
    return Board(PrefixStore(f"mlflow_mcq/{name}/{number}", _get_default_store()))
