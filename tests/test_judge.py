"""The judge: what reaches it, what becomes of its replies, what they cost."""

from __future__ import annotations

import pytest
from fake_chat import PLANETS, PROSE, ScriptedChat, always, generation, judge

from mlflow_mcq.doors import Chat, Grader
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.records import Decoding, Item, Orientation, Reply, Verdict
from mlflow_mcq.settings import JudgeSettings


def test_fakes_and_grader_enter_by_the_doors():
    chat = ScriptedChat(always("A"))
    assert isinstance(chat, Chat)
    assert isinstance(judge(chat), Grader)


@pytest.mark.parametrize(
    ("text", "reply", "verdict", "choice", "reason"),
    [
        pytest.param("A", {}, Verdict.CORRECT, 1, "strict", id="label"),
        pytest.param("Mars", {}, Verdict.INCORRECT, 3, "strict", id="text"),
        pytest.param("A) Mars", {}, Verdict.OTHER, None, "label_text_conflict", id="conflict"),
        pytest.param("<think>A", {}, Verdict.OTHER, None, "unfinished_thought", id="thinking"),
        pytest.param(
            "so A", {"sent": "<think>\n"}, Verdict.OTHER, None, "unfinished_thought", id="sent"
        ),
        pytest.param(" ", {}, Verdict.OTHER, None, "empty", id="blank"),
        pytest.param(None, {}, Verdict.OTHER, None, "empty", id="null content"),
        pytest.param(
            "", {"finish_reason": "length"}, Verdict.OTHER, None, "truncated", id="cut to nothing"
        ),
        pytest.param(
            None,
            {"error": "2000 tokens", "finish_reason": "prompt_too_long"},
            Verdict.OTHER,
            None,
            "prompt_too_long",
            id="prompt too long",
        ),
        pytest.param(None, {"error": "timeout"}, None, None, "", id="broken generation"),
    ],
)
def test_rows_that_need_no_judge(text, reply, verdict, choice, reason):
    chat = ScriptedChat(always("A"))
    [grade] = judge(chat).grade([generation(text, **reply)])
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)
    assert chat.asked == []
    assert grade.judge == ""


@pytest.mark.parametrize(
    ("shape", "raw", "verdict", "choice", "reason"),
    [
        pytest.param("extract", "A", Verdict.CORRECT, 1, "judge", id="slot 0 shows gold"),
        pytest.param("extract", "D: Venus", Verdict.INCORRECT, 0, "judge", id="slot 3"),
        pytest.param("extract", "OTHER", Verdict.OTHER, None, "judge_other", id="other"),
        pytest.param("direct", "CORRECT", Verdict.CORRECT, 1, "judge", id="direct correct"),
        pytest.param("direct", "Incorrect.", Verdict.INCORRECT, None, "judge", id="direct not"),
        pytest.param("direct", "OTHER", Verdict.OTHER, None, "judge_other", id="direct other"),
    ],
)
def test_what_the_judge_says_is_translated(shape, raw, verdict, choice, reason):
    grader = judge(ScriptedChat(always(raw)), shape=shape)
    [grade] = grader.grade([generation(PROSE)])
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)
    assert (grade.evidence, grade.judge) == (raw, grader.fingerprint)


@pytest.mark.parametrize(
    "shown", [o for r in range(4) for o in [tuple((s + r) % 4 for s in range(4))]]
)
def test_choice_is_the_same_option_in_every_orientation(shown):
    def names_saturn(asked: str, attempt: int) -> str:
        return next(line[0] for line in asked.splitlines() if line.endswith(") Saturn"))

    row = generation(PROSE, orientation=Orientation(0, "o", shown))
    [grade] = judge(ScriptedChat(names_saturn)).grade([row])
    assert (grade.choice, grade.verdict) == (1, Verdict.CORRECT)


@pytest.mark.parametrize("raw", ["maybe A", "E", "A: Mars", "", "CORRECT", "A B", "{}"])
@pytest.mark.parametrize(("deterministic", "calls"), [(False, 3), (True, 1)])
def test_unreadable_replies_are_asked_again_and_then_are_errors(raw, deterministic, calls):
    chat = ScriptedChat(always(raw), deterministic=deterministic)
    [grade] = judge(chat, attempts=3).grade([generation(PROSE)])
    assert (grade.verdict, grade.choice) == (None, None)
    assert grade.error == "judge_parse_failure"
    assert grade.evidence == raw
    assert len(chat.asked) == calls
    assert len({query.seed for query in chat.asked}) == calls


def test_a_second_reply_may_be_readable():
    chat = ScriptedChat(lambda asked, attempt: "Well..." if attempt == 0 else "A")
    [grade] = judge(chat, attempts=2).grade([generation(PROSE)])
    assert (grade.verdict, grade.evidence) == (Verdict.CORRECT, "A")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(None, "429 too many requests"), id="broken call"),
        pytest.param(Reply("A", "429 too many requests"), id="a text beside an error"),
        pytest.param(Reply(None), id="null content"),
    ],
)
def test_a_broken_call_is_never_a_verdict_and_is_not_repeated(reply):
    chat = ScriptedChat(always(reply))
    [grade] = judge(chat, attempts=3).grade([generation(PROSE)])
    assert grade.verdict is None
    assert grade.error.startswith("judge_error")
    assert (reply.error or "") in grade.error
    assert len(chat.asked) == 1


