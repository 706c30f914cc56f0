"""Called on every rank of a training script: one evaluation, one run, one result."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
import torch
from rank_jobs import evaluate_job, on_ranks
from tiny import byte_tokenizer, tiny_model
from torch.distributed import HashStore

from mlflow_mcq.board import Board
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.spread import SpreadEngine, help_out, refuse_sharded
from mlflow_mcq.errors import ModelError
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Settings
from mlflow_mcq.together import call_name, call_parts, ranks_of_call

TIMES = ("seconds", "share", "per_second", "tokens_prefilled", "tokens_saved")
"""How long it took, and what each process read, are no properties of the rows."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store: to make its tables takes MLflow longer than all the rest."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


def evaluated(n: int, folder: Path, tables: Path, *calls: dict[str, Any]) -> dict[int, list[Any]]:
    shutil.copy(tables, folder / "mlflow.db")
    return on_ranks(n, evaluate_job, str(folder), list(calls))


def rows_only(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not name.endswith(TIMES)}


def n_runs(folder: Path) -> int:
    stores = list(folder.glob("*.db"))
    assert [store.name for store in stores] == ["mlflow.db"], "another rank talked to MLflow"
    client = mlflow.MlflowClient(f"sqlite:///{stores[0]}")
    return len(client.search_runs([e.experiment_id for e in client.search_experiments()]))


WHOLE: dict[str, Any] = {"n_items": 20}
SAMPLED: dict[str, Any] = {
    "n_items": 9,
    "settings": {"protocol": "options-last", "temperature": 0.9, "orientations": "shuffles:2"},
}
LONE: dict[str, Any] = {"n_items": 1, "settings": {"orientations": "as-is"}}


