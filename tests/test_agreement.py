"""Processes that are about to do different things end at once, all with the same words."""

from __future__ import annotations

from typing import Any

import pytest
from rank_jobs import agree_job, on_ranks
from torch.distributed import HashStore

from mlflow_mcq.agreement import SameCall, agreed, parts_of_settings
from mlflow_mcq.board import Board
from mlflow_mcq.errors import DataError, ModelError
from mlflow_mcq.ranks import Ranks
from mlflow_mcq.settings import Settings

DATA = {"data": "b", "setting seed": "0"}
CASES: list[dict[int, Any]] = [
    {},
    {1: DATA},
    {1: DATA, 2: {"data": "a", "setting seed": "7"}},
    {0: {"data": "a", "setting seed": "0", "arms": "one"}},
    {2: DataError("row 3", "has no options")},
    {2: {**DATA, "data": "a", "seconds": 2.5}},  # slow, and says so all the while
    {1: 3.0},  # as one that died
]


@pytest.fixture(scope="module")
def told() -> dict[int, list[Any]]:
    return on_ranks(3, agree_job, CASES, 1.5)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param(
            1,
            "process 1: differs from process 0 in data (b on process 1, a on process 0)",
            id="one",
        ),
        pytest.param(
            2,
            "processes 1, 2: differ from process 0 in data (b on process 1, a on process 0), "
            "setting seed (7 on process 2, 0 on process 0)",
            id="two",
        ),
        pytest.param(
            3,
            "processes 1, 2: differ from process 0 in arms (none on process 1, one on process 0)",
            id="main",
        ),
    ],
)
def test_all_have_the_same_words(place: int, said: str, told: dict[int, list[Any]]) -> None:
    for rank in range(3):
        assert isinstance(told[rank][place], ModelError)
        assert str(told[rank][place]).startswith(said)


def test_who_means_the_same_goes_on(told: dict[int, list[Any]]) -> None:
    for place in (0, 5):  # one of them slower than the longest silence
        assert [told[rank][place] for rank in range(3)] == [0, 1, 2]


def test_who_fails_says_so_to_all(told: dict[int, list[Any]]) -> None:
    assert isinstance(told[2][4], DataError)
    for rank in (0, 1):
        assert "process 2: failed with DataError as it prepared the data" in str(told[rank][4])
        assert "has no options" in str(told[rank][4])


def test_nobody_waits_for_the_dead(told: dict[int, list[Any]]) -> None:
    for rank in (0, 2):
        assert "process 1: has not said a word for 2 s" in str(told[rank][6])


def test_one_process_agrees_with_itself() -> None:
    assert agreed(Ranks(), "data", lambda: ("rows", DATA)) == "rows"


def test_a_judge_is_compared_and_not_shown() -> None:
    judge = {"model": "m", "base_url": "http://name:word@host/v1"}
    settings = Settings.model_validate({"judge": judge}).model_dump(mode="json")
    parts = parts_of_settings(settings)
    other = parts_of_settings({**settings, "judge": {**settings["judge"], "model": "n"}})
    assert "host" not in str(parts)
    assert {name for name in parts if parts[name] != other[name]} == {"setting judge"}
    assert parts["package version"]


def test_a_call_waits_for_nobody_and_tells_who_comes_later() -> None:
    store = HashStore()
    main = SameCall(Ranks(0, 2), {"data": "a"}, Board(store))
    main.check()
    same = SameCall(Ranks(1, 2), {"data": "a"}, Board(store))
    same.check()
    other = SameCall(Ranks(1, 2), {"data": "b"}, Board(store))
    with pytest.raises(ModelError, match="process 1: differs from process 0 in data") as first:
        other.check()
    with pytest.raises(ModelError) as second:
        main.check()
    assert str(second.value) == str(first.value)
    assert "test_agreement.py" in str(first.value)
