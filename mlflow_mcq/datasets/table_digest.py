"""The digest that MLflow gives a table, of one that goes by in parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["TableDigest"]


Hashes = npt.NDArray[np.uint64]


class TableDigest:
    """What MLflow's digest of the whole table depends on: its size, its text columns, its start.

    Attributes:
        columns: Of the table, in order.
        n_rows: Rows so far.

    Example:
        >>> from mlflow.data.digest_utils import compute_pandas_digest
        >>> whole = pd.DataFrame({"q": ["a", "b", "c"], "o": [["x"]] * 3}, dtype=object)
        >>> parts = TableDigest()
        >>> for place in range(3):
        ...     parts.add(whole[place:place + 1])
        >>> parts.digest() == compute_pandas_digest(whole)
        True
    """

    def __init__(self) -> None:
        self.columns: dict[str, None] = {}
        self.n_rows = 0
        self._texts: set[str] = set()
        # Eight bytes a cell and not the cells: some texts are long.
        self._hashes: dict[str, list[Hashes]] = {}
        self._index: list[Hashes] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Take note of the next rows."""
        from mlflow.data.digest_utils import MAX_ROWS

        names = list(map(str, frame.columns))
        if not self.n_rows:
            self._texts = set(names)
        self._texts = {
            name
            for name in self._texts.intersection(names)
            if all(type(cell) is str for cell in frame[name].tolist())
        }
        self.columns |= dict.fromkeys(names)
        head = frame[: max(0, MAX_ROWS - self.n_rows)]
        self.n_rows += len(frame)
        if len(head):
            rows = pd.util.hash_pandas_object(head.index, index=False)
            self._index.append(np.asarray(rows, dtype=np.uint64))
            for name in self._texts:  # MLflow looks at no other column of objects
                self._hashes.setdefault(name, []).append(_hashes(head[name]))

    def digest(self) -> str:
        """Eight hex digits."""
        from mlflow.data.digest_utils import get_normalized_md5_digest

        texts = [self._hashes[name] for name in self.columns if name in self._texts]
        rows = _combined([np.concatenate(parts) for parts in (*texts, self._index)])
        names = [name.encode("utf-8", "surrogatepass") for name in self.columns]
        return str(get_normalized_md5_digest([rows, np.int64(self.n_rows), *names]))


def _hashes(cells: pd.Series[str]) -> Hashes:
    try:
        return np.asarray(pd.util.hash_array(cells.to_numpy(dtype=object)))
    except UnicodeEncodeError:  # half a surrogate pair; MLflow itself stops at it
        whole = np.array([cell.encode("utf-8", "surrogatepass") for cell in cells], dtype=object)
        return np.asarray(pd.util.hash_array(whole))


def _combined(columns: list[Hashes]) -> Hashes:
    """One hash a row from those of its cells, as `pandas.util.hash_pandas_object` has it.

    pandas takes it from the hash of a tuple in Python (Objects/tupleobject.c, before 3.8).
    """
    out = np.full_like(columns[0], 0x345678)
    factor = np.uint64(1000003)
    for left, column in zip(range(len(columns), 0, -1), columns, strict=True):
        out = (out ^ column) * factor
        factor += np.uint64(82520 + 2 * left)
    return out + np.uint64(97531)
