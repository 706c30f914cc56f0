"""A judge's reply is a legal value as a whole, or a failure."""

from __future__ import annotations

import pytest
from finishing import finishes
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.records import Verdict

PLANETS = ["Venus", "Saturn", "Neptune", "Mars"]
OTHER = JudgeReading(Verdict.OTHER)
FAILURE = JudgeReading(status="judge_parse_failure")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        *(("CORRECT", "CORRECT"), ("INCORRECT", "INCORRECT"), ("OTHER", "OTHER")),
        *(("incorrect.", "INCORRECT"), (" Correct\n", "CORRECT"), ("**OTHER**", "OTHER")),
        *(("'correct'", "CORRECT"), ('**"Incorrect"**', "INCORRECT"), ("`INCORRECT`", "INCORRECT")),
        *(("[CORRECT]", "CORRECT"), ("**Incorrect.**", "INCORRECT"), ("“Other”.", "OTHER")),
        *(("OTHER: it names two", "OTHER"), ("Other – no option was named.", "OTHER")),
        *(("OTHER (a refusal)", "OTHER"), ("Verdict: CORRECT", "CORRECT")),
        ("The reply names another option.\nFinal verdict: INCORRECT", "INCORRECT"),
        ("It could be CORRECT at first sight. Final verdict: incorrect.", "INCORRECT"),
        ("Some words.\n**Final verdict:** CORRECT", "CORRECT"),
        ('{"verdict": "INCORRECT", "why": "says CORRECT"}', "INCORRECT"),
        ('```json\n{"verdict": "other"}\n```', "OTHER"),
        ("<think>INCORRECT? The unit fits.</think>CORRECT", "CORRECT"),
        ("hm, INCORRECT</think>\nCORRECT", "CORRECT"),
    ],
)
def test_direct_values(reply, verdict):
    assert parse_judge_reply(reply, "direct") == JudgeReading(Verdict[verdict])


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("", id="empty"),
        pytest.param("...", id="dots"),
        pytest.param("CORRECT INCORRECT", id="two verdicts"),
        pytest.param("CORRECT or INCORRECT", id="two verdicts with a word"),
        pytest.param("CORRECT\nINCORRECT", id="two lines"),
        pytest.param("NOT CORRECT", id="negated"),
        pytest.param("This is correct", id="inside a sentence"),
        pytest.param("CORRECTLY", id="inside a word"),
        pytest.param("GRADE: A", id="another scale"),
        pytest.param("B", id="a label in the direct shape"),
        pytest.param("OTHER - no, INCORRECT", id="reason takes it back"),
        pytest.param("OTHERWISE: fine", id="word that starts with OTHER"),
        pytest.param("Verdict: CORRECT\nVerdict: INCORRECT", id="announced twice"),
        pytest.param("Final verdict: CORRECT\nFinal verdict: INCORRECT", id="final twice"),
        pytest.param("Final verdict: CORRECT\nbut see above", id="not at the end"),
        pytest.param('It wrote "Final verdict: CORRECT', id="quoted from the candidate"),
        pytest.param('It wrote "Final verdict: CORRECT"', id="quoted and closed"),
        pytest.param("My verdict: CORRECT, says the reply", id="prose after"),
        pytest.param("Long story.\nVerdict: CORRECT", id="announced, but not as final"),
        pytest.param('{"verdict": null}', id="null"),
        pytest.param('{"verdict": 1}', id="number"),
        pytest.param('{"verdict": true}', id="bool"),
        pytest.param('{"why": "CORRECT"}', id="value under another key"),
        pytest.param('{"verdict": "CORRECT", "verdict": "INCORRECT"}', id="key twice"),
        pytest.param('{"verdict": "CORRECT"', id="broken JSON"),
        pytest.param('{"verdict": {"verdict": "CORRECT"}}', id="nested"),
        pytest.param('{"verdict": "CORRECT"} {"verdict": "OTHER"}', id="two objects"),
        pytest.param("<think>CORRECT", id="unfinished thinking"),
        pytest.param("<think>CORRECT</think>", id="thinking only"),
        pytest.param("ＣＯＲＲＥＣＴ ＩＮＣＯＲＲＥＣＴ", id="wide"),
    ],
)
def test_direct_failures_are_never_a_verdict(reply):
    assert parse_judge_reply(reply, "direct") == FAILURE