def test_a_cut_reply_says_what_to_raise():
    chat = ScriptedChat(always(Reply("The candidate", finish_reason="length")), True)
    [grade] = judge(chat).grade([generation(PROSE)])
    assert "judge.max_tokens" in grade.error


def test_a_chat_that_forgets_a_row_loses_no_row():
    class Forgetful(ScriptedChat):
        def ask(self, queries, decoding):
            yield from [*super().ask(queries, decoding)][1:]

    rows = [generation(PROSE), generation("Surely Mars, the red one.")]
    grades = [*judge(Forgetful(always("A"))).grade(rows)]
    assert [g.verdict for g in grades].count(None) == 1
    assert {id(g.generation) for g in grades} == {id(row) for row in rows}


def test_equal_conversations_are_asked_once():
    chat = ScriptedChat(always("A"))
    rows = [generation(PROSE) for _ in range(5)] + [generation("Saturn it is, I think.")]
    grades = [*judge(chat).grade(rows)]
    assert len(grades) == 6
    assert len(chat.asked) == 2


def test_equal_pages_of_different_orders_are_translated_row_by_row():
    flipped = Item("q2", "Which planet shows rings?", PLANETS[::-1], gold=2)
    same_page = Orientation(0, "same page", (2, 1, 0, 3))
    rows = [generation(PROSE), generation(PROSE, item=flipped, orientation=same_page)]
    assert rows[0].prompt.shown == rows[1].prompt.shown
    chat = ScriptedChat(always("A"))
    grades = {g.generation.prompt.item.id: g.choice for g in judge(chat).grade(rows)}
    assert len(chat.asked) == 1
    assert grades == {"q1": 1, "q2": 2}


def test_grades_arrive_while_the_judge_is_still_at_work():
    chat = ScriptedChat(always("A"))
    grades = judge(chat).grade([generation(PROSE), generation("A"), generation("Rings: Saturn.")])
    assert next(grades).reason == "strict"
    assert chat.asked == []
    assert next(grades).reason == "judge"
    assert len(chat.asked) == 1


def test_decoding_is_that_of_the_settings():
    chat = ScriptedChat(always("A"))
    [*judge(chat, temperature=0.1, max_tokens=9).grade([generation(PROSE)])]
    assert chat.decodings == {Decoding(max_new_tokens=9, temperature=0.1)}


def test_fingerprint_changes_with_all_that_changes_a_verdict_and_with_nothing_else(tmp_path):
    chat = ScriptedChat(always("A"))
    base = judge(chat).fingerprint
    assert len(base) == 12
    assert judge(ScriptedChat(always("B"))).fingerprint == base
    unchanging: list[dict[str, object]] = [
        *({"concurrency": 2}, {"api_key_env": "KEY"}, {"check_rows": 1}, {"attempts": 4}),
        *({"cache_dir": str(tmp_path)}, {"prices": {"prompt": 1, "reply": 2}}, {"batch_size": 2}),
    ]
    for same in unchanging:
        assert judge(chat, **same).fingerprint == base
    changing: list[dict[str, object]] = [
        *({"shape": "direct"}, {"temperature": 0.1}, {"max_tokens": 8}, {"votes": 2}),
        *({"shuffle_options": True}, {"rationale": True}),
    ]
    assert len({judge(chat, **other).fingerprint for other in changing} | {base}) == 7
    assert JudgeGrader(chat, JudgeSettings(model="n", base_url="local")).fingerprint != base
    chat.fingerprint = "another server"
    assert judge(chat).fingerprint != base


def test_fingerprint_changes_with_the_wording(monkeypatch):
    base = judge(ScriptedChat(always("A"))).fingerprint
    monkeypatch.setattr("mlflow_mcq.graders.seat.JUDGE_PROMPT_VERSION", "another")
    assert judge(ScriptedChat(always("A"))).fingerprint != base


@pytest.mark.parametrize(
    ("shape", "said", "verdict", "choice"),
    [
        pytest.param("extract", '"answer": "A"', Verdict.CORRECT, 1, id="option"),
        pytest.param("extract", '"answer": "OTHER"', Verdict.OTHER, None, id="other"),
        pytest.param("direct", '"verdict": "INCORRECT"', Verdict.INCORRECT, None, id="verdict"),
        pytest.param("extract", '"answer": "B or C"', None, None, id="two"),
        pytest.param("extract", '"answer": "B", "answer": "C"', None, None, id="twice"),
    ],
)
def test_a_reason_is_kept_and_changes_no_verdict(shape, said, verdict, choice):
    raw = '{"reason": "It says \\"Answer: C\\", {not} B.", ' + said + "}"
    for rationale in (True, False):
        chat = ScriptedChat(always(raw), deterministic=True)
        [grade] = judge(chat, shape=shape, rationale=rationale).grade([generation(PROSE)])
        assert (grade.verdict, grade.choice, grade.evidence) == (verdict, choice, raw)


@pytest.mark.parametrize("bare", ["A", "OTHER", "hm"])
def test_a_judge_that_gives_no_reason_is_read_as_ever(bare):
    [with_reason] = judge(ScriptedChat(always(bare)), rationale=True).grade([generation(PROSE)])
    [without] = judge(ScriptedChat(always(bare))).grade([generation(PROSE)])
    assert (with_reason.verdict, with_reason.error) == (without.verdict, without.error)
