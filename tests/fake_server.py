"""A scripted OpenAI-compatible server on the loopback interface.

A script is a function of the request and of the number of calls before it. It returns
a text (a well-formed answer), or a dict that says what goes over the wire::

    status   HTTP status, 200 if left out
    headers  extra headers
    body     dict (sent as JSON), str or bytes (sent as they are)
    delay    seconds before the answer
    reset    True: the connection is cut without an answer

The helpers below build such dicts. A script runs in the server's own threads, so it may
also wait for an event or a barrier of the test: no test needs to time anything.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = str | dict[str, Any]
Script = Callable[[dict[str, Any], int], Answer]


def completion(text: str | None, finish_reason: str = "stop", **message: Any) -> Answer:
    """A well-formed chat answer; further fields of the message by name."""
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "text": text, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {
        "body": {
            "id": "fake",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [choice],
            "usage": usage,
        }
    }


def listed(tokens: dict[str, float], *, plain: bool = False) -> Answer:
    """An answer of one token with the likeliest ones, by their log-probabilities.

    ``plain`` has the shape of the completions endpoint.
    """
    answer = completion(next(iter(tokens), ""), "length")
    assert isinstance(answer, dict)
    tops = [{"token": token, "logprob": value, "bytes": None} for token, value in tokens.items()]
    chat = {"content": [{**tops[0], "top_logprobs": tops}] if tops else []}
    answer["body"]["choices"][0]["logprobs"] = {"top_logprobs": [tokens]} if plain else chat
    return answer


def refused(status: int, message: str, **error: Any) -> Answer:
    """An error as OpenAI's own server words it."""
    return {"status": status, "body": {"error": {"message": message, **error}}}


def rate_limited(retry_after: str = "0.01") -> Answer:
    """429 with a Retry-After."""
    return {**refused(429, "slow down"), "headers": {"Retry-After": retry_after}}


def server_error(status: int = 500) -> Answer:
    """A fault of the server."""
    return refused(status, "the server is on fire")


def garbage() -> Answer:
    """JSON by its header, not by its body."""
    return {"body": '{"choices": [{"mess', "headers": {"Content-Type": "application/json"}}


def html_page(status: int = 200) -> Answer:
    """What a proxy or a login wall says instead of the API."""
    page = "<!doctype html><html><head><title>Sign in</title></head><body>…</body></html>"
    return {"status": status, "body": page, "headers": {"Content-Type": "text/html"}}


def no_choices() -> Answer:
    """A well-formed answer without any choice."""
    return {"body": {"id": "fake", "object": "chat.completion", "model": "fake", "choices": []}}


def null_content(finish_reason: str = "content_filter") -> Answer:
    """A choice that holds no text."""
    return completion(None, finish_reason)


def slow(text: str, delay: float) -> Answer:
    """A well-formed answer after some seconds."""
    answer = completion(text)
    assert isinstance(answer, dict)
    return {**answer, "delay": delay}


def reset() -> Answer:
    """The connection is cut before any answer."""
    return {"reset": True}


class FakeServer:
    """One running server.

    Attributes:
        url: Base URL, ends in ``/v1``.
        requests: JSON bodies received, in order of arrival.
        paths: Paths asked, in the same order.
        headers: Headers received (names in lower case), in the same order.
        max_parallel: Most requests that were in the hands of the server at once.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.max_parallel = 0
        self._parallel = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.fake = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def enter(self, path: str, headers: dict[str, str], request: dict[str, Any]) -> int:
        """Record a request; returns the number of requests before it."""
        with self._lock:
            self._parallel += 1
            self.max_parallel = max(self.max_parallel, self._parallel)
            self.requests.append(request)
            self.paths.append(path)
            self.headers.append(headers)
            return len(self.requests) - 1

    def leave(self) -> None:
        """Count a request as answered."""
        with self._lock:
            self._parallel -= 1


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # kept-alive connections would hold `close` for ever
    request_queue_size = 256
    fake: FakeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of some scripts, no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output clean."""

    def do_POST(self) -> None:
        fake = self.server.fake
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        n_calls = fake.enter(self.path, {k.lower(): v for k, v in self.headers.items()}, request)
        try:
            answer = fake.script(request, n_calls)
            if isinstance(answer, str):
                answer = completion(answer)
            assert isinstance(answer, dict)
            time.sleep(answer.get("delay", 0))
        finally:
            # Before the answer leaves: the client's next request must not be counted
            # as parallel to this one.
            fake.leave()
        if answer.get("reset"):
            self._cut()
        else:
            self._send(answer)

    def _send(self, answer: dict[str, Any]) -> None:
        body = answer.get("body", "")
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if isinstance(body, dict):
            body, headers = json.dumps(body), {"Content-Type": "application/json"}
        data = body.encode() if isinstance(body, str) else body
        self.send_response(answer.get("status", 200))
        for name, value in {**headers, **answer.get("headers", {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _cut(self) -> None:
        # Linger 0 makes the kernel send RST instead of an orderly end.
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
