"""Two hundred kills, anywhere: no row lost, doubled, mixed or read anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).with_name("crash_harness.py")
KILLS = 200


def test_what_was_killed_is_taken_up_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(tmp_path), "7", str(KILLS)],
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
    # Every case needs each row once; a kill may repeat what was in flight, and no more.
    once, repeated = (found["cases"] + 1), found["killed"] * found["in_flight"]
    n_judged = found["judge_prompts"]
    assert once * found["rows"] <= found["model_calls"] <= once * found["rows"] + repeated
    assert once * n_judged <= found["judge_calls"] <= once * n_judged + repeated
