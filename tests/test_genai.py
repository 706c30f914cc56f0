"""`mlflow.genai.evaluate`: rows before it, scorers in it, numbers after it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException

import mlflow_mcq
from mlflow_mcq import scorers
from mlflow_mcq.errors import (
    DataError,
    JudgeNotConfigured,
    JudgeUnavailable,
    RunInUse,
    SettingsError,
    StoreError,
)
from mlflow_mcq.genai.evaluation import bounded_workers
from mlflow_mcq.genai.feedback import feedback_of, grade_from
from mlflow_mcq.genai.rotated import answered_rows
from mlflow_mcq.genai.row import generation_of, row_of
from mlflow_mcq.graders.plain import ABSTAINS
from mlflow_mcq.records import Grade, Item, Orientation, Prompt, Request
from mlflow_mcq.trace_search import in_experiment

METALS = ["iron", "mercury", "tin", "zinc"]
ROW = {"options": METALS, "gold": 1, "order": [1, 2, 3, 0]}
DATA = [
    {"id": f"q{i}", "question": f"Which is number {i}?", "options": METALS, "answer": i % 4}
    for i in range(6)
]


def values(feedback: list[Any]) -> dict[str, Any]:
    return {one.name: one.value for one in feedback if one.error is None}


KEY, IN_QUERY = "sk-canary-7Qp2vv91", "query-canary-31kk8a"


# --- one row ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(
            "A",
            {
                "strict": "CORRECT",
                "strict_correct": True,
                "strict_correct_decided": True,
                "strict_other": False,
                "strict_abstains": False,
            },
            id="right: the top slot shows mercury",
        ),
        pytest.param(
            "B",
            {
                "strict": "INCORRECT",
                "strict_correct": False,
                "strict_correct_decided": False,
                "strict_other": False,
                "strict_abstains": False,
            },
            id="wrong",
        ),
        pytest.param(
            "",
            {
                "strict": "OTHER",
                "strict_correct": False,
                "strict_other": True,
                "strict_abstains": False,
            },
            id="OTHER is in no number over decided rows",
        ),
        pytest.param(
            "It melts in the hand.",
            {"strict": "ABSTAINS", "strict_abstains": True},
            id="what only a judge can read is in no other number",
        ),
    ],
)
def test_strict_numbers(reply: str, expected: dict[str, Any]) -> None:
    assert values(scorers.strict()(outputs=reply, expectations=ROW)) == expected


def test_a_verdict_says_where_the_choice_stood() -> None:
    verdict = scorers.regex("bounded")(outputs="I say (B).", expectations=ROW)[0]
    assert verdict.value == "INCORRECT"
    assert verdict.metadata["mcq.choice"] == "tin"
    assert verdict.metadata["mcq.slot"] == "1"
    assert verdict.source.source_type == "CODE"
    assert verdict.source.source_id == "regex_bounded"


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param("A", id="text"),
        pytest.param({"choices": [{"message": {"content": "A"}}]}, id="chat completion"),
    ],
)
def test_forms_of_an_answer(outputs: Any) -> None:
    assert values(scorers.strict()(outputs=outputs, expectations=ROW))["strict"] == "CORRECT"


@pytest.mark.parametrize(
    ("outputs", "expectations", "code"),
    [
        pytest.param(None, ROW, "NO_ANSWER", id="the predict function failed"),
        pytest.param(7, ROW, "NO_ANSWER", id="no text"),
        pytest.param("A", {}, "UNREADABLE_ROW", id="no options"),
        pytest.param("A", {"options": METALS}, "UNREADABLE_ROW", id="no gold"),
        pytest.param("A", {"options": METALS, "gold": 4}, "UNREADABLE_ROW", id="gold beyond"),
        pytest.param("A", {**ROW, "order": [0, 1]}, "UNREADABLE_ROW", id="half an order"),
    ],
)
def test_what_cannot_be_read_is_one_error_and_no_number(
    outputs: Any, expectations: dict[str, Any], code: str
) -> None:
    (only,) = scorers.regex()(outputs=outputs, expectations=expectations)
    assert only.error is not None
    assert only.error.error_code == code


def test_a_failed_judge_is_an_error_counted_apart(judge_server: Any) -> None:
    server = judge_server(lambda request, n: refused(400, "no"))
    judge = scorers.judge("m", server.url, max_retries=0, name="referee")
    found = judge(outputs="It may well be so.", expectations=ROW)
    assert [one.name for one in found] == ["referee", "referee_error"]
    assert found[0].error.error_code == "JUDGE_ERROR"
    assert found[0].source.source_type == "LLM_JUDGE"
    assert found[1].value is True


def test_a_row_that_needs_no_judge_is_not_ascribed_to_one(judge_server: Any) -> None:
    server = judge_server(lambda request, n: "OTHER")
    judge = scorers.judge("m", server.url)
    settled = judge(outputs="A", expectations=ROW)[0]
    judged = judge(outputs="Hard to say.", expectations=ROW)[0]
    assert (settled.source.source_type, judged.source.source_type) == ("CODE", "LLM_JUDGE")
    assert judged.source.source_id == "m"
    assert (settled.value, judged.value) == ("CORRECT", "OTHER")
    assert judge.usage.n_calls == len(server.requests) == 1


def test_a_budget_holds_over_rows(judge_server: Any) -> None:
    server = judge_server(lambda request, n: "OTHER")
    judge = scorers.judge("m", server.url, max_calls=2)
    said = [judge(outputs=f"Hm, {i}", expectations=ROW)[0] for i in range(4)]
    assert [one.error is None for one in said] == [True, True, False, False]
    assert len(server.requests) == 2


def test_similarity_and_analogy_read_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = {"options": ["hot : cold", "up : left"], "gold": 0}
    found = values(scorers.analogy()(outputs="hot : cold", expectations=pairs))
    assert found["analogy"] == "CORRECT"
    assert scorers.similarity(encoder="demo:minilm").judge_model == ""


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        pytest.param(lambda: scorers.judge(""), JudgeNotConfigured, "no judge", id="nobody"),
        pytest.param(
            lambda: scorers.judge("m", "http://x", temprature=0),
            SettingsError,
            'Did you mean "temperature"',
            id="misspelt",
        ),
        pytest.param(lambda: scorers.regex("bound"), SettingsError, "regex_bounded", id="parser"),
        pytest.param(
            lambda: scorers.similarity(flor=1), SettingsError, 'Did you mean "floor"', id="part"
        ),
    ],
)
def test_wrong_settings_are_refused_when_a_scorer_is_made(
    make: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        make()


ITEMS = st.builds(
    lambda options, gold, seed: Item("q", "Which?", tuple(options), gold % len(options)),
    st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=6),
    st.integers(0, 5),
    st.integers(),
)


@settings(max_examples=40)
@given(ITEMS, st.randoms(), st.integers(0, 3), st.text())
def test_a_row_gives_back_what_was_asked(item: Item, draw: Any, repeat: int, said: str) -> None:
    order = draw.sample(range(len(item.options)), len(item.options))
    prompt = Prompt(item, Orientation(2, "rot2", tuple(order)), "letters", "Which?", ("A", "B"))
    row = row_of(Request(prompt, repeat), 5, {})
    again = generation_of(row["inputs"], said, row["expectations"])
    assert again.prompt == prompt
    assert (again.repeat, again.text) == (repeat, said)


@settings(max_examples=40)
@given(ITEMS, st.sampled_from(["choice", "other", "failed", ABSTAINS]), st.integers(0, 5))
def test_a_verdict_gives_back_the_grade(item: Item, kind: str, choice: int) -> None:
    order = tuple(range(len(item.options)))
    prompt = Prompt(item, Orientation(0, "as-is", order), "letters", "Which?", ())
    generation = generation_of({}, "said", row_of(Request(prompt), 0, {})["expectations"])
    made = {
        "choice": Grade.of_choice(generation, "judge", choice % len(order), "judge", "B"),
        "other": Grade.unread(generation, "judge", "refusal"),
        "failed": Grade.failed(generation, "judge", "timeout"),
        ABSTAINS: Grade.failed(generation, "judge", ABSTAINS),
    }[kind]
    assert grade_from(feedback_of(made, "m")[0], generation) == made


# --- a whole run -----------------------------------------------------------------------


def app(prompt: str) -> str:
    """Knows two items by their number, gives one reply without a letter, else says A."""
    if "number 5" in prompt:
        return "Nobody can tell."
    return "mercury" if "number 1" in prompt else "A"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One evaluation on a bare SQLite store, with MLflow's own number of threads."""
    folder, before, here = tmp_path_factory.mktemp("genai"), mlflow.get_tracking_uri(), Path.cwd()
    said = f"no, {KEY} of {IN_QUERY} is not welcome"
    server = FakeServer(lambda request, n: refused(400, said) if n == 0 else "OTHER")
    os.environ["CANARY_KEY"] = KEY
    os.chdir(folder)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    try:
        result = mlflow_mcq.genai_evaluate(
            DATA,
            app,
            [scorers.regex("naive"), scorers.strict()],
            judge={
                "model": "m",
                "base_url": server.url,
                "max_retries": 0,
                "preflight": False,
                "exam_replies": 0,
                "check_rows": 0,
                "api_key_env": "CANARY_KEY",
                "query": {"code": IN_QUERY},
            },
        )
        run = mlflow.get_run(result.run_id)
        place = in_experiment(mlflow.search_traces, run.info.experiment_id)
        traces = mlflow.search_traces(**place, run_id=result.run_id, return_type="list")
        yield {"result": result, "run": run, "traces": traces, "folder": folder}
    finally:
        del os.environ["CANARY_KEY"]
        server.close()
        mlflow.set_tracking_uri(before)
        os.chdir(here)


