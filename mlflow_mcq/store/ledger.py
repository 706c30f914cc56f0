"""What making rows ahead has taken, kept beside the rows for the run that logs it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mlflow_mcq.spent import Spent

__all__ = ["Entry", "enter", "entries"]

_NAME = "ahead.cost"


@dataclass(frozen=True, slots=True)
class Entry:
    """One job that made rows ahead.

    Attributes:
        spent: Of all its processes together.
        seconds: From its first chunk to its last.
        n_processes: That took part.
    """

    spent: Spent
    seconds: float
    n_processes: int


def enter(folder: Path, entry: Entry) -> None:
    """Add one job to the ledger of a folder."""
    with (folder / _NAME).open("a", encoding="ascii") as file:
        file.write(json.dumps(asdict(entry)) + "\n")


def entries(folder: Path) -> list[Entry]:
    """The jobs of a folder; a line that a crash has torn is passed over.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     enter(Path(name), Entry(Spent(3, 90, 40, 6), 1.5, 2))
        ...     [found] = entries(Path(name))
        >>> found.spent.prefilled, found.n_processes
        (40, 2)
    """
    path = folder / _NAME
    found = []
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
        try:
            told = json.loads(line)
            found.append(Entry(Spent(**told["spent"]), told["seconds"], told["n_processes"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found
