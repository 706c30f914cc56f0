"""The chance band: guessing stays inside, knowing the key does not."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow import MlflowClient
from scipy import stats

import mlflow_mcq
from mlflow_mcq.chance import chance_band, chance_numbers
from mlflow_mcq.datasets.frame import items_of, read_rows
from mlflow_mcq.datasets.nonsense import nonsense_items
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.metrics import Summary
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Prompt, Reply
from mlflow_mcq.settings import Columns
from mlflow_mcq.table import generations_frame, generations_from, grades_frame

LETTERS = prompt_family("letters")
Reader = Callable[[Prompt], int | None]


def items(n: int, options: int = 4, seed: int = 0) -> tuple[Item, ...]:
    return items_of(read_rows(nonsense_items(n, options, seed), Columns()))


def numbers(some: tuple[Item, ...], pick: Reader, scheme: str = "rotations") -> Summary:
    grades = []
    for item in some:
        for orientation in plan_for(item, scheme):
            prompt = LETTERS(item, orientation, chat=False)
            generation = Generation(prompt, 0, Reply("-"))
            choice = pick(prompt)
            grades.append(
                Grade.unread(generation, "g", "refusal")
                if choice is None
                else Grade.of_choice(generation, "g", choice)
            )
    return chance_numbers(grades_frame(grades), some)


def inside(summary: Summary) -> bool:
    found = summary.values
    return found["chance_low"] <= found["nonsense_accuracy"] <= found["chance_high"]


@given(n=st.integers(1, 3000), options=st.integers(2, 10), alpha=st.floats(0.001, 0.5))
def test_the_band_keeps_its_word(n: int, options: int, alpha: float) -> None:
    low, high = chance_band(n, options, alpha)
    guess = stats.binom(n, 1 / options)
    assert guess.cdf(round(low * n) - 1) <= alpha / 2 + 1e-9
    assert guess.sf(round(high * n)) <= alpha / 2 + 1e-9
    # and it is no wider than that takes
    assert guess.cdf(round(low * n)) > alpha / 2 - 1e-9
    assert low <= guess.median() / n <= high


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((0, 4, 0.01), "n_items", id="no items"),
        pytest.param((9, 1, 0.01), "n_options", id="one option"),
        pytest.param((9, 4, 0.0), "alpha", id="alpha of nought"),
    ],
)
def test_numbers_out_of_range(arguments: tuple[int, int, float], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        chance_band(*arguments)


GUESSERS: dict[str, Reader] = {
    "always the top": lambda prompt: prompt.orientation.order[0],
    "always the bottom": lambda prompt: prompt.orientation.order[-1],
    "sticks to the first in the alphabet": lambda prompt: min(
        range(len(prompt.item.options)), key=lambda i: prompt.item.options[i]
    ),
    "the longest option": lambda prompt: max(
        range(len(prompt.item.options)), key=lambda i: (len(prompt.item.options[i]), -i)
    ),
}


@pytest.mark.parametrize("scheme", ["as-is", "rotations", "rotations:2", "shuffles:3"])
@pytest.mark.parametrize("name", GUESSERS)
def test_who_cannot_know_is_inside_in_every_scheme(name: str, scheme: str) -> None:
    # 0.01 is the rate of false alarms: none of these seeds may be one by bad luck.
    assert inside(numbers(items(400), GUESSERS[name], scheme))


def test_always_the_top_is_right_in_exactly_a_quarter_under_all_rotations() -> None:
    found = numbers(items(40), GUESSERS["always the top"]).values
    assert found["nonsense_accuracy"] == 0.25
    assert found["n_nonsense_items"] == 40


@pytest.mark.parametrize(
    "pick",
    [
        pytest.param(lambda prompt: prompt.item.gold, id="knows the key"),
        pytest.param(lambda prompt: (prompt.item.gold + 1) % 4, id="avoids the key"),
        pytest.param(
            lambda prompt: prompt.item.gold if prompt.item.id.endswith("0") or prompt.gold_slot < 2
            else prompt.orientation.order[0],
            id="leaks in half of the rows",
        ),
    ],
)  # fmt: skip
def test_a_leak_is_outside(pick: Reader) -> None:
    assert not inside(numbers(items(200), pick))


def test_the_band_counts_items_and_not_rows() -> None:
    found = numbers(items(200), GUESSERS["always the top"]).values
    assert (found["chance_low"], found["chance_high"]) == chance_band(200, 4)


def test_refusals_do_not_pull_a_model_below_chance() -> None:
    def refuser(prompt: Prompt) -> int | None:
        return None if prompt.item.id.endswith(("1", "3", "5", "7", "9")) else 0

    found = numbers(items(300), refuser, "as-is")
    assert inside(found)
    assert found.values["n_nonsense_items"] == 150


def test_items_with_fewer_decided_rows_weigh_less() -> None:
    def uneven(prompt: Prompt) -> int | None:
        full = int(prompt.item.id[-1]) < 5
        return prompt.orientation.order[0] if full or prompt.orientation.index == 0 else None

    found = numbers(items(100), uneven).values
    # 50 items with 4 rows, 50 with 1: Kish's (50*4 + 50)^2 / (50*16 + 50) = 73.5
    assert (found["chance_low"], found["chance_high"]) == chance_band(73, 4)


@pytest.mark.parametrize(
    ("some", "pick", "said"),
    [
        pytest.param(items(5), lambda prompt: None, "0 decided rows", id="only refusals"),
        pytest.param(
            items(5)
            + tuple(Item(f"x{i.id}", i.question, i.options[:2], 0, i.meta) for i in items(5)),
            lambda prompt: 0,
            "2 to 4 options",
            id="items of two sizes",
        ),
    ],
)
def test_what_cannot_be_said_has_a_reason(some: tuple[Item, ...], pick: Reader, said: str) -> None:
    found = numbers(some, pick)
    assert set(found.undefined) == {"nonsense_accuracy", "chance_low", "chance_high"}
    assert all(said in why for why in found.undefined.values())
    assert not set(found.undefined) & set(found.values)


def test_ordinary_items_have_no_band() -> None:
    plain = (Item("q", "Which?", ("x", "y"), 0),)
    assert numbers(plain, lambda prompt: 0) == Summary()


def test_ordinary_items_beside_them_do_not_count() -> None:
    plain = tuple(Item(f"q{i}", "Which?", ("a", "b", "c", "d"), 0) for i in range(50))
    mixed = numbers(items(80) + plain, GUESSERS["always the top"]).values
    assert mixed == numbers(items(80), GUESSERS["always the top"]).values


def test_the_mark_survives_storage() -> None:
    (item,) = items(1)
    prompt = LETTERS(item, plan_for(item)[0], chat=False)
    frame = generations_frame([Generation(prompt, 0, Reply("A"))])
    assert generations_from(frame)[0].prompt.item.meta == {"probe": "nonsense"}
    # a table of an older run has no such column
    older = frame.drop(columns="probe")
    assert generations_from(older)[0].prompt.item.meta == {}


def parrot(frame: pd.DataFrame) -> list[str]:
    return ["A"] * len(frame)


def test_a_run_on_nonsense_shows_the_band_and_an_honest_parrot_rings_nothing(store: None) -> None:
    result = mlflow_mcq.evaluate(parrot, "nonsense:40", evaluators="mcq_regex")
    found = result.metrics
    assert found["regex_bounded/nonsense_accuracy"] == 0.25
    low, high = chance_band(40, 4)
    assert (found["regex_bounded/chance_low"], found["regex_bounded/chance_high"]) == (low, high)
    tags = MlflowClient().get_run(result.run_id).data.tags
    assert tags["mcq.alarms"] == "none"
    assert f"guessing is {low:.3f} to {high:.3f}: inside" in tags["mlflow.note.content"]


def test_a_protocol_that_leaks_rings(store: None) -> None:
    frame = nonsense_items(40)
    # Whoever writes the gold option first, and shows it there, has told it.
    told = [
        {**row, "options": [row["options"][row["answer"]], *row["options"][: row["answer"]],
                            *row["options"][row["answer"] + 1 :]], "answer": 0}
        for row in frame.to_dict("records")
    ]  # fmt: skip
    result = mlflow_mcq.evaluate(
        parrot, pd.DataFrame(told), evaluators="mcq_regex", orientations="as-is"
    )
    assert "protocol_leaks" in MlflowClient().get_run(result.run_id).data.tags["mcq.alarms"]
    alarms = result.tables["mcq_alarms"].set_index("name")
    assert "regex_naive" in alarms.loc["protocol_leaks", "found"]