def test_no_row_is_lost_on_a_bare_sqlite_store(ran: dict[str, Any]) -> None:
    assert len(ran["traces"]) == 24
    for trace in ran["traces"]:
        names = {one.name for one in trace.info.assessments}
        assert {"judge", "judge_error", "regex_naive", "strict", "gold", "options"} <= names


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Items 0, 2, 3, 4 say A in four orders: 4 of 16. Item 1 is right in all four. Item 5
        # is OTHER by the judge, one of its rows an error of the judge.
        pytest.param("judge/accuracy", 8 / 23, id="all graded rows"),
        pytest.param("judge/accuracy_decided", 8 / 20, id="decided rows"),
        pytest.param("judge/other_rate", 3 / 23, id="OTHER"),
        pytest.param("judge/judge_error_rate", 1 / 24, id="judge errors, of all rows"),
        pytest.param("judge/consistency", 1 / 6, id="one item names the same option throughout"),
        pytest.param("judge/n_items", 6, id="items, not rows"),
        pytest.param("judge/n_calls", 4, id="calls"),
        pytest.param("strict/abstain_rate", 4 / 24, id="the strict rule abstains"),
        pytest.param("judge_correct/mean", 8 / 23, id="MLflow's own mean agrees"),
        pytest.param("judge_correct_decided/mean", 8 / 20, id="and that over decided rows"),
        pytest.param("judge_other/mean", 3 / 23, id="and that of OTHER"),
        pytest.param("judge_error/mean", 1 / 24, id="and that of errors"),
    ],
)
def test_numbers_of_a_run(ran: dict[str, Any], name: str, value: float) -> None:
    assert ran["result"].metrics[name] == pytest.approx(value)
    assert ran["run"].data.metrics[name] == pytest.approx(value)


