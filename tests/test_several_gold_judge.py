"""The judge on items with several right options: what it is asked, and how it is read."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from fake_chat import ScriptedChat, always, generation, judge, last_message, settings
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders import parse_judge_reply
from mlflow_mcq.graders.judge_examples_all import EXAMPLES_FOR_ALL
from mlflow_mcq.graders.judge_prompt import judge_conversation
from mlflow_mcq.graders.judge_reply import JudgeReading
from mlflow_mcq.graders.judge_wording import ASKED
from mlflow_mcq.graders.seat import seats_of
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import Generation, Item, Orientation, Verdict

METALS = ("iron", "mercury", "tin", "gallium")
MELTS = Item("melts", "Which metal melts in the hand?", METALS, 1, also_right=(3,))
ALL = replace(MELTS, policy="all")
TURNED = Orientation(2, "rot2", (2, 3, 0, 1))  # A) tin B) gallium C) iron D) mercury
WORDY = "Two of them do: gallium, and of course mercury."


def row(item: Item = ALL, text: str = WORDY, protocol: str = "letters") -> Generation:
    return generation(text, item=item, orientation=TURNED, protocol=protocol)


def asked(row: Generation, shape: str = "extract", **how: object) -> str:
    content = judge_conversation(row, shape, True, **how)  # type: ignore[arg-type]
    return "\n".join(message.content for message in content)


# --- what it is asked -----------------------------------------------------------------


def test_a_judge_that_extracts_is_asked_for_every_option_named() -> None:
    text = asked(row())
    assert text.endswith(
        "Which options did the candidate choose? Answer with all of their letters (A, B, C, D), "
        "separated by commas, or with OTHER, and nothing else."
    )
    assert "chooses several options or none" not in text  # that is no fault here
    assert "The right option" not in text


def test_a_judge_that_extracts_reads_any_of_several_as_one_of_one() -> None:
    single = replace(MELTS, also_right=())
    for rationale in (True, False):
        assert asked(row(MELTS), rationale=rationale) == asked(row(single), rationale=rationale)


@pytest.mark.parametrize(
    ("item", "head", "word"),
    [
        pytest.param(MELTS, "The right options, any of which will do:", "one of the", id="any"),
        pytest.param(ALL, "The right options, all of them:", "exactly the", id="all"),
    ],
)
@pytest.mark.parametrize("rationale", [True, False])
def test_a_judge_that_is_given_the_gold_is_given_all_of_it(item, head, word, rationale) -> None:
    text = asked(row(item), "direct", rationale=rationale)
    case = text[text.rindex("Which metal melts") :]
    assert f"{head}\nB) gallium\nD) mercury\n\nDid the candidate choose {word} right" in case


@pytest.mark.parametrize("shape", ["extract", "direct"])
@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("protocol", ["letters", "letters-reasoned", "dashes"])
def test_what_its_examples_answer_is_legal(shape, chat, protocol) -> None:
    content = judge_conversation(row(protocol=protocol), shape, chat)
    if isinstance(content, str):
        answers = re.findall(r"^(?:Options|Verdict): (.+)$", content, re.MULTILINE)
    else:
        answers = [message.content for message in content if message.role == "assistant"]
    family = "reasoned" if "reasoned" in protocol else "short"
    assert len(answers) == len(EXAMPLES_FOR_ALL[family])
    read = [parse_judge_reply(answer, shape, "ABCD", several=True) for answer in answers]
    assert all(one.ok for one in read)
    if shape == "direct":
        assert {one.verdict for one in read} == set(Verdict)
    else:
        assert any(len(one.slots) > 1 for one in read)


def test_examples_hold_what_they_are_for() -> None:
    for examples in EXAMPLES_FOR_ALL.values():
        for one in examples:
            golds, slots = (one.gold, *one.also_right), (one.slot, *one.also)
            assert list(golds) == sorted(set(golds))
            assert one.slot is not None or one.also == ()
            assert one.slot is None or list(slots) == sorted(set(slots))
            assert max(golds) < len(one.options)


def test_each_question_has_a_cache_key_of_its_own() -> None:
    said = {
        asked(row(item), shape)
        for shape in ("extract", "direct")
        for item in (MELTS, replace(MELTS, also_right=(2,)), replace(MELTS, also_right=()), ALL)
    }
    # Extracting judges are told no gold, so that "any" of them is one question.
    assert len(said) == 2 + 4
    assert len(ASKED) == 3


# --- how it is read -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "slots"),
    [
        *(("B, D", (1, 3)), ("D,B", (1, 3)), ("B", (1,)), ("(b), (d).", (1, 3))),
        *(('"B, D"', (1, 3)), ("**B, D**", (1, 3)), ("**B**, **D**", (1, 3))),
        *(("Final answer: B, D", (1, 3)), ("D: tin", (3,))),
        *(('{"answer": "B, D"}', (1, 3)), ('{"answer": ["B", "D"]}', (1, 3))),
        *(("[B, D]", (1, 3)), ('["B", "D"]', (1, 3))),
        ('{"reason": "A, C are rejected", "answer": "D"}', (3,)),
    ],
)
def test_lists_are_legal(reply: str, slots: tuple[int, ...]) -> None:
    options = ("zinc", "lead", "iron", "tin")
    assert parse_judge_reply(reply, options=options, several=True) == JudgeReading(slots=slots)


@pytest.mark.parametrize(
    "reply",
    [
        *("B, B", "B, E", "B,", ", B", "B and D", "B D", "BD", "B or D", "B, OTHER", "B, CORRECT"),
        *("B, D because", "The candidate chose B, D", "B, maybe D", "", "A-D", "none", "1, 2"),
        *('{"answer": []}', '{"answer": ["B", 2]}', '{"answer": ["B", "B"]}', '{"answer": {}}'),
        *('{"answer": "B", "option": "D"}', '["B", "D", "D"]', "[B, D", '["B", "D"], A'),
    ],
)
def test_anything_else_is_a_fault_of_the_judge(reply: str) -> None:
    read = parse_judge_reply(reply, options=METALS, several=True)
    assert read == JudgeReading(status="judge_parse_failure")


def test_a_list_is_no_answer_where_one_option_is_asked_for() -> None:
    for reply in ("B, D", '{"answer": ["B", "D"]}'):
        assert not parse_judge_reply(reply, options=METALS).ok
        assert not parse_judge_reply(reply, "direct", options=METALS, several=True).ok


@pytest.mark.parametrize("reply", ["OTHER", "other.", "OTHER - refuses", '{"answer": "OTHER"}'])
def test_other_stays_other(reply: str) -> None:
    read = parse_judge_reply(reply, options=METALS, several=True)
    assert (read.verdict, read.slots) == (Verdict.OTHER, ())


@pytest.mark.parametrize(
    ("shape", "raw", "verdict", "choices"),
    [
        pytest.param("extract", "B, D", Verdict.CORRECT, (1, 3), id="both"),
        pytest.param("extract", "D", Verdict.INCORRECT, (1,), id="a part"),
        pytest.param("extract", "A, B, D", Verdict.INCORRECT, (1, 2, 3), id="one too many"),
        pytest.param("extract", "OTHER", Verdict.OTHER, (), id="other"),
        pytest.param("direct", "CORRECT", Verdict.CORRECT, (1, 3), id="direct, right"),
        pytest.param("direct", "INCORRECT", Verdict.INCORRECT, (), id="direct, wrong"),
    ],
)
def test_what_the_judge_names_is_compared_with_the_set(shape, raw, verdict, choices) -> None:
    [one] = judge(ScriptedChat(always(raw)), shape=shape).grade([row()])
    assert (one.verdict, one.choices, one.evidence) == (verdict, choices, raw)


@pytest.mark.parametrize("raw", ["B, B", "B, F", "maybe B"])
def test_what_cannot_be_read_is_a_judge_error(raw: str) -> None:
    [one] = judge(ScriptedChat(always(raw))).grade([row()])
    assert (one.verdict, one.error) == (None, "judge_parse_failure")


@pytest.mark.parametrize(
    ("text", "verdict", "choices"),
    [
        pytest.param("B, D", Verdict.CORRECT, (1, 3), id="the set"),
        pytest.param("mercury", Verdict.INCORRECT, (1,), id="a part, by its text"),
        pytest.param("", Verdict.OTHER, (), id="nothing"),
    ],
)
def test_lists_need_no_judge(text, verdict, choices) -> None:
    chat = ScriptedChat(always("A"))
    [one] = judge(chat).grade([row(text=text)])
    assert (one.verdict, one.choices, chat.asked) == (verdict, choices, [])


def test_under_any_a_list_goes_to_the_judge_who_calls_it_other() -> None:
    chat = ScriptedChat(always("OTHER"))
    [one] = judge(chat).grade([row(MELTS, "B, D")])
    assert (one.verdict, len(chat.asked)) == (Verdict.OTHER, 1)


@pytest.mark.parametrize("raw", ["B", "D"])
def test_under_any_each_gold_is_right(raw: str) -> None:
    [one] = judge(ScriptedChat(always(raw))).grade([row(MELTS, "Gallium, surely.")])
    assert one.verdict is Verdict.CORRECT


@given(
    st.permutations(range(4)),
    st.sets(st.sampled_from(METALS), min_size=1),
    st.integers(0, 6),
    st.sampled_from(["letters", "dashes"]),
)
def test_sets_are_the_same_options_on_every_page(order, named, turn, protocol) -> None:
    def reader(said: str, attempt: int) -> str:
        return ", ".join(re.findall(rf"^([A-D])\) (?:{'|'.join(sorted(named))})$", said, re.M))

    shown = Orientation(turn, f"o{turn}", tuple(order))
    said = generation(WORDY, item=ALL, orientation=shown, protocol=protocol)
    [one] = judge(ScriptedChat(reader), shuffle_options=True).grade([said])
    assert {METALS[choice] for choice in one.choices} == named
    assert one.verdict is (
        Verdict.CORRECT if named == {"mercury", "gallium"} else Verdict.INCORRECT
    )


def test_votes_are_for_sets() -> None:
    replies = iter(["B, D", "B, D", "B"])
    chat = ScriptedChat(lambda said, attempt: next(replies))
    [one] = judge(chat, votes=3, temperature=0.2).grade([row()])
    assert (one.verdict, one.choices) == (Verdict.CORRECT, (1, 3))
    votes = json.loads(one.evidence)["votes"]
    assert sorted(vote.get("choices", [vote["choice"]]) for vote in votes) == [[1, 3], [1, 3], [3]]
    split = iter(["B, D", "A, B"])
    chat = ScriptedChat(lambda said, attempt: next(split))
    [one] = judge(chat, votes=2, temperature=0.2).grade([row()])
    assert (one.verdict, one.reason) == (Verdict.OTHER, "judges_split")


def test_the_judge_is_checked_on_lists_as_well() -> None:
    def part(said: str, attempt: int) -> str:
        return "B"

    reader = judge(ScriptedChat(part))
    grades = [*reader.grade([row(text="B, D")])]
    check = reader.check(grades)
    assert (check.n, check.n_agree) == (1, 0)


def test_what_is_asked_first_is_what_people_are_shown() -> None:
    (seat,) = seats_of(ScriptedChat(always("A")), settings())
    assert "Which options did" in last_message(seat.conversation(row()))
    assert letters_for(4) == row().prompt.labels
