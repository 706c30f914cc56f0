"""Sentence embeddings: real vectors, each text once, and a cache that survives damage."""

from __future__ import annotations

import numpy as np
import pytest

from mlflow_mcq.doors import Embedder
from mlflow_mcq.engines.embedder import SentenceEmbedder, resolve_encoder
from mlflow_mcq.engines.vector_cache import VectorCache
from mlflow_mcq.errors import ModelError

TEXTS = ["quicksilver", "a much longer text about copper wires", "tin", "quicksilver"]


@pytest.fixture(scope="module")
def minilm() -> SentenceEmbedder:
    return SentenceEmbedder("demo:minilm", batch_size=2)


def test_real_vectors_in_the_order_of_the_texts(minilm):
    before, seconds = minilm.n_encoded, minilm.seconds
    vectors = minilm.embed(TEXTS)
    assert isinstance(minilm, Embedder)
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[3])
    np.testing.assert_allclose(vectors[2], minilm.embed(["tin"])[0], atol=1e-5)
    assert minilm.n_encoded == before + 3 + 1  # distinct texts only
    assert minilm.seconds > seconds


def test_meaning_is_measured(minilm):
    mercury, copper, span = minilm.embed(["mercury (metal)", "rabbit", "quicksilver"])
    assert span @ mercury > span @ copper


def test_no_texts_and_empty_texts(minilm):
    assert minilm.embed([]).shape[0] == 0
    assert np.isfinite(minilm.embed([""])).all()


def test_the_cache_spares_the_model(minilm, tmp_path):
    first = SentenceEmbedder("demo:minilm", cache_dir=tmp_path)
    made = first.embed(TEXTS)
    again = SentenceEmbedder("demo:minilm", cache_dir=tmp_path)
    np.testing.assert_array_equal(again.embed(TEXTS[::-1]), made[::-1])
    assert (first.n_encoded, again.n_encoded) == (3, 0)
    assert first.fingerprint == again.fingerprint == minilm.fingerprint
    assert len(first.fingerprint) == 12


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        pytest.param("demo:nothing", "is no demo encoder", id="unknown demo"),
        pytest.param("/nowhere/at/all", "cannot be loaded", id="no such folder"),
    ],
)
def test_an_encoder_that_is_not_there(name, rule):
    with pytest.raises(ModelError, match=rule):
        SentenceEmbedder(name).embed(["tin"])


def test_a_demo_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"not installed.*pip install"):
        resolve_encoder("demo:minilm")


def _vectors(*texts: str) -> dict[str, np.ndarray]:
    return {text: np.full(3, len(text), dtype=np.float32) for text in texts}


def test_cached_vectors_are_found_by_another_process(tmp_path):
    VectorCache(tmp_path, "x").put(_vectors("tin", "zinc"))
    VectorCache(tmp_path, "x").put(_vectors("", "lone \ud800 surrogate"))
    cache = VectorCache(tmp_path, "x")
    assert cache.get("zinc").tolist() == [4, 4, 4]
    assert cache.get("").tolist() == [0, 0, 0]
    assert cache.get("lone \ud800 surrogate") is not None
    assert cache.get("iron") is None
    assert VectorCache(tmp_path, "y").get("zinc") is None
    assert not [*cache.folder.glob("*.part")]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="torn"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"no archive at all", id="another file"),
        pytest.param(lambda data: data.replace(b"\x00\x00\x40\x40", b"\x00\x00\xc0\x7f"), id="NaN"),
    ],
)
def test_a_damaged_file_costs_its_vectors_only(tmp_path, damage):
    cache = VectorCache(tmp_path, "x")
    cache.put(_vectors("tin"))
    (file,) = cache.folder.glob("*.npz")
    cache.put(_vectors("zinc"))
    file.write_bytes(damage(file.read_bytes()))
    read = VectorCache(tmp_path, "x")
    assert read.get("tin") is None
    assert read.get("zinc") is not None


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    cache = VectorCache(tmp_path, "x")
    with pytest.raises(OSError, match="no space"):
        cache.put(_vectors("tin"))
    assert [*cache.folder.iterdir()] == []
