"""Selection bias: what a parrot, an oracle, a guesser and a refuser look like."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from arms import OTHER as UNREAD
from arms import answers, drawn_to_first, replaced, rotations, table
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mlflow_mcq.errors import DataError
from mlflow_mcq.statistics.flips import flip_rates, pair_consistency
from mlflow_mcq.statistics.labels import place_or_letter
from mlflow_mcq.statistics.one_arm import agreement, spread
from mlflow_mcq.statistics.rows import rows_of
from mlflow_mcq.statistics.selection_bias import by_slot, pick_rates, slot_bias

FIRST = np.array([order[0] for order in rotations(4)])


def graded(choice: np.ndarray, gold: np.ndarray):
    return rows_of(table(choice, gold)).graded


def parrot(n_items: int) -> np.ndarray:
    return np.tile(FIRST, (n_items, 1))


@pytest.mark.parametrize("gold", [[0, 0, 0, 0], [0, 1, 2, 3], [3, 1, 1, 2]], ids=str)
def test_a_parrot_by_slot_and_by_option(gold: list[int]) -> None:
    rows = graded(parrot(4), np.array(gold))
    assert [one.value for one in pick_rates(rows)] == [1, 0, 0, 0]
    found = slot_bias(rows, 200)
    assert found["slot_shift"].value == pytest.approx(
        0.75
    )  # three of four picks would have to move
    assert found["recall_std"].value == pytest.approx(np.std([1, 0, 0, 0]))
    assert pair_consistency(rows).value == 0
    both = agreement(rows)
    assert (both["consistency"].value, both["circular_accuracy"].value) == (0, 0)
    assert flip_rates(rows)["flip_rate"].tolist() == [1.0] * 6


def test_a_parrot_looks_balanced_by_option() -> None:
    """In content space alone nothing shows: each option is picked equally often."""
    frame = table(parrot(8), np.arange(8) % 4)
    assert frame["choice"].value_counts().tolist() == [8, 8, 8, 8]
    assert by_slot(rows_of(frame))["pick_rate"].tolist() == [1, 0, 0, 0]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=12))
def test_an_oracle_has_no_bias_wherever_gold_stands(gold: list[int]) -> None:
    golds = np.array(gold)
    rows = graded(np.tile(golds[:, None], 4), golds)
    found = slot_bias(rows, 50)
    assert {name: one.value for name, one in found.items()} == {
        "slot_shift": 0, "recall_std": 0, "choice_kl": 0,
    }  # fmt: skip
    assert pair_consistency(rows).value == agreement(rows)["circular_accuracy"].value == 1


def test_gold_that_always_stands_first_is_no_bias() -> None:
    """Shown as it stands in the data, gold on top: picks of A are what is right."""
    gold = np.zeros(30, dtype=np.int64)
    rows = graded(gold[:, None], gold)
    assert pick_rates(rows)[0].value == 1
    assert slot_bias(rows, 50)["slot_shift"].value == 0
    assert "fewer than 2 slots" in slot_bias(rows, 50)["recall_std"].reason


@pytest.mark.parametrize(
    ("options", "agreeing", "circular"),
    [
        pytest.param([0, 1, 2, 3], 0, False, id="follows the place"),
        pytest.param([1, 1, 3, 3], 2 / 6, False, id="two of each"),
        pytest.param([1, 1, 1, 3], 3 / 6, False, id="three of four"),
        pytest.param([1, 1, 1, 1], 1, True, id="always right"),
        pytest.param([2, 2, 2, 2], 1, False, id="always wrong, and consistent"),
        pytest.param([1, 1, 1, UNREAD], 3 / 6, False, id="a refusal agrees with nothing"),
        pytest.param([UNREAD] * 4, 0, False, id="nor with itself"),
    ],
)
def test_pairs_of_orientations_agree_by_option(
    options: list[int], agreeing: float, circular: bool
) -> None:
    rows = graded(np.array([options, options]), np.array([1, 1]))
    assert pair_consistency(rows).value == pytest.approx(agreeing)
    assert agreement(rows)["circular_accuracy"].value == float(circular)


def test_repeats_of_one_orientation_are_no_pair_of_orientations() -> None:
    frame = table(np.array([[0, 0, 1, 1]]), np.array([0]))
    frame["orientation"] = [0, 0, 1, 1]  # two samples of each
    assert pair_consistency(rows_of(frame)).value == 0  # of the four pairs across
    frame["choice"] = pd.array([0, 1, 0, 1], dtype="Int64")
    assert pair_consistency(rows_of(frame)).value == 0.5


def test_mean_and_circular_accuracy_are_not_the_same() -> None:
    gold = np.zeros(3, dtype=np.int64)
    rows = graded(np.array([[0, 0, 0, 0], [0, 0, 2, 0], [1, 0, 1, 0]]), gold)
    assert (rows.verdict == 1).mean() == 9 / 12
    assert agreement(rows)["circular_accuracy"].value == 1 / 3


def test_a_flip_needs_two_named_options() -> None:
    rows = graded(np.array([[0, 1], [0, UNREAD], [2, 2], [0, 0]]), np.zeros(4, dtype=np.int64))
    (pair,) = flip_rates(rows).to_dict("records")
    assert pair["flip_rate"] == 1 / 3
    assert pair["named_in_both"] == 3 / 4


def test_numbers_of_slots_by_hand() -> None:
    gold = np.random.default_rng(0).integers(0, 4, 80)
    frame = table(drawn_to_first(answers(gold, 0.4, 1), 0.3, 2), gold)
    rows, found = rows_of(frame), by_slot(rows_of(frame))
    recalls = [(frame[frame.gold_slot == k].verdict == "CORRECT").mean() for k in range(4)]
    assert found["recall"].tolist() == pytest.approx(recalls, abs=1e-12)
    bias = slot_bias(rows, 50)
    assert bias["recall_std"].value == pytest.approx(np.std(recalls), abs=1e-12)
    picks = [(frame.slot == k).sum() for k in range(4)]
    golds = [(frame.gold_slot == k).sum() for k in range(4)]
    assert bias["choice_kl"].value == pytest.approx(
        stats.entropy(np.array(picks) + 0.5, np.array(golds) + 0.5), abs=1e-12
    )
    moved = np.abs(np.array(picks) - np.array(golds)).sum() / (2 * len(frame))
    assert bias["slot_shift"].value == pytest.approx(moved, abs=1e-12)
    assert found["shift"].clip(lower=0).sum() == pytest.approx(moved, abs=1e-12)
    assert found["uniform_rate"].tolist() == [0.25] * 4


def test_refusals_are_no_pick_of_any_slot() -> None:
    gold = np.random.default_rng(3).integers(0, 4, 60)
    choice = np.tile(gold[:, None], 4)
    some = graded(replaced(choice, 0.4, UNREAD, 4), gold)
    assert sum(one.value or 0 for one in pick_rates(some)) == pytest.approx(1)
    silent = graded(np.full((5, 4), UNREAD), gold[:5])
    assert all(one.value is None for one in pick_rates(silent))
    assert slot_bias(silent, 20)["slot_shift"].reason == (
        "undefined: 0 rows with a known pick and one gold"
    )


def test_items_without_a_single_gold_slot_are_left_out_of_what_needs_one() -> None:
    gold = np.arange(8) % 4
    frame = table(np.tile(gold[:, None], 4), gold)
    frame["gold_slot"] = frame["gold_slot"].astype("Int64").mask(frame["item_id"] == "q0")
    found = by_slot(rows_of(frame))
    assert found["n_gold_rows"].tolist() == [7] * 4
    assert found["n_rows"].tolist() == [28] * 4
    assert slot_bias(rows_of(frame), 20)["slot_shift"].value == 0


def test_noise_alone_keeps_zero_in_the_interval_and_a_bias_does_not() -> None:
    """These numbers are above 0 by noise: their lower ends must not be."""
    zero = biased = 0
    for seed in range(60):
        gold = np.random.default_rng(seed).integers(0, 4, 100)
        fair = answers(gold, 0.5, seed)
        zero += slot_bias(graded(fair, gold), 400)["slot_shift"].low == 0.0
        pulled = slot_bias(graded(drawn_to_first(fair, 0.2, seed), gold), 400)["slot_shift"]
        biased += pulled.low > 0.0 and pulled.low <= 0.15 <= pulled.high
    assert zero >= 54
    assert biased >= 52


def test_the_spread_of_an_arm_without_bias_has_zero_within_reach() -> None:
    zero = 0
    for seed in range(60):
        gold = np.random.default_rng(seed).integers(0, 4, 100)
        found = spread(graded(answers(gold, 0.5, seed), gold), 400)
        assert found["accuracy_spread"].value > 0
        zero += found["accuracy_spread"].low == 0.0
    assert zero >= 54


def relabelled(choice: np.ndarray, gold: np.ndarray, label_of: np.ndarray) -> pd.DataFrame:
    """Rows whose slot k carries the letter label_of[row, k]."""
    frame = table(choice, gold)
    slot = frame["slot"].fillna(0).to_numpy(dtype=int)
    letters = np.array(list("ABCD"))
    frame["shown_letter"] = letters[label_of[np.arange(len(frame)), slot]]
    return frame


@pytest.mark.parametrize(("bias", "place", "letter"), [("place", 0.75, 0.0), ("letter", 0.0, 0.75)])
def test_shuffled_labels_tell_place_from_letter(bias: str, place: float, letter: float) -> None:
    n = 200
    gold = np.arange(n) % 4
    draw = np.random.default_rng(0)
    labels = np.stack([draw.permutation(4) for _ in range(4 * n)])
    if bias == "place":
        choice = parrot(n)
    else:  # the slot that is called A, as an option
        at_a = np.argmax(labels == 0, axis=1).reshape(n, 4)
        choice = (at_a + np.arange(4)) % 4
    usual = table(parrot(n), gold)
    found = place_or_letter(usual, relabelled(choice, gold, labels), 200)
    assert found.usual.value == pytest.approx(0.75)
    assert found.place.value == pytest.approx(place, abs=0.06)
    assert found.letter.value == pytest.approx(letter, abs=0.06)


def test_labels_that_were_never_shuffled_are_refused() -> None:
    gold = np.arange(4)
    frame = relabelled(parrot(4), gold, np.tile(np.arange(4), (16, 1)))
    with pytest.raises(DataError, match="no letter was moved"):
        place_or_letter(frame, frame)
