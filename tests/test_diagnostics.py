"""Alarms: what fires each, and what does not."""

from __future__ import annotations

import pytest

from mlflow_mcq.diagnostics import alarms_for

WELL = {
    "judge/strict_agreement": 1.0,
    "judge/n_checked": 50.0,
    "judge/judge_error_rate": 0.0,
    "judge/n_judge_errors": 0.0,
    "judge/n_rows": 400.0,
    "judge/regex_bounded_disagreement": 0.01,
    "generation/n_prompt_too_long": 0.0,
    "logprob/generation_disagreement": 0.05,
    "judge/nonsense_accuracy": 0.286,
    "judge/chance_low": 0.215,
    "judge/chance_high": 0.286,
}


@pytest.mark.parametrize(
    ("numbers", "names"),
    [
        pytest.param({}, [], id="a sound run"),
        pytest.param({"judge/strict_agreement": 0.94}, ["judge_unreliable"], id="weak judge"),
        pytest.param({"judge/strict_agreement": 0.95}, [], id="just good enough"),
        pytest.param({"judge/n_check_failed": 5.0, "judge/n_checked": 100.0}, [], id="few silent"),
        pytest.param(
            {"judge/n_check_failed": 6.0, "judge/n_checked": 100.0},
            ["judge_unreliable"],
            id="right where it answers, and often silent",
        ),
        pytest.param({"judge/exam_reliable": 0.0}, ["judge_unreliable"], id="failed exam"),
        pytest.param(
            {"judge/exam_reliable": 0.0, "judge/strict_agreement": 0.5},
            ["judge_unreliable"],
            id="unreliable twice, said once",
        ),
        pytest.param({"judge/judge_error_rate": 0.02}, ["judge_errors"], id="failing judge"),
        pytest.param({"generation/error_rate": 0.001}, ["generations_failed"], id="lost rows"),
        pytest.param(
            {"judge/regex_bounded_disagreement": 0.051}, ["regex_judge_disagreement"], id="parser"
        ),
        pytest.param({"regex_naive/spot_rate": 0.05}, [], id="five in a hundred misread"),
        pytest.param(
            {"regex_naive/spot_rate": 0.06}, ["regex_judge_disagreement"], id="six in a hundred"
        ),
        pytest.param(
            {"data/gold_slot_share_highest": 1.0, "generation/n_rows": 10.0},
            ["gold_in_one_slot"],
            id="gold never moves",
        ),
        pytest.param(
            {"data/gold_slot_share_highest": 1.0, "generation/n_rows": 9.0}, [], id="too few"
        ),
        pytest.param({"judge/n_items": 29.0}, ["too_few_items"], id="too few items"),
        pytest.param({"judge/n_items": 30.0, "regex_naive/n_items": 29.0}, [], id="just enough"),
        pytest.param({"generation/n_prompt_too_long": 1.0}, ["prompts_too_long"], id="too long"),
        pytest.param({"analogy/n_unwinnable": 2.0}, ["unwinnable_items"], id="long golds"),
        pytest.param(
            {"logprob/generation_disagreement": 0.055}, ["logprob_diagnostic_only"], id="logprob"
        ),
        pytest.param({"judge/nonsense_accuracy": 0.287}, ["protocol_leaks"], id="above chance"),
        pytest.param({"judge/nonsense_accuracy": 0.214}, ["protocol_leaks"], id="below chance"),
        pytest.param(
            {
                "regex_naive/nonsense_accuracy": 1.0,
                "regex_naive/chance_low": 0.1,
                "regex_naive/chance_high": 0.4,
                "judge/nonsense_accuracy": 0.5,
            },
            ["protocol_leaks"],
            id="two graders, said once",
        ),
        pytest.param(
            {"judge_2/nonsense_accuracy": 1.0, "judge_2/chance_low": 0.1}, [], id="half a band"
        ),
        pytest.param({"logprob/accuracy_shift": 0.05}, [], id="five points of accuracy"),
        pytest.param(
            {"logprob/accuracy_shift": 0.07}, ["logprob_diagnostic_only"], id="seven points more"
        ),
        pytest.param(
            {"logprob/accuracy_shift": -0.07}, ["logprob_diagnostic_only"], id="seven points less"
        ),
        pytest.param(
            {"generation/n_prompt_too_long": 1.0, "judge/strict_agreement": 0.1},
            ["judge_unreliable", "prompts_too_long"],
            id="two, the gravest first",
        ),
    ],
)
def test_each_alarm_fires_alone(numbers: dict[str, float], names: list[str]) -> None:
    fired = alarms_for({**WELL, **numbers})
    assert [alarm.name for alarm in fired] == names
    assert all(alarm.rule and alarm.found and alarm.next_step for alarm in fired)


def test_a_leak_names_every_grader_that_saw_it() -> None:
    band = {"nonsense_accuracy": 1.0, "chance_low": 0.1, "chance_high": 0.4}
    numbers = {f"{grader}/{k}": v for grader in ("judge", "similarity") for k, v in band.items()}
    (alarm,) = alarms_for(numbers)
    assert "judge" in alarm.found
    assert "similarity" in alarm.found


def test_every_parser_over_the_limit_is_named() -> None:
    (alarm,) = alarms_for(
        {
            "regex_naive/spot_rate": 0.41,
            "regex_naive/spot_n": 100.0,
            "regex_answer_is/spot_rate": 0.02,
            "regex_mmlu_pro/spot_rate": 0.125,
            "regex_mmlu_pro/spot_n": 8.0,
        }
    )
    assert alarm.found == (
        "regex_naive misreads 41.0% of 100 rows; regex_mmlu_pro misreads 12.5% of 8 rows"
    )


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        pytest.param(
            {
                "judge/strict_agreement": 0.9,
                "judge/strict_agreement_low": 0.826,
                "judge/strict_agreement_high": 0.945,
                "judge/n_checked": 101.0,
                "judge/n_check_failed": 1.0,
            },
            "it read 90% of 100 answers right (95 % interval 83% to 94%) that are nothing but a "
            "label, and could not be read on 1 more",
            id="with its interval",
        ),
        pytest.param(
            {"judge/n_checked": 8.0, "judge/n_check_failed": 8.0},
            "it read none of the answers that are nothing but a label, and could not be read on 8 "
            "more",
            id="never readable",
        ),
    ],
)
def test_a_weak_judge_is_named_with_the_size_of_the_evidence(
    numbers: dict[str, float], found: str
) -> None:
    (alarm,) = alarms_for(numbers)
    assert alarm.name == "judge_unreliable"
    assert alarm.found == found


def test_numbers_that_do_not_exist_fire_nothing() -> None:
    assert alarms_for({}) == []
