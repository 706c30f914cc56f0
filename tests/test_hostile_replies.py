"""No reply, however nasty, makes a reader hang; and what a long one says is still found."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from finishing import finishes
from hostile_shapes import READERS, shapes
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.mentions import each_mention, last_mention, mentions
from mlflow_mcq.graders.spans import extract_span

SIZE = 100_000


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return shapes(SIZE)


@pytest.mark.parametrize("reader", READERS)
def test_no_shape_makes_a_reader_hang(reader: str, texts: dict[str, str]) -> None:
    assert [name for name, text in texts.items() if not finishes(READERS[reader], text)] == []


def test_a_reader_that_hangs_is_seen() -> None:
    assert not finishes(re.compile(r"(?:a+)+b").match, "a" * 60, limit=0.1)


@pytest.mark.parametrize("noise", ["x", "(", "tin ", ". ", "\n", "<", "\u200b", "是"], ids=ascii)
@pytest.mark.parametrize(
    ("end", "text", "level"),
    [
        pytest.param(" The answer is iron.", "iron", 1, id="answer is"),
        pytest.param(" Answer: iron", "iron", 2, id="answer colon"),
        pytest.param(" It must be iron", "iron", 3, id="named"),
    ],
)
def test_what_is_said_after_much_noise_is_found(
    noise: str, end: str, text: str, level: int
) -> None:
    found = extract_span(noise * (SIZE // len(noise)) + end, ("iron", "gold", "tin"))
    assert found is not None
    assert (found.text, found.level) == (text, level)


@pytest.mark.parametrize("before", [0, 1, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("after", [0, 1, 4094, 4095, 4096, 20_000])
def test_the_last_mention_may_stand_anywhere(before: int, after: int) -> None:
    found = last_mention("- " * before + "iron" + " -" * after, ("iron", "tin"))
    assert found is not None
    assert found.places == (0,)


@given(
    st.text("aAb .,:1-(é是ア\u0301_", max_size=40),
    st.lists(st.text("ab .1(é是ア\u0301_", min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_the_last_mention_is_the_last_of_all(text: str, options: Sequence[str]) -> None:
    found = mentions(text, options)
    due = max(found, key=lambda one: (one.end, -one.start)) if found else None
    assert last_mention(text, options) == due
    assert [*each_mention(text, options)] == found
