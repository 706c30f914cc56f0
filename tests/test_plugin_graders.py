"""Graders that ask nobody, in an evaluation of MLflow."""

from __future__ import annotations

import pandas as pd
import pytest
from two_items import N_ROWS, evaluate, parrot, run_of

import mlflow_mcq

pytestmark = pytest.mark.usefixtures("shared_store")


def test_the_analogy_match_reads_a_window_of_tokens() -> None:
    from tiny import byte_tokenizer, tiny_model

    def speaks(frame: pd.DataFrame) -> list[str]:
        return ["mercury, of course"] * len(frame)

    result = evaluate(speaks, evaluators=["mcq_analogy"])
    assert result.metrics["analogy/accuracy"] == 3 / N_ROWS
    assert result.metrics["analogy/no_match_rate"] == 2 / N_ROWS
    assert result.metrics["analogy/window_unverified_rate"] == 1
    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    known = evaluate(local, evaluators=["mcq_analogy"], evaluator_config=None)
    assert known.metrics["analogy/window_unverified_rate"] == 0


def test_similarity_reads_the_meaning_of_the_answer_span() -> None:
    def paraphrases(frame: pd.DataFrame) -> list[str]:
        return [
            "The answer is quicksilver, the liquid metal mercury."
            if "metal" in prompt
            else "The answer is our sun."
            for prompt in frame["prompt"]
        ]

    config = {"mcq_similarity": {"similarity": {"encoder": "demo:minilm", "floor": 0.3}}}
    result = evaluate(paraphrases, evaluators=["mcq_similarity"], evaluator_config=config)
    assert result.metrics["similarity/accuracy"] == 1
    assert result.metrics["similarity/accuracy_forced"] == 1
    assert result.metrics["similarity/level_1_rate"] == 1


def test_letter_scores_are_a_diagnostic_beside_the_answers() -> None:
    from tiny import byte_tokenizer, tiny_model

    local = mlflow_mcq.local_model(tiny_model(max_position_embeddings=1024), byte_tokenizer())
    config = {"max_new_tokens": 3, "logprob": {"enabled": True}}
    result = evaluate(local, evaluator_config=config)
    assert result.metrics["logprob/n_rows"] == N_ROWS
    assert 0 <= result.metrics["logprob/accuracy"] <= 1
    assert run_of(result).data.metrics["logprob/accuracy"] == result.metrics["logprob/accuracy"]
    absent = evaluate(parrot, evaluator_config={"logprob": {"enabled": True}})
    assert "logprob/accuracy" not in absent.metrics
    notes = absent.tables["mcq_summary"].set_index("metric")["note"]
    assert "not loaded here" in notes["logprob/accuracy"]