def test_a_run_is_an_arm_like_any_other(ran: dict[str, Any]) -> None:
    client = mlflow.MlflowClient()
    steps = client.get_metric_history(ran["result"].run_id, "judge_by_orientation/accuracy")
    assert [one.step for one in steps] == [0, 1, 2, 3]
    names = {one.path for one in client.list_artifacts(ran["result"].run_id)}
    assert {"mcq_generations.parquet", "mcq_grades.parquet", "mcq_by_orientation.json"} <= names
    tags = ran["run"].data.tags
    assert tags["mcq.status"] == "finished"
    assert len(tags["mcq.judge_fingerprint"]) == 12
    with pytest.raises(RunInUse, match="holds an evaluation already"):
        mlflow_mcq.folded(ran["result"])


def test_keys_are_not_in_the_store(ran: dict[str, Any]) -> None:
    files = [path for path in ran["folder"].rglob("*") if path.is_file()]
    assert {"mlflow.db", "mcq_grades.parquet", "mcq_prompts.txt"} <= {one.name for one in files}
    for path in files:
        held = path.read_bytes()
        if path.suffix == ".parquet":  # compressed
            held += repr(pd.read_parquet(path).to_dict("list")).encode()
        assert KEY.encode() not in held, path.name
        assert IN_QUERY.encode() not in held, path.name


