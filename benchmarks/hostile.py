"""How long every reader of a reply takes over a megabyte of each nasty shape.

    python benchmarks/hostile.py [--characters 1000000] [--json] [--reader NAME]

Prints the slowest readings first. The shapes and readers are those of the tests.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hostile_shapes import READERS, shapes

_MOST_S = 10.0
_SHOWN = 15


def seconds(reader: str, text: str) -> float:
    """CPU seconds of one reading; `_MOST_S` and more where it was cut short."""
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, _MOST_S)
    try:
        READERS[reader](text)
    except TimeoutError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - began


def _stop(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=1_000_000)
    parser.add_argument("--reader", default="", help="only readers whose name holds this")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    texts = shapes(asked.characters)
    readers = [name for name in READERS if asked.reader in name]
    found = {
        reader: {shape: round(seconds(reader, text), 3) for shape, text in texts.items()}
        for reader in readers
    }
    if asked.json:
        print(json.dumps({"characters": asked.characters, "seconds": found}))
        return
    rows = [(took, reader, shape) for reader, by in found.items() for shape, took in by.items()]
    for took, reader, shape in sorted(rows, reverse=True)[:_SHOWN]:
        print(f"{took:8.3f} s  {reader}: {shape}")
    print(f"{len(rows)} readings, {sum(took for took, *_ in rows):.1f} s in all")


if __name__ == "__main__":
    main()
