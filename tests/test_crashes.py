"""Two hundred kills, anywhere: no row lost, doubled, mixed or read anew, no half run whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).with_name("crash_harness.py")
KILLS, WHILE_LOGGING = 160, 40


def test_what_was_killed_is_taken_up_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(tmp_path), "7", str(KILLS), str(WHILE_LOGGING)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HARNESS.parent), *sys.path])},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["killed"] >= KILLS
    assert found["wrong"] == 0  # every table equals that of the undisturbed run
    assert found["left_over"] == 0
    # While a run is put on record: it says that it is whole only where it is, and what takes
    # it up has the tables and numbers of the undisturbed one.
    assert found["killed_logging"] >= WHILE_LOGGING
    assert found["half_finished"] == found["wrong_logs"] == 0
    # Every case needs each row once; a kill may repeat what was in flight, and no more.
    # A kill while logging repeats nothing: all calls are made by then.
    once = found["cases"] + 1 + found["cases_logging"] + 1
    repeated = found["killed"] * found["in_flight"]
    n_judged = found["judge_prompts"]
    assert once * found["rows"] <= found["model_calls"] <= once * found["rows"] + repeated
    assert once * n_judged <= found["judge_calls"] <= once * n_judged + repeated
