"""How many calls a server bears, and when it is given up."""

from __future__ import annotations

import asyncio
import threading

import fake_server as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.engines.pace import Breaker, CallError, Pace, Turn
from mlflow_mcq.records import DOWN, Decoding, Message, Query, Reply

GREEDY = Decoding(max_new_tokens=5)


def said(n: int) -> list[Query]:
    return [Query((Message("user", str(i)),)) for i in range(n)]


def answers(chat: OpenAIChat, n: int) -> list[Reply]:
    return [reply for _, reply in sorted(chat.ask(said(n), GREEDY), key=lambda pair: pair[0])]


# --- the window -------------------------------------------------------------------------


@given(
    st.integers(1, 64),
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=200),
)
def test_law_the_window_stays_between_one_and_its_limit(limit, events):
    pace = Pace(limit)
    for pressed, began in events:
        if pressed:
            pace.pressed(Turn(began))
        else:
            pace.answered()
        assert 1 <= pace.window <= limit


def test_calls_that_were_refused_together_count_once():
    pace = Pace(64)
    for _ in range(64):
        pace.pressed(Turn(0))
    assert pace.window == 32
    pace.pressed(Turn(1))  # this one began after the decrease
    assert pace.window == 16


def test_the_window_comes_back_one_call_a_round_trip():
    pace = Pace(16)
    pace.pressed(Turn(0))
    for _ in range(8):  # a window's worth of answers
        pace.answered()
    assert pace.window == pytest.approx(9, abs=0.1)
    for _ in range(1000):
        pace.answered()
    assert pace.window == 16


def test_one_that_was_given_up_starts_alone_and_doubles():
    pace = Pace(16, start=1)
    grown = []
    for _ in range(4):
        for _ in range(int(pace.window)):
            pace.answered()
        grown.append(pace.window)
    assert grown == [2, 4, 8, 16]


@given(st.integers(1, 8), st.lists(st.sampled_from("apw"), min_size=1, max_size=60))
def test_law_never_more_in_flight_than_the_window_and_nobody_waits_for_ever(limit, moves):
    async def play() -> int:
        pace = Pace(limit)
        most = 0

        async def call(move: str) -> None:
            nonlocal most
            async with pace.turn() as turn:
                # A window that shrinks ends no call: only new ones are held back.
                most = max(most, pace.in_flight)
                assert pace.in_flight <= limit
                await asyncio.sleep(0)
                if move == "p":
                    pace.pressed(turn)
                elif move == "a":
                    pace.answered()

        await asyncio.wait_for(asyncio.gather(*map(call, moves)), 30)
        assert pace.in_flight == 0
        return most

    assert asyncio.run(play()) <= limit


def test_a_caller_that_is_cancelled_leaves_its_place():
    async def play() -> None:
        pace = Pace(1)
        async with pace.turn():
            waits = asyncio.create_task(_one(pace))
            await asyncio.sleep(0)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
        await asyncio.wait_for(_one(pace), 5)

    asyncio.run(play())


async def _one(pace: Pace) -> None:
    async with pace.turn():
        pass


def test_a_server_that_bears_two_calls_is_soon_asked_by_few(judge_server):
    """Each refusal halves: the calls refused in all stay far below those that are served."""
    lock, held, refused = threading.Lock(), [0], [0]

    def script(request: dict, n_calls: int) -> fake.Answer:
        with lock:
            held[0] += 1
            full = held[0] > 2
        try:
            threading.Event().wait(0.02)
            if not full:
                return "A"
            refused[0] += 1
            return fake.rate_limited("0.01")
        finally:
            with lock:
                held[0] -= 1

    server = judge_server(script)
    chat = OpenAIChat("m", server.url, concurrency=32, max_retries=50)
    assert {reply.text for reply in answers(chat, 150)} == {"A"}
    assert server.max_parallel <= 32
    assert refused[0] < 150
    assert chat._window < 16


# --- given up ---------------------------------------------------------------------------


def error(fault: str) -> CallError:
    return CallError("it says no", fault)


@pytest.mark.parametrize(
    ("faults", "open_after"),
    [
        pytest.param(["down"] * 5, 5, id="refused for good, five times"),
        pytest.param(["passing"] * 20, 20, id="anything else, twenty times"),
        pytest.param(["absent"] * 20, 20, id="nothing there"),
        pytest.param(["row"] * 50, None, id="refusals of single rows"),
        pytest.param((["passing"] * 19 + ["row"]) * 3, None, id="interrupted by a served row"),
        pytest.param((["down"] * 4 + ["ok"]) * 5, None, id="interrupted by an answer"),
    ],
)
def test_a_server_is_given_up_after_so_many_failures_in_a_row(faults, open_after):
    breaker = Breaker()
    for place, fault in enumerate(faults, start=1):
        if fault == "ok":
            breaker.served()
        else:
            breaker.failed(error(fault))
        assert bool(breaker.why) is (place == open_after)
    if open_after:
        with pytest.raises(CallError, match="not asked: the server is given up"):
            breaker.check()
        breaker.served()  # a call that was under way
        breaker.check()


@pytest.mark.parametrize(
    ("answer", "most", "words"),
    [
        pytest.param(fake.refused(401, "no such key"), 12, "401", id="wrong key"),
        pytest.param(fake.refused(404, "no such model"), 12, "404", id="wrong model"),
        pytest.param(
            fake.refused(429, "pay first", code="insufficient_quota"), 12, "pay first", id="quota"
        ),
        pytest.param(fake.server_error(500), 27, "500", id="broken"),
        pytest.param(fake.html_page(), 27, "Sign in", id="a login wall"),
    ],
)
def test_a_judge_that_is_down_is_not_asked_ten_thousand_times(judge_server, answer, most, words):
    server = judge_server(lambda request, n: answer)
    chat = OpenAIChat("m", server.url, concurrency=8, max_retries=0)
    replies = answers(chat, 300)
    assert len(server.requests) <= most
    assert all(words in reply.error for reply in replies)
    left = [reply for reply in replies if "not asked" in reply.error]
    assert len(left) >= 300 - most
    assert {reply.finish_reason for reply in left} == {DOWN}


