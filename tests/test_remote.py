"""A server is somebody else's: what is sent, what may come back, and what never leaks."""

from __future__ import annotations

import asyncio
import threading

import fake_server as fake
import pytest

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.records import Decoding, Message, Query, Reply

KEY = "sk-very-secret-0123456789"
GREEDY = Decoding(max_new_tokens=5)


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    return "MY_KEY"


def said(text: str, seed: int = 0) -> Query:
    return Query((Message("user", text),), seed)


def answers(chat: Chat, queries: list[Query], decoding: Decoding = GREEDY) -> list[Reply]:
    got = list(chat.ask(queries, decoding))
    assert sorted(place for place, _ in got) == list(range(len(queries)))
    return [reply for _, reply in sorted(got, key=lambda pair: pair[0])]


def one(chat: Chat, decoding: Decoding = GREEDY) -> Reply:
    return answers(chat, [said("hi")], decoding)[0]


def echo(request: dict, n_calls: int) -> fake.Answer:
    return request["messages"][-1]["content"]


def mcq_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mcq-openai"]


# --- what is sent -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decoding", "sent"),
    [
        pytest.param(GREEDY, {"temperature": 0.0, "max_tokens": 5}, id="greedy: no more than that"),
        pytest.param(
            Decoding(9, temperature=0.7, top_p=0.9, top_k=40, stop=("\n", "Q")),
            {
                "temperature": 0.7,
                "max_tokens": 9,
                "top_p": 0.9,
                "top_k": 40,
                "stop": ["\n", "Q"],
                "seed": 5,
            },
            id="sampled",
        ),
        pytest.param(
            Decoding(5, thinking=False),
            {
                "temperature": 0.0,
                "max_tokens": 5,
                "chat_template_kwargs": {"enable_thinking": False},
            },
            id="thinking off",
        ),
    ],
)
def test_the_request_holds_exactly_the_decoding(judge_server, decoding, sent):
    server = judge_server(echo)
    # A seed of 63 bits, as rows have: servers keep 32.
    answers(OpenAIChat("m", server.url), [said("hi", seed=5 + 2**40)], decoding)
    messages = [{"role": "user", "content": "hi"}]
    assert server.requests == [{"model": "m", "messages": messages, **sent}]
    assert server.paths == ["/v1/chat/completions"]


def test_plain_text_goes_to_the_completions_endpoint(judge_server):
    server = judge_server(lambda request, n: fake.completion(f"<{request['prompt']}>"))
    chat = OpenAIChat("m", server.url, speaks_chat=False)
    assert answers(chat, [Query("2 + 2 =")])[0].text == "<2 + 2 =>"
    assert server.paths == ["/v1/completions"]
    assert not chat.speaks_chat


def test_a_model_that_refuses_max_tokens_is_asked_in_its_own_words(judge_server):
    def script(request: dict, n_calls: int) -> fake.Answer:
        if "max_tokens" in request:
            return fake.refused(
                400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            )
        return "fine"

    server = judge_server(script)
    chat = OpenAIChat("m", server.url, max_retries=0)
    assert [one(chat).text, one(chat).text] == ["fine", "fine"]
    limits = [sorted(set(r) & {"max_tokens", "max_completion_tokens"}) for r in server.requests]
    assert limits == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


def test_any_other_refusal_is_not_tried_again(judge_server):
    server = judge_server(lambda request, n: fake.refused(400, "context too long"))
    assert one(OpenAIChat("m", server.url)).error == (
        "BadRequestError 400: Error code: 400 - context too long"
    )
    assert len(server.requests) == 1


