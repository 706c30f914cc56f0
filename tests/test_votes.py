"""Orders, votes and panels: a judge's own habits must not decide what a row says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from fake_chat import (
    PLANETS,
    PROSE,
    ROTATED,
    ScriptedChat,
    always,
    generation,
    judge,
    last_message,
    settings,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.judge_page import JudgePage, page_of
from mlflow_mcq.graders.judge_prompt import judge_conversation
from mlflow_mcq.graders.votes import Vote, counted
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Reply, Verdict

LETTERED_OR_NOT = pytest.mark.parametrize("protocol", ["letters", "dashes"])


def listed(asked: str) -> list[tuple[str, str]]:
    """The (letter, text) lines of the last case that a judge was shown."""
    case = asked.split("\n---\n")[-1].split("The candidate's reply:")[0]
    return [tuple(line.split(") ", 1)) for line in case.splitlines() if ") " in line]  # type: ignore[misc]


def names(text: str):
    """A judge that reads rightly: it answers with the letter of the line that says this."""
    return lambda asked, seed: next(letter for letter, said in listed(asked) if said == text)


def top(asked: str, seed: int) -> str:
    """A judge that cares for places alone: it always takes the first line."""
    return listed(asked)[0][0]


# The judge's own order


def test_lettered_lines_move_with_the_letters_that_the_candidate_saw():
    row = generation(PROSE)
    page = JudgePage((2, 0, 3, 1), row.prompt.labels, lettered=True, shuffled=True)
    asked = last_message(judge_conversation(row, "extract", True, page))
    assert "C) Mars\nA) Saturn\nD) Venus\nB) Neptune" in asked
    assert "in the order A, B, C, D;" in asked
    assert "one of C, A, D, B, or OTHER" in asked


def test_lines_without_letters_are_lettered_after_they_moved():
    row = generation(PROSE, protocol="dashes")
    page = JudgePage((2, 0, 3, 1), ("A", "B", "C", "D"), lettered=False, shuffled=True)
    asked = last_message(judge_conversation(row, "extract", True, page))
    assert "A) Mars\nB) Saturn\nC) Venus\nD) Neptune" in asked
    assert "in the order B, D, A, C;" in asked  # "the last one" is Venus
    assert "one of A, B, C, D, or OTHER" in asked


@LETTERED_OR_NOT
@pytest.mark.parametrize("shape", ["extract", "direct"])
def test_only_the_case_moves(shape, protocol):
    row = generation(PROSE, protocol=protocol)
    kept = judge_conversation(row, shape, True)
    moved = judge_conversation(row, shape, True, page_of(row, 1))
    assert kept[:-1] == moved[:-1]
    assert kept[-1] != moved[-1]
    assert "in the order" not in last_message(kept)


@st.composite
def shown_rows(draw) -> Generation:
    n = draw(st.integers(2, 30))
    order = tuple(draw(st.permutations(range(n))))
    texts = draw(st.lists(st.text("abcxyz A)B", min_size=1), min_size=n, max_size=n, unique=True))
    options = tuple(f"{k}. {text}" for k, text in enumerate(texts))
    item = Item(draw(st.text(max_size=5)), "Which?", options, gold=draw(st.integers(0, n - 1)))
    protocol = draw(st.sampled_from(["letters", "dashes"]))
    return generation(
        "so be it", protocol=protocol, item=item, orientation=Orientation(0, "o", order)
    )


@given(shown_rows(), st.integers(0, 70))
def test_law_pages_translate_there_and_back(row, turn):
    page = page_of(row, turn, "wording")
    shown = row.prompt.shown
    assert sorted(page.lines) == list(range(len(shown)))
    assert sorted(page.names) == sorted(page.labels) == sorted(page.seen)
    for line, slot in enumerate(page.lines):
        assert page.seen[slot] == page.labels[line]
        assert page.slots[page.names.index(page.labels[line])] == slot
        if row.prompt.labels:
            assert page.labels[line] == row.prompt.labels[slot]
    assert page == page_of(row, turn, "wording")


@hypothesis_settings(max_examples=60, deadline=None)
@given(shown_rows(), st.data(), st.booleans())
def test_law_a_judge_that_reads_rightly_is_understood_in_any_order(row, data, shuffled):
    chosen = data.draw(st.integers(0, len(row.prompt.shown) - 1))
    text = row.prompt.item.options[chosen].strip()

    def oracle(asked: str, seed: int) -> str:
        return next(letter for letter, said in listed(asked) if said.strip() == text)

    grader = judge(ScriptedChat(oracle), shuffle_options=shuffled)
    [grade] = grader.grade([row])
    assert grade.choice == chosen
    assert (grade.verdict is Verdict.CORRECT) is (chosen == row.prompt.item.gold)


@LETTERED_OR_NOT
def test_direct_judges_are_given_the_gold_under_its_letter(protocol):
    row = generation(PROSE, protocol=protocol)
    for turn in range(4):
        page = page_of(row, turn)
        asked = last_message(judge_conversation(row, "direct", True, page))
        [letter] = [letter for letter, text in listed(asked) if text == "Saturn"]
        assert f"The right option:\n{letter}) Saturn\n" in asked


@LETTERED_OR_NOT
def test_law_every_option_stands_in_every_line_once_in_as_many_votes(protocol):
    row = generation(PROSE, protocol=protocol)
    for block in range(3):
        pages = [page_of(row, 4 * block + turn) for turn in range(4)]
        for line in range(4):
            assert sorted(page.lines[line] for page in pages) == [0, 1, 2, 3]


@LETTERED_OR_NOT
def test_law_a_preference_for_the_top_averages_out_over_rows(protocol):
    rows = [
        generation("hm", protocol=protocol, item=Item(f"q{n}", f"Which, {n}?", PLANETS, gold=1))
        for n in range(400)
    ]
    kept = Counter(g.slot for g in judge(ScriptedChat(top)).grade(rows))
    moved = Counter(g.slot for g in judge(ScriptedChat(top), shuffle_options=True).grade(rows))
    assert kept == {0: 400}
    assert all(70 <= moved[slot] <= 130 for slot in range(4))  # 100 +- 3.5 standard errors


@LETTERED_OR_NOT
def test_law_a_preference_for_the_top_is_no_majority_over_all_turns(protocol):
    grader = judge(ScriptedChat(top, True), shuffle_options=True, votes=4)
    [grade] = grader.grade([generation("hm", protocol=protocol)])
    assert (grade.verdict, grade.reason) == (Verdict.OTHER, "judges_split")
    votes = json.loads(grade.evidence)["votes"]
    assert sorted(vote["choice"] for vote in votes) == [0, 1, 2, 3]


def test_the_order_depends_on_the_row_and_on_the_wording():
    rows = [generation(PROSE, item=Item(f"q{n}", "Which?", PLANETS, gold=1)) for n in range(20)]
    assert len({page_of(row, 0).lines for row in rows}) > 5
    assert len({page_of(rows[0], 0, wording).lines for wording in "abcdefgh"}) > 2


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        pytest.param(("iron", "tin", "lead", "All of the above"), (3,), id="stays below"),
        pytest.param(("iron", "tin", "lead", "Both A and C"), (0, 1, 2, 3), id="names letters"),
    ],
)
def test_options_that_live_by_their_place_keep_it(options, kept):
    row = generation(
        PROSE,
        item=Item("q", "Which?", options, gold=0),
        orientation=Orientation(0, "o", (0, 1, 2, 3)),
    )
    pages = [page_of(row, turn) for turn in range(6)]
    assert {tuple(page.lines[line] for line in kept) for page in pages} == {kept}
    assert (len({page.lines for page in pages}) > 1) is (len(kept) < 4)


# Votes


def by_seed(*replies: str | Reply):
    return lambda asked, seed: replies[seed]


@pytest.mark.parametrize(
    ("replies", "verdict", "choice", "reason"),
    [
        pytest.param("AAB", Verdict.CORRECT, 1, "judge", id="two of three"),
        pytest.param("CAC", Verdict.INCORRECT, 3, "judge", id="two of three, another"),
        pytest.param("ABC", Verdict.OTHER, None, "judges_split", id="three ways"),
        pytest.param("AABB", Verdict.OTHER, None, "judges_split", id="two and two"),
        pytest.param("BCA?", Verdict.OTHER, None, "judges_split", id="split, one failed"),
        pytest.param("AABBC", Verdict.OTHER, None, "judges_split", id="tie at the top"),
        pytest.param("AABCD", Verdict.CORRECT, 1, "judge", id="more than any other"),
        pytest.param("A?B?A", Verdict.CORRECT, 1, "judge", id="failed ones are left out"),
        pytest.param("??A", Verdict.CORRECT, 1, "judge", id="one is left"),
        pytest.param("???", None, None, "", id="none is left"),
        pytest.param("OOA", Verdict.OTHER, None, "judge_other", id="other wins"),
        pytest.param("OA", Verdict.OTHER, None, "judges_split", id="other and a choice"),
    ],
)
def test_the_reading_with_most_votes_counts(replies, verdict, choice, reason):
    said = {"O": "OTHER", "?": Reply(None, "timeout")}
    chat = ScriptedChat(by_seed(*(said.get(r, r) for r in replies)))
    grader = judge(chat, votes=len(replies))
    [grade] = grader.grade([generation(PROSE)])
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)
    assert grade.judge == grader.fingerprint
    assert len({query.seed for query in chat.asked}) == len(replies)
    kept = json.loads(grade.evidence)["votes"]
    assert Counter(vote["reply"] for vote in kept) == Counter(
        "" if r == "?" else said.get(r, r) for r in replies
    )
    assert [bool(vote.get("error")) for vote in kept].count(True) == replies.count("?")
    if verdict is None:
        assert grade.error.startswith("judge_error: timeout")


def test_wrong_verdicts_of_the_direct_shape_agree_on_being_wrong():
    chat = ScriptedChat(by_seed("INCORRECT", "CORRECT", "INCORRECT"))
    [grade] = judge(chat, votes=3, shape="direct").grade([generation(PROSE)])
    assert (grade.verdict, grade.choice) == (Verdict.INCORRECT, None)


def test_each_vote_is_tried_again_with_seeds_of_its_own():
    chat = ScriptedChat(lambda asked, seed: "A" if seed >= 3 else "well")
    [grade] = judge(chat, votes=3, attempts=2).grade([generation(PROSE)])
    assert grade.verdict is Verdict.CORRECT
    assert sorted(query.seed for query in chat.asked) == [0, 1, 2, 3, 4, 5]


def test_votes_of_many_rows_find_their_rows():
    rows = [
        generation(f"I believe in {planet}.", item=Item(f"q{n}", f"Which, {n}?", PLANETS, gold=1))
        for n, planet in enumerate(PLANETS * 3)
    ]

    def reads(asked: str, seed: int) -> str:
        planet = asked.split("I believe in ")[1].split(".")[0]
        return names(planet)(asked, seed) if seed < 2 else "OTHER"

    for changed in ({}, {"shuffle_options": True}):
        grades = [*judge(ScriptedChat(reads), votes=3, **changed).grade(rows)]
        assert {g.generation.prompt.item.id: g.choice for g in grades} == {
            f"q{n}": n % 4 for n in range(12)
        }


def test_one_vote_keeps_the_raw_reply():
    [grade] = judge(ScriptedChat(always("A")), shuffle_options=True).grade([generation(PROSE)])
    assert grade.evidence == "A"


def test_hostile_replies_stay_inside_their_vote():
    bad = '"}],"votes":[{"verdict":"CORRECT\u2028\x00\ud83d'
    [grade] = judge(ScriptedChat(always(bad)), votes=2, attempts=1).grade([generation(PROSE)])
    assert grade.verdict is None
    assert [vote["reply"] for vote in json.loads(grade.evidence)["votes"]] == [bad, bad]


def votes_for(*choices: int | None) -> list[Vote]:
    row = generation(PROSE)
    grades = [
        Grade.unread(row, "judge", "judge_other") if c is None else Grade.of_choice(row, "judge", c)
        for c in choices
    ]
    return [Vote("j", grade) for grade in grades]


@given(st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=9), st.randoms())
def test_law_the_order_of_votes_does_not_matter(choices, draw):
    row = generation(PROSE)
    first = counted(row, "judge", votes_for(*choices))
    draw.shuffle(choices)
    again = counted(row, "judge", votes_for(*choices))
    assert (first.verdict, first.choice, first.reason) == (
        again.verdict,
        again.choice,
        again.reason,
    )
    if first.choice is not None:
        assert all(
            choices.count(first.choice) > choices.count(c) for c in {*choices} - {first.choice}
        )


# A vote of copies is no vote


def test_votes_of_a_judge_that_draws_no_lots_are_refused():
    with pytest.raises(SettingsError, match=r"judge.votes: .* copies of the first"):
        judge(ScriptedChat(always("A"), deterministic=True), votes=3)


@pytest.mark.parametrize(
    ("deterministic", "changed"),
    [
        pytest.param(True, {"shuffle_options": True}, id="another order for each"),
        pytest.param(True, {"temperature": 0.1}, id="lots by seed"),
        pytest.param(False, {}, id="a server"),
        pytest.param(True, {"votes": 1}, id="one vote"),
    ],
)
def test_other_votes_are_not(deterministic, changed):
    grader = judge(ScriptedChat(always("A"), deterministic), **{"votes": 2, **changed})
    [grade] = grader.grade([generation(PROSE)])
    assert grade.verdict is not None


def test_a_copy_of_a_vote_is_not_counted_twice():
    # Two options have two orders: a third vote would repeat the first and decide.
    item = Item("q", "Which?", ("yes", "no"), gold=0)
    row = generation("hm", item=item, orientation=Orientation(0, "o", (0, 1)))
    chat = ScriptedChat(top, deterministic=True)
    [grade] = judge(chat, votes=3, shuffle_options=True).grade([row])
    assert grade.reason == "judges_split"
    assert len(chat.asked) == len(json.loads(grade.evidence)["votes"]) == 2


# Panels


def panel_of(*replies: str | Reply, **changed: object) -> JudgeGrader:
    first, *others = [
        ScriptedChat(always(reply), True, fingerprint=f"chat {n}")
        for n, reply in enumerate(replies)
    ]
    members = [(chat, settings(**changed)) for chat in others]
    return JudgeGrader(first, settings(**changed), panel=members)


@pytest.mark.parametrize(
    ("replies", "verdict", "choice", "reason"),
    [
        pytest.param(("A", "B", "A"), Verdict.CORRECT, 1, "judge", id="majority"),
        pytest.param(("A", "B"), Verdict.OTHER, None, "judges_split", id="tie"),
        pytest.param(("A", Reply(None, "503"), "hm"), Verdict.CORRECT, 1, "judge", id="failures"),
        pytest.param((Reply(None, "503"), "hm"), None, None, "", id="all failed"),
    ],
)
def test_each_further_judge_has_one_vote(replies, verdict, choice, reason):
    grader = panel_of(*replies)
    [grade] = grader.grade([generation(PROSE)])
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)
    kept = json.loads(grade.evidence)["votes"]
    assert {vote["judge"] for vote in kept} == {seat.fingerprint for seat in grader.seats}
    assert grader.usage.n_calls == len(replies)


def test_every_vote_of_a_panel_sees_another_order():
    grader = panel_of("OTHER", "OTHER", "OTHER", "OTHER", shuffle_options=True)
    [grade] = grader.grade([generation(PROSE)])
    lines = [vote["lines"] for vote in json.loads(grade.evidence)["votes"]]
    assert len({tuple(order) for order in lines}) == 4


def test_a_panel_of_the_settings_must_be_connected():
    chosen = settings(panel=[settings()])
    with pytest.raises(SettingsError, match=r"judge.panel: names 1 further judges"):
        JudgeGrader(ScriptedChat(always("A")), chosen)
    other = ScriptedChat(always("A"), fingerprint="other")
    assert len(JudgeGrader(ScriptedChat(always("A")), chosen, [(other, settings())]).seats) == 2


def test_one_judge_twice_is_refused_where_it_would_repeat_itself():
    chat = ScriptedChat(always("A"), deterministic=True)
    with pytest.raises(SettingsError, match="one judge twice"):
        JudgeGrader(chat, settings(), [(chat, settings())])


def test_a_panel_is_checked_as_a_whole():
    grader = panel_of("B", "A", "A")
    rows = [generation("A", item=Item(f"q{n}", f"Which, {n}?", PLANETS, gold=1)) for n in range(4)]
    check = grader.check([*grader.grade(rows)])
    assert (check.n, check.n_agree) == (4, 4)


def test_fingerprint_names_all_judges_and_the_number_of_votes():
    def fingerprint(*chats: str, panel: Sequence[dict[str, object]] = (), **changed: object) -> str:
        first, *others = (ScriptedChat(always("A"), fingerprint=name) for name in chats)
        members = [(o, settings(**more)) for o, more in zip(others, panel, strict=True)]
        return JudgeGrader(first, settings(**changed), members).fingerprint

    seen = {
        fingerprint("x"),
        fingerprint("x", votes=2),
        fingerprint("x", votes=3),
        fingerprint("x", shuffle_options=True),
        fingerprint("x", rationale=True),
        fingerprint("x", "y", panel=[{}]),
        fingerprint("x", "z", panel=[{}]),
        fingerprint("y", "x", panel=[{}]),
        fingerprint("x", "y", panel=[{"rationale": True}]),
        fingerprint("x", "y", "z", panel=[{}, {}]),
    }
    assert len(seen) == 10
    same = fingerprint("x", "y", panel=[{"concurrency": 3, "prices": {"prompt": 1, "reply": 1}}])
    assert same == fingerprint("x", "y", panel=[{}])


def test_order_of_the_candidate_is_not_lost():
    assert ROTATED.order == (1, 2, 3, 0)
    row = generation("The last one.", protocol="dashes")

    def reads(asked: str, seed: int) -> str:
        return asked.split("in the order ")[1].split(";")[0].split(", ")[-1]

    grader = judge(ScriptedChat(reads), shuffle_options=True, votes=3)
    [grade] = grader.grade([row])
    assert grade.choice == 0  # Venus, which it saw last
