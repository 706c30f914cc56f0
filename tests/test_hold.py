"""Evaluations that are one piece of work keep their rows until all of it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlflow_mcq.records import Reply
from mlflow_mcq.store.hold import held_together
from mlflow_mcq.store.journal import Journal, open_journal

KEY = bytes(16)


class Breaks(Exception):
    """What a test does to a recipe."""


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path))
    return tmp_path / "runs"


def opened(name: str) -> Journal:
    journal = open_journal("run", name)
    assert journal is not None
    return journal


def arm(name: str, text: str = "A") -> int:
    """An evaluation that ends well: how many rows it found."""
    journal = opened(name)
    n_found = len(journal.rows)
    journal.rows.put(KEY, Reply(text))
    journal.close(finished=True)
    return n_found


@contextmanager
def breaking_off() -> Iterator[None]:
    """A piece of work that breaks off at its end."""
    try:
        with held_together():
            yield
            raise Breaks
    except Breaks:
        return


def broken(*names: str) -> list[int]:
    """A recipe that breaks off after these arms."""
    found: list[int] = []
    with breaking_off():
        found += [arm(name) for name in names]
    return found


def test_a_whole_that_ends_well_leaves_nothing(runs: Path) -> None:
    with held_together():
        assert [arm("a"), arm("b")] == [0, 0]
        assert len([*runs.iterdir()]) == 2
    assert [*runs.iterdir()] == []


def test_arms_of_a_whole_that_broke_off_are_found(capfd: pytest.CaptureFixture[str]) -> None:
    assert broken("a", "b") == [0, 0]
    assert "2 evaluations that had ended are kept as well" in capfd.readouterr().err
    with held_together():
        assert [arm("a"), arm("b"), arm("c")] == [1, 1, 0]
    assert arm("a") == 0


def test_it_may_break_off_again(runs: Path) -> None:
    broken("a")
    assert broken("a", "b") == [1, 0]
    with held_together():
        assert [arm("a"), arm("b")] == [1, 1]
    assert [*runs.iterdir()] == []


def test_two_arms_that_measure_the_same_are_both_measured() -> None:
    assert broken("a", "a") == [0, 0]
    with held_together():
        assert [arm("a"), arm("a"), arm("a")] == [1, 1, 0]


def test_the_outermost_whole_counts() -> None:
    with breaking_off(), held_together():
        arm("a")
    assert arm("a") == 1


def test_who_ends_after_the_whole_broke_off_keeps_its_rows() -> None:
    with breaking_off():
        journal = opened("a")
        journal.rows.put(KEY, Reply("A"))
    journal.close(finished=True)  # as garbage is collected: late
    assert arm("a") == 1


def test_rows_that_another_recipe_holds_are_left_to_it() -> None:
    from mlflow_mcq.store import hold

    with held_together():
        arm("a")
        token = hold._HOLD.set(None)  # another process: the whole is not its own
        assert arm("a") == 0
        hold._HOLD.reset(token)


@pytest.mark.parametrize("first_ends", ["well", "broken"])
@pytest.mark.parametrize("second_ends", ["well", "broken"])
def test_a_recipe_that_runs_twice_at_a_time_takes_nothing_from_itself(
    first_ends: str, second_ends: str, runs: Path
) -> None:
    """The second has an arm where the first is done with it and goes on."""
    from mlflow_mcq.store import hold

    whole = {"well": held_together, "broken": breaking_off}
    with whole[first_ends]():
        arm("a")
        token = hold._HOLD.set(None)  # another process
        with whole[second_ends]():
            assert arm("a") == 0
        hold._HOLD.reset(token)
        assert (runs / "a.0").exists()
    n_kept = [first_ends, second_ends].count("broken")
    assert len([*runs.iterdir()]) == n_kept
    with held_together():
        assert [arm("a"), arm("a")] == [1] * n_kept + [0] * (2 - n_kept)
