"""Alarms over two arms: arms of known truth get the right ones, and no others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from arms import OTHER as UNREAD
from arms import answers, drawn_to_first, replaced, table

from mlflow_mcq.diagnostics.pair import (
    ArmFacts,
    PairFacts,
    Reading,
    judge_pair,
    pair_alarms,
)
from mlflow_mcq.statistics.intervals import Measured
from mlflow_mcq.statistics.paired import Effect
from mlflow_mcq.statistics.pairing import Unpaired, align

N_ITEMS = 300
BASE, TREAT = ArmFacts("base", "d1", "j1"), ArmFacts("treated", "d1", "j1")
Made = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Choices as the judge reads them (baseline, treatment), and as a regex does."""


def nothing(gold: np.ndarray, seed: int) -> Made:
    one, other = (answers(gold, 0.5, 1000 * seed + k) for k in (1, 2))
    return one, other, one, other


def real_effect(gold: np.ndarray, seed: int) -> Made:
    one, other = answers(gold, 0.5, 1000 * seed + 1), answers(gold, 0.7, 1000 * seed + 2)
    return one, other, one, other


def position_bias(gold: np.ndarray, seed: int) -> Made:
    one, other, *_ = nothing(gold, seed)
    pulled = drawn_to_first(other, 0.4, seed)
    return one, pulled, one, pulled


def refusals(gold: np.ndarray, seed: int) -> Made:
    one, other, *_ = nothing(gold, seed)
    quiet = replaced(other, 0.25, UNREAD, seed)
    return one, quiet, one, quiet


def parser_artefact(gold: np.ndarray, seed: int) -> Made:
    """The treatment explains itself, and a regex finds some other letter in a third of it."""
    one, other, *_ = nothing(gold, seed)
    wrong = np.random.default_rng(seed).integers(0, 4, other.shape)
    misread = np.where(np.random.default_rng(seed + 7).random(other.shape) < 0.3, wrong, other)
    return one, other, one, misread


def effect_that_a_parser_hides(gold: np.ndarray, seed: int) -> Made:
    one, other, *_ = real_effect(gold, seed)
    return one, other, one, parser_artefact(gold, seed)[3]


def spread_golds(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, N_ITEMS)


def gold_first(seed: int) -> np.ndarray:
    return np.zeros(N_ITEMS, dtype=np.int64)


def alarms_of(made: Made, gold: np.ndarray) -> set[str]:
    judged = align(table(made[0], gold), table(made[1], gold))
    regex = align(table(made[2], gold), table(made[3], gold))
    facts = judge_pair(judged, BASE, TREAT, {"regex_bounded": regex})
    return {alarm.name for alarm in pair_alarms(facts)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("make", "golds", "expected"),
    [
        pytest.param(nothing, spread_golds, set(), id="nothing"),
        pytest.param(nothing, gold_first, set(), id="nothing, gold always first"),
        pytest.param(real_effect, spread_golds, set(), id="real effect"),
        pytest.param(
            position_bias, spread_golds, {"orientation_sign_change"}, id="pure position bias"
        ),
        pytest.param(
            position_bias,
            gold_first,
            {"orientation_sign_change", "orientation_shrink"},
            id="pure position bias, gold always first",
        ),
        pytest.param(refusals, spread_golds, {"other_rate_up"}, id="pure refusal shift"),
        pytest.param(
            parser_artefact, spread_golds, {"suspected_parser_artifact"}, id="parser artefact"
        ),
        pytest.param(
            effect_that_a_parser_hides,
            spread_golds,
            {"suspected_parser_artifact"},
            id="real effect, hidden by a parser",
        ),
    ],
)
def test_arms_of_known_truth(
    make: Callable[[np.ndarray, int], Made],
    golds: Callable[[int], np.ndarray],
    expected: set[str],
    seed: int,
) -> None:
    gold = golds(seed)
    assert alarms_of(make(gold, seed), gold) == expected


def test_arms_that_do_not_differ_hardly_ever_fire_anything() -> None:
    fired = 0
    for seed in range(100, 180):
        gold = spread_golds(seed)
        one, other, *_ = nothing(gold, seed)
        pairs = align(table(one, gold), table(other, gold))
        fired += bool(pair_alarms(judge_pair(pairs, BASE, TREAT)))
    assert fired <= 3


def test_what_each_alarm_says() -> None:
    gold = spread_golds(1)
    one, quiet, *_ = refusals(gold, 1)
    pairs = align(table(one, gold), table(quiet, gold))
    (alarm,) = pair_alarms(judge_pair(pairs, BASE, TREAT))
    assert alarm.name == "other_rate_up"
    assert "up in treated" in alarm.found
    for part in ("over all rows", "decided rows", "both decided"):
        assert part in alarm.found
    (alarm,) = pair_alarms(judge_pair(align(table(quiet, gold), table(one, gold)), BASE, TREAT))
    assert "up in base" in alarm.found  # a phantom gain is as misleading as a phantom loss


def short(frame: pd.DataFrame, n_items: int) -> pd.DataFrame:
    return frame[frame["item_id"].isin([f"q{i}" for i in range(n_items)])]


def test_missing_items_rows_and_few_of_them() -> None:
    gold = spread_golds(2)
    one, other, *_ = nothing(gold, 2)
    base, treat = table(one, gold), table(other, gold)

    def names(left: pd.DataFrame, right: pd.DataFrame) -> set[str]:
        return {a.name for a in pair_alarms(judge_pair(align(left, right), BASE, TREAT))}

    assert names(base, short(treat, 200)) == {"unpaired_items"}
    assert names(base, treat.iloc[1:]) == {"unpaired_items"}
    assert names(short(base, 29), short(treat, 29)) == {"too_few_items"}
    assert names(short(base, 30), short(treat, 30)) == set()
    assert names(base[:0], treat[:0]) == {"too_few_items"}
    moved = treat.assign(gold_slot=(treat["gold_slot"] + (treat["item_id"] == "q5")) % 4)
    assert names(base, moved) == {"data_changed"}


