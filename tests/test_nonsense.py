"""NonsenseQA: nothing in an item tells which option is gold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_mcq.datasets.frame import items_of, read_rows
from mlflow_mcq.datasets.nonsense import nonsense_items
from mlflow_mcq.draws import balanced_places, draw_for, shuffled
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.orientations import fixed_options
from mlflow_mcq.settings import Columns

GREEK = [a + b for a in "αβγδεζηθ" for b in "λμνξοπρστ"]


@given(n=st.integers(1, 60), options=st.integers(2, 9), seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_every_set_is_fair_and_free_of_cues(n: int, options: int, seed: int) -> None:
    frame = nonsense_items(n, options, seed)
    golds = Counter(frame["answer"])
    assert set(golds) <= set(range(options))
    assert max(golds.values()) - (min(golds.values()) if len(golds) == options else 0) <= 1
    for question, texts in zip(frame["question"], frame["options"], strict=True):
        words = [*question.rstrip("?").split(), *" ".join(texts).split()]
        assert len(texts) == options
        assert len(set(words)) == len(words)  # so no option is part of another


def test_the_reader_takes_them_as_they_are() -> None:
    items = items_of(read_rows(nonsense_items(200, seed=3), Columns()))
    assert {item.meta["probe"] for item in items} == {"nonsense"}
    assert not any(fixed_options(item.options) for item in items)


def test_the_same_on_every_machine_and_python() -> None:
    frame = nonsense_items(3)
    assert frame["answer"].tolist() == [2, 1, 3]
    assert frame["question"][1] == "magnet plum brief goose cabin remember?"
    assert frame["options"][0] == [
        "lentil wander",
        "plain collect",
        "brief leaf",
        "honest notebook",
    ]


def test_more_items_leave_the_earlier_ones_as_they_were() -> None:
    few, many = nonsense_items(10), nonsense_items(50)
    assert few["question"].tolist() == many["question"].tolist()[:10]


def test_seeds_differ() -> None:
    assert nonsense_items(5, seed=1)["question"].tolist() != nonsense_items(5)["question"].tolist()


def test_words_of_any_language_come_from_a_file_or_a_list(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("\ufeff# a comment\n\n" + "\n".join([*GREEK, *GREEK]), encoding="utf-8")
    from_file, from_list = nonsense_items(9, words=path), nonsense_items(9, words=GREEK)
    assert from_file["question"].tolist() == from_list["question"].tolist()
    assert set(" ".join(from_file["question"]).replace("?", "").split()) <= set(GREEK)


def test_words_that_read_as_labels_are_left_out() -> None:
    frame = nonsense_items(50, words=[*GREEK, "A", "b", "I", "7", "12", "火"])
    used = set(
        " ".join([*frame["question"], *(text for texts in frame["options"] for text in texts)])
        .replace("?", "")
        .split()
    )
    assert not used & {"A", "b", "I", "7", "12"}
    assert "火" in used  # one character is a word elsewhere


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        pytest.param({"n": 0}, SettingsError, "nonsense.n", id="no items"),
        pytest.param({"n": True}, SettingsError, "nonsense.n", id="a bool"),
        pytest.param({"options": 1}, SettingsError, "nonsense.options", id="one option"),
        pytest.param({"seed": "x"}, SettingsError, "nonsense.seed", id="seed of letters"),
        pytest.param({"words": GREEK[:20]}, DataError, "needs 24", id="too few words"),
        pytest.param({"words": [1, 2]}, DataError, "must be texts", id="no words"),
        pytest.param({"words": "nowhere.txt"}, DataError, "cannot be read", id="no file"),
    ],
)
def test_faults_say_what_is_needed(
    arguments: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        nonsense_items(**arguments)  # type: ignore[arg-type]


@given(n=st.integers(0, 200), n_places=st.integers(1, 12), seed=st.integers())
def test_places_are_balanced(n: int, n_places: int, seed: int) -> None:
    counts = Counter(balanced_places(n, n_places, draw_for(seed)))
    assert sum(counts.values()) == n
    assert {counts[place] for place in range(n_places)} <= {n // n_places, -(-n // n_places)}


def test_the_places_that_come_once_more_are_drawn_too() -> None:
    extra = {balanced_places(1, 4, draw_for(seed))[0] for seed in range(40)}
    assert extra == {0, 1, 2, 3}


@given(st.lists(st.integers()), st.integers())
def test_shuffling_loses_nothing_and_leaves_the_list_alone(things: list[int], seed: int) -> None:
    before = list(things)
    assert sorted(shuffled(things, draw_for(seed))) == sorted(before)
    assert things == before