@pytest.fixture(scope="module")
def alone(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return evaluated(1, tmp_path_factory.mktemp("alone"), tables, WHOLE, SAMPLED)[0]


def test_all_ranks_have_the_result_of_one(alone: list[Any], tables: Path, tmp_path: Path) -> None:
    calls = [WHOLE, SAMPLED]
    told = evaluated(3, tmp_path, tables, *calls)
    assert n_runs(tmp_path) == len(calls)
    for place in range(len(calls)):
        run_id, metrics, rows, _ = told[0][place]
        assert all(told[rank][place][:3] == (run_id, metrics, rows) for rank in told)
        assert rows == alone[place][2]  # none lost, none twice
        assert rows_only(metrics) == rows_only(alone[place][1])
    # Everybody has fed the model: the work was shared, and not done once or n times.
    assert all(told[rank][0][3] > 0 for rank in told)
    assert told[0][0][3] < alone[0][3]


def test_calls_of_all_kinds_one_after_the_other(tables: Path, tmp_path: Path) -> None:
    told = evaluated(
        2, tmp_path, tables,
        {**LONE, "on": [0], "n_items": 2},   # on the main rank alone: it waits for nobody
        LONE,                                # fewer items than ranks: one has no rows
        {**LONE, "answer": "Z"},             # data that only the main rank reads
        {**LONE, "settings": {"limit": 0}},  # refused on each rank by itself
        {**LONE, "function": True},          # asked by the main rank alone
        {**LONE, "steered_on": 1, "n_items": 3},
        {**LONE, "other_weights_on": 1},
    )  # fmt: skip
    main, other = told[0], told[1]
    assert (main[0] is None, other[0] is None) == (False, True)
    assert other[1][:3] == main[1][:3]
    assert main[1][2] == main[0][2][:1]
    assert "answer" in str(main[2])
    assert (type(other[2]), str(other[2])) == (type(main[2]), str(main[2]))
    assert "limit" in str(main[3])
    assert str(other[3]) == str(main[3])
    assert other[4][:3] == main[4][:3]
    for place in (5, 6):
        assert str(other[place]).startswith("process 1: differs from process 0 in model (")
        assert str(other[place]) in str(main[place])  # the main rank ends with the same words
    assert n_runs(tmp_path) == 6  # one of them failed, and says so


def test_ranks_that_mean_different_things_all_end_with_the_same_words(
    tables: Path, tmp_path: Path
) -> None:
    told = evaluated(
        3, tmp_path, tables,
        {**LONE, "n_items": 3, "other_data_on": [1]},
        {**LONE, "n_items": 3, "other_seed_on": [1, 2]},
        LONE,  # and nothing is left over for the next call
    )  # fmt: skip
    for place, words in [
        (0, r"process 1: differs from process 0 in data \(3 rows, \w+ on process 1, 3 rows, "),
        (1, r"process(es 1,)? [12]: differs? from process 0 in setting seed \([12] on process"),
    ]:
        said = {str(told[rank][place]) for rank in (1, 2)}
        assert len(said) == 1
        assert re.match(words, *said), said
        assert "in the call at rank_jobs.py:" in str(*said)
        assert said.pop() in str(told[0][place])
    assert told[1][2][:3] == told[2][2][:3] == told[0][2][:3]


def test_a_model_that_fails_on_another_rank_fails_here(tables: Path, tmp_path: Path) -> None:
    # The main rank has to leave a chunk to the other one: there are ten.
    told = evaluated(2, tmp_path, tables, {"broken_on": 1, "n_items": 80})
    assert set(told) <= {0}
    if told:  # the other rank ends with its own error, and may take this one along
        assert "process 1 failed with OverflowError: a broken device" in str(told[0][0])


# --- one process, to see what two would do ---------------------------------------------

SETTINGS = Settings(orientations="swap", max_new_tokens=4)
ITEMS = [Item(f"q{n}", f"Which is {n}?", (f"{n}.", f"{n + 1}."), 0) for n in range(24)]
REQUESTS = requests_for(ITEMS, SETTINGS, chat=False)


def engine() -> ChatEngine:
    return ChatEngine(LocalChat(tiny_model(max_position_embeddings=512), byte_tokenizer()))


def test_a_rank_that_died_holds_up_nobody() -> None:
    board = Board(HashStore())
    assert board.draw("step/0/next") == 0  # and is never heard of again
    spread = SpreadEngine(engine(), board, 2, patience_s=0.0)
    got = {one.key: one.reply for one in spread.generate(REQUESTS, SETTINGS.decoding)}
    want = {one.key: one.reply for one in engine().generate(REQUESTS, SETTINGS.decoding)}
    assert got == want


def test_rows_that_come_twice_count_once() -> None:
    board = Board(HashStore())
    board.draw("step/0/next")
    spread = SpreadEngine(engine(), board, 2, patience_s=0.0)
    answers = spread.generate(REQUESTS, SETTINGS.decoding)
    keys = [next(answers).key]
    board.put("step/1", ("result", "done"))
    assert help_out(engine(), board, 1) == "done"  # takes what the first has not drawn
    keys += [one.key for one in answers]
    assert sorted(keys) == sorted(request.key for request in REQUESTS)


class FullyShardedDataParallel(torch.nn.Module):
    """As FSDP wraps a layer."""


@pytest.mark.parametrize("kind", ["FSDP", "ZeRO-3"])
def test_sharded_weights_are_refused_before_anybody_waits(kind: str) -> None:
    model = tiny_model()
    refuse_sharded(model)
    if kind == "FSDP":
        model.model.layers[0].mlp = FullyShardedDataParallel()
    else:
        model.lm_head.weight.ds_id = 1
    with pytest.raises(ModelError, match="spread over the processes"):
        refuse_sharded(model)


def test_a_rank_that_waits_in_vain_says_for_what() -> None:
    with pytest.raises(ModelError, match="not on process 0 within 0 s"):
        Board(HashStore()).take("open", seconds=0.0)


def test_what_is_larger_than_a_value_may_be_goes_up_in_parts() -> None:
    class Small(HashStore):
        def set(self, key: str, value: bytes) -> None:
            assert len(value) <= 8 << 20
            super().set(key, value)

    board, large = Board(Small()), torch.randint(256, (20 << 20,), dtype=torch.uint8)
    board.put("a", large.numpy().tobytes())
    assert board.take("a") == large.numpy().tobytes()
    board.remove("a")
    assert not board.has("a")
    assert not board.has("a/part/1")


def test_nobody_goes_on_with_rows_that_are_not_wanted() -> None:
    board = Board(HashStore())
    for name, value in [("step/0", ("job", SETTINGS.decoding, 3)), ("over", True)]:
        board.put(name, value)
    board.put("step/1", ("result", "failed"))
    assert help_out(engine(), board, 1) == "failed"
    assert board.draw("step/0/next") == 0


def test_what_is_evaluated_names_the_call() -> None:
    frame = pd.DataFrame({"question": ["a"]})
    names = ["mcq_regex"]

    def name(*call: Any) -> str:
        return call_name(call_parts(*call))

    one = name(frame, None, Settings(), names)
    assert name(frame.copy(), None, Settings(), names) == one
    others = {
        name(frame.assign(question="b"), None, Settings(), names),
        name(frame, None, Settings(seed=1), names),
        name(frame, None, Settings(), ["mcq_similarity"]),
        name("items.json", None, Settings(), names),
        name("items.json", "test", Settings(), names),
    }
    assert len(others - {one}) == 5


@pytest.mark.parametrize(
    ("cell", "other"),
    [
        pytest.param(b"\x89PNG\xff", b"\x89PNG\xfe", id="a picture"),
        pytest.param("\ud800", "\ud801", id="half a surrogate pair"),
    ],
)
def test_cells_that_are_no_text_name_the_call_too(cell: object, other: object) -> None:
    one, same, differs = (
        call_parts(pd.DataFrame({"q": [value]}, dtype=object), None, Settings(), [])["data"]
        for value in (cell, cell, other)
    )
    assert one == same != differs


def test_launched_and_not_connected_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert ranks_of_call(Settings()).size == 1
    assert not caplog.records
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert ranks_of_call(Settings()).size == 1
    assert "a launcher started 4 processes, and they are not connected" in caplog.text
