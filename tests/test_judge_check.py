"""What a judge costs, and how far it agrees with the strict rule."""

from __future__ import annotations

import pytest
from fake_chat import (
    PLANETS,
    PROSE,
    ScriptedChat,
    always,
    generation,
    judge,
    last_message,
    settings,
)

from mlflow_mcq.doors import Chat
from mlflow_mcq.graders.judge import JudgeCheck, JudgeGrader
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.records import Grade, Item, Reply


def test_usage_adds_up_calls_tokens_and_money():
    replies = iter([Reply("A", n_prompt_tokens=1000, n_tokens=2), Reply(None, "503")])
    chat = ScriptedChat(lambda asked, seed: next(replies))
    grader = judge(chat, prices={"prompt": 0.5, "reply": 2.0})
    assert grader.usage == Usage(money=0.0)
    [*grader.grade([generation(PROSE), generation(PROSE), generation("Rings: Saturn.")])]
    assert grader.usage == Usage(2, 0, 1000, 2, money=(1000 * 0.5 + 2 * 2.0) / 1e6)
    assert grader.usage.named()["judge/cost"] == pytest.approx(0.000504)


def test_every_attempt_vote_judge_and_check_is_paid_for():
    def chat(name: str) -> ScriptedChat:
        return ScriptedChat(always(Reply("hm", n_prompt_tokens=10, n_tokens=1)), fingerprint=name)

    prices = {"prompt": 1.0, "reply": 0.0}
    member = (chat("y"), settings(prices=prices, attempts=1))
    grader = JudgeGrader(chat("x"), settings(votes=2, attempts=3, prices=prices), [member])
    grades = [*grader.grade([generation(PROSE), generation("A")])]
    assert (grader.usage.n_calls, grader.usage.prompt_tokens) == (7, 70)
    assert grader.usage.money == pytest.approx(70 / 1e6)
    grader.check(grades)
    assert grader.usage.n_calls == 14


@pytest.mark.parametrize(
    ("mine", "theirs", "n_prompt_tokens"),
    [
        pytest.param(None, {"prompt": 1, "reply": 1}, 5, id="no price of the first"),
        pytest.param({"prompt": 1, "reply": 1}, None, 5, id="no price of the second"),
        pytest.param({"prompt": 1, "reply": 1}, {"prompt": 1, "reply": 1}, 0, id="no count"),
    ],
)
def test_a_cost_that_is_not_known_whole_is_not_given(mine, theirs, n_prompt_tokens):
    reply = always(Reply("A", n_prompt_tokens=n_prompt_tokens))
    panel = [(ScriptedChat(reply, fingerprint="other"), settings(prices=theirs))]
    grader = JudgeGrader(ScriptedChat(reply), settings(prices=mine), panel)
    [*grader.grade([generation(PROSE)])]
    assert grader.usage.money is None
    assert "judge/cost" not in grader.usage.named()
    assert grader.usage.named()["judge/n_calls"] == 2


def settled_grades(chat: Chat, n: int, **changed: object) -> tuple[JudgeGrader, list[Grade]]:
    grader = judge(chat, **changed)
    items = [Item(f"q{i}", f"Question {i}?", PLANETS, gold=1) for i in range(n)]
    return grader, [*grader.grade([generation("A", item=item) for item in items])]


@pytest.mark.parametrize("shape", ["extract", "direct"])
def test_check_counts_agreement_and_failures_apart(shape):
    right, wrong = {"extract": ("A", "B"), "direct": ("CORRECT", "INCORRECT")}[shape]
    said = {"Question 0?": wrong, "Question 1?": "hm", "Question 2?": Reply(None, "timeout")}

    def answer(asked: str, attempt: int) -> str | Reply:
        return next((said[q] for q in said if q in asked), right)

    grader, grades = settled_grades(ScriptedChat(answer), 10, shape=shape)
    check = grader.check(grades)
    assert check == JudgeCheck(n=10, n_agree=7, n_failed=2)
    assert check.agreement == 7 / 8


def test_check_takes_a_sample_that_does_not_depend_on_the_order_of_rows():
    chat = ScriptedChat(always("A"))
    grader, grades = settled_grades(chat, 30, check_rows=5)
    assert grader.check(grades).n == 5
    first = {last_message(q.content) for q in chat.asked}
    chat.asked.clear()
    grader.check(grades[::-1])
    assert {last_message(q.content) for q in chat.asked} == first


def test_check_draws_a_hundred_rows_with_the_seed():
    chat = ScriptedChat(always("A"))
    grader, grades = settled_grades(chat, 130)
    drawn = []
    for seed in (0, 0, 1):
        chat.asked.clear()
        assert grader.check(grades, seed).n == len(chat.asked) == 100
        drawn.append({last_message(q.content) for q in chat.asked})
    assert drawn[0] == drawn[1] != drawn[2]


def test_check_looks_only_at_rows_that_the_strict_rule_settled_with_a_choice():
    chat = ScriptedChat(always("A"))
    grader = judge(chat)
    grades = [*grader.grade([generation(PROSE), generation(""), generation("A) Mars")])]
    chat.asked.clear()
    assert grader.check(grades) == JudgeCheck(0, 0, 0)
    assert grader.check(grades).agreement is None
    assert chat.asked == []
    grader, grades = settled_grades(chat, 3, check_rows=0)
    assert grader.check(grades).n == 0
