"""Cost: counted before, measured after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlflow
import pytest
from fake_server import FakeServer, Script
from hypothesis import given
from hypothesis import strategies as st
from rank_jobs import written_recipe
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

import mlflow_mcq
from mlflow_mcq.__main__ import main
from mlflow_mcq.cost import cost_after
from mlflow_mcq.engines.handle import local_model, remote_model
from mlflow_mcq.engines.probe import Probe
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.extras import exam_of
from mlflow_mcq.forecast import cost_before, said
from mlflow_mcq.generation import generate_recipe
from mlflow_mcq.graders import JudgeGrader
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.judges import judge_of
from mlflow_mcq.prompt_count import count_prompts
from mlflow_mcq.recipe import run_recipe
from mlflow_mcq.records import (
    Decoding,
    Generation,
    Item,
    Message,
    Orientation,
    Prompt,
    Query,
    Reply,
)
from mlflow_mcq.spent import Spent

ITEMS = [Item(f"q{n}", f"Which is {n}?", (f"the {n}", "none", "all"), n % 3) for n in range(12)]
TABLE = [
    {"id": i.id, "question": i.question, "options": list(i.options), "answer": i.gold}
    for i in ITEMS
]
Row = list[str | tuple[Message, ...]]


@given(st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=30))
def test_unique_tokens_are_the_nodes_of_a_prefix_tree(texts: list[str]) -> None:
    count = count_prompts([[text] for text in texts], byte_tokenizer())
    nodes = {text[:end] for text in texts for end in range(1, len(text) + 1)}
    total = sum(len(text) + 1 for text in texts)  # and BOS
    assert (count.n_unique, count.n_tokens) == (len(nodes) + 1, total)
    assert count.n_shared == total - len(nodes) - 1
    assert (count.n_prompts, count.n_distinct) == (len(texts), len(set(texts)))


def test_chat_messages_are_counted_with_their_template() -> None:
    row: Row = [(Message("user", "hi"),)]
    count = count_prompts([row], byte_tokenizer(PLAIN_TEMPLATE))
    assert count.n_tokens == 1 + len("[user]hi[assistant]")
    with pytest.raises(ModelError, match="no chat template"):
        count_prompts([row], byte_tokenizer())


def test_very_many_prompts_are_estimated_with_what_they_share() -> None:
    stems = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(1000)]
    items = [[f"the same head {stem} {turn}" for turn in "abcd"] for stem in stems]
    exact, some = (count_prompts(items, byte_tokenizer(), most) for most in (None, 200))
    assert (some.n_prompts, some.n_distinct, some.n_tokens) == (4000, 4000, exact.n_tokens)
    assert some.n_unique == pytest.approx(exact.n_unique, rel=0.05)
    assert some.estimate == "from 200 prompts"
    assert not exact.estimate


class Deaf:
    """A judge whose replies can never be read."""

    fingerprint, deterministic, speaks_chat = "deaf", False, True

    def __init__(self) -> None:
        self.n = 0

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        self.n += len(queries)
        return ((place, Reply("What?")) for place, _ in enumerate(queries))


@pytest.mark.parametrize(
    ("more", "n"),
    [
        pytest.param({}, 24, id="two attempts"),
        pytest.param({"attempts": 1}, 12, id="one"),
        pytest.param({"votes": 3, "temperature": 0.2}, 72, id="three votes"),
    ],
)
def test_a_judge_is_never_asked_more_often_than_was_said(more: dict[str, Any], n: int) -> None:
    settings = JudgeSettings(model="m", base_url="local", check_rows=0, exam_replies=0, **more)
    judge, orientation = Deaf(), Orientation(0, "as-is", (0, 1, 2))
    prompts = [Prompt(item, orientation, "letters", "?", ()) for item in ITEMS]
    answers = [Generation(prompt, 0, Reply(f"Well, {k}")) for k, prompt in enumerate(prompts)]
    assert len([*JudgeGrader(judge, settings).grade(answers)]) == 12
    cost = cost_before(print, TABLE, settings, orientations="as-is")
    assert judge.n == cost.n_judge_calls_most == n
    assert cost.n_judge_calls == 12 * settings.votes


def evaluated(model: object, **settings: object) -> dict[str, float]:
    return dict(mlflow_mcq.evaluate(model, TABLE, evaluators=["mcq_regex"], **settings).metrics)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"  # one: it takes seconds


@pytest.fixture
def here(tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "cache"))
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    yield tmp_path
    mlflow.set_tracking_uri(before)


def test_a_model_here_says_what_it_read_and_what_that_saved(here: Path) -> None:
    model = local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    asked = {"orientations": "rotations", "max_new_tokens": 4}
    before = mlflow_mcq.cost_before(model, TABLE, evaluators="mcq_regex", **asked)
    found = evaluated(model, **asked)
    assert found["cost/prompt_tokens"] == before.n_tokens
    read = found["cost/tokens_prefilled"]
    assert before.n_unique <= read < found["cost/prompt_tokens"]
    assert found["cost/tokens_saved"] == found["cost/prompt_tokens"] - read
    assert 0 < found["cost/tokens_generated"] <= 4 * 36
    assert found["cost/tokens_per_second"] > 0
    assert found["cost/generation_share"] == 1


def test_a_probe_estimates_time_and_memory() -> None:
    small = tiny_model(max_position_embeddings=1024)
    model = local_model(small, byte_tokenizer())
    plain = {"evaluators": "mcq_regex", "max_new_tokens": 4}
    one, all_ = (cost_before(model, TABLE, probe=4, limit=n, **plain) for n in (2, 12))
    assert one.n_probed >= 4
    assert one.seconds is not None
    assert 0 < one.seconds[0] <= one.seconds[1]
    weights = sum(p.numel() * p.element_size() for p in small.parameters())
    assert weights < (one.device_bytes or 0) < (all_.device_bytes or 0)
    assert "an estimate: from" in said([one])[1]


def test_seconds_grow_with_tokens_read_and_rows_written() -> None:
    tried = Probe(n_prompts=4, n_read=100, longest=40, read_seconds=1.0, write_seconds=2.0)
    assert tried.seconds_for(4, 100, at_once=4) == (3.0, 3.0)
    assert tried.seconds_for(4, 200, at_once=4) == (4.0, 4.0)
    assert tried.seconds_for(8, 100, at_once=4) == (5.0, 5.0)
    assert tried.seconds_for(8, 100, at_once=8) == (3.0, 5.0)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(remote_model("http://127.0.0.1:9/v1", "m"), id="a server"),
        pytest.param(print, id="a function"),
    ],
)
def test_only_a_model_that_is_loaded_here_is_tried(model: object) -> None:
    with pytest.raises(SettingsError, match="is not asked"):
        cost_before(model, TABLE, probe=4, evaluators="mcq_regex")


def test_stored_answers_and_their_judge_are_counted() -> None:
    table = [{**row, "generation": "A"} for row in TABLE]
    judge = {"model": "m", "base_url": "local", "attempts": 1, "exam_replies": 5}
    cost = cost_before(None, table, judge)
    assert (cost.n_items, cost.n_prompts, cost.n_tokens) == (12, 0, 0)
    assert (cost.n_judge_calls, cost.n_exam_calls) == (12, 5)
    assert (cost.n_judge_calls_most, cost.n_exam_calls_most) == (12, 5)


def test_the_column_of_the_answers_may_be_named() -> None:
    table = [{"question": "?", "options": ["x", "y"], "right": 1, "answer": "?"}]
    cost = cost_before(print, table, evaluators="mcq_regex", targets="right")
    assert cost.n_items == 1
    with pytest.raises(SettingsError, match="targets"):
        cost_before(print, table, evaluators="mcq_regex", targets="wrong")


def test_few_rows_are_read_one_by_one_and_save_nothing(here: Path) -> None:
    big = tiny_model(max_position_embeddings=1024)
    found = evaluated(local_model(big, byte_tokenizer()), limit=1, orientations="as-is")
    assert (
        found["cost/tokens_saved"] == found["cost/prompt_tokens"] - found["cost/tokens_prefilled"]
    )
    assert 0 <= found["cost/tokens_saved"] < found["cost/prompt_tokens"]


def test_a_server_that_counts_is_believed_and_a_silent_one_is_not_guessed(
    here: Path, judge_server: Callable[[Script], FakeServer]
) -> None:
    server = judge_server(lambda request, n: "A")
    found = evaluated(remote_model(server.url, "m"), orientations="as-is")
    assert found["cost/prompt_tokens"] > 0
    assert "cost/tokens_prefilled" not in found
    silent = cost_after(Spent(3, 0, None, 0), {"generation": 1.0}, None)
    assert "cost/tokens_generated" not in silent.values
    assert silent.undefined["cost/tokens_generated"].startswith("undefined")


def test_a_function_counts_no_tokens_but_time(here: Path) -> None:
    found = evaluated(lambda frame: ["A"] * len(frame))
    assert {name for name in found if name.startswith("cost/")} == {
        "cost/generation_seconds", "cost/generation_share",
    }  # fmt: skip


def test_shares_of_the_stages_are_of_the_whole() -> None:
    found = cost_after(None, {"generation": 6.0, "judging": 3.0, "embedding": 1.0}, None).values
    assert found["cost/judging_share"] == 0.3
    assert sum(v for name, v in found.items() if name.endswith("_share")) == pytest.approx(1)


def test_rows_made_ahead_cost_what_they_took_and_are_not_free(here: Path) -> None:
    tiny_model().save_pretrained(here / "model")
    byte_tokenizer().save_pretrained(here / "model")
    recipe = written_recipe(here, 9, str(here / "model"))
    [alone] = run_recipe(recipe)
    generate_recipe(recipe)
    [ahead] = run_recipe(recipe)
    assert ahead.metrics["generation/n_resumed"] == 27
    for name in ("prompt_tokens", "tokens_prefilled", "tokens_generated"):
        assert ahead.metrics[f"cost/{name}"] == alone.metrics[f"cost/{name}"] > 0
    assert ahead.metrics["cost/generation_seconds"] > ahead.metrics["generation/seconds"]


def test_the_command_line_counts_without_loading_a_model(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    byte_tokenizer().save_pretrained(here / "words")  # and no weights
    judge = {"model": "m", "base_url": "http://nowhere.invalid/v1", "attempts": 1}
    recipe = written_recipe(here, 9, str(here / "words"), evaluators=["mcq_judge"], judge=judge)
    assert main(["cost", str(recipe)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["one"]]
    assert line.split()[1:3] == ["27", "27"]
    assert line.split()[-3:] == [str(27 + 1), "-", "-"]


def test_an_exam_that_was_sat_here_costs_no_calls(
    here: Path, judge_server: Callable[[Script], FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = judge_server(lambda request, n: "A")
    monkeypatch.setenv("JUDGE_KEY", "sk-none")
    judge = {
        "model": "m", "base_url": server.url, "api_key_env": "JUDGE_KEY", "exam_replies": 5,
    }  # fmt: skip
    before = cost_before(print, TABLE, judge)
    assert (before.n_exam_calls, before.n_exam_calls_most) == (5, 10)
    exam_of(judge_of(JudgeSettings(**judge)))
    n_asked = len(server.requests)
    monkeypatch.delenv("JUDGE_KEY")  # a forecast asks nobody, so it needs none
    after = cost_before(print, TABLE, judge)
    assert (after.n_exam_calls, after.n_exam_calls_most) == (0, 0)
    assert after.n_judge_calls == before.n_judge_calls
    assert "exam" not in said([after])[0]
    assert "and 5 for its exam" in said([before])[0]
    others = ({"exam_replies": 7}, {"shape": "direct"}, {"model": "n"})
    left = [cost_before(print, TABLE, {**judge, **other}).n_exam_calls for other in others]
    assert left == [7, 5, 5]
    assert len(server.requests) == n_asked


def test_the_command_line_tries_a_model_where_that_is_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model().save_pretrained(here / "model")
    byte_tokenizer().save_pretrained(here / "model")
    assert main(["cost", str(written_recipe(here, 9, str(here / "model"))), "--probe", "4"]) == 0
    out = capsys.readouterr().out
    [line] = [line for line in out.splitlines() if line.split()[:1] == ["one"]]
    assert "-" not in line.split()[-2:]
    assert "estimates" in out
