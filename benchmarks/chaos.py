"""Ten thousand rows against a judge that fails in every way, as JSON.

    python benchmarks/chaos.py [--rows 10000] [--flight 64] [--seed 0]

Each row's outcome is held against what the schedule of faults says must become of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from chaos_server import ChaosServer
from fake_chat import generation

from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.judges import judge_of
from mlflow_mcq.records import Generation, Item

RETRIES, ATTEMPTS = 2, 3


def row(n: int) -> Generation:
    item = Item(f"q{n}", "Which shows rings?", ("Venus", "Saturn", "Neptune", "Mars"), 1)
    return generation(f"I mean the one with rings, in case {n} as ever.", item=item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--flight", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    server = ChaosServer(asked.seed)
    settings = JudgeSettings(
        model="m", base_url=server.url, concurrency=asked.flight, timeout_s=3,
        max_retries=RETRIES, attempts=ATTEMPTS,
    )  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    grades = [*judge_of(settings).grade([row(n) for n in range(asked.rows)])]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    outcomes: Counter[str] = Counter()
    wrong = 0
    for grade in grades:
        found = "verdict" if grade.verdict else grade.error.partition(":")[0]
        n = int(grade.generation.prompt.item.id[1:])
        outcomes[found] += 1
        wrong += found != server.fate(n).becomes(RETRIES, ATTEMPTS)
    said = {
        "rows": len({grade.generation.key for grade in grades}),
        "outcomes": dict(outcomes),
        "not_as_due": wrong,
        "calls": server.calls.total(),
        "most_in_flight": server.max_parallel,
        "limit": asked.flight,
        "seconds": round(wall, 1),
        "processor_seconds_with_server": round(cpu, 1),
    }
    server.close()
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
