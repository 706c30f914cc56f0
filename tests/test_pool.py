"""Resident workers: the same rows as one process, and no script of the user's run twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rank_jobs import written_recipe
from tiny import byte_tokenizer, saved, tiny_model

import mlflow_mcq
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.described import described
from mlflow_mcq.engines.elsewhere_scores import PooledScorer
from mlflow_mcq.engines.handle import in_processes
from mlflow_mcq.engines.kept import KeptEngine
from mlflow_mcq.engines.label_scores import LabelScorer
from mlflow_mcq.engines.pool import PooledChat, WorkerPool
from mlflow_mcq.engines.sharing import keep_only, loaded, pooled, weights_shared
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.launch import worker_environments
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Decoding, Item, Query
from mlflow_mcq.settings import Settings, read_settings
from mlflow_mcq.store.row_store import RowStore
from mlflow_mcq.together import ranks_of_call
from mlflow_mcq.unwrap import engine_of

QUERIES = [Query(f"Question {n}: is {n} above {n % 7}? Answer:", seed=n) for n in range(70)]
SAMPLED = Decoding(max_new_tokens=6, temperature=0.8)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("base"), max_position_embeddings=512)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> str:
    from peft import LoraConfig, get_peft_model

    folder = tmp_path_factory.mktemp("adapter")
    config = LoraConfig(r=4, lora_alpha=32, target_modules=["q_proj"], init_lora_weights=False)
    get_peft_model(tiny_model(max_position_embeddings=512), config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def shared() -> Iterator[None]:
    """Workers start once for the tests that use them in turn."""
    with weights_shared():
        yield


def test_rows_are_those_of_one_process(base: str, adapter: str, shared: None) -> None:
    for settings in (LocalSettings(path=base), LocalSettings(path=base, adapter=adapter)):
        here, there = loaded(settings, 8), pooled(settings, 8, 2)
        assert (there.fingerprint, there.origin) == (here.fingerprint, here.origin)
        assert dict(there.ask(QUERIES, SAMPLED)) == dict(here.ask(QUERIES, SAMPLED))
        assert there.road == f"{here.road} (in 2 processes)"
        assert described(there) == {**described(here), "mcq.model_processes": 2}
        assert there.tokenizer.get_vocab() == here.tokenizer.get_vocab()
    assert here.fingerprint != loaded(base, 8).fingerprint


def test_a_call_that_was_broken_off_leaves_nothing_behind(base: str, shared: None) -> None:
    chat = pooled(base, 8, 2)
    next(chat.ask(QUERIES, SAMPLED))
    assert dict(chat.ask(QUERIES[:9], SAMPLED)) == dict(loaded(base, 8).ask(QUERIES[:9], SAMPLED))


def test_what_a_worker_cannot_load_is_said_as_here(base: str, shared: None) -> None:
    settings = LocalSettings(path=base, adapter="nowhere/at-all")
    with pytest.raises(ModelError) as here:
        loaded(settings, 8)
    with pytest.raises(ModelError) as there:
        pooled(settings, 8, 2)
    assert str(there.value) == str(here.value)


def test_labels_are_scored_as_in_one_process(base: str, shared: None) -> None:
    items = [Item(f"q{n}", f"Which is {n}?", (f"{n}.", "a", "b"), n % 3) for n in range(30)]
    items.append(Item("long", "x" * 600, ("a", "b", "c"), 0))
    prompts = [r.prompt for r in requests_for(items, Settings(), chat=False)]
    here = LabelScorer(loaded(base, 8)).score(prompts)
    there = PooledScorer(pooled(base, 8, 2)).score(prompts)
    for one, other in zip(here, there, strict=True):
        assert other.prompt is one.prompt
        assert (other.token_texts, other.error) == (one.token_texts, one.error)
        # Rows side by side in another batch: the same up to rounding.
        assert other.logprobs == pytest.approx(one.logprobs, abs=1e-4)
    assert {one.error for one in there} == {"", "prompt_too_long"}
    with pytest.raises(ModelError, match="labels"):
        PooledScorer(pooled(base, 8, 2)).score([replace(prompts[0], labels=())])
    assert prompts[0].labels == ("A", "B", "C")


def test_the_diagnostic_is_there_with_processes(base: str, shared: None, store: None) -> None:
    rows = [{"question": f"Is it {n}?", "options": ["x", "y"], "answer": n % 2} for n in range(9)]
    given: dict[str, Any] = {"logprob": {"enabled": True}, "max_new_tokens": 2}
    found = [
        mlflow_mcq.evaluate(base, rows, evaluators="mcq_regex", processes=n, **given).metrics
        for n in (1, 2)
    ]
    names = [name for name in found[0] if name.startswith("logprob/")]
    assert "logprob/accuracy" in names
    assert [found[1][n] for n in names] == pytest.approx([found[0][n] for n in names], abs=1e-4)


def test_a_recipe_with_processes(base: str, shared: None, tmp_path: Path) -> None:
    from mlflow_mcq.generation import generate_recipe

    folder = tmp_path / "rows"
    path = written_recipe(tmp_path / "r", 24, base, processes=2, cache=str(folder))
    assert generate_recipe(path)[0].n_missing == 0
    assert len(list(folder.glob("*.rows"))) == 1  # the workers write nothing
    recipe = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**recipe, "processes": 1}))
    assert generate_recipe(path)[0].n_found == 72


def test_workers_end_with_the_last_arm_that_needs_them(base: str, shared: None) -> None:
    chat = pooled(base, 4, 2)
    workers = chat._pool._workers
    keep_only([base])
    assert [worker.poll() for worker in workers] == [None, None]
    assert pooled(base, 8, 2)._pool is chat._pool
    keep_only(["another"])
    assert [worker.poll() for worker in workers] == [0, 0]


def test_a_worker_that_dies_is_said_and_its_rows_are_kept(base: str, tmp_path: Path) -> None:
    pool = WorkerPool(1)
    chat = PooledChat(pool, LocalSettings(path=base), 8)
    # Far more rows than are answered at once: most are still to come when the first is there.
    items = [Item(f"q{n}", f"Which is {n}?", (f"{n}.", f"{n + 1}."), 0) for n in range(500)]
    settings = Settings(orientations="swap", max_new_tokens=8)
    requests = requests_for(items, settings, chat=False)
    with RowStore(tmp_path) as rows:
        answers = KeptEngine(ChatEngine(chat), rows).generate(requests, settings.decoding)
        next(answers)
        pool._workers[0].kill()
        with pytest.raises(ModelError, match=r"worker 0 of 1: ended .*exit code -9.*is kept"):
            list(answers)
        n_kept = len(rows)
    assert n_kept >= 1
    engine = ChatEngine(loaded(base, 8))
    with RowStore(tmp_path) as rows:
        kept = KeptEngine(engine, rows)
        got = {one.key: one.reply for one in kept.generate(requests, settings.decoding)}
    assert kept.n_found == n_kept
    assert got == {one.key: one.reply for one in engine.generate(requests, settings.decoding)}


def test_the_users_script_is_not_run_again(base: str, tmp_path: Path) -> None:
    # Unguarded, as people write them: spawned processes would import it, and start more.
    script = tmp_path / "train.py"
    script.write_text(
        "from mlflow_mcq.engines.sharing import pooled\n"
        "from mlflow_mcq.records import Decoding, Query\n"
        "print('the script runs')\n"
        f"chat = pooled({base!r}, 8, 1)\n"
        "print(len(dict(chat.ask([Query('Why?')] * 3, Decoding(max_new_tokens=2)))))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["the script runs", "3", ""]


# --- who may have them ----------------------------------------------------------------


def test_a_model_in_memory_stays_where_it_is(base: str) -> None:
    settings = Settings(processes=2)
    handle = mlflow_mcq.local_model(tiny_model(), byte_tokenizer())
    with pytest.raises(ModelError, match="this one is in memory here"):
        in_processes(handle.engine, settings)
    hooked = mlflow_mcq.local_model(base)
    hooked.chat.model.register_forward_hook(lambda *_: None)
    with pytest.raises(ModelError, match="or has hooks on it"):
        in_processes(hooked.engine, settings)


def test_a_function_is_refused_too() -> None:
    wrapped = SimpleNamespace(predict=lambda frame: ["A"] * len(frame))
    assert engine_of(wrapped, Settings()).fingerprint == "SimpleNamespace"
    with pytest.raises(ModelError, match="processes: needs a model that every process"):
        engine_of(wrapped, Settings(processes=2))


@pytest.mark.parametrize("processes", [0, -1, "all", 1.5, True])
def test_numbers_that_are_none(processes: Any) -> None:
    with pytest.raises(SettingsError, match=r"processes: .*must be a whole number from 1"):
        read_settings({"processes": processes})


def test_processes_change_no_name_of_rows() -> None:
    assert Settings(processes=4).fingerprint == Settings().fingerprint


def test_one_worker_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow_mcq.launch.count_accelerators", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    monkeypatch.setenv("RANK", "0")
    given = worker_environments(2)
    assert [one["CUDA_VISIBLE_DEVICES"] for one in given] == ["GPU-a", "GPU-b"]
    assert not any("RANK" in one for one in given)
    with pytest.raises(SettingsError, match=r"one process on each GPU; got 3\. This machine has 2"):
        worker_environments(3)


def test_connected_processes_start_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow_mcq import together
    from mlflow_mcq.ranks import Ranks

    monkeypatch.setattr(together, "present_ranks", lambda: Ranks(0, 4))
    with pytest.raises(SettingsError, match="4 are connected already"):
        ranks_of_call(Settings(processes=2))
