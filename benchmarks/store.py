"""How fast rows are kept and found again.

python benchmarks/store.py --rows 1000000 --json
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time

from mlflow_mcq.records import Reply
from mlflow_mcq.store.row_store import RowStore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    reply = Reply("The answer is B.", None, "eos", tuple(range(1000, 1016)), 90, 16, "Q" * 300)
    found: dict[str, float] = {"rows": asked.rows}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with RowStore(folder) as store:
            for n in range(asked.rows):
                store.put(n.to_bytes(16, "big"), reply)
        found["append_rows_per_s"] = asked.rows / (time.perf_counter() - start)
        start = time.perf_counter()
        with RowStore(folder) as store:
            found["open_s"] = time.perf_counter() - start
            for key in store:
                store.get(key)
        found["load_s"] = time.perf_counter() - start
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found) if asked.json else found)


if __name__ == "__main__":
    main()