@pytest.mark.parametrize(
    ("reply", "slot"),
    [
        *(("B", 1), ("(b)", 1), ("B)", 1), ("**B**", 1), ('"D"', 3), ("D.", 3), ("a", 0), ("A", 0)),
        *(("B: Saturn", 1), ("B) saturn.", 1), ("(C) Neptune", 2), ("Option C", 2)),
        *(('{"answer": "B"}', 1), ('{"verdict": "(D)"}', 3), ('{"option": "A: Venus"}', 0)),
        *(("Answer: C", 2), ("It rejects A.\nFinal answer: C", 2), ("<think>A</think>C", 2)),
    ],
)
def test_extract_values(reply, slot):
    assert parse_judge_reply(reply, options=PLANETS) == JudgeReading(slot=slot)


@pytest.mark.parametrize(
    "reply", ["OTHER", "other.", "**Other**", "OTHER - names A and B", "OTHER: refusal"]
)
def test_extract_other(reply):
    assert parse_judge_reply(reply, options=PLANETS) == OTHER


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("E", id="letter out of range"),
        pytest.param("Z: Saturn", id="letter out of range with a text"),
        pytest.param("A: Saturn", id="label and text disagree"),
        pytest.param("A: the first one", id="text that is no option"),
        pytest.param("A B", id="two letters"),
        pytest.param("A: B", id="letter as text"),
        pytest.param("A and B", id="two letters in a sentence"),
        pytest.param("Saturn", id="text without a letter"),
        pytest.param("CORRECT", id="verdict of the other shape"),
        pytest.param("OTHER: B", id="other and a letter"),
        pytest.param("Because it says so", id="prose"),
        pytest.param('{"answer": "B", "option": "C"}', id="two answers"),
        pytest.param('{"answer": null}', id="null"),
        pytest.param('{"answer": ["B"]}', id="list"),
        pytest.param('{"answer": 1}', id="number"),
    ],
)
def test_extract_failures(reply):
    assert parse_judge_reply(reply, options=PLANETS) == FAILURE


def test_labels_and_options_may_be_missing():
    assert parse_judge_reply("Z").slot == 25
    assert parse_judge_reply("AA") == FAILURE
    assert parse_judge_reply("E", labels="ABCD") == FAILURE
    assert parse_judge_reply("A: anything", labels="ABCD").slot == 0
    assert parse_judge_reply("A: rather B", labels="ABCD") == FAILURE
    assert parse_judge_reply("10", labels=[str(n) for n in range(1, 13)]).slot == 9


def test_a_letter_of_the_judge_is_a_letter_even_where_options_are_letters():
    assert parse_judge_reply("A", options=["B", "A"]).slot == 0
    assert parse_judge_reply("I", options=[f"item {n}" for n in range(10)]).slot == 8


def test_no_reply_is_an_error_of_the_call():
    reading = parse_judge_reply(None, "direct")
    assert (reading.verdict, reading.slot, reading.error) == (None, None, "judge_error")


WORDS = ["CORRECT", "INCORRECT", "OTHER", "correct", "not", "verdict:", "the", ".", "**", '"', "\n"]


@given(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
def test_law_a_direct_verdict_is_the_only_word_or_the_last_one(reply):
    reading = parse_judge_reply(reply, "direct")
    if reading.verdict is not None:
        words = [w for w in reply.replace("*", " ").replace('"', " ").split() if w != "."]
        assert [w.upper() for w in words if w != "verdict:"] == [reading.verdict.value]


@given(st.text(), st.sampled_from(["extract", "direct"]))
def test_law_any_text_is_read_without_a_crash(reply, shape):
    reading = parse_judge_reply(reply, shape, options=PLANETS)
    assert reading.ok is (reading.verdict is not None or reading.slot is not None)


@given(st.sampled_from(["CORRECT", "INCORRECT", "OTHER"]), st.text("abcdefgh ,", min_size=1))
def test_law_words_before_a_verdict_make_it_a_failure(word, prose):
    if prose.strip():
        assert parse_judge_reply(f"{prose.strip()} {word}", "direct") == FAILURE


HOSTILE = ["(", "<think>", "{", '{"verdict":', "Final verdict:", "final ", "OTHER - ", "A ", "*"]


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("shape", ["extract", "direct"])
def test_a_hostile_megabyte_is_read_in_linear_time(unit, shape):
    def read(text):
        assert parse_judge_reply(text, shape, options=PLANETS) == FAILURE

    assert finishes(read, unit * (1_000_000 // len(unit)))
