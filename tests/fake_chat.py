"""A scripted judge and rows for it to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mlflow_mcq.doors import Chat
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.protocols import PROTOCOLS
from mlflow_mcq.records import (
    Conversation,
    Decoding,
    Generation,
    Item,
    Orientation,
    Query,
    Reply,
)

PLANETS = ("Venus", "Saturn", "Neptune", "Mars")
ROTATED = Orientation(1, "rot1", (1, 2, 3, 0))  # A) Saturn B) Neptune C) Mars D) Venus


def generation(
    text: str | None,
    *,
    protocol: str = "letters",
    item: Item | None = None,
    orientation: Orientation = ROTATED,
    **reply: object,
) -> Generation:
    item = item or Item("q1", "Which planet shows rings?", PLANETS, gold=1)
    prompt = PROTOCOLS[protocol](item, orientation, chat=True)
    return Generation(prompt, 0, Reply(text, **reply))


class ScriptedChat:
    """Answers by a function of (last message, attempt) and remembers what it was asked."""

    def __init__(
        self,
        answer: Callable[[str, int], str | Reply],
        deterministic: bool = False,
        speaks_chat: bool = True,
        fingerprint: str = "scripted",
    ) -> None:
        self.fingerprint = fingerprint
        self.answer, self.deterministic, self.speaks_chat = answer, deterministic, speaks_chat
        self.asked: list[Query] = []
        self.decodings: set[Decoding] = set()

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        self.decodings.add(decoding)
        for place in reversed(range(len(queries))):  # out of order on purpose
            query = queries[place]
            self.asked.append(query)
            reply = self.answer(last_message(query.content), query.seed)
            yield place, reply if isinstance(reply, Reply) else Reply(reply)


def last_message(content: Conversation) -> str:
    return content if isinstance(content, str) else content[-1].content


def always(text: str | Reply) -> Callable[[str, int], str | Reply]:
    return lambda asked, attempt: text


def settings(**changed: object) -> JudgeSettings:
    return JudgeSettings(model="m", base_url="http://host/v1", **changed)


def judge(chat: Chat, **changed: object) -> JudgeGrader:
    return JudgeGrader(chat, settings(**changed))


PROSE = "It is Saturn, with the rings."
