"""Debian's chromium, where there is one; and a page of it that tells all that happens there.

The browser is spoken to over two pipes (its DevTools protocol), so no port is open, and all
that it asks of any network goes through a proxy that is ours: what it asks for is counted.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
HOST = "http://report.test"
"""Where pages given to `Watched.serve` stand; no name of this kind exists anywhere else."""
_SCRIPTS = {
    "Runtime.bindingCalled": "called",
    "Runtime.consoleAPICalled": "console",
    "Runtime.exceptionThrown": "exception",
    "Page.javascriptDialogOpening": "dialog",
}
_PATIENCE_S = 120
# What a reader may do with a page, done to all of it; what is only due a moment later is waited
# for. Handlers of events run as they would for a hand.
_USED = """new Promise(done => {
  for (const one of document.querySelectorAll('*')) {
    for (const kind of ['mouseover', 'click', 'focus', 'error', 'load', 'toggle', 'input',
                        'animationstart', 'animationend', 'begin', 'pointerenter', 'scroll'])
      one.dispatchEvent(new Event(kind, {cancelable: true}));
    if (one.tagName === 'A') one.click();
  }
  setTimeout(done, %d);
})"""


class _Proxy(BaseHTTPRequestHandler):
    """Answers for every host: with a page that was given, or with nothing."""

    server: Any

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "").encode())

    do_POST = do_CONNECT = do_GET

    def log_message(self, *_: Any) -> None:
        """Say nothing: what was asked for is in a list."""


class Watched:
    """A browser with one page, all of whose doings are written down.

    Attributes:
        asked: Every address in ``.test`` that was asked for, the pages themselves left out.
        ran: What scripts did: ``kind: detail``.
        went: Addresses that a frame went to after the page, and windows that opened.
    """

    def __init__(self, profile: Path) -> None:
        self.asked: list[str] = []
        self.ran: list[str] = []
        self.went: list[str] = []
        self._page = ""
        self._number, self._rest = 0, b""
        self._replies: dict[int, Any] = {}
        self._proxy: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
        self._proxy.pages, self._proxy.asked = {}, []
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()
        self._start(profile)
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session: str | None = attached["sessionId"]
        for room in ("Page", "Runtime", "Network"):
            self._send(f"{room}.enable")
        self._send("Runtime.addBinding", name="ran")

    def _start(self, profile: Path) -> None:
        self._session = None
        to_it, mine = os.pipe()
        theirs, from_it = os.pipe()

        def hand_over() -> None:  # the browser reads from 3 and writes to 4
            high = [os.dup(fd) for fd in (to_it, from_it)]
            for fd, place in zip(high, (3, 4), strict=True):
                os.dup2(fd, place)

        self._in, self._out = mine, theirs
        port = self._proxy.server_address[1]
        self._process = subprocess.Popen(
            [
                str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe",
                f"--proxy-server=http://127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>",
            ],
            preexec_fn=hand_over, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)

    def close(self) -> None:
        """End the browser and its proxy."""
        self._session = None
        self._send("Browser.close")
        self._process.wait(timeout=_PATIENCE_S)
        os.close(self._in)
        os.close(self._out)
        self._proxy.shutdown()
        self._proxy.server_close()

    def serve(self, path: str, page: str) -> str:
        """The address of a page that is on no disk."""
        self._proxy.pages[HOST + path] = page
        return HOST + path

    def open(self, url: str, wait_ms: int = 150) -> None:
        """Look at a page, and use all of it as a reader might."""
        self._go("about:blank")  # what the last page was still about is not this one's
        self.asked, self.ran, self.went = [], [], []
        self._proxy.asked.clear()
        self._go(url)
        self._send("Runtime.evaluate", expression=_USED % wait_ms, awaitPromise=True)
        own = (url, f"{HOST}/favicon.ico")  # a browser asks every server for an icon
        self.asked += [one for one in self._proxy.asked if one not in own and ".test" in one]

    def _go(self, url: str) -> None:
        self._page, self._loaded = url, False
        self._send("Page.navigate", url=url)
        self._until(lambda: self._loaded)

    def told(self, expression: str) -> Any:
        """The value of an expression in the page."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self._send("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _send(self, method: str, **params: Any) -> Any:
        self._number += 1
        number = self._number
        self._write(number, method, params)
        self._until(lambda: number in self._replies)
        reply = self._replies.pop(number)
        # A page that leaves while it is asked something has no answer; where it went is known.
        if "error" in reply and method != "Runtime.evaluate":
            raise AssertionError(f"{method}: {reply['error']}")
        return reply.get("result", {})

    def _write(self, number: int, method: str, params: dict[str, Any]) -> None:
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._in, rest) :]

    def _until(self, done: Any) -> None:
        while not done():
            ready, _, _ = select.select([self._out], [], [], _PATIENCE_S)
            data = os.read(self._out, 1 << 20) if ready else b""
            assert data, "the browser says nothing more"
            *messages, self._rest = (self._rest + data).split(b"\0")
            for message in messages:
                self._heard(json.loads(message))

    def _heard(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._replies[message["id"]] = message
            return
        method, told = message["method"], message.get("params", {})
        if method in _SCRIPTS:
            self.ran.append(f"{_SCRIPTS[method]}: {json.dumps(told)[:200]}")
        if method == "Page.javascriptDialogOpening":  # a page waits for ever otherwise
            self._number += 1
            self._write(self._number, "Page.handleJavaScriptDialog", {"accept": True})
        self._moved(method, told)

    def _moved(self, method: str, told: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        if method == "Network.requestWillBeSent":
            url = told["request"]["url"]  # a picture inside the page is asked of nobody
            own = (self._page, f"{HOST}/favicon.ico")
            self.asked += [] if url in own or url.startswith("data:image/") else [url]
        if method == "Page.frameNavigated" and told["frame"]["url"] != self._page:
            self.went.append(told["frame"]["url"])
        if method in ("Page.windowOpen", "Page.frameAttached"):
            self.went.append(f"{method}: {told.get('url', '')}")
