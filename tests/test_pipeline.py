"""Whoever answers or reads gives each row back once, in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from mlflow_mcq.errors import ModelError
from mlflow_mcq.pipeline import generate, grade, requests_for
from mlflow_mcq.records import Generation, Grade, Item, Reply, Request
from mlflow_mcq.settings import Settings

SETTINGS = Settings(orientations="as-is")
ITEMS = [Item(name, f"Which {name}?", ("sun", "stone"), 0) for name in "abc"]
REQUESTS = requests_for(ITEMS, SETTINGS, chat=False)
STRANGER = requests_for([Item("z", "Which z?", ("sun", "stone"), 0)], SETTINGS, chat=False)[0]

Change = Callable[[list[Any], Any], Iterable[Any]]


def answer(request: Request) -> Generation:
    return Generation(request.prompt, request.repeat, Reply("A"), "fake")


def reading(generation: Generation) -> Grade:
    return Grade.of_choice(generation, "fake", 0)


class Engine:
    """Answers, and does to the rows what a test wants."""

    fingerprint = "fake"
    speaks_chat = False

    def __init__(self, change: Change) -> None:
        self._change = change

    def generate(self, requests: Sequence[Request], decoding: object) -> Iterator[Generation]:
        yield from self._change([answer(one) for one in requests], answer(STRANGER))


class Grader:
    """Reads, and does to the rows what a test wants."""

    name = "fake"

    def __init__(self, change: Change) -> None:
        self._change = change

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        yield from self._change([reading(one) for one in generations], reading(answer(STRANGER)))


def generated(change: Change) -> list[str]:
    return [one.prompt.item.id for one in generate(Engine(change), REQUESTS, SETTINGS)]


def graded(change: Change) -> list[str]:
    answers = [answer(one) for one in REQUESTS]
    return [one.generation.prompt.item.id for one in grade(Grader(change), answers)]


BOTH = pytest.mark.parametrize("run", [generated, graded])


@BOTH
def test_rows_come_in_the_order_in_which_they_were_asked_for(
    run: Callable[[Change], list[str]],
) -> None:
    assert run(lambda rows, stranger: rows[::-1]) == ["a", "b", "c"]


@BOTH
@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda rows, other: rows[:1], "lost 2 of 3 rows", id="lost"),
        pytest.param(lambda rows, other: [*rows, rows[1]], "one row twice.*'b'", id="twice"),
        pytest.param(lambda rows, other: [*rows, other], "was not given.*'z'", id="a stranger's"),
        pytest.param(lambda rows, other: [], "lost 3 of 3 rows", id="nothing"),
    ],
)
def test_rows_that_are_lost_doubled_or_not_asked_for_are_refused(
    run: Callable[[Change], list[str]], change: Change, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        run(change)


def test_whoever_watches_is_shown_each_answer_as_it_comes() -> None:
    shown: list[str] = []
    engine = Engine(lambda rows, stranger: rows[::-1])
    generate(engine, REQUESTS, SETTINGS, lambda one: shown.append(one.prompt.item.id))
    assert shown == ["c", "b", "a"]