@pytest.mark.parametrize(
    ("mine", "theirs", "name"),
    [
        pytest.param(
            ArmFacts("a", "d", "j"), ArmFacts("b", "d", "k"), "judge_mismatch", id="judge"
        ),
        pytest.param(
            ArmFacts("a", "d", "j"), ArmFacts("b", "d", ""), "judge_mismatch", id="one judge"
        ),
        pytest.param(ArmFacts("a", "d"), ArmFacts("b", "e"), "data_changed", id="data"),
        pytest.param(ArmFacts("a", "d"), ArmFacts("b", ""), None, id="unknown data is no change"),
        pytest.param(ArmFacts("a", "d", "j"), ArmFacts("b", "d", "j"), None, id="all alike"),
    ],
)
def test_facts_of_the_arms(mine: ArmFacts, theirs: ArmFacts, name: str | None) -> None:
    fired = pair_alarms(PairFacts(mine, theirs))
    assert [alarm.name for alarm in fired] == ([name] if name else [])
    assert all(alarm.rule and alarm.found and alarm.next_step for alarm in fired)


def effects(*values: float) -> list[Effect]:
    return [Effect(place, Measured(value)) for place, value in enumerate(values)]


def sized(value: float, reach: float) -> Measured:
    return Measured(value, value - reach, value + reach, reach / 1.96, 1_000)


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        pytest.param({"effects": {"orientation": effects(0.07, -0.04)}}, True, id="two signs"),
        pytest.param({"effects": {"orientation": effects(0.07, 0.01)}}, False, id="one sign"),
        pytest.param({"effects": {"orientation": effects(0.07, 0.0)}}, False, id="0 has no sign"),
        pytest.param({"effects": {"orientation": effects(0.07)}}, False, id="one orientation"),
        pytest.param(
            {"effects": {"orientation": effects(0.07, -0.04)}, "equal": {"orientation": 0.2}},
            False,
            id="two signs by chance",
        ),
        pytest.param(
            {"effects": {"gold_slot": effects(-0.2, 0.1)}, "equal": {"gold_slot": 1e-4}},
            True,
            id="by gold slot",
        ),
        pytest.param(
            {
                "effects": {
                    "gold_slot": [Effect(0, sized(0.3, 0.05)), Effect(1, sized(-0.01, 0.05))]
                },
                "equal": {"gold_slot": 1e-9},
            },
            False,
            id="uneven, but no second sign",
        ),
    ],
)
def test_sign_change_over_numbers(facts: dict[str, object], fires: bool) -> None:
    fired = pair_alarms(PairFacts(ArmFacts("a"), ArmFacts("b"), **facts))  # type: ignore[arg-type]
    assert [alarm.name for alarm in fired] == ["orientation_sign_change"] * fires


@pytest.mark.parametrize(
    ("first", "average", "fires"),
    [
        pytest.param(0.20, 0.09, True, id="less than half is left"),
        pytest.param(0.20, 0.10, False, id="half is left"),
        pytest.param(0.20, -0.05, True, id="turned round"),
        pytest.param(-0.20, -0.02, True, id="a loss that goes away"),
        pytest.param(0.0, 0.1, False, id="nothing to shrink"),
    ],
)
def test_shrink_over_numbers(first: float, average: float, fires: bool) -> None:
    facts = PairFacts(
        ArmFacts("a"), ArmFacts("b"),
        shifts={"accuracy_shift": sized(average, 0.02)}, as_is=sized(first, 0.03), as_is_moves=1e-5,
    )  # fmt: skip
    assert [alarm.name for alarm in pair_alarms(facts)] == ["orientation_shrink"] * fires


@pytest.mark.parametrize(
    ("judged", "parsed", "fires"),
    [
        pytest.param(0.00, 0.06, True, id="a null that a parser turns into an effect"),
        pytest.param(0.10, 0.00, True, id="an effect that a parser does not see"),
        pytest.param(0.10, -0.10, True, id="another sign"),
        pytest.param(0.20, 0.15, False, id="the same story, a little weaker"),
        pytest.param(0.00, 0.015, False, id="too small for a word"),
    ],
)
def test_parser_artefact_over_numbers(judged: float, parsed: float, fires: bool) -> None:
    reading = Reading("regex_bounded", sized(parsed, 0.01), sized(parsed - judged, 0.005))
    facts = PairFacts(
        ArmFacts("a"), ArmFacts("b"),
        shifts={"accuracy_shift": sized(judged, 0.01)}, readings=[reading],
    )  # fmt: skip
    assert [alarm.name for alarm in pair_alarms(facts)] == ["suspected_parser_artifact"] * fires


@pytest.mark.parametrize(
    ("moved", "reach", "fires"),
    [(0.30, 0.05, True), (0.02, 0.005, True), (0.019, 0.005, False), (0.05, 0.06, False)],
    ids=["up", "at the limit", "below it", "not sure"],
)
def test_other_rate_over_numbers(moved: float, reach: float, fires: bool) -> None:
    facts = PairFacts(
        ArmFacts("a"), ArmFacts("b"), shifts={"other_rate_shift": sized(moved, reach)}
    )
    assert [alarm.name for alarm in pair_alarms(facts)] == ["other_rate_up"] * fires


def test_nothing_known_fires_nothing() -> None:
    unpaired = Unpaired(0, 0, 0, 0, 0, 3)  # judge errors are another alarm's business
    assert pair_alarms(PairFacts(ArmFacts("a"), ArmFacts("b"), unpaired=unpaired)) == []
