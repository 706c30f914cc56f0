"""Time and memory of everything but the model, against the number of rows.

    python benchmarks/scale.py --rows 1000,10000,100000 --json

Items in four rotations are read, set as prompts, answered by an engine that only makes up a
text, kept, read by the two regexes that run by default, summed up and logged into a store of
its own (sqlite, as MLflow has it where nothing is set). Each size runs in a process of its
own, or the memory of one would be taken for another's. Seconds are those of the processor,
which are fair on a busy machine; ``wall`` is the clock. ``growth`` is the exponent between
one size and the next over all stages: 1 is linear, below 1 some of it costs the same always.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

N_OPTIONS = 4


class MadeUp:
    """An engine without a model: mostly a letter, now and then a refusal."""

    fingerprint, speaks_chat = "made-up", False

    def generate(self, requests: Sequence[object], decoding: object) -> Iterator[object]:
        from mlflow_mcq.records import Generation, Reply

        for number, request in enumerate(requests):
            lot = number * 2654435761 % 97
            text = "I would rather not say." if lot < 5 else f"The answer is {'ABCD'[lot % 4]}."
            ids = tuple(range(lot, lot + 6))
            reply = Reply(text, None, "eos", ids, 90, 6, request.prompt.content)
            yield Generation(request.prompt, request.repeat, reply, engine=self.fingerprint)


def table(n_rows: int) -> object:
    import pandas as pd

    n_items = max(1, n_rows // N_OPTIONS)
    return pd.DataFrame(
        {
            "id": [f"item-{n:07d}" for n in range(n_items)],
            "question": [
                f"In the list of {n} cities, which one lies at the mouth of the river that rises "
                f"in the hills of region {n % 613}?" for n in range(n_items)
            ],
            "options": [[f"city {n + k * 7}" for k in range(N_OPTIONS)] for n in range(n_items)],
            "answer": [n % N_OPTIONS for n in range(n_items)],
        }
    )  # fmt: skip


def one_size(n_rows: int) -> dict[str, object]:
    import mlflow

    from mlflow_mcq.arm import measure, read
    from mlflow_mcq.data_report import describe
    from mlflow_mcq.datasets.frame import items_of
    from mlflow_mcq.datasets.reading import read_data
    from mlflow_mcq.graders import ALL_REGEX_GRADERS
    from mlflow_mcq.pipeline import requests_for
    from mlflow_mcq.report import report, save_answers
    from mlflow_mcq.settings import Settings
    from mlflow_mcq.tracking import RunLog

    settings = Settings(orientations="rotations")
    seconds: dict[str, float] = {}
    wall = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        mlflow.create_experiment("scale", artifact_location=f"file://{folder}/artifacts")
        mlflow.set_experiment("scale")
        with mlflow.start_run() as run:
            frame = table(n_rows)
            log = RunLog(run.info.run_id)
            start_mb = peak_mb()
            start = time.perf_counter()
            with stage(seconds, "data"):
                reading = read_data(frame, settings)
            with stage(seconds, "prompts"):
                requests = requests_for(items_of(list(reading.rows)), settings, chat=False)
            with stage(seconds, "generation"):
                arm = describe(measure(MadeUp(), requests, settings), reading)
            with stage(seconds, "keeping answers"):
                save_answers(arm, log)
            with stage(seconds, "grading, metrics"):
                fresh = read(arm, [ALL_REGEX_GRADERS[name] for name in settings.regex.parsers])
            with stage(seconds, "tables, logging"):
                report(arm, log, fresh, None, means=True)
            wall = time.perf_counter() - start
    return {
        "rows": len(requests), "seconds": {k: round(v, 2) for k, v in seconds.items()},
        "cpu": round(sum(seconds.values()), 2), "wall": round(wall, 2),
        "peak_mb": peak_mb(), "start_mb": start_mb,
    }  # fmt: skip


@contextmanager
def stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.process_time()
    yield
    seconds[name] = time.process_time() - start


def peak_mb() -> int:
    """The most memory this process ever held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def growth(sizes: Sequence[dict[str, object]]) -> list[float]:
    """The exponent between one size and the next."""
    return [
        round(math.log(b["cpu"] / a["cpu"]) / math.log(b["rows"] / a["rows"]), 2)
        for a, b in pairwise(sizes)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--json", action="store_true", help="print JSON (the default)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = [int(part) for part in asked.rows.split(",")]
    if asked.one:
        print(json.dumps(one_size(sizes[0])))
        return
    found = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", "--rows", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    load = round(os.getloadavg()[0], 1)
    print(json.dumps({"sizes": found, "growth": growth(found), "load": load}, indent=1))


if __name__ == "__main__":
    main()
