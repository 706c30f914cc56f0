"""Speed of judge clients against a server on loopback that answers after 100 ms.

    python benchmarks/judge.py --json [--calls 1500] [--flight 64] [--only ours,aiohttp]

``per_core`` is calls by processor second of the client alone: it does not depend on what
else the machine is doing. ``per_s`` is by the clock. The server runs in a process of its own,
and the clients take turns, so that a busy minute meets all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

ASKED = "Which option did the candidate choose? " * 60
BODY = {
    "model": "judge",
    "messages": [{"role": "system", "content": "You read."}, {"role": "user", "content": ASKED}],
    "temperature": 0.0,
    "max_tokens": 256,
}
REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "judge",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "B"},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901},
    }
).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(REPLY)).encode()
    + b"\r\n\r\n"
    + REPLY
)


class Server(asyncio.Protocol):
    """Answers each POST after a while; keeps connections."""

    latency = 0.1

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            asyncio.get_running_loop().call_later(self.latency, self.transport.write, ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def in_flight(one: Callable[[], Awaitable[None]], n_calls: int, flight: int) -> None:
    turns = iter(range(n_calls))

    async def work() -> None:
        for _ in turns:
            await one()

    await asyncio.gather(*(work() for _ in range(flight)))


async def sdk(url: str, n_calls: int, flight: int, own_transport: bool) -> None:
    import openai

    http = openai.DefaultAioHttpClient() if own_transport else None
    async with openai.AsyncOpenAI(api_key="none", base_url=url, http_client=http) as client:

        async def one() -> None:
            got = await client.chat.completions.create(**BODY)
            assert got.choices[0].message.content == "B"

        await in_flight(one, n_calls, flight)


async def plain(url: str, n_calls: int, flight: int) -> None:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=flight)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one() -> None:
            async with session.post(url + "/chat/completions", json=BODY) as got:
                assert (await got.json())["choices"][0]["message"]["content"] == "B"

        await in_flight(one, n_calls, flight)


def ours(url: str, n_calls: int, flight: int) -> None:
    from mlflow_mcq.engines.openai_chat import OpenAIChat
    from mlflow_mcq.records import Decoding, Message, Query

    messages = tuple(Message(m["role"], m["content"]) for m in BODY["messages"])
    chat = OpenAIChat("judge", url, concurrency=flight)
    for _, reply in chat.ask([Query(messages)] * n_calls, Decoding(256)):
        assert reply.text == "B"


CLIENTS: dict[str, Callable[[str, int, int], None]] = {
    "sdk": lambda *given: asyncio.run(sdk(*given, own_transport=False)),
    "sdk_aiohttp": lambda *given: asyncio.run(sdk(*given, own_transport=True)),
    "aiohttp": lambda *given: asyncio.run(plain(*given)),
    "ours": ours,
}


def measured(client: Callable[[str, int, int], None], *given: Any) -> tuple[float, float]:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    client(*given)
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--calls", type=int, default=1500, help="of each client")
    parser.add_argument("--flight", type=int, default=64)
    parser.add_argument("--only", default=",".join(CLIENTS))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve())
        return
    names, n_turns = asked.only.split(","), 3
    spent = {name: [0.0, 0.0] for name in names}
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        for name in names:  # imports and first connections are no calls
            CLIENTS[name](url, asked.flight, asked.flight)
        for _ in range(n_turns):
            for name in names:
                cpu, wall = measured(CLIENTS[name], url, asked.calls // n_turns, asked.flight)
                spent[name][0] += cpu
                spent[name][1] += wall
    finally:
        server.kill()
    n = asked.calls // n_turns * n_turns
    found = {
        name: {"per_core": n / cpu, "per_s": n / wall, "ms_processor_a_call": 1000 * cpu / n}
        for name, (cpu, wall) in spent.items()
    }
    said = {"calls": n, "in_flight": asked.flight, "server_ms": 1000 * Server.latency, **found}
    print(json.dumps(said, indent=None if asked.json else 1))


if __name__ == "__main__":
    main()
