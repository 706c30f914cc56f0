"""Look for bytes that bring down a reader, for as long as there is patience.

    python benchmarks/fuzz.py "data.jsonl" [--seconds 30]

With atheris installed (`pip install atheris`) it is led by coverage, and every further option
goes to libFuzzer; without it the seeds of the tests are changed at random. The first input
that raises anything but an error of our own ends it with a traceback.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

try:
    import atheris
except ImportError:
    atheris = None

if atheris is not None:
    with atheris.instrument_imports(include=["mlflow_mcq"]):
        from fuzz_targets import SEEDS, TARGETS
else:
    from fuzz_targets import SEEDS, TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=30)
    asked, more = parser.parse_known_args()
    if atheris is None:
        print(f"{_at_random(asked.target, asked.seconds):,} inputs, no fault; without atheris")
        return
    with tempfile.TemporaryDirectory() as folder:
        for n, seed in enumerate(SEEDS[asked.target]):
            Path(folder, str(n)).write_bytes(seed)
        options = [f"-max_total_time={asked.seconds}", *more, folder]
        atheris.Setup([sys.argv[0], *options], TARGETS[asked.target])
        atheris.Fuzz()


def _at_random(name: str, seconds: int) -> int:
    lots, n, end = random.Random(0), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = bytearray(lots.choice(SEEDS[name]))
        for _ in range(lots.randint(1, 6)):
            place = lots.randrange(len(data) + 1)
            data[place : place + lots.randrange(8)] = lots.randbytes(lots.randrange(4))
        TARGETS[name](bytes(data))
        n += 1
    return n


if __name__ == "__main__":
    main()
