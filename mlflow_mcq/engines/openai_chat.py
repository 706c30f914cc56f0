"""A language model behind an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import os
import queue
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from mlflow_mcq.engines.http_client import Address, HttpClient, connected
from mlflow_mcq.engines.pace import Breaker, CallError, Pace
from mlflow_mcq.engines.replies import read_completion, redacted, told
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.records import DOWN, Decoding, Query, Reply
from mlflow_mcq.said import as_dicts
from mlflow_mcq.shown_judge import shown_url

__all__ = ["OpenAIChat", "request_options"]

_SHORTEST_KEY = 8
"""Shorter secrets are words that a model may well say."""

T = TypeVar("T")


class OpenAIChat:
    """Asks a server, several calls at a time.

    A server that fails twenty calls in a row, or refuses five for good (key, model, quota),
    is not asked any more: the other queries have that as their error.

    The key is read from the environment for each round of calls and kept nowhere.
    ``seed`` is sent only with a temperature above 0, ``top_p`` only below 1, ``top_k``
    only above 0: each is refused by some servers, and none of them means anything else
    where it is left out.

    Args:
        model: Its name at the server.
        base_url: The server, up to and including ``/v1``.
        api_key_env: Name of the environment variable with the key; None sends no key.
        concurrency: Most calls in flight at once; fewer while the server says 429 or 503.
        timeout_s: Seconds of one try of a call before it is given up.
        max_retries: Further tries on 408, 409, 429, 5xx, broken connections and replies that
            are no completion; each waits as long as the server asks in ``Retry-After``.
        speaks_chat: False for servers that know only plain completions.
        key_header: Header of the key where it is no bearer (``api-key`` for Azure OpenAI).
        query: Added to the URL of every call (``{"api-version": ...}`` for Azure OpenAI).

    Attributes:
        url: The server, without credentials.
        fingerprint: Twelve hex digits over model, server and kind of endpoint.
        deterministic: Always False: servers batch, and replace models, as they like.
        named_by: The settings that say who is asked, for people who must change them.

    Raises:
        SettingsError: The URL is none, or the environment variable is not set.
    """

    deterministic: bool = False
    named_by: str = "model, base_url and api_key_env"

    def __init__(  # noqa: PLR0913  one argument for each setting of the judge
        self,
        model: str,
        base_url: str,
        api_key_env: str | None = None,
        concurrency: int = 16,
        timeout_s: float = 60,
        max_retries: int = 5,
        *,
        speaks_chat: bool = True,
        key_header: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.url = _checked(base_url)
        self.api_key_env = api_key_env
        self.concurrency = max(1, concurrency)
        self.timeout_s = timeout_s
        self.max_retries = max_retries
        self.speaks_chat: bool = speaks_chat
        self._base_url = _with_query(base_url, query or {})
        self._key_header = key_header or ""
        self._limit_name = "max_tokens"
        self._window: float | None = None  # what the server bore last
        self._given_up = False
        self._ends: list[Callable[[], None]] = []
        self._key()
        name = "\x1f".join((model, self.url, str(speaks_chat)))
        self.fingerprint: str = hashlib.sha256(name.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r}, {self.url!r})"

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Yield replies as they arrive; a failed call is a reply with its error.

        A consumer that stops early, by ``close`` or by an exception, ends all calls.
        """

        async def one(client: HttpClient, query: Query) -> Reply:
            return await self._answer(client, query, decoding)

        yield from self.each(queries, one)

    def each(
        self, queries: Sequence[Query], one: Callable[[HttpClient, Query], Awaitable[T]]
    ) -> Iterator[tuple[int, T]]:
        """Yield ``(place, result)`` of something done once a query, several at a time.

        Args:
            queries: What to ask.
            one: Is given the open client and a query. What it raises ends all.
        """
        # Ctrl-C takes what `get` returns, which is then nowhere; out of a list it takes nothing.
        came: list[tuple[int, T]] = []
        bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        given = 0
        with _background_loop() as loop:
            work = asyncio.run_coroutine_threadsafe(self._each(queries, one, came, bell), loop)

            def end() -> None:
                work.cancel()
                bell.put(False)  # work that had not begun says nothing at its end

            self._ends.append(end)
            try:
                while bell.get():
                    answer = came[given]
                    given += 1
                    yield answer
                work.result()
            except KeyboardInterrupt:
                # What has come is paid for: a busy machine may have let it lie here.
                end()
                yield from came[given:]
                raise
            finally:
                self._ends.remove(end)

    def stop(self) -> None:
        """End all calls under way, from any thread; whoever waits gets a `CancelledError`."""
        for end in [*self._ends]:
            end()

    async def _each(
        self,
        queries: Sequence[Query],
        one: Callable[[HttpClient, Query], Awaitable[T]],
        came: list[tuple[int, T]],
        bell: queue.SimpleQueue[bool],
    ) -> None:
        """Append each result as it comes and ring; False says that no more will come."""
        # Workers share one iterator: never more calls in flight than workers, and no
        # ten thousand waiting tasks.
        places = iter(range(len(queries)))

        async def work(client: HttpClient) -> None:
            for place in places:
                came.append((place, await one(client, queries[place])))
                bell.put(True)

        try:
            async with self._client() as client:
                n_workers = min(self.concurrency, len(queries))
                await asyncio.gather(*(work(client) for _ in range(n_workers)))
        finally:
            bell.put(False)

    async def _answer(self, client: HttpClient, query: Query, decoding: Decoding) -> Reply:
        secrets = self._secrets()
        try:
            got = await self.completion(client, query, decoding)
            reply = read_completion(got, plain=isinstance(query.content, str))
        except CallError as error:
            for_all = error.fault in ("absent", "down")
            return Reply(None, self.told(error), DOWN if for_all else "")
        except Exception as error:  # noqa: BLE001  one bad row must not lose the others
            return Reply(None, self.told(error))
        # A server that echoes its headers would put the key into every table.
        text, failed = reply.text, reply.error
        for secret in secrets:
            if text and len(secret) >= _SHORTEST_KEY:
                text = text.replace(secret, "[redacted]")
        return replace(reply, text=text, error=failed and redacted(failed, secrets))

    def fault(self, query: Query, decoding: Decoding) -> CallError | None:
        """Why a query gets no answer, asked at most twice; None where it gets one."""
        hasty = copy.copy(self)  # the calls to come keep their own patience
        hasty.max_retries = min(self.max_retries, 1)

        async def one(client: HttpClient, asked: Query) -> CallError | None:
            try:
                got = await hasty.completion(client, asked, decoding)
            except CallError as error:
                return error
            # A completion whose content is no text would be refused row by row.
            why = read_completion(got, plain=isinstance(asked.content, str)).error
            return None if why is None else CallError(why, "row", 200)

        found = next(found for _, found in hasty.each([query], one))
        self._limit_name = hasty._limit_name
        return found

    def told(self, error: BaseException) -> str:
        """What went wrong in one line, without secrets."""
        said = str(error) if isinstance(error, CallError) else told(error)
        return redacted(said, self._secrets())

    async def completion(
        self, client: HttpClient, query: Query, decoding: Decoding, **more: Any
    ) -> dict[str, Any]:
        """One completion as the server sent it; ``more`` goes with the request as it is.

        Raises:
            CallError: There is none.
        """
        plain, limit = isinstance(query.content, str), decoding.max_new_tokens
        tried = "max_tokens" if plain else self._limit_name
        try:
            return await self._create(client, query, decoding, {**more, tried: limit})
        except CallError as error:
            # Newer models of OpenAI refuse the name that every other server knows.
            known = error.status in (400, 422) and "max_completion_tokens" in str(error)
            if plain or tried != "max_tokens" or not known:
                raise
        self._limit_name = "max_completion_tokens"
        return await self._create(client, query, decoding, {**more, self._limit_name: limit})

    async def _create(
        self, client: HttpClient, query: Query, decoding: Decoding, more: dict[str, Any]
    ) -> dict[str, Any]:
        options = {"model": self.model, **request_options(decoding, query.seed), **more}
        if isinstance(query.content, str):
            return await client.post("completions", {"prompt": query.content, **options})
        messages = as_dicts(query.content)
        return await client.post("chat/completions", {"messages": messages, **options})

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[HttpClient]:
        address = Address(
            self._base_url, self._key(), self.timeout_s, self.max_retries, self._key_header
        )
        # One that was given up is asked by one caller first.
        pace = Pace(self.concurrency, 1 if self._given_up else self._window)
        breaker = Breaker(wary=self._given_up)
        async with connected(address, pace, breaker) as client:
            try:
                yield client
            finally:
                self._window, self._given_up = pace.window, bool(breaker.why)

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise SettingsError(
                "api_key_env",
                f"names {self._shown_variable()}, which is not set",
                possible="Set it to the key, or leave api_key_env out for a server without one.",
            )
        return key

    def _shown_variable(self) -> str:
        # In capitals it is a variable's name; anything else may be a key, pasted.
        if self.api_key_env and self.api_key_env.isupper():
            return f"the environment variable {self.api_key_env}"
        return "an environment variable"

    def _secrets(self) -> list[str]:
        """Whatever may stand in a message of the server, the longest first."""
        key = os.environ.get(self.api_key_env) if self.api_key_env else None
        parts = urlsplit(self._base_url)
        user = parts.netloc.rpartition("@")[0]
        found = {key, user, parts.username, parts.password, parts.query, unquote(user)}
        found |= {unquote(parts.password or ""), b64encode(unquote(user).encode()).decode()}
        # A date of an interface is no secret, and may well stand in an answer.
        found |= {value for name, value in parse_qsl(parts.query) if name != "api-version"}
        return sorted((secret for secret in found if secret), key=len, reverse=True)


