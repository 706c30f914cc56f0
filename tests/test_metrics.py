"""Numbers over grades: definitions, laws, and what has no value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq import metrics
from mlflow_mcq.metrics import by_orientation, confusion, disagreement
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Prompt, Reply
from mlflow_mcq.table import grades_frame

summarize = partial(metrics.summarize, replicates=20)

Reader = Callable[[Generation], Grade]


def graded(items: list[Item], read: Reader, scheme: str = "rotations") -> pd.DataFrame:
    render = prompt_family("letters")
    return grades_frame(
        read(Generation(render(item, orientation, chat=False), 0, Reply("x")))
        for item in items
        for orientation in plan_for(item, scheme)
    )


def picks(slot_of: Callable[[Prompt], int]) -> Reader:
    return lambda g: Grade.of_choice(g, "judge", g.prompt.orientation.order[slot_of(g.prompt)])


parrot = picks(lambda prompt: 0)
oracle = picks(lambda prompt: prompt.gold_slot)


def refuser(generation: Generation) -> Grade:
    return Grade.unread(generation, "judge", "refusal")


def broken_judge(generation: Generation) -> Grade:
    return Grade.failed(generation, "judge", "503")


items_strategy = st.lists(
    st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
    min_size=1,
    max_size=8,
).map(
    lambda rows: [
        Item(f"q{i}", "?", tuple(f"option {k}" for k in range(n)), gold)
        for i, (n, gold) in enumerate(rows)
    ]
)


@given(items_strategy)
def test_an_oracle_is_right_everywhere(items: list[Item]) -> None:
    values = summarize(graded(items, oracle), judged=True).values
    assert values["accuracy"] == values["accuracy_decided"] == 1
    assert values["consistency"] == 1
    assert values["accuracy_spread"] == values["other_rate"] == values["judge_error_rate"] == 0


@given(items_strategy)
def test_a_parrot_is_at_chance_and_never_consistent(items: list[Item]) -> None:
    frame = graded(items, parrot)
    values = summarize(frame, judged=True).values
    chance = len(items) / len(frame)  # right once an item, whatever its length
    assert values["accuracy"] == pytest.approx(chance)
    assert values["pick_rate_slot_1"] == 1
    assert values["pick_rate_slot_2"] == 0
    assert values["consistency"] == 0


@given(items_strategy)
def test_a_refusal_is_nobodys_preference(items: list[Item]) -> None:
    summary = summarize(graded(items, refuser), judged=True)
    assert summary.values["accuracy"] == 0
    assert summary.values["other_rate"] == 1
    assert "accuracy_decided" not in summary.values
    assert "0 decided rows" in summary.undefined["accuracy_decided"]
    assert "pick_rate_slot_1" in summary.undefined


@given(items_strategy)
def test_judge_errors_are_in_no_denominator(items: list[Item]) -> None:
    def half_broken(generation: Generation) -> Grade:
        first = generation.prompt.orientation.index == 0
        return broken_judge(generation) if first else oracle(generation)

    frame = graded(items, half_broken)
    values = summarize(frame, judged=True).values
    assert values["accuracy"] == 1
    assert values["n_judge_errors"] == len(items)
    assert values["judge_error_rate"] == len(items) / len(frame)


def test_without_any_verdict_only_counts_exist() -> None:
    summary = summarize(graded([Item("q", "?", ("x", "y"), 0)], broken_judge), judged=True)
    assert summary.values == {
        "n_rows": 2.0, "n_items": 1.0, "n_judge_errors": 2.0, "judge_error_rate": 1.0,
    }  # fmt: skip
    assert all(why.startswith("undefined") for why in summary.undefined.values())


def test_both_denominators_on_a_worked_example() -> None:
    verdicts = iter(["right", "other", "wrong", "right"])

    def read(generation: Generation) -> Grade:
        word = next(verdicts)
        if word == "other":
            return refuser(generation)
        gold = generation.prompt.item.gold
        return Grade.of_choice(generation, "judge", gold if word == "right" else 1 - gold)

    items = [Item("q1", "?", ("x", "y"), 0), Item("q2", "?", ("x", "y"), 1)]
    values = summarize(graded(items, read), judged=True).values
    assert values["accuracy"] == 2 / 4
    assert values["accuracy_decided"] == 2 / 3
    assert values["other_rate"] == 1 / 4
    assert values["accuracy_lowest"] == values["accuracy_highest"] == 0.5
    assert values["consistency"] == 0


def test_one_orientation_has_no_spread_and_no_consistency() -> None:
    summary = summarize(graded([Item("q", "?", ("x", "y"), 0)], oracle, "as-is"), judged=False)
    assert {"accuracy_spread", "consistency"} <= set(summary.undefined)
    assert "judge_error_rate" not in summary.values


def test_orientations_show_position_bias_that_the_mean_hides() -> None:
    items = [Item(f"q{i}", "?", ("x", "y"), 0) for i in range(4)]
    frame = graded(items, parrot)
    assert by_orientation(frame)["accuracy"].tolist() == [1.0, 0.0]
    values = summarize(frame, judged=True).values
    assert (values["accuracy"], values["accuracy_spread"]) == (0.5, 1.0)


@given(items_strategy, st.sampled_from([parrot, oracle, refuser, broken_judge]))
def test_every_row_is_in_the_confusion_matrix_once(items: list[Item], read: Reader) -> None:
    frame = graded(items, read)
    assert confusion(frame).to_numpy().sum() == len(frame)


def test_confusion_counts_by_slot_with_other_apart() -> None:
    items = [Item("q", "?", ("x", "y", "z"), 1)]
    table = confusion(graded(items, parrot))
    assert table.columns.tolist() == [0, 1, 2, "OTHER"]
    assert table[0].tolist() == [1, 1, 1]
    assert confusion(graded(items, refuser))["OTHER"].tolist() == [1, 1, 1]
    assert confusion(graded(items, broken_judge))["judge_error"].tolist() == [1, 1, 1]


def test_a_wrong_answer_that_names_nothing_is_not_given_a_slot() -> None:
    from mlflow_mcq.records import Verdict

    def direct(generation: Generation) -> Grade:
        return Grade.of_verdict(generation, "judge", Verdict.INCORRECT)

    frame = graded([Item("q", "?", ("x", "y", "z"), 0)], direct)
    assert confusion(frame)["unnamed"].tolist() == [1, 1, 1]
    assert confusion(frame)[[0, 1, 2]].to_numpy().sum() == 0
    summary = summarize(frame, judged=True)
    assert summary.values["accuracy"] == 0
    for name in ("consistency", "pick_rate_slot_1"):
        assert "without the option they name" in summary.undefined[name]


def test_of_two_options_a_wrong_answer_names_the_other() -> None:
    from mlflow_mcq.records import Verdict

    def direct(generation: Generation) -> Grade:
        return Grade.of_verdict(generation, "judge", Verdict.INCORRECT)

    values = summarize(graded([Item("q", "?", ("x", "y"), 0)], direct), judged=True).values
    assert (values["consistency"], values["pick_rate_slot_1"]) == (1, 0.5)


def test_the_spread_compares_the_same_items() -> None:
    """Long items are hard here; no answer depends on its position."""
    items = [Item(f"short{i}", "?", ("x", "y"), 0) for i in range(4)]
    items += [Item(f"long{i}", "?", ("x", "y", "z", "w"), 0) for i in range(4)]

    def by_content(generation: Generation) -> Grade:
        item = generation.prompt.item
        return Grade.of_choice(generation, "judge", 0 if len(item.options) == 2 else 1)

    values = summarize(graded(items, by_content), judged=True).values
    assert values["accuracy_lowest"] == values["accuracy_highest"] == 0.5
    assert values["accuracy_spread"] == 0


def test_one_orientation_has_no_range() -> None:
    items = [Item(f"q{n}", "?", ("x", "y"), n % 2) for n in range(4)]
    summary = summarize(graded(items, parrot, "as-is"), judged=True)
    ranges = {f"accuracy_{name}" for name in ("lowest", "highest", "spread", "variation")}
    assert summary.values["accuracy"] == 0.5
    assert not ranges & set(summary.values)
    assert {summary.undefined[name] for name in ranges} == {"undefined: fewer than 2 orientations"}


@given(items_strategy)
def test_disagreement_is_zero_with_oneself_and_one_with_a_refuser(items: list[Item]) -> None:
    mine = graded(items, oracle)
    assert disagreement(mine, mine).values["disagreement"] == 0
    assert disagreement(mine, graded(items, refuser)).values["disagreement"] == 1
    assert "disagreement" in disagreement(mine, graded(items, broken_judge)).undefined
