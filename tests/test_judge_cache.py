"""The judge cache: what was asked once is not asked again, and nothing else is kept."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from fake_chat import PLANETS, PROSE, ScriptedChat, always, generation, judge
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.judge_cache import JudgeCache
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Item, Message, Query, Reply, Verdict

QUERY = Query((Message("system", "rules"), Message("user", "Which?")))
KNOWN = Reply("A", finish_reason="eos", n_prompt_tokens=700, n_tokens=1)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "cache" / "deep")


def rows(n: int = 3):
    return [
        generation(PROSE, item=Item(f"q{i}", f"Which, {i}?", PLANETS, gold=1)) for i in range(n)
    ]


# In the judge


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="plain"),
        pytest.param({"votes": 3}, id="votes"),
        pytest.param({"shuffle_options": True, "votes": 2}, id="shuffled"),
        pytest.param({"shape": "direct"}, id="direct"),
    ],
)
def test_a_second_run_asks_nothing_and_says_the_same(folder, changed):
    answer = always("CORRECT" if changed.get("shape") else "A")
    first = judge(ScriptedChat(answer), cache_dir=folder, **changed)
    grades = sorted(first.grade(rows()), key=lambda g: g.generation.key)
    chat = ScriptedChat(always("OTHER"))
    again = judge(chat, cache_dir=folder, **changed)
    assert sorted(again.grade(rows()), key=lambda g: g.generation.key) == grades
    assert chat.asked == []
    n = 3 * changed.get("votes", 1)
    assert (first.usage.n_calls, first.usage.n_cached) == (n, 0)
    assert (again.usage.n_calls, again.usage.n_cached, again.usage.prompt_tokens) == (0, n, 0)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"shape": "direct"}, id="shape"),
        pytest.param({"temperature": 0.1}, id="temperature"),
        pytest.param({"max_tokens": 99}, id="max_tokens"),
        pytest.param({"shuffle_options": True}, id="shuffle_options"),
        pytest.param({"rationale": True}, id="rationale"),
    ],
)
def test_another_judge_reads_nothing_of_this_one(folder, changed):
    [*judge(ScriptedChat(always("A")), cache_dir=folder).grade(rows())]
    chat = ScriptedChat(always("OTHER"))
    [*judge(chat, cache_dir=folder, **changed).grade(rows())]
    assert len(chat.asked) >= 3
    assert len([*Path(folder).glob("judge_*.jsonl")]) == 2


def test_more_votes_pay_for_the_new_ones_only(folder):
    [*judge(ScriptedChat(always("A")), cache_dir=folder).grade(rows(1))]
    chat = ScriptedChat(always("B"))
    [grade] = judge(chat, cache_dir=folder, votes=3).grade(rows(1))
    assert [query.seed for query in reversed(chat.asked)] == [1, 2]
    assert grade.choice == 2


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("well", id="unreadable"),
        pytest.param("", id="empty"),
        pytest.param(Reply(None, "503"), id="broken call"),
        pytest.param(Reply("A", "503"), id="a text beside an error"),
        pytest.param(Reply(None), id="no text"),
    ],
)
def test_no_error_is_kept(folder, bad):
    [grade] = judge(ScriptedChat(always(bad)), cache_dir=folder).grade(rows(1))
    assert grade.verdict is None
    [path] = Path(folder).iterdir()
    assert path.read_bytes() == b""
    [grade] = judge(ScriptedChat(always("A")), cache_dir=folder).grade(rows(1))
    assert grade.verdict is Verdict.CORRECT


def test_a_reply_that_is_no_longer_readable_is_asked_for_again(folder):
    grader = judge(ScriptedChat(always("A")), cache_dir=folder)
    [*grader.grade(rows(1))]
    [path] = Path(folder).iterdir()
    path.write_text(path.read_text().replace('"A"', '"well"'))
    for n_calls in (1, 0):
        chat = ScriptedChat(always("B"))
        [grade] = judge(chat, cache_dir=folder).grade(rows(1))
        assert (grade.choice, len(chat.asked)) == (2, n_calls)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [*judge(ScriptedChat(always("A"))).grade(rows())]
    assert [*tmp_path.iterdir()] == []


def test_no_secret_and_no_prompt_is_written(folder, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sk-hush-1")
    chosen = JudgeSettings(
        model="m",
        base_url="https://me:sk-hush-2@host/v1?key=sk-hush-3",
        api_key_env="JUDGE_KEY",
        cache_dir=folder,
    )
    chat = ScriptedChat(always(Reply("A", sent="sk-hush-4", n_prompt_tokens=5)))
    [*JudgeGrader(chat, chosen).grade(rows())]
    [path] = Path(folder).iterdir()
    kept = str(path) + path.read_text()
    for hidden in ("sk-hush", "JUDGE_KEY", "host", "Saturn", "Which"):
        assert hidden not in kept
    assert len(path.read_text().splitlines()) == 3


def test_a_folder_that_cannot_be_used_is_said_before_the_first_call(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"judge.cache_dir: must be a folder"):
        judge(ScriptedChat(always("A")), cache_dir=str(tmp_path / "file"))


def test_a_disk_that_fails_costs_the_cache_and_not_the_grades(folder, monkeypatch, caplog):
    grader = judge(ScriptedChat(always("A")), cache_dir=folder)

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert len([*grader.grade(rows())]) == 3
    assert [record.message for record in caplog.records] == [
        "judge cache: No space left on device; replies are no longer kept"
    ]


# On disk


def test_conversation_seed_and_judge_are_the_key(folder):
    cache = JudgeCache(folder, "abc")
    cache.put(QUERY, KNOWN)
    assert JudgeCache(folder, "abc").get(QUERY) == KNOWN
    others = [
        Query(QUERY.content, seed=1),
        Query((*QUERY.content, Message("user", ""))),
        Query((Message("user", "rules"), Message("user", "Which?"))),
        Query("rulesWhich?"),
    ]
    assert [cache.get(query) for query in others] == [None] * 4
    assert JudgeCache(folder, "abd").get(QUERY) is None


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b'{"key": "0', id="torn"),
        pytest.param(b"\n", id="blank line"),
        pytest.param(b"\xff\xfe\x00\n", id="no text"),
        pytest.param(b'{"key": 1}\n', id="other fields"),
        pytest.param(b"[" * 100_000 + b"\n", id="deeply nested"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"key":"k","text":"B","finish_reason":"","n_prompt_tokens":"x"}', id="type"),
    ],
)
def test_a_broken_line_costs_itself_only(folder, tail):
    before = JudgeCache(folder, "abc")
    before.put(QUERY, KNOWN)
    with before.path.open("ab") as file:
        file.write(tail)
    after = JudgeCache(folder, "abc")
    assert len(after) == 1
    assert after.get(QUERY) == KNOWN
    after.put(Query("next"), KNOWN)
    last = JudgeCache(folder, "abc")
    assert (last.get(QUERY), last.get(Query("next"))) == (KNOWN, KNOWN)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_torn_anywhere_is_repaired(folder, cut):
    cache = JudgeCache(folder, "abc")
    cache.put(QUERY, KNOWN)
    cache.put(Query("second"), KNOWN)
    cache.path.write_bytes(cache.path.read_bytes()[:-cut])
    again = JudgeCache(folder, "abc")
    assert again.get(QUERY) == KNOWN
    again.put(Query("second"), KNOWN)
    assert JudgeCache(folder, "abc").get(Query("second")) == KNOWN


def test_what_is_known_is_not_written_twice(folder):
    cache = JudgeCache(folder, "abc")
    for _ in range(3):
        cache.put(QUERY, KNOWN)
    assert len(cache.path.read_text().splitlines()) == 1


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.text(st.characters()), st.text(st.characters())), max_size=5),
    st.integers(0, 2**63),
)
def test_law_any_text_comes_back_as_it_was(tmp_path, pairs, seed):
    cache = JudgeCache(tmp_path, "abc")
    for asked, said in pairs:
        cache.put(Query(asked + "\ud83d\u2028\n", seed), Reply(said + '\ud83d"}\n{'))
    again = JudgeCache(tmp_path, "abc")
    for asked, said in dict(pairs).items():
        assert again.get(Query(asked + "\ud83d\u2028\n", seed)) == Reply(said + '\ud83d"}\n{')


def _write_many(folder: str, name: str) -> None:
    cache = JudgeCache(folder, "abc")
    for n in range(200):
        cache.put(Query(f"{name} {n}"), Reply(f"{name} {n} " + "x" * 5000))


def test_two_processes_share_a_file(folder):
    JudgeCache(folder, "abc")
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    workers = [context.Process(target=_write_many, args=(folder, name)) for name in ("x", "y")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    cache = JudgeCache(folder, "abc")
    assert len(cache) == 400
    assert cache.get(Query("y 199")) == Reply("y 199 " + "x" * 5000)
    # One that starts while the other is half through ends its line for it: a blank line.
    assert all(json.loads(line) for line in cache.path.read_text().splitlines() if line)
