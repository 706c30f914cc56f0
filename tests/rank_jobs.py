"""Jobs for several processes, and how tests start them.

Processes are forked off a server that has loaded torch once; when one dies the others are
ended, as the agent of torch elastic does it.
"""

from __future__ import annotations

import functools
import multiprocessing as mp
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import yaml

_HERE = str(Path(__file__).parent)
_GUARD_S = 120  # a dead-lock must fail, not hang
Told = dict[int, Any]


def on_ranks(n: int, job: Callable[..., Any], *arguments: Any) -> Told:
    """What a job returned or raised on each rank; ranks that died are left out."""
    context = _server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes, pipes = [], {}
    for rank in range(n):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_rank, args=(rank, n, port, theirs, job, arguments))
        process.start()
        theirs.close()
        processes.append(process)
        pipes[rank] = mine
    told: Told = {}
    try:
        while pipes:
            ready = wait([*pipes.values()], timeout=_GUARD_S)
            assert ready, f"ranks {sorted(pipes)} hang"
            for rank in [rank for rank, pipe in pipes.items() if pipe in ready]:
                pipe = pipes.pop(rank)
                try:
                    told[rank] = pipe.recv()
                except EOFError:
                    return told
    finally:
        for process in processes:
            if not told.keys() >= set(range(n)):
                process.kill()
            process.join()
    return told


def _server() -> Any:
    from multiprocessing import forkserver

    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["rank_preload"])
    before = os.environ.get("PYTHONPATH")
    # Python 3.11 starts the server with no other path, and passes over what it cannot load.
    os.environ["PYTHONPATH"] = os.pathsep.join([_HERE, *sys.path])
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return context


def _rank(rank: int, n: int, port: int, pipe: Any, job: Callable[..., Any], given: Any) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n),
        "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    from mlflow_mcq.errors import McqError
    from mlflow_mcq.ranks import leave_ranks

    try:
        found = job(rank, *given)
    except McqError as error:
        found = error
    pipe.send(found)
    leave_ranks()


def generate_job(
    rank: int, recipes: Mapping[int, str], caches: Mapping[int, str], killed_after: int | None
) -> Any:
    """Make the rows of a recipe; rank 1, or the only one, may be killed after so many rows."""
    from mlflow_mcq.generation import generate_recipe
    from mlflow_mcq.store.row_store import RowStore

    os.environ["MLFLOW_MCQ_CACHE"] = caches.get(rank, caches[0])
    doomed = rank == min(1, int(os.environ["WORLD_SIZE"]) - 1)
    if doomed and killed_after is not None:
        put, left = RowStore.put, iter(range(killed_after))

        def fatal(self: RowStore, *row: Any) -> bool:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return put(self, *row)

        RowStore.put = fatal  # type: ignore[method-assign]
    return generate_recipe(recipes.get(rank, recipes[0]))