def _with_query(url: str, query: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    whole = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *query.items()])
    return urlunsplit(parts._replace(query=whole)) if query else url


def request_options(decoding: Decoding, seed: int) -> dict[str, Any]:
    """The user's decoding as fields of a request."""
    options: dict[str, Any] = {"temperature": decoding.temperature}
    if decoding.temperature > 0:
        # Servers keep a seed in 32 bits, some with a sign.
        options["seed"] = seed % 2**31
    if decoding.top_p < 1.0:
        options["top_p"] = decoding.top_p
    if decoding.stop:
        options["stop"] = list(decoding.stop)
    if decoding.top_k > 0:
        options["top_k"] = decoding.top_k
    if decoding.thinking is not None:
        options["chat_template_kwargs"] = {"enable_thinking": decoding.thinking}
    return options


@contextmanager
def _background_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own: notebooks run one in the main thread already."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mcq-openai", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    # Waited for: a client that is not closed leaves its connections to the garbage.
    await asyncio.gather(*others, return_exceptions=True)


def _checked(base_url: str) -> str:
    """An address as it may be shown.

    Whoever stumbles over a wrong one later repeats it, password and all.
    """
    shown = shown_url(base_url)
    if not base_url.startswith(("http://", "https://")):
        raise SettingsError(
            "base_url", "must start with http:// or https://", shown, "Add the scheme."
        )
    try:
        urlsplit(base_url).port  # noqa: B018
    except ValueError:
        raise SettingsError(
            "base_url",
            "cannot be read: what stands where the port should is no number",
            shown,
            "Write signs such as / # ? @ in a password as %2F %23 %3F %40.",
        ) from None
    return shown
