"""The processes that a launcher started together, seen from one of them.

``torchrun`` and ``accelerate launch`` start, connect and restart the processes (ranks).
Here is only what they say to each other: who hands out work, and what travels to rank 0,
the main one.

========================  ============================================================
`Ranks.ticket`            the next number of a counter that all ranks share: an atomic
                          addition in torch.distributed's own key-value store, for which
                          nobody waits
`Ranks.from_main`         what the main rank finds out, or its error, on every rank
`Ranks.gather`            one object of each rank, on the main one
========================  ============================================================

The last two, and `Ranks.wait`, wait for other ranks. They go over a gloo group of their own:
NCCL gives up after ten minutes, and one rank may be an hour behind another with a large model.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar

from mlflow_mcq.errors import McqError

__all__ = [
    "Ranks",
    "chunk_ends",
    "count_accelerators",
    "join_ranks",
    "launched_ranks",
    "leave_ranks",
    "present_ranks",
]

T = TypeVar("T")
_PATIENCE = timedelta(days=30)
_LEAST_ITEMS = 8
"""A smaller chunk costs more in reading shared beginnings again than it evens out."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """All processes of one job; with a single one everything here is at once.

    Attributes:
        index: Number of this process, from 0.
        size: How many there are.

    Example:
        >>> alone = Ranks()
        >>> alone.is_main, alone.gather("rows"), alone.from_main(lambda: 7)
        (True, ['rows'], 7)
        >>> ticket = alone.ticket()
        >>> ticket(), ticket()
        (0, 1)
    """

    index: int = 0
    size: int = 1
    _group: Any = None

    @property
    def is_main(self) -> bool:
        """Whether this is the one that talks to MLflow and to the judge."""
        return self.index == 0

    def from_main(self, work: Callable[[], T]) -> T:
        """Do something on the main rank alone; every rank has what came out.

        Raises:
            McqError: The main rank's own: all ranks end with it, so that none waits for
                another that has gone.
        """
        if self.size == 1:
            return work()
        box: list[Any] = [None, None]
        if self.is_main:
            try:
                box[0] = work()
            except McqError as error:
                box[1] = error
        _collective().broadcast_object_list(box, src=0, group=self._group)
        if box[1] is not None:
            raise box[1]
        found: T = box[0]
        return found

    def gather(self, value: T) -> list[T]:
        """One value of each rank in their order, on the main rank; elsewhere nothing."""
        if self.size == 1:
            return [value]
        box: list[Any] | None = [None] * self.size if self.is_main else None
        _collective().gather_object(value, box, dst=0, group=self._group)
        return box or []

    def wait(self) -> None:
        """Wait until every rank is here."""
        if self.size > 1:
            _collective().barrier(group=self._group)

    def ticket(self) -> Callable[[], int]:
        """A counter from 0 that all ranks draw from; no number is drawn twice."""
        if self.size == 1:
            return count().__next__
        from torch.distributed import PrefixStore  # type: ignore[attr-defined]
        from torch.distributed.distributed_c10d import _get_default_store

        # A name of its own: a store may outlive the ranks that were killed, and a counter
        # found half way would leave out the work that they had drawn.
        name = self.from_main(lambda: uuid.uuid4().hex)
        store = PrefixStore(f"mlflow_mcq/{name}", _get_default_store())
        return lambda: int(store.add("next", 1)) - 1


def chunk_ends(n_items: int, n_ranks: int) -> list[int]:
    """Where chunks end: one past the last item of each.

    Each is a third of what would be every rank's share of the rest: large ones first, whose
    shared beginnings are read once, and small ones at the end, so that ranks end together.

    Args:
        n_items: Items to share out.
        n_ranks: Processes that draw chunks; a single one takes everything at once.

    Example:
        >>> chunk_ends(100, 2)
        [16, 30, 41, 50, 58, 66, 74, 82, 90, 98, 100]
        >>> chunk_ends(100, 1), chunk_ends(0, 4)
        ([100], [])
    """
    ends: list[int] = []
    done = 0
    while done < n_items:
        rest = n_items - done
        size = rest if n_ranks == 1 else max(_LEAST_ITEMS, rest // (3 * n_ranks))
        done = min(n_items, done + size)
        ends.append(done)
    return ends


def launched_ranks() -> int:
    """How many processes a launcher says it has started; 1 without one."""
    size = os.environ.get("WORLD_SIZE", "")
    there = "RANK" in os.environ and size.isdigit()
    return max(1, int(size)) if there else 1


def present_ranks() -> Ranks:
    """The processes that are connected already; this one alone where none are.

    Nobody waits here: another rank need not ask.
    """
    # Not imported for this: a process that never loaded torch is connected to nobody.
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return Ranks()
    return Ranks(dist.get_rank(), dist.get_world_size())


def join_ranks() -> Ranks:
    """Connect to the other processes that a launcher has started, if it has.

    Every rank must come here; all wait for the last one.
    """
    if launched_ranks() == 1:
        return Ranks()
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not count_accelerators()
    # Said to Accelerate: under torchrun it takes a machine without a GPU for a single
    # process, and every rank would do all of the work.
    PartialState(cpu=on_cpu)
    dist, found = _collective(), present_ranks()
    gloo = found.size > 1 and dist.is_gloo_available()
    group = dist.new_group(backend="gloo", timeout=_PATIENCE) if gloo else None
    return Ranks(found.index, found.size, group)


def leave_ranks() -> None:
    """Disconnect; the last thing that is done together."""
    if present_ranks().size > 1:
        _collective().destroy_process_group()


def count_accelerators() -> int:
    """How many GPUs, or other devices of their kind, this process can use."""
    import torch

    found = getattr(torch, "accelerator", None)  # torch 2.4 and 2.5 have none
    return int(found.device_count() if found is not None else torch.cuda.device_count())


def _collective() -> Any:
    import torch.distributed as dist

    return dist
