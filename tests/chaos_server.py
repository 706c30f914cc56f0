"""A judge that fails in every way at once, by a schedule that a seed decides.

Thousands of calls a second: one event loop in a thread, and no HTTP library. Each row has a
*fate*: a fault that meets its first calls, and how many of them. So what must become of a row
is known beforehand, whatever else happens at the same time.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

ROW = re.compile(r"\bcase (\d+)\b")
FOREVER = 10**6
LEGAL = "A"

PASSING = (
    "429_wait",
    "429",
    "500",
    "502_page",
    "503",
    "reset",
    "reset_in_body",
    "broken_json",
    "no_choices",
    "login_page",
    "a_list",
    "choices_no_list",
    "hang",
)
"""Faults of a call: it is made again."""
UNREADABLE = ("two_verdicts", "prose", "filtered", "megabyte", "no_text", "cut")
"""Replies that are no verdict: the row is asked again."""
HARMLESS = ("tail", "text_type", "extra_fields")
"""Oddities of an answer that is good."""
FINAL = ("400", "parts")
"""Faults that asking again does not mend."""


@dataclass(frozen=True)
class Fate:
    """What meets the calls of one row: ``kind`` on the first ``n`` of them."""

    kind: str
    n: int

    def becomes(self, max_retries: int, attempts: int) -> str:
        """``verdict``, or how the error of the row begins."""
        if self.kind in FINAL:
            return "judge_error"
        if self.kind in PASSING and self.n > max_retries:
            return "judge_error"
        if self.kind in UNREADABLE and self.n >= attempts:
            return "judge_parse_failure"
        return "verdict"

    def most_calls(self, max_retries: int, attempts: int) -> int:
        return 1 + min(self.n, max_retries if self.kind in PASSING else attempts - 1)


def fate_of(row: int, seed: int, share: float = 0.35) -> Fate:
    """The fate of a row; ``share`` of the rows have one."""
    draw = random.Random(f"{seed}/{row}")
    if draw.random() > share:
        return Fate("", 0)
    kind = draw.choice((*PASSING, *UNREADABLE, *HARMLESS, *FINAL))
    if kind == "hang" and draw.random() > 0.2:  # each costs a whole time-out
        kind = "tail"
    if kind in FINAL or kind in HARMLESS:
        return Fate(kind, FOREVER)
    return Fate(kind, draw.choice((1, 1, 1, 2, FOREVER)))


class ChaosServer:
    """One running server.

    Attributes:
        url: Base URL.
        calls: Calls received, by row.
        max_parallel: Most calls in its hands at once.
        healed: Every call is answered well from now on.
    """

    def __init__(self, seed: int, latency: float = 0.002, share: float = 0.35) -> None:
        self.seed, self.latency, self.share = seed, latency, share
        self.calls: Counter[int] = Counter()
        self.parallel = self.max_parallel = 0
        self.healed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        made = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self._server = made
        self.url = f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}/v1"

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Line(self), "127.0.0.1", 0, backlog=512)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def fate(self, row: int) -> Fate:
        return fate_of(row, self.seed, self.share)


class _Line(asyncio.Protocol):
    def __init__(self, server: ChaosServer) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self._asked(json.loads(body))

    def _asked(self, request: dict[str, Any]) -> None:
        server = self.server
        row = int(ROW.findall(request["messages"][-1]["content"])[-1])
        fate, n = server.fate(row), server.calls[row]
        server.calls[row] += 1
        kind = "" if server.healed or n >= fate.n else fate.kind
        if kind == "hang":
            return  # no answer, ever; the client hangs up
        server.parallel += 1
        server.max_parallel = max(server.max_parallel, server.parallel)
        delay = server.latency * (100 if kind == "tail" else 1)
        asyncio.get_running_loop().call_later(delay, self._answer, kind)

    def _answer(self, kind: str) -> None:
        # Before the answer leaves: the next call of the client is not parallel to it.
        self.server.parallel -= 1
        if self.transport.is_closing():
            return
        if kind == "reset":
            self.transport.abort()
        elif kind == "reset_in_body":
            self.transport.write(http(completion(LEGAL))[:-20])
            self.transport.abort()
        else:
            self.transport.write(WIRE[kind])


def completion(content: Any, finish_reason: str = "stop", **more: Any) -> bytes:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"id": "x", "choices": [choice], "usage": usage, **more}).encode()


def http(body: bytes, status: int = 200, kind: str = "application/json", head: str = "") -> bytes:
    lines = f"HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return (lines + head + "\r\n").encode() + body


def fault(status: int, said: str = "no", head: str = "") -> bytes:
    return http(json.dumps({"error": {"message": said}}).encode(), status, head=head)


PAGE = b"<!doctype html><html><title>Sign in</title></html>"
WIRE: dict[str, bytes] = {
    "": http(completion(LEGAL)),
    "tail": http(completion(LEGAL)),
    "text_type": http(completion(LEGAL), kind="text/html"),
    "extra_fields": http(completion(LEGAL, verdict="B", choices2=[1])),
    "429_wait": fault(429, "slow down", "Retry-After: 0.02\r\n"),
    "429": fault(429),
    "500": fault(500),
    "502_page": http(PAGE, 502, "text/html"),
    "503": fault(503),
    "broken_json": http(b'{"choices": [{"mess'),
    "no_choices": http(b'{"choices": []}'),
    "login_page": http(PAGE, 200, "text/html"),
    "a_list": http(b'["A"]'),
    "choices_no_list": http(b'{"choices": {"0": "A"}}'),
    "two_verdicts": http(completion("A\nB")),
    "prose": http(completion("I would say that it is A, or perhaps B.")),
    "filtered": http(completion(None, "content_filter")),
    "megabyte": http(completion("A " * 500_000)),
    "no_text": http(completion("")),
    "cut": http(completion("The candidate", "length")),
    "400": fault(400, "context too long"),
    "parts": http(completion([{"type": "text", "text": "A"}])),
}
