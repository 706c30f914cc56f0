"""Calls to an OpenAI-compatible server: pooled, retried, bounded in time and size.

Plain aiohttp: a judge is called some ten thousand times, and the client of the openai
package takes 4 to 5 ms of a processor for each call, on any of its transports, where this
one takes less than 1 (``benchmarks/judge.py``).
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import os
import random
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from mlflow_mcq.engines.pace import Breaker, CallError, Fault, NotAsked, Pace
from mlflow_mcq.engines.replies import shape_fault

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Address", "HttpClient", "connected"]

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_LONGEST_ASKED = 120.0
"""Seconds of ``Retry-After`` that are waited; a server that asks for more fails the call."""
_LARGEST = 32 * 2**20
_NAMES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
}
"""As the openai package names them, which is what people look up."""
_FOR_GOOD = (401, 403, 404)
_PASSING = (408, 409, 429)
_NO_QUOTA = "insufficient_quota"


@dataclass(frozen=True, slots=True, repr=False)  # no repr: it holds secrets
class Address:
    """Where calls go, and what each of them carries.

    Attributes:
        url: The server up to and including ``/v1``; may hold credentials and a query.
        key: Sent as the bearer; None sends ``none``, as servers without keys expect.
        timeout_s: Seconds of one try, from the connection to the last byte.
        max_retries: Further tries of a call whose fault may pass.
        key_header: Header that carries the key alone; empty sends it as the bearer.
    """

    url: str
    key: str | None
    timeout_s: float
    max_retries: int
    key_header: str = ""

    def path(self, name: str) -> str:
        """The URL of an endpoint, without credentials.

        Example:
            >>> Address("http://me:pw@host:80/v1/?a=1", None, 1, 0).path("completions")
            'http://host:80/v1/completions?a=1'
        """
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        path = f"{parts.path.rstrip('/')}/{name}"
        return urlunsplit((parts.scheme, host, path, parts.query, ""))

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every call. Credentials in the URL win over a key, as in browsers."""
        user, _, _ = urlsplit(self.url).netloc.rpartition("@")
        bearer = f"Bearer {self.key or 'none'}"
        basic = b64encode(unquote(user).encode()).decode()
        authorization = {"Authorization": f"Basic {basic}" if user else bearer}
        if self.key_header and not user:
            authorization = {self.key_header: self.key} if self.key else {}
        sent = {
            **authorization,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "mlflow-mcq",
        }
        host = urlsplit(self.url).hostname or ""
        if host == "openai.com" or host.endswith(".openai.com"):
            # OpenAI's own variables; no other server may learn them.
            for header, name in (("Organization", "ORG"), ("Project", "PROJECT")):
                value = os.environ.get(f"OPENAI_{name}_ID")
                sent |= {f"OpenAI-{header}": value} if value else {}
        return sent

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for this server."""
        parts = urlsplit(self.url)
        if proxy_bypass(parts.hostname or ""):
            return None
        proxies = getproxies()
        return proxies.get(parts.scheme) or proxies.get("all")


@dataclass(slots=True, repr=False)
class HttpClient:
    """An open pool of connections to one server.

    Attributes:
        address: The server.
        session: Of aiohttp.
        pace: How many calls may be in flight.
        breaker: Whether the server is asked at all.
    """

    address: Address
    session: aiohttp.ClientSession
    pace: Pace
    breaker: Breaker
    proxy: str | None = None
    _draw: random.Random = field(default_factory=random.Random)

    async def post(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and ask again while the fault may pass.

        Args:
            name: Of the endpoint, such as ``chat/completions``.
            body: Sent as JSON.

        Returns:
            The completion: a dict that holds at least one choice.

        Raises:
            CallError: There is none, after all retries.
        """
        data, url = _encoded(body), self.address.path(name)
        for tried in range(self.address.max_retries + 1):
            try:
                async with self.pace.turn() as turn:
                    self.breaker.check()  # others may have found out while this one waited
                    got = await self._once(url, data)
            except NotAsked:
                raise
            except CallError as error:
                if error.pressing:
                    self.pace.pressed(turn)
                if tried == self.address.max_retries or not _worth_a_try(error):
                    self.breaker.failed(error)
                    raise
                await asyncio.sleep(self._wait(error, tried))
            else:
                self.pace.answered()
                self.breaker.served()
                return got
        raise AssertionError("the last try returns or raises")

    def _wait(self, error: CallError, tried: int) -> float:
        if error.wait is not None and error.wait > 0:
            return error.wait
        # Jitter: callers that were refused together must not come back together.
        longest = min(_FIRST_WAIT * 2.0 ** min(tried, 10), _LONGEST_WAIT)
        return longest * (1 - 0.25 * self._draw.random())

    async def _once(self, url: str, data: bytes) -> dict[str, Any]:
        import aiohttp

        try:
            async with self.session.post(url, data=data, proxy=self.proxy) as got:
                status, headers, page = got.status, got.headers, await _page(got)
        except asyncio.TimeoutError:
            raise CallError("APITimeoutError: Request timed out.", "passing") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _unreached(error) from None
        if not 200 <= status < 300:
            raise _refusal(status, headers, page)
        return _completion(page, headers.get("Content-Type", ""))


