"""What each reader adds to a run beside its verdicts: tables, alarms, what it took."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer, Script, listed, refused
from mlflow import MlflowClient
from tiny import byte_tokenizer, tiny_model

import mlflow_mcq

pytestmark = pytest.mark.usefixtures("shared_store")

Server = Callable[[Script], FakeServer]

FRAME = pd.DataFrame(
    {
        "id": ["metal", "star"],
        "question": ["Which metal is liquid?", "Which is the biggest?"],
        "options": [["copper", "mercury", "tin"], ["sun", "moon"]],
        "answer": ["B", "A"],
    }
)
N_ROWS = 5


def evaluate(model: Any, evaluators: Any, data: Any = FRAME, **config: Any) -> Any:
    return mlflow.models.evaluate(
        model, data, targets="answer", model_type="mcq", evaluators=evaluators,
        evaluator_config=config,
    )  # fmt: skip


def says(text: str) -> Callable[[pd.DataFrame], list[str]]:
    return lambda frame: [text] * len(frame)


def alarms(result: Any) -> str:
    return MlflowClient().get_run(result.run_id).data.tags["mcq.alarms"]


def notes(result: Any) -> pd.Series:
    return result.tables["mcq_summary"].set_index("metric")["note"]


# --- the analogy match ----------------------------------------------------------------


@pytest.fixture
def bytes_tokenizer(tmp_path: Path) -> str:
    byte_tokenizer().save_pretrained(tmp_path)
    return str(tmp_path)


def test_golds_beyond_the_window_are_told_before_the_model_is_asked(
    bytes_tokenizer: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[bool] = []

    def model(frame: pd.DataFrame) -> list[str]:
        told.append("mcq_unwinnable" in caplog.text)
        return ["sun"] * len(frame)

    with caplog.at_level(logging.WARNING, "mlflow_mcq"):
        analogy = {"tokenizer": bytes_tokenizer, "window": 6}  # "mercury" has seven bytes
        result = evaluate(model, "mcq_analogy", analogy=analogy)
    assert told[0]
    assert "1 of 2 items" in caplog.text
    assert "'metal'" in caplog.text
    assert result.metrics["analogy/n_unwinnable"] == 1
    assert "unwinnable_items" in alarms(result)
    table = result.artifacts["mcq_unwinnable_parquet"].content
    assert table.to_dict("records") == [
        {"item_id": "metal", "gold": 1, "gold_text": "mercury", "n_tokens": 7, "window": 6}
    ]


@pytest.mark.parametrize("window", [7, 8])
def test_a_gold_as_long_as_the_window_is_no_news(
    bytes_tokenizer: str, caplog: pytest.LogCaptureFixture, window: int
) -> None:
    analogy = {"tokenizer": bytes_tokenizer, "window": window}
    result = evaluate(says("sun"), "mcq_analogy", analogy=analogy)
    assert result.metrics["analogy/n_unwinnable"] == 0
    assert alarms(result) == "too_few_items"
    assert "mcq_unwinnable" not in caplog.text
    assert len(result.artifacts["mcq_unwinnable_parquet"].content) == 0


def test_a_local_model_brings_its_tokenizer_and_another_leaves_the_count_undefined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    more: dict[str, Any] = {"max_new_tokens": 2, "orientations": "as-is"}
    result = evaluate(local, "mcq_analogy", analogy={"window": 3}, **more)
    assert result.metrics["analogy/n_unwinnable"] == 1  # "mercury"; "sun" has three bytes
    assert "1 of 2 items" in caplog.text
    unknown = evaluate(says("sun"), "mcq_analogy", orientations="as-is")
    assert "analogy/n_unwinnable" not in unknown.metrics
    assert "analogy.tokenizer" in notes(unknown)["analogy/n_unwinnable"]


def test_stored_answers_are_read_with_a_named_tokenizer(bytes_tokenizer: str) -> None:
    data = FRAME.assign(generation=["mercury", "sun"])
    result = evaluate(None, "mcq_analogy", data, analogy={"tokenizer": bytes_tokenizer})
    assert result.metrics["analogy/accuracy"] == 1
    assert result.metrics["analogy/window_unverified_rate"] == 0


# --- the judge --------------------------------------------------------------------------


def judged_by(server: FakeServer, **more: Any) -> dict[str, Any]:
    return {"model": "fake", "base_url": server.url, "max_retries": 0, "exam_replies": 0, **more}


def test_the_exam_is_on_record_reply_by_reply_and_kind_by_kind(
    judge_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path))
    server = judge_server(lambda request, n: "OTHER" if n else "what?")
    judge = judged_by(server, exam_replies=40, check_rows=0, attempts=1, concurrency=1)
    result = evaluate(says("A"), "mcq_judge", judge=judge, orientations="as-is")
    rows = result.artifacts["mcq_judge_exam_parquet"].content
    assert len(rows) == len(set(rows["id"])) == result.metrics["judge/exam_n_replies"] == 40
    read = rows[rows["error"] == ""]
    assert len(read) == 39
    assert set(read["verdict"]) == {"OTHER"}
    assert (read["right"] == (read["label"] == "OTHER")).all()
    assert rows["right"].is_monotonic_increasing, "what went wrong stands first"
    assert rows["verdict"].isna().sum() == 1
    kinds = result.artifacts["mcq_judge_exam_by_kind_parquet"].content.set_index("kind")
    assert kinds["n"].sum() == 40
    assert kinds["n_errors"].sum() == 1
    assert kinds["n_right"].sum() == rows["right"].sum()
    for kind, part in read.groupby("kind"):
        assert kinds.loc[kind, "sensitivity"] == pytest.approx(part["right"].mean())
        assert kinds.loc[kind, "low"] <= kinds.loc[kind, "sensitivity"] <= kinds.loc[kind, "high"]
    assert {"mcq_judge_exam", "mcq_judge_exam_by_kind"} <= set(result.tables)


def test_a_judge_that_sat_no_exam_leaves_no_table(judge_server: Server) -> None:
    server = judge_server(lambda request, n: "A")
    judge = judged_by(server)
    result = evaluate(says("A"), "mcq_judge", judge=judge, orientations="as-is")
    assert not any(name.startswith("mcq_judge_exam") for name in result.artifacts)
    assert result.metrics["judge/strict_agreement"] == 1
    assert 0.3 < result.metrics["judge/strict_agreement_low"] < 1
    assert result.metrics["judge/strict_agreement_high"] == 1


def test_a_judge_that_is_silent_on_plain_labels_is_unreliable(judge_server: Server) -> None:
    server = judge_server(lambda request, n: "hm")
    result = evaluate(says("A"), "mcq_judge", judge=judged_by(server, attempts=1))
    assert result.metrics["judge/n_check_failed"] == N_ROWS
    assert "judge/strict_agreement" not in result.metrics
    assert "judge_unreliable" in alarms(result)


# --- published parsers ------------------------------------------------------------------

PARSERS = (
    "regex_naive", "regex_first_upper", "regex_bounded", "regex_last_bounded", "regex_answer_is",
    "regex_mmlu_pro",
)  # fmt: skip


def other_judge(request: dict[str, Any], n: int) -> str:
    """Reads "the second one" as B, and all else as no answer."""
    reply = request["messages"][-1]["content"].split("The candidate's reply:")[1]
    return "B" if "second one" in reply else "OTHER"


def test_all_parsers_stand_beside_the_judge(judge_server: Server) -> None:
    """A refusal that holds letters, a wrong letter, and an answer that none of them sees."""

    def model(frame: pd.DataFrame) -> list[str]:
        return [
            "I would say the second one. Answer: A trap." if "metal" in prompt else "A shame, no."
            for prompt in frame["prompt"]
        ]

    judge = judged_by(judge_server(other_judge), shape="extract")
    result = evaluate(model, "mcq_judge", judge=judge, regex={"parsers": "all"})
    got = result.metrics
    assert {f"{name}/accuracy" for name in PARSERS} <= set(got)
    for name in PARSERS:
        assert got[f"{name}/n_judged"] == got[f"{name}/spot_n"] == N_ROWS
        wrong, coerced = got[f"{name}/n_wrong_letter"], got[f"{name}/n_coerced_other"]
        assert got[f"{name}/misread_rate"] == (wrong + coerced) / N_ROWS
    # Three rows name the second option, two are refusals that begin with an A.
    assert (got["regex_bounded/n_wrong_letter"], got["regex_bounded/n_coerced_other"]) == (3, 2)
    assert (got["regex_answer_is/n_missed"], got["regex_answer_is/misread_rate"]) == (3, 0)
    assert "regex_judge_disagreement" in alarms(result)
    table = result.tables["mcq_alarms"].set_index("name")
    found = table.loc["regex_judge_disagreement", "found"]
    assert "regex_mmlu_pro misreads 100.0% of 5 rows" in found
    assert "regex_answer_is" not in found


@pytest.mark.parametrize(
    ("given", "run"),
    [
        pytest.param(["regex_mmlu_pro"], ["regex_mmlu_pro"], id="one"),
        pytest.param("regex_answer_is", ["regex_answer_is"], id="one by its name alone"),
        pytest.param(["regex_naive", "regex_naive"], ["regex_naive"], id="one, said twice"),
    ],
)
def test_parsers_are_chosen_by_name(given: Any, run: list[str]) -> None:
    result = evaluate(says("A"), "mcq_regex", regex={"parsers": given}, orientations="as-is")
    prefixes = {name.partition("/")[0] for name in result.metrics}
    assert [name for name in PARSERS if name in prefixes] == run


@pytest.mark.parametrize("given", [["regex_nave"], [], "most", [3], None])
def test_a_parser_that_nobody_published_is_refused(given: Any) -> None:
    from mlflow_mcq.errors import SettingsError
    from mlflow_mcq.settings import read_settings

    with pytest.raises(SettingsError, match=r"regex\.parsers"):
        read_settings({"regex": {"parsers": given}})


# --- similarity -------------------------------------------------------------------------


def similar(model: Any, cache: Path, data: pd.DataFrame = FRAME) -> Any:
    similarity = {"encoder": "demo:minilm", "cache_dir": str(cache)}
    return evaluate(model, "mcq_similarity", data, similarity=similarity)


def test_what_embedding_took_and_what_was_known_already(tmp_path: Path) -> None:
    first = similar(says("The answer is mercury."), tmp_path).metrics
    # Five option texts, one of which is the span: each once over five orientations.
    assert (first["similarity/n_encoded"], first["similarity/n_cached"]) == (5, 0)
    whole = first["similarity/embed_seconds"] + first["generation/seconds"]
    assert first["similarity/embed_share"] == first["similarity/embed_seconds"] / whole
    assert 0 < first["similarity/embed_share"] <= 1
    second = similar(says("The answer is the moon."), tmp_path).metrics
    assert (second["similarity/n_encoded"], second["similarity/n_cached"]) == (1, 5)


def test_stored_answers_took_no_time_to_share(tmp_path: Path) -> None:
    result = similar(None, tmp_path, FRAME.assign(generation="The answer is mercury."))
    assert result.metrics["similarity/embed_seconds"] > 0
    assert "similarity/embed_share" not in result.metrics
    assert "there already" in notes(result)["similarity/embed_share"]


# --- letter log-probabilities -----------------------------------------------------------


def answers_b_and_thinks_a(request: dict[str, Any], n: int) -> Any:
    if request.get("logprobs"):
        return listed({"A": -0.2, "B": -2.0, "The": -4.0})
    return "B"


def test_a_server_is_scored_beside_its_answers(judge_server: Server) -> None:
    server = judge_server(answers_b_and_thinks_a)
    model = mlflow_mcq.remote_model(base_url=server.url, model="m")
    result = evaluate(model, "mcq_regex", logprob={"enabled": True})
    assert len(server.requests) == 2 * N_ROWS
    got = result.metrics
    assert got["regex_bounded/pick_rate_slot_2"] == 1
    assert got["logprob/n_rows"] == N_ROWS
    assert got["logprob/coverage"] == 1
    assert got["logprob/exact_rate"] == 2 / N_ROWS  # C is not listed; two rows show none
    assert got["logprob/generation_disagreement"] == 1
    assert got["logprob/accuracy"] == got["regex_bounded/accuracy"] == 2 / N_ROWS
    assert "logprob_diagnostic_only" in alarms(result)
    table = result.artifacts["mcq_label_scores_parquet"].content
    assert len(table) == 3 * 3 + 2 * 2
    assert table[table["rank"] == 1]["letter"].tolist() == ["A"] * N_ROWS
    assert table["bounded"].sum() == 3


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_alarm_is_for_more_than_five_points(judge_server: Server, wrong: int) -> None:
    """Of 20 rows none or two are answered otherwise than they are scored."""
    data = pd.DataFrame(
        {"question": [f"Which, {n}?" for n in range(10)], "options": [["x", "y"]] * 10, "answer": 0}
    )

    def script(request: dict[str, Any], n: int) -> Any:
        if request.get("logprobs"):
            return listed({"A": -0.1, "B": -3.0})
        return "B" if wrong and "Which, 3?" in request["messages"][0]["content"] else "A"

    model = mlflow_mcq.remote_model(base_url=judge_server(script).url, model="m")
    result = evaluate(model, "mcq_regex", data, logprob={"enabled": True})
    assert result.metrics["logprob/generation_disagreement"] == 2 * wrong / 20
    assert ("logprob_diagnostic_only" in alarms(result)) is bool(wrong)


def test_a_server_without_log_probabilities_costs_the_run_nothing(judge_server: Server) -> None:
    def script(request: dict[str, Any], n: int) -> Any:
        return refused(400, "no logprobs here") if request.get("logprobs") else "A"

    model = mlflow_mcq.remote_model(base_url=judge_server(script).url, model="m")
    result = evaluate(model, "mcq_regex", logprob={"enabled": True})
    assert result.metrics["regex_bounded/n_rows"] == N_ROWS
    assert result.metrics["logprob/n_unscored"] == N_ROWS
    assert "logprob/accuracy" not in result.metrics
    assert "no logprobs here" in notes(result)["logprob/accuracy"]


def test_a_local_model_leaves_the_same_table() -> None:
    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    more: dict[str, Any] = {"max_new_tokens": 2, "logprob": {"enabled": True}}
    result = evaluate(local, "mcq_regex", **more)
    table = result.artifacts["mcq_label_scores_parquet"].content
    assert len(table) == 3 * 3 + 2 * 2
    assert not table["bounded"].any()
    assert result.metrics["logprob/coverage"] == result.metrics["logprob/exact_rate"] == 1
    first = table[(table["item_id"] == "metal") & (table["orientation"] == 1)]
    assert first["option"].tolist() == [1, 2, 0]
