"""Kills evaluations on purpose, takes them up again, and counts what was lost or repeated.

    python tests/crash_harness.py FOLDER SEED KILLS KILLS_WHILE_LOGGING

Every case runs in a process forked from this one, so that a kill costs milliseconds and no
import. The servers run in a process forked first, before any thread exists.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401  here, or every fork would import it anew
import certifi  # noqa: F401
import pandas as pd
from fake_server import FakeServer
from folder_client import FolderClient

from mlflow_mcq import report, tracking
from mlflow_mcq.arm import measure, read
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.kept import KeptEngine
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.pipeline import generate, grade, requests_for
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Settings
from mlflow_mcq.store.journal import open_journal

IN_FLIGHT = 3
COSTS = ("seconds", "n_resumed", "n_calls", "n_cached", "prompt_tokens", "reply_tokens")
"""Numbers that say what a run took; all others are the same however often it was killed."""
ITEMS = [
    Item(f"i{n}", f"Question {n}: which?", (f"red {n}", f"green {n}", f"blue {n}"), n % 3)
    for n in range(8)
]
N_ROWS = len(ITEMS) * 3


def model_says(request: dict[str, Any], n: int) -> Any:
    prompt = request["messages"][-1]["content"]
    options = [line[3:] for line in prompt.splitlines() if line[1:3] == ") "]
    # A text that only a judge can read, and that depends on the prompt alone.
    number = sum(prompt.encode())
    body = f"Thinking of {options[number % len(options)]}, perhaps."
    return body if number % 5 else "I cannot say."


def judge_says(request: dict[str, Any], n: int) -> Any:
    asked = request["messages"][-1]["content"]
    return "A" if sum(asked.encode()) % 3 else "OTHER"


def serve(pipe: int) -> None:
    """Both servers, until this process is killed; their addresses go through the pipe."""
    asked: dict[str, dict[str, int]] = {"model": {}, "judge": {}}

    def counted(name: str, script: Any) -> Any:
        def answer(request: dict[str, Any], n: int) -> Any:
            if request["model"] == "counts":
                return json.dumps(asked[name])
            key = json.dumps(request["messages"])
            asked[name][key] = asked[name].get(key, 0) + 1
            time.sleep(0.002)
            return script(request, n)

        return answer

    servers = [FakeServer(counted("model", model_says)), FakeServer(counted("judge", judge_says))]
    os.write(pipe, json.dumps([server.url for server in servers]).encode() + b"\n")
    signal.pause()


def counts(url: str) -> dict[str, int]:
    body = json.dumps({"model": "counts", "messages": []}).encode()
    request = urllib.request.Request(
        f"{url}/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return dict(json.loads(json.loads(reply.read())["choices"][0]["message"]["content"]))


def evaluate(urls: list[str], name: str, log: Path | None = None) -> list[list[object]]:
    """One evaluation in this process: up to its grades, or put on record in a folder."""
    settings = Settings()
    journal = open_journal("run", name)
    assert journal is not None
    engine = KeptEngine(ChatEngine(OpenAIChat("m", urls[0], concurrency=IN_FLIGHT)), journal.rows)
    judge_settings = JudgeSettings(
        model="j", base_url=urls[1], concurrency=IN_FLIGHT, exam_replies=0, check_rows=0
    )
    judge = JudgeGrader(OpenAIChat("j", urls[1], concurrency=IN_FLIGHT), judge_settings)
    if log is not None:
        arm = measure(engine, requests_for(ITEMS, settings, chat=True), settings, journal)
        read(arm, [judge])
        put_on_record(arm, log)
        journal.close(finished=True)
        return []
    judge.keep_in(journal.judge_folder)
    generations = generate(engine, requests_for(ITEMS, settings, chat=True), settings)
    grades = grade(judge, generations)
    journal.close(finished=True)
    return [[*g.generation.key, g.generation.text, g.verdict, g.choice, g.error] for g in grades]


def put_on_record(arm: Any, folder: Path) -> None:
    """All that a run holds but its pictures, which take ten times as long as all the rest."""
    tracking.MlflowClient = lambda: FolderClient(folder)
    report._log_pictures = lambda *_: None
    log = tracking.RunLog("run")
    (folder / "begun").touch()
    report.save_answers(arm, log)
    report.report(arm, log, list(arm.grades), None, means=True)


def on_record(folder: Path) -> tuple[str, list[Any]]:
    """The status of a run, and its rows where it says that it is whole."""
    status = FolderClient(folder).tags.get("mcq.status", "")
    if status != "finished":
        return status, []
    tables = [
        pd.read_parquet(folder / f"{name}.parquet") for name in ("mcq_generations", "mcq_grades")
    ]
    numbers = FolderClient(folder).metrics.items()
    # Seconds, tokens and calls are those of the part that was done last.
    same = {
        name: n for name, n in numbers
        if name.split()[0].split("/")[-1] not in COSTS and not name.startswith("cost/")
    }  # fmt: skip
    return status, [*(table.to_json() for table in tables), same]


def forked(urls: list[str], name: str, out: Path, log: Path | None = None) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            out.write_text(json.dumps(evaluate(urls, name, log)))
            os._exit(0)
        except BaseException as error:  # noqa: BLE001  a fork must never return
            out.write_text(repr(error))
            os._exit(1)
    return pid


def start_servers() -> tuple[int, list[str]]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        serve(write)
    with os.fdopen(read) as pipe:
        return pid, json.loads(pipe.readline())


def logged(urls: list[str], folder: Path, name: str, wait: float | None) -> tuple[bool, Path]:
    """One evaluation put on record; killed so long after that began, or left alone."""
    log = folder / "logs" / name
    log.mkdir(parents=True)
    pid = forked(urls, name.partition(".")[0], folder / name, log)
    if wait is not None:
        while not (log / "begun").exists():
            time.sleep(0.0005)
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL, log


def kill_while_logging(urls: list[str], folder: Path, lots: random.Random, kills: int) -> Any:
    """Kill while a run is put on record; what is taken up must be whole, by no call more."""
    found = {"killed_logging": 0, "half_finished": 0, "wrong_logs": 0, "cases_logging": 0}
    _, log = logged(urls, folder, "record", None)
    span = (log / "tags.json").stat().st_mtime - (log / "begun").stat().st_mtime
    calm = on_record(log)
    assert calm[0] == "finished", (folder / "record").read_text()
    while found["killed_logging"] < kills:
        name = f"record{found['cases_logging']}"
        found["cases_logging"] += 1
        killed, log = logged(urls, folder, f"{name}.a", lots.uniform(0, span))
        found["killed_logging"] += killed
        found["half_finished"] += on_record(log) not in (calm, ("logging", []), ("", []))
        if on_record(log)[0] == "finished":
            # Killed while it tidied up: what is left of its folder waits for the sweeper.
            shutil.rmtree(folder / "home" / "runs" / name, ignore_errors=True)
        else:
            found["wrong_logs"] += on_record(logged(urls, folder, f"{name}.b", None)[1]) != calm
    return found


def main() -> None:
    folder, seed, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.environ["MLFLOW_MCQ_CACHE"] = str(folder / "home")
    servers, urls = start_servers()
    lots, found = random.Random(seed), {"killed": 0, "wrong": 0, "kills": kills, "cases": 0}
    try:
        began = time.monotonic()
        os.waitpid(forked(urls, "calm", folder / "calm"), 0)
        span = time.monotonic() - began
        calm = json.loads((folder / "calm").read_text())
        while found["killed"] < kills:
            name = f"case{found['cases']}"
            found["cases"] += 1
            for _ in range(lots.choice([1, 1, 2, 3])):
                pid = forked(urls, name, folder / name)
                time.sleep(lots.uniform(0, span))
                os.kill(pid, signal.SIGKILL)
                killed = os.waitpid(pid, 0)[1] == signal.SIGKILL
                found["killed"] += killed
                if not killed:  # it came to its end first: another one would begin anew
                    break
            else:
                os.waitpid(forked(urls, name, folder / name), 0)
            found["wrong"] += json.loads((folder / name).read_text()) != calm
        found |= kill_while_logging(urls, folder, lots, int(sys.argv[4]))
        found["left_over"] = len(list((folder / "home" / "runs").iterdir()))
        for part, url in zip(("model", "judge"), urls, strict=True):
            asked = counts(url)
            found[f"{part}_calls"] = sum(asked.values())
            found[f"{part}_prompts"] = len(asked)
    finally:
        os.kill(servers, signal.SIGKILL)
    sys.stdout.write(json.dumps({**found, "rows": len(calm), "in_flight": IN_FLIGHT}))


if __name__ == "__main__":
    main()