# --- what may come back -------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text", "reason"),
    [
        pytest.param(fake.completion(" B\n"), " B\n", "eos", id="raw text"),
        pytest.param(fake.completion("B", "length"), "B", "length", id="cut at the limit"),
        pytest.param(fake.null_content(), "", "content_filter", id="filtered"),
        pytest.param(fake.null_content("length"), "", "length", id="all spent on reasoning"),
        pytest.param(
            fake.completion("B", reasoning_content="A? No."), "B", "eos", id="reasoning beside it"
        ),
    ],
)
def test_a_reply_is_read_as_it_is(judge_server, answer, text, reason):
    reply = one(OpenAIChat("m", judge_server(lambda request, n: answer).url))
    assert (reply.text, reply.finish_reason, reply.error) == (text, reason, None)
    assert (reply.n_prompt_tokens, reply.n_tokens) == (7, 3)


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(fake.garbage(), "JSONDecodeError", id="broken JSON"),
        pytest.param({"body": "", "headers": JSON}, "JSONDecodeError", id="empty body"),
        pytest.param({"body": "null", "headers": JSON}, "no completion: NoneType", id="null"),
        pytest.param({"body": "[1]", "headers": JSON}, "no completion: list", id="a list"),
        pytest.param({"body": {"choices": None}}, "no completion", id="null choices"),
        pytest.param(fake.no_choices(), "without any choice", id="no choices"),
        pytest.param(fake.html_page(), "Sign in", id="login page"),
        pytest.param(fake.html_page(502), "InternalServerError 502", id="proxy's error page"),
        pytest.param({"body": "hello"}, "no completion: hello", id="plain text"),
        pytest.param(fake.completion([{"text": "B"}]), "list, no text", id="content in parts"),
        pytest.param(fake.server_error(), "500: Error code: 500 - the server is on fire", id="500"),
        pytest.param(fake.rate_limited(), "RateLimitError 429", id="429"),
        pytest.param(fake.refused(404, "no such model"), "NotFoundError 404", id="404"),
        pytest.param(fake.reset(), "APIConnectionError", id="connection reset"),
    ],
)
def test_anything_else_is_an_error_of_its_row(judge_server, answer, error):
    server = judge_server(lambda request, n: answer if echo(request, n) == "bad" else "good")
    chat = OpenAIChat("m", server.url, max_retries=0)
    good, bad = answers(chat, [said("ok"), said("bad")])
    assert good.text == "good"
    assert bad.text is None
    assert error in bad.error
    assert len(bad.error) < 400


def test_a_server_that_hangs_is_given_up(judge_server):
    release = threading.Event()

    def script(request: dict, n_calls: int) -> fake.Answer:
        release.wait(30)
        return "too late"

    chat = OpenAIChat("m", judge_server(script).url, timeout_s=0.2, max_retries=0)
    reply = one(chat)
    release.set()
    assert "APITimeoutError" in reply.error


def test_a_server_that_is_not_there_is_an_error_of_each_row():
    chat = OpenAIChat("m", "http://127.0.0.1:9/v1", max_retries=0)
    assert all("APIConnectionError" in r.error for r in answers(chat, [said("a"), said("b")]))


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fake.rate_limited(), id="429 with Retry-After"),
        pytest.param(fake.server_error(503), id="503"),
        pytest.param(fake.reset(), id="connection reset"),
    ],
)
def test_passing_faults_are_tried_again(judge_server, fault):
    if isinstance(fault, dict) and "reset" not in fault:
        fault = {**fault, "headers": {"Retry-After": "0.01"}}
    server = judge_server(lambda request, n: fault if n < 2 else "in the end")
    assert one(OpenAIChat("m", server.url, max_retries=2)).text == "in the end"
    assert len(server.requests) == 3


# --- how many at once ---------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 8])
def test_the_limit_of_calls_in_flight_is_reached_and_kept(judge_server, limit):
    # Each call waits until `limit` of them are there: passes only where they are parallel.
    barrier = threading.Barrier(limit)

    def script(request: dict, n_calls: int) -> fake.Answer:
        barrier.wait(30)
        return echo(request, n_calls)

    server = judge_server(script)
    chat = OpenAIChat("m", server.url, concurrency=limit)
    texts = [str(place) for place in range(5 * limit)]
    assert [r.text for r in answers(chat, [said(text) for text in texts])] == texts
    assert server.max_parallel == limit


def test_replies_come_as_they_arrive_not_in_order(judge_server):
    slow = threading.Event()

    def script(request: dict, n_calls: int) -> fake.Answer:
        if echo(request, n_calls) == "slow":
            slow.wait(30)
        return echo(request, n_calls)

    replies = OpenAIChat("m", judge_server(script).url).ask([said("slow"), said("quick")], GREEDY)
    assert next(replies)[0] == 1
    slow.set()
    assert [place for place, _ in replies] == [0]


def test_a_consumer_that_stops_early_ends_all_calls(judge_server):
    hang = threading.Event()

    def script(request: dict, n_calls: int) -> fake.Answer:
        if n_calls:
            hang.wait(30)
        return "hello"

    server = judge_server(script)
    replies = OpenAIChat("m", server.url, concurrency=2).ask([said("x")] * 100, GREEDY)
    next(replies)
    replies.close()
    assert mcq_threads() == []
    hang.set()
    assert len(server.requests) <= 3