def test_lost_rows_stop_the_folding(ran: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow_mcq.genai.folded.refuse_used", lambda run_id: None)
    with pytest.raises(StoreError, match="MLflow kept 24 of 25 rows"):
        mlflow_mcq.folded(ran["result"].run_id, n_rows=25)


# --- before a run ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "given", "inside"),
    [
        pytest.param("sqlite:///x.db", None, "4", id="SQLite: four"),
        pytest.param("sqlite:///x.db", "9", "9", id="a number set by hand is kept"),
        pytest.param("http://127.0.0.1:1", None, None, id="a server: as MLflow likes"),
    ],
)
def test_threads_are_bounded_for_the_call_only(
    uri: str, given: str | None, inside: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "MLFLOW_GENAI_EVAL_MAX_WORKERS"
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: uri)
    with bounded_workers():
        assert os.environ.get(name) == inside
    assert os.environ.get(name) == given


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({}, JudgeNotConfigured, id="nobody reads"),
        pytest.param(
            {"scorers": [mlflow.genai.scorer(lambda outputs: 1)]}, SettingsError, id="not ours"
        ),
        pytest.param(
            {"scorers": [scorers.strict()], "columns": {"id": "no"}}, DataError, id="data"
        ),
    ],
)
def test_refused_before_a_run_is_opened(
    arguments: dict[str, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow.genai, "evaluate", lambda **more: pytest.fail("a run was opened"))
    with pytest.raises(error):
        mlflow_mcq.genai_evaluate(DATA, app, **arguments)


@pytest.mark.parametrize(
    ("predict_fn", "settings", "name"),
    [
        pytest.param(lambda text: "A", {}, "prompt", id="another name"),
        pytest.param(lambda: "A", {}, "prompt", id="no argument"),
        pytest.param(
            lambda prompt: "A", {"input_format": "messages"}, "messages", id="messages for a prompt"
        ),
    ],
)
def test_an_application_that_cannot_be_called_is_told_the_name(
    predict_fn: Any, settings: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow.genai, "evaluate", lambda **more: pytest.fail("a run was opened"))
    with pytest.raises(SettingsError, match=f"predict_fn.*Name its argument {name}"):
        mlflow_mcq.genai_evaluate(DATA, predict_fn, [scorers.strict()], **settings)


def test_without_a_judge_scorers_are_named() -> None:
    with pytest.raises(JudgeNotConfigured, match=r"scorers=\[mlflow_mcq.scorers.regex"):
        mlflow_mcq.genai_evaluate(DATA, app)


@pytest.mark.first_question
def test_a_judge_that_serves_nobody_costs_no_answer(judge_server: Any) -> None:
    server = judge_server(lambda request, n: refused(401, "wrong key"))
    asked: list[str] = []
    with pytest.raises(JudgeUnavailable, match="401"):
        mlflow_mcq.genai_evaluate(
            DATA, lambda prompt: asked.append(prompt), judge={"model": "m", "base_url": server.url}
        )
    assert asked == []


def test_rows_are_messages_where_that_is_asked() -> None:
    row = mlflow_mcq.rotated(DATA[:1], "as-is", input_format="messages")[0]
    assert row["inputs"]["messages"][-1]["role"] == "user"
    assert row["expectations"]["mcq"]["settings"]["orientations"] == "as-is"


def test_a_model_of_ours_answers_all_rows_at_once(judge_server: Any) -> None:
    server = judge_server(lambda request, n: "A")
    engine = mlflow_mcq.remote_model(server.url, "m").engine
    rows = answered_rows(engine, DATA, None, {"orientations": "rotations:2"})
    assert [row["outputs"] for row in rows] == ["A"] * 12
    assert [row["expectations"]["mcq"]["place"] for row in rows] == list(range(12))
    assert "messages" in rows[0]["inputs"]  # what a chat model was asked


def test_rows_made_by_hand_claim_no_settings() -> None:
    row = {"options": METALS, "gold": 2}
    once, again = (generation_of({"question": "Which?"}, said, row) for said in ("A", "B"))
    assert once.prompt == again.prompt
    assert once.prompt.protocol == "stored"
    assert generation_of({"question": "Who?"}, "A", row).key != once.key


# --- registered ------------------------------------------------------------------------


SWITCH = "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS"


def test_registered_and_listed_where_mlflow_allows(
    judge_server: Any, store: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = judge_server(lambda request, n: "OTHER")
    judge = scorers.judge("m", server.url, name="referee")
    if hasattr(mlflow.environment_variables, SWITCH):  # MLflow 3.4 asks for no leave
        with pytest.raises(MlflowException, match=SWITCH):
            judge.register()
    monkeypatch.setenv(SWITCH, "true")
    judge.register()
    scorers.regex().register()
    listed = {one.name: one for one in mlflow.genai.scorers.list_scorers()}
    assert set(listed) == {"referee", "regex_bounded"}
    again = mlflow.genai.scorers.get_scorer(name="referee")
    assert values(again.run(outputs="Hm.", expectations=ROW))["referee_other"] is True


@pytest.mark.parametrize(
    "named", [{"directory": "rows"}, {"accept_changes": True}, {"processes": 2}], ids=str
)
def test_a_place_for_rows_is_refused_where_none_are_kept(named: dict[str, Any]) -> None:
    data = [{"question": "?", "options": ["sun", "moon"], "answer": "A"}]
    with pytest.raises(SettingsError, match=f"{next(iter(named))}.*use mlflow_mcq.evaluate"):
        mlflow_mcq.rotated(data, **named)


def test_credentials_are_not_stored() -> None:
    judge = scorers.judge("m", "http://me:sesame@127.0.0.1:1/v1")
    with pytest.raises(SettingsError, match="holds credentials") as caught:
        judge.model_dump()
    assert "sesame" not in str(caught.value)


def test_logging_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        scorers.regex()(outputs="A", expectations=ROW)
    assert caplog.records == []