def test_a_server_that_comes_back_is_asked_again(judge_server):
    server = judge_server(lambda request, n: fake.server_error())
    chat = OpenAIChat("m", server.url, concurrency=8, max_retries=0)
    assert all(reply.error for reply in answers(chat, 60))
    asked = len(server.requests)
    answers(chat, 60)
    assert len(server.requests) == asked + 1  # one call is enough to know
    server.script = lambda request, n: "A"
    assert {reply.text for reply in answers(chat, 60)} == {"A"}


# --- one call ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "calls"),
    [
        pytest.param({"Retry-After": "0.01"}, 3, id="seconds"),
        pytest.param({"retry-after-ms": "10"}, 3, id="milliseconds"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 3, id="a date gone by"),
        pytest.param({"Retry-After": "soon"}, 3, id="not a time"),
        pytest.param({"Retry-After": "-5"}, 3, id="negative"),
        pytest.param({"Retry-After": "nan"}, 3, id="no number"),
        pytest.param({"Retry-After": "3600"}, 1, id="an hour is too long"),
        pytest.param({"x-should-retry": "false"}, 1, id="told not to"),
    ],
)
def test_how_long_a_server_asks_to_wait(judge_server, headers, calls):
    answer = {**fake.refused(429, "slow down"), "headers": headers}
    server = judge_server(lambda request, n: answer)
    reply = answers(OpenAIChat("m", server.url, max_retries=2), 1)[0]
    assert "RateLimitError 429" in reply.error
    assert len(server.requests) == calls


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        pytest.param(fake.garbage(), 2, id="broken JSON"),
        pytest.param(fake.no_choices(), 2, id="no choices"),
        pytest.param(fake.html_page(), 2, id="login page"),
        pytest.param(fake.refused(408, "late"), 2, id="408"),
        pytest.param(fake.refused(409, "locked"), 2, id="409"),
        pytest.param(fake.server_error(599), 2, id="599"),
        pytest.param(fake.refused(400, "no"), 1, id="400"),
        pytest.param(fake.refused(413, "too large"), 1, id="413"),
        pytest.param(fake.refused(422, "odd"), 1, id="422"),
        pytest.param(fake.refused(401, "who?"), 1, id="401"),
        pytest.param({**fake.refused(418, "tea"), "headers": {"x-should-retry": "true"}}, 2,
                     id="told to"),
    ],
)  # fmt: skip
def test_what_may_pass_is_tried_again(judge_server, answer, calls):
    server = judge_server(lambda request, n: answer)
    assert answers(OpenAIChat("m", server.url, max_retries=1), 1)[0].error
    assert len(server.requests) == calls


def test_json_is_read_whatever_its_header_says(judge_server):
    good = fake.completion("B")
    assert isinstance(good, dict)
    server = judge_server(lambda request, n: {**good, "headers": {"Content-Type": "text/html"}})
    assert answers(OpenAIChat("m", server.url), 1)[0].text == "B"


def test_a_reply_that_would_fill_memory_is_not_read_to_its_end(judge_server, monkeypatch):
    monkeypatch.setattr("mlflow_mcq.engines.http_client._LARGEST", 1000)
    server = judge_server(lambda request, n: "x" * 5000)
    reply = answers(OpenAIChat("m", server.url), 1)[0]
    assert "larger than" in reply.error
    assert len(server.requests) == 1


def test_a_deeply_nested_reply_is_an_error_of_its_row(judge_server):
    page = {"body": "[" * 200_000, "headers": {"Content-Type": "application/json"}}
    server = judge_server(lambda request, n: page)
    assert answers(OpenAIChat("m", server.url, max_retries=0), 1)[0].error


def test_a_query_in_the_url_goes_with_each_call(judge_server):
    server = judge_server(lambda request, n: "A")
    answers(OpenAIChat("m", server.url + "/?api-version=7"), 1)
    assert server.paths == ["/v1/chat/completions?api-version=7"]


def test_half_a_surrogate_pair_is_sent_as_json_has_it(judge_server):
    server = judge_server(lambda request, n: "A")
    [(_, reply)] = OpenAIChat("m", server.url).ask([Query("x \ud83d")], GREEDY)
    assert reply.error is None
    assert server.requests[0]["prompt"] == "x \ud83d"


def test_the_proxy_of_the_environment_is_used(judge_server, monkeypatch):
    proxy = judge_server(lambda request, n: "by proxy")
    monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    chat = OpenAIChat("m", "http://judge.example/v1")
    assert answers(chat, 1)[0].text == "by proxy"
    assert proxy.paths == ["http://judge.example/v1/chat/completions"]


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    """No flag switches this off."""
    import ssl
    import subprocess

    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=localhost", "-keyout", str(tmp_path / "k"), "-out", str(tmp_path / "c")],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl here")
    server = fake.FakeServer(lambda request, n: "A")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c", tmp_path / "k")
    server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
    reply = answers(OpenAIChat("m", server.url.replace("http:", "https:")), 1)[0]
    assert "certificate" in reply.error.lower()
    assert reply.finish_reason == DOWN
    assert server.requests == []
    server.close()
