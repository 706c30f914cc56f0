"""Settings: every mistake is refused before anything runs, and no secret is repeated."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.protocols import PROTOCOLS
from mlflow_mcq.records import Decoding
from mlflow_mcq.settings import (
    JudgeSettings,
    Settings,
    read_settings,
)
from mlflow_mcq.shown_judge import shown_judge, shown_url

JUDGE = {"model": "arbiter-7b", "base_url": "http://127.0.0.1:9/v1"}
SECRET = "hush-4f1c9a-do-not-print"


def judged(**more: Any) -> dict[str, Any]:
    return {"judge": {**JUDGE, **more}}


# Where settings may stand


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"repeats": 3, "seed": 5}, id="flat"),
        pytest.param({"mcq_judge": {"repeats": 3, "seed": 5}}, id="nested"),
        pytest.param({"repeats": 3, "mcq_judge": {"seed": 5}}, id="both"),
        pytest.param({"repeats": 9, "mcq_judge": {"repeats": 3, "seed": 5}}, id="nested wins"),
    ],
)
def test_settings_are_read_flat_or_under_the_name_of_the_evaluator(config) -> None:
    assert read_settings(config) == Settings(repeats=3, seed=5)


def test_of_a_configuration_for_several_evaluators_each_reads_its_own() -> None:
    config = {"mcq_regex": {"repeats": 2}, "mcq_judge": {"seed": 3}}
    assert read_settings(config, "mcq_regex") == Settings(repeats=2)
    assert read_settings(config, "mcq_judge") == Settings(seed=3)
    with pytest.raises(SettingsError, match="mcq_regexp: is not a setting"):
        read_settings({"mcq_regexp": {"repeats": 2}}, "mcq_regex")


@pytest.mark.parametrize("config", [None, {}, {"mcq_judge": {}}])
def test_no_configuration_is_the_defaults(config) -> None:
    assert read_settings(config) == Settings()


def test_reading_leaves_the_users_dictionary_alone() -> None:
    config = {"mcq_judge": judged(max_tokens=9), "seed": 4}
    before = repr(config)
    read_settings(config)
    assert repr(config) == before


# Unknown names


@pytest.mark.parametrize(
    ("config", "where", "nearest"),
    [
        pytest.param({"repeat": 2}, "repeat", "repeats", id="singular"),
        pytest.param({"orientation": "swap"}, "orientation", "orientations", id="plural"),
        pytest.param({"max_tokens": 9}, "max_tokens", "max_new_tokens", id="judge's name"),
        pytest.param({"Temperature": 0}, "Temperature", "temperature", id="capital"),
        pytest.param({"mcq_judge": {"sead": 1}}, "sead", "seed", id="nested"),
        pytest.param(judged(modell="x"), "judge.modell", "model", id="judge"),
        pytest.param(judged(url="x"), "judge.url", "base_url", id="judge's url"),
        pytest.param(judged(api_key="x"), "judge.api_key", "api_key_env", id="judge's key"),
        pytest.param(
            judged(panel=[{**JUDGE, "modell": "x"}]), "judge.panel.0.modell", "model", id="panel"
        ),
        pytest.param(
            judged(prices={"prompt": 1, "reply": 1, "replies": 2}),
            "judge.prices.replies",
            "reply",
            id="prices",
        ),
        pytest.param({"columns": {"anser": "x"}}, "columns.anser", "answer", id="columns"),
        pytest.param({"judge.mode": "x"}, "judge.mode", "judge", id="a dot is part of the name"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_legal_one(config, where, nearest) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(config)
    assert str(caught.value).startswith(f"{where}: is not a setting")
    assert f'Did you mean "{nearest}"?' in str(caught.value)


@pytest.mark.parametrize("name", ["system", "system_prompt", "system_message"])
def test_who_wants_a_system_prompt_is_told_how_to_have_one(name: str) -> None:
    with pytest.raises(SettingsError, match=r"docs/protocols\.md") as caught:
        read_settings({name: "Be brief."})
    assert str(caught.value).startswith(f"{name}: is not a setting")
    assert not re.search("Be brief|Did you mean", str(caught.value))


@pytest.mark.parametrize(
    ("config", "where", "meant"),
    [
        pytest.param({"language": "german"}, "language", "de", id="language in English"),
        pytest.param({"language": "Français"}, "language", "fr", id="in its own tongue"),
        pytest.param({"language": "pt-BR"}, "language", "pt", id="of a region"),
        pytest.param(
            {"regex": {"parsers": "bounded"}}, "regex.parsers", "regex_bounded", id="short form"
        ),
        pytest.param(
            {"regex": {"parsers": ["regex_naive", "regex_anser_is"]}},
            "regex.parsers",
            "regex_answer_is",
            id="typing error",
        ),
    ],
)
def test_an_unknown_value_is_refused_with_the_one_that_was_meant(config, where, meant) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(config)
    assert str(caught.value).startswith(f"{where}: ")
    assert f'Did you mean "{meant}"?' in str(caught.value)


def test_a_name_like_no_other_lists_all_legal_ones() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"qqq": 1})
    assert "Did you mean" not in str(caught.value)
    assert all(name in str(caught.value) for name in Settings.model_fields)


# Values out of range


@pytest.mark.parametrize(
    ("config", "where"),
    [
        pytest.param({"repeats": 0}, "repeats", id="no repeats"),
        pytest.param({"seed": True}, "seed", id="seed True"),
        pytest.param({"seed": False}, "seed", id="seed False"),
        pytest.param({"seed": "1"}, "seed", id="seed as text"),
        pytest.param({"seed": 1.0}, "seed", id="seed as float"),
        pytest.param({"seed": None}, "seed", id="no seed"),
        pytest.param({"temperature": -0.1}, "temperature", id="cold"),
        pytest.param({"temperature": float("nan")}, "temperature", id="temperature nan"),
        pytest.param({"temperature": float("inf")}, "temperature", id="temperature inf"),
        pytest.param({"top_p": 0}, "top_p", id="empty nucleus"),
        pytest.param({"top_p": 1.01}, "top_p", id="more than all"),
        pytest.param({"top_k": -1}, "top_k", id="negative top_k"),
        pytest.param({"max_new_tokens": 0}, "max_new_tokens", id="no tokens"),
        pytest.param({"batch_size": 0}, "batch_size", id="no batch"),
        pytest.param({"table_rows": 0}, "table_rows", id="empty table"),
        pytest.param({"stop": "END"}, "stop", id="stop as one text"),
        pytest.param({"input_format": "json"}, "input_format", id="input format"),
        pytest.param({"columns": {"answer_as": "roman"}}, "columns.answer_as", id="answer_as"),
        pytest.param({"columns": {"id": 3}}, "columns.id", id="column number"),
        pytest.param({"columns": {"options": ["a"]}}, "columns.options", id="one of many"),
        pytest.param({"columns": {"options": ["a", "a"]}}, "columns.options", id="twice"),
        pytest.param({"columns": {"options": 3}}, "columns.options", id="options a number"),
        pytest.param({"orientations": "all"}, "orientations", id="scheme"),
        pytest.param({"orientations": 4}, "orientations", id="scheme as a number"),
        pytest.param({"protocol": "lettres"}, "protocol", id="protocol"),
        pytest.param({"template": "{question}"}, "template", id="template without options"),
        pytest.param({"labels": "uper"}, "labels", id="label style"),
        pytest.param({"labels": ["A"]}, "labels", id="one label"),
        pytest.param({"labels": ["A", "a"]}, "labels", id="labels that differ by case"),
        pytest.param({"labels": ["A", "B", "A"]}, "labels", id="one label twice"),
        pytest.param({"labels": ["A", ""]}, "labels", id="empty label"),
        pytest.param({"labels": ["A", "B\nC) x"]}, "labels", id="label of two lines"),
        pytest.param({"labels": ["A", "x" * 13]}, "labels", id="label as long as a text"),
        pytest.param({"language": "xx"}, "language", id="language"),
        pytest.param({"language": "EN"}, "language", id="language in capitals"),
        pytest.param({"protocol": "dashes", "mark": ""}, "mark", id="no mark"),
        pytest.param({"protocol": "dashes", "mark": "-\n"}, "mark", id="mark of two lines"),
        pytest.param({"protocol": "dashes", "mark": "=" * 9}, "mark", id="long mark"),
        pytest.param({"mark": "*"}, "mark", id="mark without dashes"),
        pytest.param({"protocol": "dashes", "labels": "digits"}, "labels", id="labels of dashes"),
        pytest.param({"nota_share": 0.5}, "nota_share", id="share of nothing"),
        pytest.param(
            {"protocol": "none-of-the-above", "nota_share": 1.1}, "nota_share", id="share above 1"
        ),
        pytest.param(
            {"protocol": "cloze", "orientations": "rotations"}, "orientations", id="cloze turned"
        ),
        pytest.param({"orientations": "gold-at:0"}, "orientations", id="gold-at without a way"),
        pytest.param({"orientations": "gold-at:-1:swap"}, "orientations", id="slot below the top"),
        pytest.param({"few_shot": {"path": "x", "k": 0}}, "few_shot.k", id="no examples"),
        pytest.param({"few_shot": {"path": "x"}}, "few_shot.k", id="how many examples"),
        pytest.param({"few_shot": {"k": 1}}, "few_shot", id="examples from nowhere"),
        pytest.param({"few_shot": {"path": "x", "kk": 1}}, "few_shot.kk", id="few_shot's name"),
        pytest.param(
            {"few_shot": {"path": "x", "k": 1, "rows": [{"question": "?"}]}},
            "few_shot",
            id="examples from two places",
        ),
        pytest.param(
            {"few_shot": {"path": "x", "k": 1, "gold": "all-at:1"}}, "few_shot.gold", id="gold"
        ),
        pytest.param(
            {"few_shot": {"path": "x", "k": 1, "moved": True}},
            "few_shot.moved",
            id="examples moved with nothing",
        ),
        pytest.param(
            {
                "orientations": "gold-at:0:swap",
                "few_shot": {"path": "x", "k": 1, "moved": True, "gold": "all-at:B"},
            },
            "few_shot.moved",
            id="examples moved to two places",
        ),
        pytest.param(
            {"few_shot": {"path": "x", "k": 1, "rationale": "why"}},
            "few_shot.rationale",
            id="reasons that letters cannot show",
        ),
        pytest.param(
            {"protocol": "options-last", "few_shot": {"path": "x", "k": 1}},
            "few_shot.rationale",
            id="examples without a first reply",
        ),
        pytest.param(
            {"protocol": "dashes", "template": "{question}{options}"}, "template", id="template"
        ),
        pytest.param(judged(shape="vote"), "judge.shape", id="judge's shape"),
        pytest.param(judged(max_tokens=0), "judge.max_tokens", id="judge's tokens"),
        pytest.param(judged(concurrency=0), "judge.concurrency", id="judge's calls"),
        pytest.param(judged(timeout_s=0), "judge.timeout_s", id="judge's patience"),
        pytest.param(judged(attempts=0), "judge.attempts", id="judge's attempts"),
        pytest.param({"judge": 3}, "judge", id="judge as a number"),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name(config, where: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(config)
    assert str(caught.value).startswith(f"{where}: ")
    assert not isinstance(caught.value, JudgeNotConfigured)


@pytest.mark.parametrize("temperature", [0, 0.1, 0.2])
def test_a_calm_judge_is_accepted(temperature: float) -> None:
    judge = read_settings(judged(temperature=temperature, max_tokens=7)).judge
    assert judge is not None
    assert judge.decoding == Decoding(max_new_tokens=7, temperature=temperature)


@pytest.mark.parametrize("temperature", [0.2000001, 0.7, 1, float("nan"), float("inf"), -0.1])
def test_a_judge_that_draws_lots_is_refused(temperature: float) -> None:
    with pytest.raises(SettingsError, match=r"^judge\.temperature: "):
        read_settings(judged(temperature=temperature))


def test_settings_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().seed = 3  # type: ignore[misc]


# The judge


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"model": "m"}, id="no url"),
        pytest.param({"base_url": "http://h/v1"}, id="no model"),
        pytest.param({"model": "", "base_url": "http://h/v1"}, id="empty model"),
        pytest.param({"model": None, "base_url": None}, id="both None"),
        pytest.param({"api_key_env": "KEY"}, id="only the key's place"),
        pytest.param("arbiter-7b", id="a bare name"),
        pytest.param("", id="an empty name"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_half_a_judge_is_no_judge_and_the_error_says_what_to_supply(judge, nested) -> None:
    config = {"mcq_judge": {"judge": judge}} if nested else {"judge": judge}
    with pytest.raises(JudgeNotConfigured) as caught:
        read_settings(config)
    for name in ("model", "base_url", "api_key_env"):
        assert name in str(caught.value)


def test_without_a_judge_the_settings_hold_none() -> None:
    assert read_settings({}).judge is None
    assert read_settings({"judge": None}).judge is None


def test_a_checked_judge_may_be_handed_over_whole() -> None:
    judge = JudgeSettings(**JUDGE)
    assert read_settings({"judge": judge}).judge == judge


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(judged(api_key=SECRET), id="under an unknown judge key"),
        pytest.param(judged(headers={"Authorization": SECRET}), id="in a header"),
        pytest.param({"api_key": SECRET}, id="under an unknown setting"),
        pytest.param({"mcq_judge": {"token": SECRET}}, id="nested"),
        pytest.param({"judge": {"model": "m", "api_key": SECRET}}, id="beside half a judge"),
        pytest.param(
            {"judge": {"base_url": f"http://me:{SECRET}@h/v1"}}, id="in half a judge's url"
        ),
        pytest.param({"judge": {"base_url": f"http://h/v1?key={SECRET}"}}, id="in its query"),
        pytest.param(judged(api_key_env=SECRET), id="the key in place of its variable"),
        pytest.param({"judge": {"api_key_env": SECRET}}, id="the same, with half a judge"),
        pytest.param(judged(api_key_env=[SECRET]), id="in a list"),
        pytest.param({"judge": [("api_key", SECRET)]}, id="a judge that is no dictionary"),
        pytest.param(judged(panel=[{**JUDGE, "api_key_env": SECRET + "!"}]), id="in a panel"),
        pytest.param(judged(panel=[{"base_url": f"http://me:{SECRET}@h/v1"}]), id="half a member"),
        pytest.param(judged(panel=[SECRET]), id="a member that is no dictionary"),
        pytest.param(judged(panel=SECRET), id="a panel that is no list"),
    ],
)
def test_a_secret_in_the_wrong_place_never_reaches_the_error(config) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(config)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_judge_is_shown_without_the_credentials_of_its_panel() -> None:
    member = JUDGE | {"base_url": f"https://me:{SECRET}@host/v1?key={SECRET}"}
    judge = JudgeSettings(**member, panel=[member])
    shown = shown_judge(judge)
    assert SECRET not in repr(shown)
    assert shown["panel"][0]["base_url"] == shown["base_url"] == "https://host/v1"
    assert set(shown) == set(JudgeSettings.model_fields)


# Settings of the judge that do not go together


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        pytest.param({"rationale": True, "max_tokens": 63}, "judge.max_tokens", id="no room"),
        pytest.param({"panel": [{**JUDGE, "shape": "direct"}]}, "judge.panel", id="two shapes"),
        pytest.param({"panel": [{**JUDGE, "votes": 3}]}, "judge.panel.votes", id="member's votes"),
        pytest.param(
            {"panel": [{**JUDGE, "panel": [JUDGE]}]}, "judge.panel.panel", id="member's panel"
        ),
        pytest.param(
            {"panel": [{**JUDGE, "check_rows": 3}]}, "judge.panel.check_rows", id="member's check"
        ),
    ],
)
def test_settings_of_a_judge_that_would_do_nothing_are_refused(changed, where) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(judged(**changed))
    assert str(caught.value).startswith(f"{where}: ")


def test_a_reason_needs_room() -> None:
    judge = read_settings(judged(rationale=True, max_tokens=64)).judge
    assert judge is not None
    assert judge.rationale


# URLs


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("http://h:8000/v1", "http://h:8000/v1", id="nothing to hide"),
        pytest.param("https://me:pw@h/v1", "https://h/v1", id="name and password"),
        pytest.param("https://token@h:1/v1/", "https://h:1/v1/", id="token"),
        pytest.param("https://me:p@w@h/v1", "https://h/v1", id="at sign in the password"),
        pytest.param("https://h/v1?api-key=k#f", "https://h/v1", id="query and fragment"),
        pytest.param("https://h/v1?mail=a@b", "https://h/v1", id="at sign in the query"),
        pytest.param("http://[::1]:80/v1", "http://[::1]:80/v1", id="IPv6"),
        pytest.param("local", "local", id="local"),
        pytest.param("me:pw@h:80/v1?k=1", "h:80/v1", id="without a scheme"),
        pytest.param("", "", id="empty"),
        pytest.param(None, "", id="none"),
    ],
)
def test_a_shown_url_holds_no_credentials(url, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("url", ["https://me:p/w@h/v1", "https://me:p#w@h/v1", "http://[::1"])
def test_a_url_that_cannot_be_split_is_not_shown(url: str) -> None:
    assert shown_url(url) == "(a URL that cannot be read)"


# Fingerprint

MEASURED = {
    "protocol": "dashes",
    "template": "{question} {options}",
    "labels": "digits",
    "language": "de",
    "mark": "*",
    "nota_share": 0.5,
    "few_shot": {"path": "train.jsonl", "k": 2},
    "orientations": "shuffles:2",
    "repeats": 2,
    "seed": 1,
    "max_new_tokens": 64,
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 40,
    "stop": ["\n"],
    "thinking": False,
    "input_column": "text",
    "input_format": "messages",
    "columns": {"answer": "key"},
    "layout": "arc",
    "on_bad_rows": "skip",
    "limit": 10,
    "shard": "1/2",
    "several_gold": "any",
}
NOT_MEASURED = {
    "judge": JUDGE,
    "batch_size": 2,
    "processes": 2,
    "table_rows": 10,
    "regex": {"parsers": "all"},
    "analogy": {"window": 4},
    "similarity": {"encoder": "demo:minilm"},
    "logprob": {"enabled": True},
    "cache": "off",
    "directory": "rows",
    "accept_changes": True,
    "lint": False,
}


def test_every_setting_is_on_one_of_the_two_sides() -> None:
    assert set(MEASURED) | set(NOT_MEASURED) == set(Settings.model_fields)


@pytest.mark.parametrize("name", MEASURED)
def test_the_fingerprint_changes_with_a_measured_setting(name: str) -> None:
    readers = {"mark": "dashes", "nota_share": "none-of-the-above"}
    base = {"protocol": readers.get(name, "letters")}
    assert (
        read_settings(base | {name: MEASURED[name]}).fingerprint != read_settings(base).fingerprint
    )


@pytest.mark.parametrize("name", NOT_MEASURED)
def test_the_fingerprint_ignores_how_answers_are_read_and_batched(name: str) -> None:
    changed = read_settings({name: NOT_MEASURED[name]})
    assert changed != Settings()
    assert changed.fingerprint == Settings().fingerprint


def test_the_fingerprint_ignores_the_order_of_names_and_how_numbers_are_spelt() -> None:
    one = read_settings({"seed": 1, "temperature": 1, "stop": ["x"]})
    two = read_settings({"stop": ("x",), "temperature": 1.0, "seed": 1})
    assert one.fingerprint == two.fingerprint
    assert len(one.fingerprint) == 12
    assert int(one.fingerprint, 16) >= 0


def test_the_decoding_is_what_was_set() -> None:
    names = ("max_new_tokens", "temperature", "top_p", "top_k", "seed", "thinking")
    decoding = read_settings({n: MEASURED[n] for n in (*names, "stop")}).decoding
    assert decoding == Decoding(**{n: MEASURED[n] for n in names}, stop=("\n",))


# A protocol's own settings


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({}, (128, 0.0, 0), id="letters: as always"),
        pytest.param({"protocol": "dashes"}, (1024, 0.6, 20), id="dashes: as published"),
        pytest.param({"protocol": "letters-reasoned"}, (1024, 0.0, 0), id="room for reasoning"),
        pytest.param({"protocol": "options-last"}, (1024, 0.0, 0), id="room for the first turn"),
        pytest.param({"protocol": "analogy"}, (8, 0.0, 0), id="analogy: eight tokens"),
        pytest.param(
            {"protocol": "dashes", "temperature": 0, "top_k": 0}, (1024, 0.0, 0), id="greedy dashes"
        ),
        pytest.param(
            {"protocol": "dashes", "max_new_tokens": 24}, (24, 0.6, 20), id="what is set wins"
        ),
        pytest.param(
            {"protocol": "analogy", "max_new_tokens": 128},
            (128, 0.0, 0),
            id="also where it is the default of others",
        ),
    ],
)
def test_a_protocol_brings_its_decoding_and_the_user_wins(config, expected) -> None:
    decoding = read_settings(config).decoding
    assert (decoding.max_new_tokens, decoding.temperature, decoding.top_k) == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_settings_survive_being_stored(protocol: str) -> None:
    settings = read_settings({"protocol": protocol})
    again = read_settings(json.loads(settings.model_dump_json()))
    assert again == settings
    assert again.fingerprint == settings.fingerprint


def test_a_misspelt_label_style_is_put_right() -> None:
    with pytest.raises(SettingsError, match='Did you mean "katakana"'):
        read_settings({"labels": "katakanna"})


def test_a_setting_that_would_do_nothing_names_who_reads_it() -> None:
    with pytest.raises(SettingsError, match='template: goes with protocol "letters" only'):
        read_settings({"protocol": "no-labels", "template": "{question}{options}"})