@asynccontextmanager
async def connected(address: Address, pace: Pace, breaker: Breaker) -> AsyncIterator[HttpClient]:
    """A client with its pool, closed at the end."""
    import aiohttp

    secure: ssl.SSLContext | bool = True
    if address.url.startswith("https://"):
        secure = _trusted()
    async with aiohttp.ClientSession(
        headers=address.headers,
        timeout=aiohttp.ClientTimeout(total=address.timeout_s),
        connector=aiohttp.TCPConnector(limit=pace.limit, ssl=secure),
        cookie_jar=aiohttp.DummyCookieJar(),  # no row may change the next one
    ) as session:
        yield HttpClient(address, session, pace, breaker, address.proxy)


def _trusted() -> ssl.SSLContext:
    """Certificates are always verified; some Pythons come without any to verify by."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"] and not os.environ.get("SSL_CERT_FILE"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(body).encode()


async def _page(got: aiohttp.ClientResponse) -> bytes:
    """The body, unpacked, as far as memory is to hold it."""
    found = bytearray()
    async for chunk in got.content.iter_any():
        found += chunk
        if len(found) > _LARGEST:
            raise CallError(f"the server's reply is larger than {_LARGEST >> 20} MiB", "row")
    return bytes(found)


def _unreached(error: Exception) -> CallError:
    import aiohttp

    said = f"APIConnectionError: Connection error. ({type(error).__name__}: {error})"
    fault: Fault = "passing"
    if isinstance(error, (aiohttp.ClientSSLError, aiohttp.InvalidURL, aiohttp.TooManyRedirects)):
        fault = "down"
    elif isinstance(error, aiohttp.ClientConnectorError):
        fault = "absent"
    return CallError(said, fault)


def _refusal(status: int, headers: Mapping[str, str], page: bytes) -> CallError:
    name = _NAMES.get(status, "InternalServerError" if status >= 500 else "APIStatusError")
    text = page.decode("utf-8", "replace").strip()
    message, code = _message(page)
    said = f"Error code: {status} - {message}" if message else text or "no reason is given"
    passing = status in _PASSING or status >= 500
    fault: Fault = "passing" if passing else "down" if status in _FOR_GOOD else "row"
    if code == _NO_QUOTA:
        fault = "down"
    stated = headers.get("x-should-retry")
    if stated in ("true", "false") and fault in ("row", "passing"):
        fault = "passing" if stated == "true" else "row"
    return CallError(f"{name} {status}: {said}", fault, status, _asked_wait(headers))


def _message(page: bytes) -> tuple[str, str]:
    """What an error says in words, and its code."""
    try:
        found = json.loads(page)
    except (ValueError, RecursionError):
        return "", ""
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return str(error), ""
    return str(error.get("message") or error), str(error.get("code") or error.get("type") or "")


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds of ``retry-after-ms`` or ``Retry-After``, which may also be a date."""
    for header, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(header, "")) / divisor
        except ValueError:
            continue
        return wait if math.isfinite(wait) else None
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return None if date is None else email.utils.mktime_tz(date) - time.time()


def _worth_a_try(error: CallError) -> bool:
    # A server that asks for an hour would hold up the whole run: the row fails instead.
    return error.fault in ("passing", "absent") and (error.wait or 0) <= _LONGEST_ASKED


def _completion(page: bytes, kind: str) -> dict[str, Any]:
    try:
        got: Any = json.loads(page)
    except (ValueError, RecursionError) as error:
        if "json" in kind.lower():
            raise CallError(f"JSONDecodeError: {error}", "passing") from None
        got = page.decode("utf-8", "replace")
    fault = shape_fault(got)
    if fault:
        raise CallError(fault, "passing", 200)
    whole: dict[str, Any] = got
    return whole