def written_recipe(folder: Path, n_items: int, model: str, **more: Any) -> Path:
    """A recipe over so many items, in a folder that holds nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": f"q{n}", "question": f"Which is number {n}?", "answer": n % 3,
         "options": [f"the {n + k}." for k in range(3)]}
        for n in range(n_items)
    ]  # fmt: skip
    recipe = {
        "name": "trial", "data": "items.json", "model": model, "evaluators": ["mcq_regex"],
        "orientations": "rotations", "max_new_tokens": 6, "arms": [{"name": "one"}], **more,
    }  # fmt: skip
    import json

    (folder / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return folder / "recipe.yaml"


def evaluate_job(rank: int, folder: str, calls: list[dict[str, Any]]) -> list[Any]:
    """Evaluate a wrapped model on every rank, or on those that a call names."""
    import mlflow
    import pandas as pd
    from tiny import byte_tokenizer, tiny_model
    from torch.nn.parallel import DistributedDataParallel

    import mlflow_mcq
    from mlflow_mcq import report
    from mlflow_mcq.errors import McqError
    from mlflow_mcq.ranks import join_ranks

    report._log_pictures = lambda *_: None  # seconds each, and nobody looks at them here
    ranks = join_ranks()
    os.chdir(folder)
    # Whoever logs beside the main rank does it elsewhere, and is found out.
    place = "mlflow" if rank == 0 else f"other{rank}"
    mlflow.set_tracking_uri(f"sqlite:///{folder}/{place}.db")
    model, tokenizer = tiny_model(max_position_embeddings=1024), byte_tokenizer()
    wrapped = DistributedDataParallel(model) if ranks.size > 1 else model
    wrapped.train()
    model.lm_head.eval()  # frozen by its owner: it must be found as it was
    told: list[Any] = []
    for call in calls:
        ranks.wait()
        if rank not in call.get("on", range(ranks.size)):
            told.append(None)
            continue
        n_items = call.get("n_items", 20)
        frame = pd.DataFrame(
            {
                "question": [f"Which is number {n}?" for n in range(n_items)],
                "options": [[f"the {n + k}." for k in range(3)] for n in range(n_items)],
                "answer": call.get("answer", 0),
            }
        )
        if rank in call.get("other_data_on", ()):
            frame.loc[0, "question"] = "Which is another one?"
        n_fed = []
        hook = model.register_forward_pre_hook(lambda *_, seen=n_fed: seen.append(1))
        # The main rank is slow, so that it leaves some of the work to the others.
        slow = model.register_forward_pre_hook(lambda *_: time.sleep(0.05 * (rank == 0)))
        if call.get("other_weights_on") == rank:
            model.lm_head.weight.data.zero_()
        if "broken_on" in call:
            broken = functools.partial(_break, call["broken_on"] == rank)
            model.register_forward_pre_hook(broken)
        steers = [model.register_forward_pre_hook(_steer)] if call.get("steered_on") == rank else []
        given = {"max_new_tokens": 6, "orientations": "rotations", **call.get("settings", {})}
        if rank in call.get("other_seed_on", ()):
            given["seed"] = rank
        handle: Any = (wrapped, tokenizer) if not call.get("function") else _says_a
        try:
            if "on" in call:  # a line of its own: the same line means the same call
                result = mlflow_mcq.evaluate(handle, frame, evaluators=["mcq_regex"], **given)
            else:
                result = mlflow_mcq.evaluate(handle, frame, evaluators=["mcq_regex"], **given)
            path = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db").download_artifacts(
                result.run_id, "mcq_generations.parquet"
            )
            rows = pd.read_parquet(path)[["row_id", "generation"]].to_dict("records")
            told.append((result.run_id, dict(result.metrics), rows, len(n_fed)))
        except (McqError, mlflow.exceptions.MlflowException) as error:
            told.append(error)
        for one in (hook, slow, *steers):
            one.remove()
    if not any("broken_on" in call for call in calls):
        ranks.wait()
    assert wrapped.training is model.training is True
    assert model.lm_head.training is False
    return told


def _says_a(frame: Any) -> list[str]:
    return ["A"] * len(frame)


def _steer(*_: Any) -> None:
    """A hook is a hook, whatever it does."""


def _break(broken: bool, *_: Any) -> None:
    if broken:
        raise OverflowError("a broken device")


def agree_job(rank: int, cases: list[dict[int, Any]], silence_s: float) -> list[Any]:
    """What each rank makes of the others, in one case after the other.

    A case says what each rank tells: parts, an error to raise, or a number of seconds that it
    stays away.
    """
    from mlflow_mcq import agreement
    from mlflow_mcq.errors import McqError
    from mlflow_mcq.ranks import join_ranks

    agreement._SILENCE_S = silence_s
    ranks, found = join_ranks(), []
    for case in cases:
        ranks.wait()
        told = case.get(rank, {"data": "a", "setting seed": "0"})
        if isinstance(told, float):
            time.sleep(told)
            found.append(None)
            continue

        def prepare(told: Any = told) -> tuple[int, Any]:
            if isinstance(told, Exception):
                raise told
            if "seconds" in told:
                time.sleep(told["seconds"])
            return rank, {name: text for name, text in told.items() if name != "seconds"}

        try:
            found.append(agreement.agreed(ranks, "data", prepare))
        except McqError as error:
            found.append(error)
    ranks.wait()
    return found
