"""Seconds and memory of every number over many rows, as JSON.

    python benchmarks/metrics.py --rows 1000000 --json

``seconds`` is everything that one arm of ``--rows`` rows is summed up by: `summarize` with
all its intervals by the bootstrap (10,000 draws of items each), the tables by orientation, by
slot and by pair of orientations, and the confusion matrix. ``pair_seconds`` is the
comparison of two such arms, with another 10,000 draws. ``peak_mb`` is the most memory the
process ever held, the tables included. ``growth_per_doubling`` says what twice the rows
multiply the seconds of the processor by: at most 2, since the draws cost the same.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from mlflow_mcq.metrics import by_orientation, confusion, summarize
from mlflow_mcq.statistics.flips import flip_rates
from mlflow_mcq.statistics.paired import (
    chosen_shifts,
    equal_effects,
    shifts,
    shifts_by,
    transitions,
)
from mlflow_mcq.statistics.pairing import align
from mlflow_mcq.statistics.rows import rows_of
from mlflow_mcq.statistics.selection_bias import by_slot
from mlflow_mcq.statistics.significance import paired_bootstrap, sign_flip

N_OPTIONS = 4
REPLICATES = 10_000


def arm(n_rows: int, seed: int) -> pd.DataFrame:
    """Four rotations an item; items differ in hardness, and the first slot is favoured."""
    draw = np.random.default_rng(seed)
    n_items = max(n_rows // N_OPTIONS, 1)
    item = np.repeat(np.arange(n_items), N_OPTIONS)
    turn = np.tile(np.arange(N_OPTIONS), n_items)
    gold = np.repeat(draw.integers(0, N_OPTIONS, n_items), N_OPTIONS)
    known = np.repeat(np.random.default_rng(7).beta(0.8, 0.5, n_items), N_OPTIONS)
    guess = np.where(draw.random(len(item)) < 0.2, 0, draw.integers(0, N_OPTIONS, len(item)))
    choice = np.where(draw.random(len(item)) < known, gold, (guess + turn) % N_OPTIONS)
    other = draw.random(len(item)) < 0.05
    failed = draw.random(len(item)) < 0.001
    verdict = np.where(choice == gold, "CORRECT", "INCORRECT").astype(object)
    verdict[other], verdict[failed] = "OTHER", None
    named = pd.Series(choice, dtype="Int64").mask(other | failed)
    slot = pd.Series((choice - turn) % N_OPTIONS, dtype="Int64").mask(other | failed)
    ids = np.array([f"item-{i:07d}" for i in range(n_items)], dtype=object)[item]
    orders = np.empty(N_OPTIONS, dtype=object)
    for t in range(N_OPTIONS):
        orders[t] = tuple((s + t) % N_OPTIONS for s in range(N_OPTIONS))
    return pd.DataFrame(
        {
            "row_id": [f"{one}/o{t}" for one, t in zip(ids, turn, strict=True)],
            "item_id": ids, "protocol": "letters", "orientation": turn, "repeat": 0,
            "grader": "judge", "verdict": verdict, "choice": named, "slot": slot,
            "gold": gold, "gold_slot": (gold - turn) % N_OPTIONS, "n_options": N_OPTIONS,
            "order": orders[turn],
        }
    )  # fmt: skip


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall clock, and of the processor: the second is fair on a busy machine."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - wall, 2), round(time.process_time() - cpu, 2)


def one_arm(frame: pd.DataFrame) -> None:
    """Every number of one arm."""
    summarize(frame, judged=True, replicates=REPLICATES)
    by_orientation(frame)
    confusion(frame)
    graded = rows_of(frame).graded
    by_slot(graded)
    flip_rates(graded)


def two_arms(baseline: pd.DataFrame, treatment: pd.DataFrame) -> None:
    """Every number of a comparison."""
    pairs = align(baseline, treatment)
    shifts(pairs)
    for by in ("orientation", "gold_slot"):
        shifts_by(pairs, by)
        equal_effects(pairs, by)
    transitions(pairs)
    chosen_shifts(pairs, "slot")
    sign_flip(pairs)
    paired_bootstrap(pairs, REPLICATES)


def peak_mb() -> int:
    """The most memory this process ever held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print JSON (the default)")
    n_rows = parser.parse_args().rows
    one_arm(arm(1_000, 0))  # imports and caches are no work on rows
    linear = {}
    for part in (n_rows // 4, n_rows // 2, n_rows):
        frame = arm(part, 0)
        linear[str(part)] = timed(partial(one_arm, frame))
    seconds, cpu_seconds = linear[str(n_rows)]
    spent = [cpu for _, cpu in linear.values()]
    peak = peak_mb()
    other = arm(n_rows, 1)
    pair_seconds, pair_cpu_seconds = timed(partial(two_arms, frame, other))
    found = {
        "rows": n_rows, "replicates": REPLICATES,
        "seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak,
        "pair_seconds": pair_seconds, "pair_cpu_seconds": pair_cpu_seconds,
        "pair_peak_mb": peak_mb(),
        "cpu_seconds_by_rows": {rows: cpu for rows, (_, cpu) in linear.items()},
        "growth_per_doubling": [
            round(more / less, 2) for less, more in pairwise(spent)
        ],
    }  # fmt: skip
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