def test_ctrl_c_hands_on_what_has_come_and_ends_the_rest(judge_server):
    asked, late = [], threading.Event()

    async def one(client: object, query: Query) -> int:
        asked.append(query)
        if len(asked) == 5:
            late.set()
            await asyncio.sleep(60)
        return len(asked)

    chat = OpenAIChat("m", judge_server(echo).url, concurrency=1)
    found = chat.each([said("x")] * 9, one)
    got = [next(found)]
    assert late.wait(30)  # a busy consumer: three more lie there, and one is on its way
    got.append(found.throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        got.extend(found)
    assert got == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert len(asked) == 5
    assert mcq_threads() == []


def test_no_questions_need_no_server():
    assert answers(OpenAIChat("m", "http://127.0.0.1:9/v1"), []) == []
    assert mcq_threads() == []


def test_it_works_inside_a_running_event_loop(judge_server):
    chat = OpenAIChat("m", judge_server(echo).url)

    async def notebook() -> list[Reply]:
        return answers(chat, [said("a"), said("b")])

    assert [reply.text for reply in asyncio.run(notebook())] == ["a", "b"]
    assert mcq_threads() == []


# --- secrets ------------------------------------------------------------------------


def test_the_key_goes_to_the_server_and_nowhere_else(judge_server, key):
    server = judge_server(echo)
    chat = OpenAIChat("m", server.url, api_key_env=key)
    one(chat)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(chat)
    assert KEY not in repr(vars(chat))


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_server_that_repeats_the_key_does_not_put_it_into_an_error(judge_server, key, status):
    # Late in a long page, so that a cut before the search would leave half of it.
    page = "x" * 290 + f" Bearer {KEY}"
    answer = {"status": status, "body": page, "headers": {"Content-Type": "text/html"}}
    server = judge_server(lambda request, n: answer)
    reply = one(OpenAIChat("m", server.url, api_key_env=key, max_retries=0))
    assert reply.error
    assert KEY[:6] not in reply.error


def test_credentials_in_the_url_are_not_shown(judge_server):
    server = judge_server(lambda request, n: fake.refused(401, "pw-4711 is wrong for anna"))
    chat = OpenAIChat("m", server.url.replace("//", "//anna:pw-4711@"), max_retries=0)
    assert "pw-4711" not in repr(chat)
    assert "pw-4711" not in one(chat).error
    assert chat.url == server.url
    assert chat.fingerprint == OpenAIChat("m", server.url).fingerprint


def test_a_named_key_must_be_there(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(SettingsError, match="NO_SUCH_KEY"):
        OpenAIChat("m", "http://localhost/v1", api_key_env="NO_SUCH_KEY")


def test_nothing_of_openai_s_is_sent_to_another_server(judge_server, monkeypatch):
    names = ["API_KEY", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "WEBHOOK_SECRET"]
    for name in names:
        monkeypatch.setenv(f"OPENAI_{name}", "openai-only")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: openai-only")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    server = judge_server(echo)
    assert one(OpenAIChat("m", server.url)).text == "hi"
    assert "openai-only" not in repr(server.headers)
    assert server.headers[0]["authorization"] == "Bearer none"


# --- identity -----------------------------------------------------------------------


def test_the_fingerprint_names_model_server_and_endpoint():
    chats = [
        OpenAIChat("m", "http://a/v1"),
        OpenAIChat("n", "http://a/v1"),
        OpenAIChat("m", "http://b/v1"),
        OpenAIChat("m", "http://a/v1", speaks_chat=False),
    ]
    assert len({chat.fingerprint for chat in chats}) == len(chats)
    assert all(isinstance(chat, Chat) and not chat.deterministic for chat in chats)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", ""])
def test_a_url_needs_its_scheme(url):
    with pytest.raises(SettingsError, match="http://"):
        OpenAIChat("m", url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param("host:8000/v1", "http:// or https://", id="no scheme"),
        pytest.param("http://me:s3/cret@host:1/v1", "no number", id="a slash in a password"),
        pytest.param("http://host:eighty/v1", "no number", id="a word for a port"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        OpenAIChat("m", url)
    assert "cret" not in str(caught.value)
