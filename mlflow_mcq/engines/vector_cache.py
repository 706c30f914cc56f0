"""Vectors on disk, so that a text is embedded once and not once a run.

One folder for each embedder; one file for each call that computed something, never changed
afterwards. Files are written beside and renamed, so that several processes may share a
folder and a file that is there is complete. One that cannot be read is left out: it costs
its vectors, not the run.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["VectorCache"]

_log = logging.getLogger(__name__)


class VectorCache:
    """The vectors of one embedder.

    Args:
        folder: Shared by all embedders; made at the first write.
        fingerprint: Of the embedder; vectors of another are never seen.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        name = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        self.folder = Path(folder) / f"embeddings-{name}"
        self._known: dict[str, NDArray[np.float32]] | None = None

    def get(self, text: str) -> NDArray[np.float32] | None:
        """The vector of a text; None where it is not known."""
        if self._known is None:
            self._known = {}
            for file in sorted(self.folder.glob("*.npz")):
                self._known |= _read(file)
        return self._known.get(_key(text))

    def put(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep the vectors of texts, in memory and in one new file."""
        if not vectors:
            return
        keyed = {_key(text): vector for text, vector in vectors.items()}
        self._known = (self._known or {}) | keyed
        self.folder.mkdir(parents=True, exist_ok=True)
        keys = np.array(list(keyed), dtype="U64")
        # Named by its content: two processes that computed the same write the same file.
        name = hashlib.sha256("".join(sorted(keyed)).encode()).hexdigest()[:32]
        handle, scratch = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez(stream, keys=keys, vectors=np.stack(list(keyed.values())))
            os.replace(scratch, self.folder / f"{name}.npz")
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(file: Path) -> dict[str, NDArray[np.float32]]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            keys, vectors = stored["keys"], stored["vectors"].astype(np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError("no table of finite numbers")
        return dict(zip(map(str, keys), vectors, strict=True))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("Leaving out %s, which cannot be read (%s)", file, type(error).__name__)
        return {}
