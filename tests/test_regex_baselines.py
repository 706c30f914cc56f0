"""Published parsers, wrong in the documented ways."""

from __future__ import annotations

import pytest
from finishing import finishes

from mlflow_mcq.grader_settings import RegexSettings
from mlflow_mcq.graders.regex import (
    ALL_REGEX_GRADERS,
    REGEX_GRADERS,
    answer_is_choice,
    first_upper_choice,
    last_bounded_choice,
    mmlu_pro_choice,
)

FOUR = tuple("ABCD")
TEN = tuple("ABCDEFGHIJ")
TWELVE = tuple(str(n) for n in range(1, 13))


@pytest.mark.parametrize(
    ("parse", "reply", "labels", "slot"),
    [
        pytest.param(first_upper_choice, "it is (C)", FOUR, 2, id="first capital: right"),
        pytest.param(first_upper_choice, "Don't ask", FOUR, 3, id="first capital: of a word"),
        pytest.param(first_upper_choice, "b", FOUR, None, id="first capital: blind to small ones"),
        pytest.param(first_upper_choice, "12", TWELVE, 0, id="first capital: one character only"),
        pytest.param(first_upper_choice, "x", ("AA", "AB"), None, id="first capital: none to find"),
        pytest.param(last_bounded_choice, "A rope? No: C", FOUR, 2, id="last: after reasoning"),
        pytest.param(last_bounded_choice, "C. Many say A.", FOUR, 0, id="last: an aside"),
        pytest.param(last_bounded_choice, "C, since I tried", TEN, 8, id="last: the pronoun"),
        pytest.param(last_bounded_choice, "3, not 12", TWELVE, 11, id="last: two digits"),
        pytest.param(last_bounded_choice, "none", FOUR, None, id="last: nothing"),
        pytest.param(last_bounded_choice, "x", (), None, id="last: no labels"),
        pytest.param(answer_is_choice, "the answer is (D).", FOUR, 3, id="answer is: brackets"),
        pytest.param(answer_is_choice, "the answer is Cold", FOUR, 2, id="answer is: no bound"),
        pytest.param(answer_is_choice, "answer is **B**", FOUR, None, id="answer is: bold missed"),
        pytest.param(answer_is_choice, "answer is:\nB", FOUR, None, id="answer is: colon missed"),
        pytest.param(answer_is_choice, "answer is A. No, answer is B", FOUR, 0, id="first wins"),
        pytest.param(answer_is_choice, "answer is 12", TWELVE, 11, id="answer is: longest label"),
        pytest.param(answer_is_choice, "B", FOUR, None, id="answer is: a bare label is missed"),
        pytest.param(mmlu_pro_choice, "answer is B. Answer: C, D", FOUR, 1, id="chain: step 1"),
        pytest.param(mmlu_pro_choice, "Answer: C, never D", FOUR, 2, id="chain: step 2"),
        pytest.param(mmlu_pro_choice, "answer:\n\nB, then D", FOUR, 1, id="chain: next line"),
        pytest.param(mmlu_pro_choice, "Answer: A Answer: B", FOUR, 1, id="chain: last of a line"),
        pytest.param(mmlu_pro_choice, "Answer: A\nAnswer: B", FOUR, 0, id="chain: first line"),
        pytest.param(mmlu_pro_choice, "B\nor rather D, yes", FOUR, 3, id="chain: step 3"),
        pytest.param(mmlu_pro_choice, "Sorry, I cannot say", TEN, 8, id="chain: refusal is I"),
        pytest.param(mmlu_pro_choice, "no idea", TEN, None, id="chain: nothing, and no lottery"),
    ],
)  # fmt: skip
def test_what_a_published_parser_would_have_said(parse, reply, labels, slot):
    assert parse(reply, labels) == slot


def test_two_run_unless_others_are_named():
    assert [*REGEX_GRADERS] == ["regex_naive", "regex_bounded"] == [*RegexSettings().parsers]
    assert [*ALL_REGEX_GRADERS] == [*RegexSettings(parsers="all").parsers]
    assert {*REGEX_GRADERS} < {*ALL_REGEX_GRADERS}
    assert all(grader.name == name for name, grader in ALL_REGEX_GRADERS.items())
    assert all(grader.parse.__doc__ for grader in ALL_REGEX_GRADERS.values())


@pytest.mark.parametrize("name", ALL_REGEX_GRADERS)
@pytest.mark.parametrize("unit", ["answer ", "Answer:", "A ", "answer is ", "\n", "x"])
def test_a_megabyte_is_read_in_linear_time(name, unit):
    parse = ALL_REGEX_GRADERS[name].parse
    assert finishes(lambda text: parse(text, FOUR), unit * (1_000_000 // len(unit)))
