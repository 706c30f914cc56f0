"""Simulated arms whose truth is known: tables of grades without any text behind them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_mcq.statistics.rows import Rows

Array = npt.NDArray[np.int64]
OTHER = -1
FAILED = -2


def rotations(n_options: int) -> list[tuple[int, ...]]:
    return [tuple((s + t) % n_options for s in range(n_options)) for t in range(n_options)]


def table(
    choice: Array,
    gold: Array,
    *,
    ids: list[str] | None = None,
    orders: list[tuple[int, ...]] | None = None,
    grader: str = "judge",
    n_options: int = 4,
) -> pd.DataFrame:
    """Grades from choices (items x orientations): an option, `OTHER` or `FAILED`."""
    n_items, n_shown = choice.shape
    orders = orders or rotations(n_options)[:n_shown]
    place = np.argsort(np.array(orders), axis=1)  # place[turn, option] is its slot
    ids = ids or [f"q{i}" for i in range(n_items)]
    flat = choice.ravel()
    turn = np.tile(np.arange(n_shown), n_items)
    right = np.repeat(gold, n_shown)
    verdict = np.where(flat == right, "CORRECT", "INCORRECT").astype(object)
    verdict[flat == OTHER], verdict[flat == FAILED] = "OTHER", None
    named = pd.Series(flat, dtype="Int64").mask(flat < 0)
    slot = pd.Series(place[turn, np.maximum(flat, 0)], dtype="Int64").mask(flat < 0)
    return pd.DataFrame(
        {
            "row_id": [f"{ids[i]}/o{t}" for i in range(n_items) for t in range(n_shown)],
            "item_id": np.repeat(ids, n_shown).astype(object),
            "protocol": "letters",
            "orientation": turn,
            "repeat": 0,
            "grader": grader,
            "verdict": verdict,
            "choice": named,
            "slot": slot,
            "gold": right,
            "gold_slot": place[turn, right],
            "n_options": n_options,
            "order": [orders[t] for t in turn],
        }
    )


def answers(gold: Array, knows: float, seed: int, *, n_shown: int = 4, n_options: int = 4) -> Array:
    """Choices of a model that knows a share of the items, and guesses a row otherwise."""
    draw = np.random.default_rng(seed)
    shape = (len(gold), n_shown)
    guess = draw.integers(0, n_options, shape)
    return np.where(draw.random((len(gold), 1)) < knows, gold[:, None], guess)


def drawn_to_first(choice: Array, share: float, seed: int, n_options: int = 4) -> Array:
    """In a share of the rows the top slot is picked, whatever stands there."""
    first = np.array([order[0] for order in rotations(n_options)])[: choice.shape[1]]
    pulled = np.random.default_rng(seed).random(choice.shape) < share
    return np.where(pulled, first[None, :], choice)


def replaced(choice: Array, share: float, value: int, seed: int) -> Array:
    """A share of the rows gets another choice, at random."""
    hit = np.random.default_rng(seed).random(choice.shape) < share
    return np.where(hit, value, choice)


def rows(verdict: Array, **columns: Array) -> Rows:
    """Rows straight from verdict codes (items x rows), for simulations that run thousands."""
    n_items, n_rows = verdict.shape
    item = np.repeat(np.arange(n_items), n_rows)
    none = np.full(item.size, -1)
    given = {name: values.ravel() for name, values in columns.items()}
    return Rows(
        item=item,
        group=item,
        group_item=np.arange(n_items),
        orientation=np.tile(np.arange(n_rows), n_items),
        verdict=verdict.ravel().astype(np.intp),
        choice=given.get("choice", none),
        slot=given.get("slot", none),
        gold_slot=given.get("gold_slot", none),
        n_options=np.full(item.size, 4),
        n_items=n_items,
    )
