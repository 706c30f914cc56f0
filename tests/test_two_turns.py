"""Two turns: reason first, then see the options; every row keeps exactly what was sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.pipeline import generate, requests_for
from mlflow_mcq.records import Decoding, Item, Query, Reply
from mlflow_mcq.settings import read_settings

ITEMS = [
    Item("metal", "Which metal is liquid?", ("iron", "mercury", "tin"), 1),
    Item("star", "Which is the nearest star?", ("Sirius", "the Sun"), 1),
]


class Thinker:
    """A chat that reasons about a question and picks the first option afterwards."""

    fingerprint, deterministic = "thinker", True

    def __init__(self, speaks_chat: bool = True, fails: str = "nowhere") -> None:
        self.speaks_chat = speaks_chat
        self.asked: list[Query] = []
        self._fails = fails

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        # Backwards: answers come in any order.
        for place, query in reversed([*enumerate(queries)]):
            self.asked.append(query)
            text = query.content if isinstance(query.content, str) else query.content[-1].content
            if self._fails in text:
                yield place, Reply(None, "refused by the server")
            elif "afterwards" in text and not text.endswith("Answer:"):
                yield place, Reply(f"Thought {len(self.asked)}.", finish_reason="eos")
            else:
                yield place, Reply("A")


def run(chat: Thinker, **more):
    settings = read_settings({"protocol": "options-last", "orientations": "rotations", **more})
    requests = requests_for(ITEMS, settings, chat=chat.speaks_chat)
    return requests, generate(ChatEngine(chat), requests, settings)


@pytest.mark.parametrize("speaks_chat", [True, False])
def test_each_row_ends_with_the_options_and_holds_the_first_reply(speaks_chat: bool) -> None:
    chat = Thinker(speaks_chat)
    requests, answers = run(chat)
    assert [a.key for a in answers] == [r.key for r in requests]
    sent = [query.content for query in chat.asked]
    for answer in answers:
        assert answer.text == "A"
        assert answer.prompt.content in sent
        assert answer.prompt.labels == ("A", "B", "C")[: len(answer.prompt.item.options)]
        text = str(answer.prompt.content)
        assert "Thought " in text
        assert all(option in text for option in answer.prompt.item.options)


@pytest.mark.parametrize("speaks_chat", [True, False])
def test_examples_stand_before_both_turns(speaks_chat: bool) -> None:
    rows = [
        {"question": f"Example {n}?", "options": ["p", "q"], "answer": "A", "why": f"Since {n}."}
        for n in range(3)
    ]
    shots = {"rows": rows, "k": 2, "rationale": "why"}
    chat = Thinker(speaks_chat)
    _, answers = run(chat, few_shot=shots)
    for answer in answers:
        text = str(answer.prompt.content)
        assert [text.count(word) for word in ("Example ", "Since ", "Thought ")] == [2, 2, 1]
        assert text.rindex("Since ") < text.index(answer.prompt.item.question)


def test_the_first_turn_is_asked_once_for_all_orientations_of_an_item() -> None:
    chat = Thinker()
    _, answers = run(chat, repeats=2)
    firsts = [query for query in chat.asked if len(query.content) == 1]
    assert len(firsts) == len(ITEMS) * 2
    thoughts = {(a.prompt.item.id, a.repeat): set() for a in answers}
    for answer in answers:
        thoughts[answer.prompt.item.id, answer.repeat].add(answer.prompt.content[1].content)
    assert all(len(replies) == 1 for replies in thoughts.values())
    assert len({reply for replies in thoughts.values() for reply in replies}) == 4


def test_samples_of_the_first_turn_have_seeds_of_their_own() -> None:
    chat = Thinker()
    run(chat, repeats=3, temperature=1.0)
    seeds = [query.seed for query in chat.asked if len(query.content) == 1]
    assert len(set(seeds)) == len(seeds) == 6


def test_a_first_turn_that_fails_costs_its_rows_and_no_others() -> None:
    chat = Thinker(fails="metal is liquid")
    _, answers = run(chat)
    lost = [answer for answer in answers if answer.prompt.item.id == "metal"]
    assert [answer.reply.error for answer in lost] == ["first turn: refused by the server"] * 3
    assert all(len(answer.prompt.content) == 1 for answer in lost)
    assert [a.text for a in answers if a.prompt.item.id == "star"] == ["A", "A"]
    assert not any(len(q.content) == 3 and "metal" in q.content[0].content for q in chat.asked)


def test_a_second_turn_that_fails_is_an_error_of_its_row() -> None:
    chat = Thinker(fails="A) the Sun")
    _, answers = run(chat)
    errors = {(a.prompt.item.id, a.prompt.orientation.index): a.reply.error for a in answers}
    assert errors["star", 1] == "refused by the server"
    assert [key for key, error in errors.items() if error] == [("star", 1)]


def test_nothing_answered_at_all_is_no_measurement() -> None:
    with pytest.raises(ModelError):
        run(Thinker(fails=""))
