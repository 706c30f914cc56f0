"""The strict rule over lists of labels: nothing invented, and no hedge taken for a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.strict_set import SetReading, read_strict_set, strict_choices
from mlflow_mcq.orientations import letters_for

TREES = ("birch", "larch", "oak", "pine")


@pytest.mark.parametrize(
    "reply",
    [
        *("B, D", "B,D", "B; D", "B、D", "B，D", "D, B", "B, D.", "b, d", "(B), (D)", "(B)(D)"),
        *("B and D", "B und D", "B et D", "B en D", "B och D", "B y D", "B e D", "B i D", "B и D"),
        *("B和D", "B & D", "B, and D", "B D", "BD", "B\nD", "- B\n- D", "(B)\n(D)", "B.\nD."),
        *('["B", "D"]', '["B","D"]', "[B, D]", "(B, D)", "{B, D}", "“B, D”", "`B`, `D`"),
        *("**B, D**", "**B** and **D**", r"\boxed{B, D}", r"$\boxed{BD}$", "Answer: B, D"),
        *("**Answer:** B and D", "The answer is B, D.", "答案：B、D", "Die Antwort ist B und D"),
        "<think>A, C? No.</think>\nB, D",
    ],
)
def test_bare_lists_are_read(reply: str) -> None:
    assert read_strict_set(reply, TREES) == SetReading((1, 3), "strict")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("B or D", id="a hedge"),
        pytest.param("B/D", id="a slash may be a hedge"),
        pytest.param("B, C or D", id="the labels of the prompt"),
        pytest.param("either B and D or C", id="two sets"),
        pytest.param("B, not D", id="a rejection"),
        pytest.param("not B, D", id="a rejection before"),
        pytest.param("B-D", id="a range"),
        pytest.param("B, E", id="a label that was not shown"),
        pytest.param("B, B", id="one label twice"),
        pytest.param("B, d", id="two cases"),
        pytest.param("B, D because they lose their leaves", id="prose after"),
        pytest.param("I choose B, D", id="prose before"),
        pytest.param("B, D\n\nA is wrong", id="a sentence below"),
        pytest.param("BAD", id="a word"),
        pytest.param("CAB", id="another word"),
        pytest.param("bd", id="glued small letters"),
        pytest.param("b d", id="small letters with a blank"),
        pytest.param("B. D.", id="initials"),
        pytest.param("B) larch, D) pine", id="labels with texts are the judge's"),
        pytest.param("larch, pine", id="texts are the judge's"),
        pytest.param("B, oak", id="a label and another option's text"),
        pytest.param("B) oak", id="a label on another option's text"),
        pytest.param("B,D,", id="a list that goes on"),
        pytest.param("B, D and", id="a list that breaks off"),
        pytest.param('["B", 3]', id="a list of more than texts"),
        pytest.param('["B", ["D"]]', id="a list in a list"),
        pytest.param("(B, D", id="an open bracket"),
        pytest.param("A, " * 300 + "B", id="a long one"),
    ],
)
def test_what_may_mean_something_else_is_left_to_the_judge(reply: str) -> None:
    assert read_strict_set(reply, TREES) == SetReading((), "")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(None, "empty", id="no text"),
        pytest.param("  ", "empty", id="blank"),
        pytest.param("<think>B, D", "unfinished_thought", id="thinking that never ended"),
    ],
)
def test_no_answer_is_settled(reply: str | None, reason: str) -> None:
    assert read_strict_set(reply, TREES) == SetReading((), reason)


@pytest.mark.parametrize("reply", ["B", "B, D", "larch", "(B)"])
def test_a_reply_cut_at_the_token_limit_may_have_had_more_to_say(reply: str) -> None:
    assert read_strict_set(reply, TREES).settled
    assert not read_strict_set(reply, TREES, cut=True).settled


@pytest.mark.parametrize(
    ("reply", "options", "labels"),
    [
        pytest.param("A and B", ("A and B", "C", "x"), None, id="a list that is an option"),
        pytest.param("A, B", ("B", "tin", "zinc"), None, id="label A with its own text B"),
        pytest.param(
            "salt and iron", ("salt and iron", "salt", "iron"), None, id="texts in a text"
        ),
        pytest.param("1, 3", ("x", "y", "z"), ("1", "2", "3"), id="a number with a comma"),
        pytest.param("13", ("x", "y", "z"), ("1", "2", "3"), id="a number"),
        pytest.param("A, B", ("x", "y", "z"), (), id="letters that nobody showed"),
        pytest.param("A e I", tuple("qrstuvwxy"), None, id="two or three of nine"),
        pytest.param("HI", tuple("qrstuvwxy"), None, id="a greeting"),
    ],
)
def test_options_and_labels_that_make_a_list_unclear(reply, options, labels) -> None:
    assert strict_choices(reply, options, labels) == ()


def test_labels_of_every_kind_make_lists() -> None:
    assert strict_choices("(1), (3)", TREES, ("1", "2", "3", "4")) == (0, 2)
    assert strict_choices("ii, iv", TREES, ("(i)", "(ii)", "(iii)", "(iv)")) == (1, 3)
    assert strict_choices("AA, AB", [f"item {n}" for n in range(28)]) == (26, 27)
    assert strict_choices("ア、ウ", TREES, ("ア", "イ", "ウ", "エ")) == (0, 2)


sets = st.integers(2, 8).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1), st.randoms())
)
joined = st.sampled_from([", ", ",", "; ", " and ", " ", "\n", "\n- "])


@given(sets, joined)
def test_a_list_of_labels_names_exactly_these(case, between: str) -> None:
    n, slots, draw = case
    names = [letters_for(n)[slot] for slot in slots]
    draw.shuffle(names)
    read = strict_choices(between.join(names), [f"option {k}" for k in range(n)])
    assert read == tuple(sorted(slots))


@given(st.text(alphabet="ABCDEabcde,;/ .-()[]\n\"'*&orand", max_size=24))
def test_what_is_settled_holds_nothing_but_labels_and_what_joins_them(reply: str) -> None:
    found = strict_choices(reply, TREES)
    words = "".join(char if char.isalpha() else " " for char in reply).split()
    capitals = [word for word in words if word.lower() not in ("and", "e")]
    if len(found) > 1:
        assert sorted("".join(capitals).upper()) == ["ABCD"[slot] for slot in found]
        assert "/" not in reply
        assert "or" not in words


@given(st.text(max_size=30))
def test_one_option_is_read_as_by_the_rule_for_one(reply: str) -> None:
    found = strict_choices(reply, TREES)
    if len(found) == 1:
        assert read_strict(reply, TREES).slot == found[0]
