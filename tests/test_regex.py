"""The baselines are wrong in the documented ways, and only in those."""

from __future__ import annotations

import pytest

from mlflow_mcq.doors import Grader
from mlflow_mcq.graders.regex import REGEX_GRADERS, bounded_choice, naive_choice
from mlflow_mcq.records import Generation, Item, Orientation, Prompt, Reply, Verdict

LABELS = ("A", "B", "C", "D")


@pytest.mark.parametrize(
    ("reply", "slot"),
    [
        pytest.param("B", 1, id="bare"),
        pytest.param("it is d", 3, id="lower case"),
        pytest.param("Answer: D", 0, id="A of Answer"),
        pytest.param("Under the bridge", 3, id="d of Under"),
        pytest.param("I'm sorry, no", None, id="none of the letters"),
        pytest.param("", None, id="empty"),
        pytest.param("À", None, id="no accent folding"),
    ],
)
def test_naive_takes_the_first_character_among_the_labels(reply, slot):
    assert naive_choice(reply, LABELS) == slot


@pytest.mark.parametrize(
    ("reply", "slot"),
    [
        pytest.param("(B)", 1, id="bracketed"),
        pytest.param("Answer: D", 3, id="A of Answer is no word"),
        pytest.param("A cat, so C", 0, id="article"),
        pytest.param("Not B but C", 1, id="rejected label"),
        pytest.param("it is d", None, id="lower case is not seen"),
        pytest.param("ABC", None, id="inside a word"),
    ],
)
def test_bounded_takes_the_first_label_that_is_a_word(reply, slot):
    assert bounded_choice(reply, LABELS) == slot


def test_labels_of_several_characters():
    numbers = tuple(str(n) for n in range(1, 13))
    assert bounded_choice("number 12", numbers) == 11
    assert naive_choice("number 12", numbers) == 0
    assert naive_choice("x", ("AA", "BB")) is None
    assert naive_choice("]", ("]", "^")) == 0
    assert bounded_choice("x", ()) is None


def _generation(reply: Reply, labels: tuple[str, ...] = LABELS) -> Generation:
    item = Item("q", "Which?", ("w", "x", "y", "z"), gold=0)
    prompt = Prompt(item, Orientation(1, "rot1", (1, 2, 3, 0)), "letters", "", labels)
    return Generation(prompt, 0, reply)


@pytest.mark.parametrize("name", REGEX_GRADERS)
@pytest.mark.parametrize("labels", [LABELS, ()], ids=["lettered", "no letters shown"])
def test_slot_is_translated_to_the_option_of_the_data(name, labels):
    grader = REGEX_GRADERS[name]
    assert isinstance(grader, Grader)
    grades = [*grader.grade([_generation(Reply("D"), labels), _generation(Reply("?"), labels)])]
    assert [(g.verdict, g.choice, g.reason) for g in grades] == [
        (Verdict.CORRECT, 0, "regex"),
        (Verdict.OTHER, None, "no_match"),
    ]
    assert {g.grader for g in grades} == {name}


def test_without_a_text_there_is_nothing_to_match():
    grader = REGEX_GRADERS["regex_naive"]
    [broken, long] = grader.grade(
        [
            _generation(Reply(None, "timeout after 60 s")),
            _generation(Reply(None, "too long", finish_reason="prompt_too_long")),
        ]
    )
    assert (broken.verdict, broken.error) == (None, "no generation: timeout after 60 s")
    assert (long.verdict, long.reason) == (Verdict.OTHER, "prompt_too_long")
