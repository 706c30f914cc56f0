"""The judge exam: the set itself, and what it says of judges that are known through and through."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

import mlflow_mcq
from mlflow_mcq.doors import Chat
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.errors import DataError, JudgeNotConfigured, SettingsError
from mlflow_mcq.graders.exam import ExamReport, Thresholds, examine_judge
from mlflow_mcq.graders.exam_reply import ExamReply, exam_digest, load_exam
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.judge_prompt import harmless, judge_conversation
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.thought import visible_answer
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Decoding, Query, Reply, Verdict

EXAM = load_exam()
N = len(EXAM)
DIRECT = JudgeSettings(model="m", base_url="local", shape="direct")
KINDS = {
    *("content", "letter_in_prose", "ordinal", "elimination", "refusal", "hedge", "several"),
    *("rejection_first", "negation", "correction", "language", "contradiction", "conflict"),
    *("off_list", "none_of_above", "off_topic", "injection", "truncated", "thought"),
    *("gibberish", "empty", "options_echoed", "question_repeated", "confidence", "unlettered"),
}


def visible(reply: ExamReply) -> str:
    return harmless(visible_answer(reply.generation).text)


# The set


def test_the_set_is_large_and_has_every_kind():
    assert N >= 170
    kinds = Counter(reply.kind for reply in EXAM)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 3


def test_verdicts_are_about_a_third_each():
    for n in Counter(reply.verdict for reply in EXAM).values():
        assert 0.3 <= n / N <= 0.37


@pytest.mark.parametrize("verdict", [None, *Verdict], ids=str)
def test_letters_are_balanced(verdict):
    rows = [reply for reply in EXAM if verdict in (None, reply.verdict)]
    chosen = Counter(reply.slot for reply in rows if reply.slot is not None)
    if verdict is not Verdict.OTHER:
        assert max(chosen[s] for s in range(4)) - min(chosen[s] for s in range(4)) <= 2
    gold = Counter(reply.gold_slot for reply in rows)
    assert max(gold[s] for s in range(4)) <= 1.6 * min(gold[s] for s in range(4))


def test_gold_letters_are_balanced_over_all_and_pages_differ_in_length():
    gold = Counter(reply.gold_slot for reply in EXAM)
    assert max(gold[s] for s in range(4)) - min(gold[s] for s in range(4)) <= 2
    assert gold[4] >= 6
    assert sum(reply.slot is not None and reply.slot >= 4 for reply in EXAM) >= 6
    assert {len(reply.options) for reply in EXAM} == {2, 3, 4, 5, 6}
    assert {reply.labels for reply in EXAM} == {"letters", "none"}


def test_languages():
    languages = Counter(reply.language for reply in EXAM)
    assert len(languages) >= 13
    for script in ("ru", "el", "ar", "he", "hi", "zh", "ja", "ko"):
        assert languages[script]
    assert {r.verdict for r in EXAM if r.language != "en"} == set(Verdict)


def test_nothing_is_there_twice():
    assert len({reply.id for reply in EXAM}) == N
    assert len({(r.question, r.reply, r.labels) for r in EXAM}) == N


def test_what_looks_the_same_to_a_judge_has_the_same_label():
    seen: dict[object, set[object]] = {}
    for reply in EXAM:
        asked = judge_conversation(reply.generation, "extract", True)
        seen.setdefault(asked, set()).add(reply.slot)
    assert all(len(labels) == 1 for labels in seen.values())


def test_rows_carry_the_fields_and_no_others():
    text = files("mlflow_mcq.graders").joinpath("exam_replies.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert {row["finish_reason"] for row in rows} == {"eos", "length"}
    project = Path(__file__).parent.parent / "pyproject.toml"
    assert "graders/exam_replies.jsonl" in project.read_text(encoding="utf-8")


@pytest.mark.parametrize("reply", EXAM, ids=lambda reply: reply.id)
def test_the_strict_rule_never_contradicts_a_label(reply):
    prompt = reply.generation.prompt
    reading = read_strict(
        reply.reply, prompt.shown, prompt.labels, "", reply.finish_reason == "length"
    )
    assert not reading.settled or reading.slot == reply.slot


def test_the_judge_was_not_shown_the_exam_among_its_examples():
    asked = judge_conversation(EXAM[0].generation, "extract", True)
    shown = "\n".join(message.content for message in asked[:-1])
    assert not [reply.id for reply in EXAM if reply.question in shown]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        pytest.param({"slot": 0}, "CORRECT", id="OTHER with a slot"),
        pytest.param({"verdict": Verdict.CORRECT}, "OTHER", id="CORRECT without a slot"),
        pytest.param({"slot": 1, "verdict": Verdict.CORRECT}, "INCORRECT", id="wrong slot"),
        pytest.param({"slot": 9, "verdict": Verdict.INCORRECT}, "not shown", id="no such slot"),
        pytest.param({"labels": "numbers"}, "labels", id="labels"),
    ],
)
def test_a_label_that_contradicts_itself_is_refused(changed, fault):
    good = ExamReply("x", "k", "Which?", ("p", "q"), 0, "letters", "hm", Verdict.OTHER, None)
    with pytest.raises(DataError, match=fault):
        replace(good, **changed)


# Judges that are known


class Scripted:
    """A judge that knows which reply it is asked about, and answers by a function of it."""

    deterministic, speaks_chat = True, True

    def __init__(self, answer: Callable[[ExamReply, list[str]], str | Reply], name: str = "s"):
        self.answer, self.fingerprint = answer, name
        self.known = {(r.question, visible(r), r.labels): r for r in EXAM}
        self.n_asked = 0

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        for place in reversed(range(len(queries))):
            self.n_asked += 1
            asked = queries[place].content[-1].content
            mark = asked.split("The candidate's reply:\n")[1].split("\n")[0]
            quoted = asked.split(f"{mark}\n")[1].removesuffix("\n")
            labels = "none" if "WITHOUT letters" in asked else "letters"
            reply = self.known[asked.split("\n")[0], quoted, labels]
            said = self.answer(reply, list("ABCDEF")[: len(reply.options)])
            yield place, said if isinstance(said, Reply) else Reply(said)


def truth(reply: ExamReply, letters: list[str]) -> str:
    return "OTHER" if reply.slot is None else letters[reply.slot]


def share(hits: int, n: int) -> float:
    return pytest.approx(hits / n)


def test_a_perfect_judge_is_perfect():
    chat = Scripted(truth)
    assert isinstance(chat, Chat)
    report = examine_judge(chat)
    numbers = report.numbers()
    names = ("correct", "incorrect", "other")
    ones = ["accuracy", "kappa", "slot_accuracy", "reliable"]
    ones += [f"{rate}_{name}" for rate in ("sensitivity", "specificity") for name in names]
    assert {numbers[f"exam_{name}"] for name in ones} == {1.0}
    assert all(numbers[f"exam_letter_bias_slot_{slot}"] == 0 for slot in range(1, 7))
    assert numbers["exam_kappa_low"] > 0.95
    assert (numbers["exam_n_replies"], numbers["exam_n_errors"]) == (N, 0)
    assert report.reliable
    assert report.shortfalls == ()
    assert report.undefined() == {"exam_letter_bias_p_value": "undefined: 0 wrong slots"}
    assert [kind for kind, *_ in report.by_kind] == sorted(KINDS)
    assert all(n == right and not failed for _, n, failed, right in report.by_kind)


def test_a_perfect_judge_of_the_direct_shape():
    report = examine_judge(Scripted(lambda reply, _: reply.verdict.value), DIRECT)
    assert report.reliable
    assert report.verdicts.accuracy.value == 1
    assert report.letters == ()
    reason = "undefined: the direct shape names no slot"
    names = ("exam_slot_accuracy", "exam_letter_bias_p_value")
    assert report.undefined() == dict.fromkeys(names, reason)
    assert not set(names) & set(report.numbers())


def test_every_reply_goes_to_the_judge_even_where_a_rule_could_read_it():
    chat = Scripted(truth)
    examine_judge(chat)
    different = {judge_conversation(r.generation, "extract", True) for r in EXAM}
    assert chat.n_asked == len(different)


def test_a_parrot_that_says_a():
    report = examine_judge(Scripted(lambda reply, letters: "A"))
    numbers = report.numbers()
    right = [r for r in EXAM if r.verdict is Verdict.CORRECT]
    wrong = [r for r in EXAM if r.verdict is Verdict.INCORRECT]
    assert numbers["exam_sensitivity_other"] == 0
    assert numbers["exam_specificity_other"] == 1
    assert numbers["exam_sensitivity_correct"] == share(
        sum(r.gold_slot == 0 for r in right), len(right)
    )
    assert numbers["exam_sensitivity_incorrect"] == share(
        sum(r.gold_slot != 0 for r in wrong), len(wrong)
    )
    assert numbers["exam_specificity_correct"] == share(
        sum(r.gold_slot != 0 for r in EXAM if r not in right), N - len(right)
    )
    chosen = [r for r in EXAM if r.slot is not None]
    n_a = sum(r.slot == 0 for r in chosen)
    assert numbers["exam_slot_accuracy"] == share(n_a, len(chosen))
    assert numbers["exam_letter_bias_slot_1"] == share(N - n_a, N)
    assert numbers["exam_letter_bias_slot_2"] < -0.1
    assert numbers["exam_letter_bias_p_value"] < 1e-9
    assert abs(numbers["exam_kappa"]) < 0.2
    assert not report.reliable


def test_a_judge_that_always_says_other():
    report = examine_judge(Scripted(lambda reply, _: "OTHER"))
    numbers = report.numbers()
    n_other = sum(r.verdict is Verdict.OTHER for r in EXAM)
    assert numbers["exam_accuracy"] == share(n_other, N)
    assert numbers["exam_kappa"] == 0
    assert (numbers["exam_sensitivity_other"], numbers["exam_specificity_other"]) == (1, 0)
    assert numbers["exam_sensitivity_correct"] == 0
    assert not report.reliable
    assert "sensitivity to CORRECT is 0.00, below 0.80" in report.shortfalls


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Reply(None, "timeout"), id="broken calls"),
        pytest.param("I think that", id="prose"),
        pytest.param("", id="nothing"),
        pytest.param("G", id="a letter that no page shows"),
    ],
)
def test_a_judge_that_fails_on_every_reply(said):
    report = examine_judge(Scripted(lambda reply, _: said))
    assert report.numbers() == {
        "exam_n_replies": N,
        "exam_n_errors": N,
        "exam_error_rate": 1.0,
        "exam_reliable": 0.0,
    }
    assert report.undefined()["exam_kappa"] == "undefined: 0 rows"
    assert "kappa is undefined: 0 rows" in report.shortfalls


def test_a_judge_that_draws_lots():
    draw = random.Random(11)
    report = examine_judge(Scripted(lambda reply, letters: draw.choice([*letters, "OTHER"])))
    assert abs(report.verdicts.kappa.value) < 0.2
    assert report.verdicts.kappa.low < 0 < report.verdicts.kappa.high
    assert report.preference.p_value > 0.01
    assert not report.reliable


def failing_on(n_failures: int) -> ExamReport:
    failing = {reply.id for reply in EXAM[:n_failures]}
    return examine_judge(Scripted(lambda r, ls: "hm" if r.id in failing else truth(r, ls)))


def test_errors_of_the_judge_lower_the_coverage_and_no_rate():
    few, many = failing_on(4), failing_on(6)
    assert few.reliable
    assert few.n_errors == 4
    assert not many.reliable
    for report in (few, many):
        assert report.verdicts.accuracy.value == report.verdicts.kappa.value == 1
        assert report.verdicts.accuracy.n == N - report.n_errors
    assert many.shortfalls == (
        "share of unreadable replies of the judge is 0.026, above 0.020 "
        "(6 times judge_parse_failure)",
    )
    assert few.failures == (("judge_parse_failure", 4),)
    assert ("content", 18, 4, 14) in few.by_kind


def test_a_judge_that_mixes_up_two_letters():
    swap = {"C": "D"}

    def answer(reply: ExamReply, letters: list[str]) -> str:
        said = truth(reply, letters)
        return swap.get(said, said) if len(letters) > 3 else said

    report = examine_judge(Scripted(answer))
    biases = {one.slot: one.bias for one in report.letters}
    assert biases[2].high < 0 < biases[3].low
    assert biases[0].value == biases[1].value == 0
    assert report.preference.p_value < 1e-6
    assert report.slot_accuracy.value < report.verdicts.accuracy.value
    assert not report.reliable


@pytest.mark.parametrize("kind", ["injection", "contradiction", "language"])
def test_by_kind_shows_where_a_judge_is_weak(kind):
    def answer(reply: ExamReply, letters: list[str]) -> str:
        wrong = "OTHER" if reply.slot is not None else "A"
        return wrong if reply.kind == kind else truth(reply, letters)

    rows = {name: (n, right) for name, n, _, right in examine_judge(Scripted(answer)).by_kind}
    assert [name for name, (n, right) in rows.items() if right < n] == [kind]
    assert rows[kind][1] == 0


def test_the_wrong_slot_is_not_right_even_where_the_verdict_is():
    reply = next(r for r in EXAM if r.verdict is Verdict.INCORRECT and len(r.options) == 4)
    other = next(s for s in range(4) if s not in (reply.slot, reply.gold_slot))
    report = examine_judge(Scripted(lambda r, letters: letters[other]), replies=[reply])
    assert report.verdicts.accuracy.value == 1
    assert report.slot_accuracy.value == 0
    assert report.by_kind == ((reply.kind, 1, 0, 0),)


def test_thresholds_can_be_set():
    report = examine_judge(Scripted(lambda r, _: "OTHER"), thresholds=Thresholds(-1, 0, 1))
    assert report.reliable


def test_the_report_does_not_depend_on_the_order_of_replies():
    shuffled = random.Random(1).sample(EXAM, N)
    chat = Scripted(lambda reply, letters: letters[0] if "a" in reply.reply else "OTHER")
    assert examine_judge(chat, replies=shuffled) == examine_judge(chat)
    assert exam_digest(shuffled) == exam_digest(EXAM)
    assert exam_digest(EXAM[1:]) != exam_digest(EXAM)
    changed = replace(EXAM[0], slot=None, verdict=Verdict.OTHER)
    assert exam_digest([changed, *EXAM[1:]]) != exam_digest(EXAM)


@pytest.mark.parametrize("replies", [[], [EXAM[0], EXAM[0]]], ids=["none", "one twice"])
def test_an_exam_that_is_none_is_refused(replies):
    with pytest.raises(DataError, match="different ids"):
        examine_judge(Scripted(truth), replies=replies)


# Cache


def test_a_judge_sits_an_exam_once(tmp_path):
    chat = Scripted(truth)
    first = examine_judge(chat, cache_dir=str(tmp_path))
    n_asked = chat.n_asked
    assert examine_judge(chat, cache_dir=str(tmp_path)) == first
    assert chat.n_asked == n_asked
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("said", ["A", "hm"], ids=["readable", "unreadable"])
def test_another_judge_shape_or_exam_is_asked_anew(tmp_path, said):
    chat = Scripted(lambda reply, _: said)
    examine_judge(chat, cache_dir=str(tmp_path))
    for other in (
        {"judge": Scripted(truth, "another")},
        {"judge": Scripted(lambda reply, _: "OTHER"), "settings": DIRECT},
        {"judge": Scripted(truth), "replies": EXAM[:50]},
    ):
        examine_judge(**other, cache_dir=str(tmp_path))
        assert other["judge"].n_asked >= 45
    n_asked = chat.n_asked
    report = examine_judge(chat, cache_dir=str(tmp_path))
    assert chat.n_asked == n_asked
    assert report.n_errors == (N if said == "hm" else 0)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="torn"),
        pytest.param(lambda text: "", id="empty"),
        pytest.param(lambda text: "[1, 2]", id="a list"),
        pytest.param(lambda text: '{"readings": [{"id": "x"}]}', id="a field is missing"),
        pytest.param(lambda text: text.replace('"OTHER"', '"MAYBE"'), id="no such verdict"),
        pytest.param(lambda text: text.replace('"slot": 0', '"slot": "A"'), id="no such slot"),
        pytest.param(lambda text: text.replace('"CORRECT"', "null"), id="neither read nor failed"),
    ],
)
def test_a_damaged_file_is_ignored_and_replaced(tmp_path, damage):
    chat = Scripted(truth)
    first = examine_judge(chat, cache_dir=str(tmp_path))
    [path] = tmp_path.iterdir()
    good = path.read_text(encoding="utf-8")
    path.write_text(damage(good), encoding="utf-8")
    n_asked = chat.n_asked
    assert examine_judge(chat, cache_dir=str(tmp_path)) == first
    assert chat.n_asked == 2 * n_asked
    assert path.read_text(encoding="utf-8") == good


def test_broken_calls_are_not_kept_against_a_judge(tmp_path):
    broken = {reply.id for reply in EXAM if reply.kind == "refusal"}
    down = Scripted(lambda r, ls: Reply(None, "503") if r.id in broken else truth(r, ls))
    assert examine_judge(down, cache_dir=str(tmp_path)).n_errors == len(broken)
    up = Scripted(truth)
    assert examine_judge(up, cache_dir=str(tmp_path)).reliable
    assert up.n_asked == len(broken)


def test_a_folder_that_cannot_be_written_costs_a_warning_only(tmp_path, caplog):
    place = tmp_path / "file"
    place.write_text("in the way")
    assert examine_judge(Scripted(truth), cache_dir=str(place)).reliable
    assert "could not be kept" in caplog.text


# The door


def test_a_grader_brings_its_own_settings():
    grader = JudgeGrader(Scripted(lambda reply, _: reply.verdict.value), DIRECT)
    report = examine_judge(grader)
    assert (report.judge, report.shape) == (grader.fingerprint, "direct")
    with pytest.raises(SettingsError, match="has its own"):
        examine_judge(grader, DIRECT)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda chat: chat, id="chat"),
        pytest.param(ModelHandle, id="handle"),
        pytest.param(
            lambda chat: JudgeGrader(chat, JudgeSettings(model="m", base_url="local")), id="grader"
        ),
    ],
)
def test_the_front_door_takes_what_users_hold(wrap):
    assert mlflow_mcq.examine_judge(wrap(Scripted(truth))).reliable


def test_the_front_door_connects_a_judge_by_its_settings(judge_server, tmp_path):
    server = judge_server(lambda request, n: "OTHER")
    named = {"model": "m", "base_url": server.url, "cache_dir": str(tmp_path), "max_retries": 0}
    report = mlflow_mcq.examine_judge(named)
    assert report.verdicts.kappa.value == 0
    assert report.n_errors == 0
    n_asked = len(server.requests)
    assert n_asked > 200
    assert mlflow_mcq.examine_judge(JudgeSettings(**named)) == report
    assert len(server.requests) == n_asked


@pytest.mark.parametrize(
    ("judge", "fault"),
    [
        pytest.param({"model": "m"}, JudgeNotConfigured, id="no server"),
        pytest.param({}, JudgeNotConfigured, id="nothing"),
        pytest.param("gpt", JudgeNotConfigured, id="a name alone"),
        pytest.param(
            {"model": "m", "base_url": "local", "shpe": "direct"}, SettingsError, id="misspelt"
        ),
    ],
)
def test_the_front_door_says_what_is_missing(judge, fault):
    with pytest.raises(fault):
        mlflow_mcq.examine_judge(judge)


def test_settings_are_not_given_twice():
    with pytest.raises(SettingsError, match="twice"):
        mlflow_mcq.examine_judge(DIRECT, DIRECT)


def test_a_small_model_is_no_reliable_judge(smollm2):
    sample = random.Random(3).sample(EXAM, 24)
    settings = JudgeSettings(model="demo:smollm2", base_url="local", max_tokens=3)
    report = examine_judge(smollm2, settings, replies=sample)
    assert not report.reliable
    assert report.verdicts.kappa.value < 0.5
    assert report.n_replies == 24
