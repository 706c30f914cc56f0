"""Errors: who complains, which rule, what was got, what is possible."""

from __future__ import annotations

import copy
import pickle

import pytest

from mlflow_mcq.errors import (
    DataError,
    JudgeNotConfigured,
    JudgeUnavailable,
    McqError,
    ModelError,
    SettingsError,
)

EVERY_ERROR = [
    pytest.param(McqError("repeats", "must be at least 1", 0, "Use repeats=1."), id="base"),
    pytest.param(SettingsError("seed", "must be a whole number", 1.5), id="settings"),
    pytest.param(DataError("row 7", "has no answer"), id="data"),
    pytest.param(ModelError("my-model", "returned no text", None, "Return a str."), id="model"),
    pytest.param(JudgeUnavailable("judge 'm'", "does not answer"), id="judge unavailable"),
    pytest.param(JudgeNotConfigured({"model": None}), id="judge"),
    pytest.param(JudgeNotConfigured(), id="judge, nothing got"),
]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(McqError("seed", "is odd"), "seed: is odd.", id="who and rule"),
        pytest.param(McqError("seed", "is odd", 3), "seed: is odd; got 3.", id="with got"),
        pytest.param(
            McqError("seed", "is odd", "3"), "seed: is odd; got '3'.", id="a text is quoted"
        ),
        pytest.param(McqError("seed", "is odd", None), "seed: is odd; got None.", id="got None"),
        pytest.param(McqError("seed", "is odd", ""), "seed: is odd; got ''.", id="an empty text"),
        pytest.param(McqError("seed", "is odd", 0), "seed: is odd; got 0.", id="got zero"),
        pytest.param(McqError("seed", "is odd", []), "seed: is odd; got [].", id="got nothing"),
        pytest.param(
            McqError("seed", "is odd", possible="Use 2."),
            "seed: is odd. Use 2.",
            id="with possible",
        ),
        pytest.param(
            McqError("seed", "is odd", 3, "Use 2."), "seed: is odd; got 3. Use 2.", id="all four"
        ),
    ],
)
def test_the_message_reads_who_rule_got_possible(error: McqError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize("length", [10, 198, 199, 500, 100_000])
def test_a_long_value_is_cut(length: int) -> None:
    text = str(McqError("option", "is too long", "x" * length, "Shorten it."))
    assert len(text) <= 200 + len("option: is too long; got …. Shorten it.")
    assert ("…" in text) == (length + 2 > 200)
    assert text.endswith("Shorten it.")


@pytest.mark.parametrize("error", EVERY_ERROR)
@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_errors_cross_process_borders_unchanged(travel, error: McqError) -> None:
    arrived = travel(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert arrived.args == error.args


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_one_except_clause_catches_them_all_and_value_error_none(error: McqError) -> None:
    assert isinstance(error, McqError)
    assert not isinstance(error, ValueError | ImportError)


def test_a_missing_judge_is_a_settings_error() -> None:
    assert issubclass(JudgeNotConfigured, SettingsError)


@pytest.mark.parametrize("word", ["model", "base_url", "api_key_env", "mcq_regex"])
def test_a_missing_judge_says_what_to_supply_and_what_works_without(word: str) -> None:
    assert word in str(JudgeNotConfigured())
