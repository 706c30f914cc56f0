"""What a judge may cost at most, and that it stops cleanly there."""

from __future__ import annotations

import pytest
from fake_chat import PROSE, ScriptedChat, always, generation, settings
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.extras import exam_of, judge_numbers
from mlflow_mcq.graders.budget import Budget
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.records import Generation, Item, Reply

REPLY = Reply("A", n_prompt_tokens=90, n_tokens=10)


def rows(n: int, text: str = PROSE) -> list[Generation]:
    options = ("Venus", "Saturn", "Neptune", "Mars")
    return [generation(text, item=Item(f"q{i}", f"Which, {i}?", options, 1)) for i in range(n)]


def judge(**changed: object) -> tuple[ScriptedChat, JudgeGrader]:
    chat = ScriptedChat(always(REPLY), deterministic=True)
    return chat, JudgeGrader(chat, settings(**changed))


@pytest.mark.parametrize(
    ("limits", "n_calls"),
    [
        pytest.param({}, 50, id="none"),
        pytest.param({"max_calls": 7}, 7, id="calls"),
        pytest.param({"max_calls": 1}, 1, id="one call"),
        pytest.param({"max_calls": 99}, 50, id="more than needed"),
        pytest.param({"max_judge_tokens": 2000, "concurrency": 8}, 20, id="tokens"),
        pytest.param({"max_judge_tokens": 2050, "concurrency": 8}, 20, id="tokens for half a call"),
        pytest.param({"max_judge_tokens": 1, "concurrency": 8}, 8, id="what one costs is unknown"),
        pytest.param({"max_judge_tokens": 2000, "max_calls": 3}, 3, id="the lower one holds"),
    ],
)
def test_rows_beyond_the_budget_are_errors_of_their_own(limits, n_calls):
    chat, grader = judge(**limits)
    grades = [*grader.grade(rows(50))]
    assert len(chat.asked) == grader.usage.n_calls == n_calls
    left = [grade for grade in grades if grade.verdict is None]
    assert len(left) == 50 - n_calls
    for grade in left:
        assert grade.error.startswith("budget: judge.max_")
        assert "only=errors" in grade.error
    assert bool(grader.spent) is (n_calls < 50)


def test_rows_that_need_no_judge_cost_nothing():
    chat, grader = judge(max_calls=1)
    grades = [*grader.grade([*rows(5, "A"), *rows(1)])]
    assert all(grade.verdict for grade in grades)
    assert len(chat.asked) == 1


def test_attempts_votes_and_the_panel_share_one_budget():
    hm = ScriptedChat(always(Reply("hm", n_prompt_tokens=5)), fingerprint="hm")
    panel = [(ScriptedChat(always(REPLY), fingerprint="p"), settings())]
    grader = JudgeGrader(hm, settings(votes=2, attempts=3, max_calls=9), panel)
    [*grader.grade(rows(4))]
    assert grader.usage.n_calls == 9


def test_a_reply_from_the_cache_is_free(tmp_path):
    for _ in range(2):
        _, grader = judge(max_calls=4, cache_dir=str(tmp_path))
        assert sum(grade.verdict is not None for grade in grader.grade(rows(8))) in (4, 8)
    assert grader.usage.n_cached == 4


def test_a_spent_budget_says_nothing_about_the_judge(tmp_path):
    _, grader = judge(max_calls=10, cache_dir=str(tmp_path))
    grades = [*grader.grade([*rows(6), *rows(8, "A")])]
    exam = exam_of(grader)
    numbers = judge_numbers(grader, grades, exam)
    assert exam is None
    assert "max_calls" in numbers.undefined["exam_kappa"]
    assert numbers.values["n_checked"] == numbers.values["n_check_failed"] == 0
    assert numbers.values["n_over_budget"] == 0
    assert grader.usage.n_calls == 10
    # Nor is it kept against it: with money, the same exam goes on where it stopped.
    _, rich = judge(cache_dir=str(tmp_path))
    report = exam_of(rich)
    assert report is not None
    assert report.n_errors == 0


def test_a_member_of_a_panel_has_no_budget_of_its_own():
    member = settings(max_calls=3)
    with pytest.raises(SettingsError, match=r"judge\.panel\.max_calls"):
        JudgeGrader(ScriptedChat(always("A")), settings(), [(ScriptedChat(always("A")), member)])


@given(
    st.one_of(st.none(), st.integers(1, 50)),
    st.one_of(st.none(), st.integers(1, 5000)),
    st.integers(1, 16),
    st.lists(st.integers(1, 300), min_size=1, max_size=80),
)
def test_law_calls_never_exceed_their_limit_and_tokens_by_no_more_than_the_last_calls(
    max_calls, max_tokens, at_once, costs
):
    budget = Budget(max_calls, max_tokens)
    left, made, spent, last = list(costs), 0, 0, 0
    while left and (room := budget.room(len(left), at_once)):
        now, left = left[:room], left[room:]
        for cost in now:
            budget.spend(Usage(1, 0, cost, 0))
        made, spent, last = made + len(now), spent + sum(now), sum(now)
    assert max_calls is None or made <= max_calls
    assert max_tokens is None or spent - last < max_tokens
    assert bool(left) is bool(left and budget.spent)
