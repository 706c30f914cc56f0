"""What a recipe says of arms side by side, on simulated arms whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from arms import OTHER, answers, rotations, table

from mlflow_mcq import metrics
from mlflow_mcq.comparison.arms import StoredArm, main_grader
from mlflow_mcq.experiment.arm_result import ArmResult
from mlflow_mcq.experiment.arm_rows import arm_numbers, arms_table, attack_gap
from mlflow_mcq.experiment.rankings import comparison_numbers
from mlflow_mcq.experiment.views import chosen_table, repeat_tables, temperature_table
from mlflow_mcq.statistics.pairing import align
from mlflow_mcq.statistics.significance import significance

N = 24
GOLD = np.arange(N) % 4


def arm(name: str, rows: pd.DataFrame, **facts: Any) -> ArmResult:
    numbers = {
        f"{grader}/{key}": value
        for grader in rows["grader"].unique()
        for key, value in metrics.summarize(
            rows[rows["grader"] == grader], judged=False, replicates=50
        ).values.items()
    }
    return ArmResult(name, f"run-{name}", {**numbers, **facts.pop("more", {})}, "none",
                     rows=rows, **{"protocol": "letters", "model": "m", **facts})  # fmt: skip


def always_a(grader: str = "regex_bounded") -> pd.DataFrame:
    """The top slot, whatever stands there, in all rotations."""
    return table(np.tile(np.arange(4), (N, 1)), GOLD, grader=grader)


def gold_at(slot: int, choice_slot: int | None) -> pd.DataFrame:
    """One order an item with gold in a slot; the model picks a slot, or gold where None."""
    rows = []
    for item, gold in enumerate(GOLD):
        order = list(range(4))
        order[slot], order[gold] = order[gold], order[slot]
        pick = gold if choice_slot is None else order[choice_slot]
        one = table(np.array([[pick]]), np.array([gold]), ids=[f"q{item}"], orders=[tuple(order)],
                    grader="regex_bounded")  # fmt: skip
        rows.append(one)
    return pd.concat(rows, ignore_index=True)


def test_a_model_that_always_says_a_looks_right_where_gold_is_moved_there() -> None:
    original = arm("original", always_a())
    gaps = {
        slot: attack_gap(original, arm(f"at{slot}", gold_at(slot, 0)), "regex_bounded")
        for slot in range(4)
    }
    # In the order of the data gold stands first in one item of four.
    assert gaps[0].value == pytest.approx(0.25 - 1.0)
    assert [gaps[slot].value for slot in (1, 2, 3)] == pytest.approx([0.25] * 3)
    assert gaps[0].high is not None
    assert gaps[0].high < 0


def test_a_model_that_knows_loses_nothing() -> None:
    original = arm("original", table(answers(GOLD, 1.0, 0), GOLD, grader="regex_bounded"))
    gap = attack_gap(original, arm("at2", gold_at(2, None)), "regex_bounded")
    assert gap.value == 0.0


def test_without_the_order_of_the_data_there_is_no_original() -> None:
    moved = table(answers(GOLD, 1.0, 0)[:, :1], GOLD, orders=[(1, 2, 3, 0)], grader="regex_bounded")
    gap = attack_gap(arm("o", moved), arm("at0", gold_at(0, 0)), "regex_bounded")
    assert gap.value is None
    assert "order of the data" in gap.reason
    assert "not read by judge" in attack_gap(arm("o", moved), arm("a", moved), "judge").reason


def test_numbers_of_an_arm_that_always_says_a() -> None:
    numbers = arm_numbers([arm("a", always_a())])["a"].values
    # Each slot's recall: 1 at the top, 0 elsewhere.
    assert numbers["regex_bounded/recall_std_points"] == pytest.approx(100 * np.std([1, 0, 0, 0]))
    assert numbers["regex_bounded/accuracy_variance"] == pytest.approx(0.0)
    shown = arms_table([arm("a", always_a())]).iloc[0]
    assert shown["regex_bounded/pair_consistency"] == 0.0
    assert shown["regex_bounded/circular_accuracy"] == 0.0


def test_variance_is_that_of_the_accuracies_by_orientation() -> None:
    choice = np.tile(GOLD[:, None], (1, 4))
    choice[: N // 2, 1] = OTHER
    choice[: N // 4, 3] = OTHER
    numbers = arm_numbers([arm("a", table(choice, GOLD))])["a"].values
    assert numbers["judge/accuracy_variance"] == pytest.approx(np.var([1, 0.5, 1, 0.75]))


def test_one_orientation_has_no_variance_and_a_reason() -> None:
    numbers = arm_numbers([arm("a", table(GOLD[:, None], GOLD, orders=rotations(4)[:1]))])["a"]
    assert "judge/accuracy_variance" not in numbers.values
    assert "2 orientations" in numbers.undefined["judge/accuracy_variance"]


def test_shifts_are_paired_with_the_baseline_and_absent_for_itself() -> None:
    right = np.tile(GOLD[:, None], (1, 4))
    worse = right.copy()
    worse[:6] = OTHER
    numbers = arm_numbers([arm("base", table(right, GOLD)), arm("b", table(worse, GOLD))], "base")
    assert numbers["b"].values["judge/accuracy_shift"] == pytest.approx(-0.25)
    assert 0 < numbers["b"].values["judge/accuracy_shift_p"] < 0.05
    assert "judge/accuracy_shift" not in numbers["base"].values


@pytest.mark.parametrize(
    ("n_orders", "p_value"),
    [
        # Six items differ, all the same way: two of 2 ** 6 sign patterns are as extreme.
        pytest.param(4, 2 / 64, id="sign flips by item"),
        pytest.param(1, 1 / 64, id="McNemar, mid-p, with one row an item"),
    ],
)
def test_the_p_value_is_the_one_of_a_comparison(n_orders: int, p_value: float) -> None:
    right = np.tile(GOLD[:, None], (1, n_orders))
    worse, orders = right.copy(), rotations(4)[:n_orders]
    worse[:6] = OTHER
    arms = [arm(n, table(c, GOLD, orders=orders)) for n, c in (("base", right), ("b", worse))]
    found = arm_numbers(arms, "base")["b"].values["judge/accuracy_shift_p"]
    assert found == pytest.approx(p_value)
    pairs = align(arms[0].read_by("judge"), arms[1].read_by("judge"))
    assert found == significance(pairs).p_value


def test_arms_without_common_rows_have_no_shift() -> None:
    base = arm("base", table(GOLD[:, None], GOLD, orders=[(0, 1, 2, 3)]))
    other = arm("b", table(GOLD[:, None], GOLD, orders=[(1, 2, 3, 0)]))
    assert "0 rows" in arm_numbers([base, other], "base")["b"].undefined["judge/accuracy_shift"]


def models(letters: list[float], dashes: list[float]) -> list[ArmResult]:
    found = []
    for protocol, grader, shares in (
        ("letters", "regex_bounded", letters), ("dashes", "similarity", dashes),
    ):  # fmt: skip
        for place, share in enumerate(shares):
            choice = np.tile(GOLD[:, None], (1, 4))
            choice[: round(N * (1 - share))] = OTHER
            more = {"generation/seconds": 3.0}
            more |= {"similarity/embed_seconds": 1.0} if grader == "similarity" else {}
            rows = table(choice, GOLD, grader=grader)
            found.append(
                arm(f"{protocol}{place}", rows, protocol=protocol, model=f"m{place}", more=more)
            )
    return found


@pytest.mark.parametrize(
    ("dashes", "tau"),
    [
        pytest.param([0.25, 0.5, 0.75], 1.0, id="same order"),
        pytest.param([0.75, 0.5, 0.25], -1.0, id="reversed"),
        pytest.param([0.25, 0.75, 0.5], 1 / 3, id="one swap of three"),
    ],
)
def test_tau_over_models(dashes: list[float], tau: float) -> None:
    summary = comparison_numbers(models([0.25, 0.5, 1.0], dashes))
    assert summary.values["tau_dashes_letters"] == pytest.approx(tau)
    assert "dashes read by similarity" in summary.notes["tau_dashes_letters"]


def test_two_models_have_no_tau() -> None:
    summary = comparison_numbers(models([0.25, 0.5], [0.5, 0.25]))
    assert "models in both: 2;" in summary.undefined["tau_dashes_letters"]


def test_attacked_arms_are_no_models_of_a_ranking() -> None:
    arms = models([0.25, 0.5, 1.0], [0.25, 0.5, 0.75])
    attacked = arm("x", gold_at(0, 1), model="m2", original="letters2")
    assert comparison_numbers([*arms, attacked]).values["tau_dashes_letters"] == 1.0


def test_seconds_by_protocol_with_the_share_of_similarity() -> None:
    values = comparison_numbers(models([0.25, 0.5], [0.5, 0.25])).values
    assert values["seconds_letters"] == 6.0
    assert values["seconds_dashes"] == 8.0
    assert values["similarity_share_dashes"] == pytest.approx(2 / 8)
    assert "similarity_share_letters" not in values


def test_a_repeat_is_what_it_would_be_alone() -> None:
    choice = np.tile(GOLD[:, None], (1, 3))
    choice[: N // 2, 1] = OTHER
    single, aggregate = repeat_tables([arm("a", table(choice, GOLD))])
    assert [one["accuracy"].tolist() for one in single] == [[1.0], [0.5], [1.0]]
    row = aggregate.iloc[0]
    assert row["accuracy_mean"] == pytest.approx(2.5 / 3)
    assert row["accuracy_std"] == pytest.approx(np.std([1, 0.5, 1]))
    assert (row["n_repeats"], row["accuracy_lowest"], row["accuracy_highest"]) == (3, 0.5, 1.0)


def test_chosen_counts_refusals_in_one_denominator_only() -> None:
    gold = np.zeros(8, dtype=int)
    choice = np.zeros((8, 2), dtype=int)
    choice[:4] = OTHER
    rows = table(choice, gold, orders=[(0, 1), (1, 0)], n_options=2)
    shown = chosen_table([arm("a", rows)]).set_index("chosen")
    assert shown.loc["answer", ["p_chosen", "p_chosen_named"]].tolist() == [0.5, 1.0]
    assert shown.loc["option 2", "p_chosen"] == 0.0
    assert shown.loc["slot 1", ["p_chosen", "p_chosen_named"]].tolist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("graders", "first"),
    [
        pytest.param(["regex_bounded", "judge"], "judge", id="a judge"),
        pytest.param(["regex_bounded", "similarity"], "similarity", id="a page without letters"),
        pytest.param(["regex_naive", "regex_bounded"], "regex_bounded", id="two parsers"),
        pytest.param(["regex_naive", "mine"], "mine", id="never the one wrong on purpose"),
        pytest.param(["regex_naive"], "regex_naive", id="nobody else"),
    ],
)
def test_a_recipe_and_a_comparison_believe_the_same_grader(graders: list[str], first: str) -> None:
    grades = {name: table(GOLD[:, None], GOLD, grader=name) for name in graders}
    stored = StoredArm("a", None, pd.DataFrame(), grades, ())
    assert main_grader([stored, stored]) == first
    assert arm("a", pd.concat(grades.values())).main_grader == first


def test_points_of_a_temperature_plot_come_from_the_most_believed_reader() -> None:
    judged = pd.concat([always_a(), table(np.tile(GOLD[:, None], (1, 4)), GOLD)])
    one = arm("a", judged, temperature=0.7, variant="duplicate")
    assert one.main_grader == "judge"
    [point] = temperature_table([one]).to_dict("records")
    assert (point["temperature"], point["variant"], point["accuracy"]) == (0.7, "duplicate", 1.0)
    assert point["low"] < 1.0
