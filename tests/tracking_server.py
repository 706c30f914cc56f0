"""A real MLflow server in a process of its own, and a line to it that can be cut."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_START = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (\S+) HTTP/1\.1\r\n")


class serving:
    """A server over a store, on a free port; gone with all its workers at the end."""

    def __init__(self, store: str, folder: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store]
        command += ["--artifacts-destination", str(folder / "served"), "--workers", "1"]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        with (folder / "server.log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def __enter__(self) -> str:
        url = f"http://127.0.0.1:{self.port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, "the server did not start; see server.log"
                time.sleep(0.5)
            else:
                return url
        raise AssertionError("the server does not answer; see server.log")

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=60)


@dataclass(frozen=True)
class Cut:
    """When requests begin to be lost, and how many are.

    Attributes:
        at: Method and path of the first one, as a pattern.
        lose: How many, whichever they are.
        after: A pattern of a request that must have come before.
        answered: The first one is done, and only its answer is lost: nobody knows.
    """

    at: str
    lose: int
    after: str = ""
    answered: bool = False


class Line:
    """A TCP proxy before a server, which cuts connections at chosen requests.

    To those who ask it looks like a server that is stopped and started again.

    Attributes:
        url: To use in place of the server's own.
        n_lost: Requests that were lost.
    """

    def __init__(self, port: int) -> None:
        self.n_lost = 0
        self._port = port
        self._lock = threading.Lock()
        self._cuts: list[Cut] = []
        self._seen, self._left = False, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *cuts: Cut) -> None:
        """Do this, one after the other; nothing is left of what was said before."""
        with self._lock:
            self._cuts, self._seen, self._left, self.n_lost = [*cuts], False, 0, 0

    def close(self) -> None:
        """Take no more connections."""
        self._listening.close()

    def _fate(self, data: bytes) -> str:
        """What becomes of a piece that a client sends: it is passed on, or lost."""
        begins = _START.match(data)
        if begins is None:
            return "passed"
        said = f"{begins[1].decode()} {begins[2].decode()}"
        with self._lock:
            fate = self._next(said)
            self.n_lost += fate != "passed"
        return fate

    def _next(self, said: str) -> str:
        if self._left:
            self._left -= 1
            return "lost"
        if not self._cuts:
            return "passed"
        cut = self._cuts[0]
        ready, self._seen = self._seen, self._seen or bool(re.search(cut.after, said))
        if not (ready or not cut.after) or not re.search(cut.at, said):
            return "passed"
        self._cuts, self._seen, self._left = self._cuts[1:], False, cut.lose - 1
        return "answer lost" if cut.answered else "lost"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            deaf = threading.Event()
            back = threading.Thread(target=_answers, args=(server, client, deaf), daemon=True)
            back.start()
            while data := _received(client):
                fate = self._fate(data)
                if fate == "lost":
                    break
                if fate == "answer lost":
                    deaf.set()
                server.sendall(data)
            if not deaf.is_set():
                _reset(client)
            else:
                back.join()


def _answers(server: socket.socket, client: socket.socket, deaf: threading.Event) -> None:
    while data := _received(server):
        if deaf.is_set():
            break
        try:
            client.sendall(data)
        except OSError:
            break
    _reset(client)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""


def _reset(end: socket.socket) -> None:
    """Let the other side read "connection reset", as it does when a process is gone."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
