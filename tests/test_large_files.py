"""What a large data file takes of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MB = 10**6
SIZE = 20 * MB
READ = """
import resource, sys
import pandas, pyarrow
from mlflow_mcq.datasets.files import load_frame
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
rows = len(load_frame(sys.argv[1]))
print(rows, peak() - before)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path, n = tmp_path_factory.mktemp("large") / "items.jsonl", 0
    with path.open("w") as file:
        while file.tell() < SIZE:
            for _ in range(1000):
                options = [f"red {n}", f"green {n}", f"blue {n}"]
                text = f"Question {n}: " + "which of these may it be? " * 8
                row = {"id": n, "question": text, "options": options, "answer": n % 3}
                file.write(json.dumps(row) + "\n")
                n += 1
    return path, n


def test_a_file_of_lines_takes_at_most_six_bytes_for_each_of_its_own(
    large: tuple[Path, int],
) -> None:
    path, n = large
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, done.stdout.split())
    assert rows == n
    assert grown < 6 * SIZE
