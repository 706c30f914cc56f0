"""The rows on which arms differ: what a person reads before believing a number."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pandas as pd

from mlflow_mcq.comparison.arms import StoredArm

_WORDS = {"CORRECT": "right", "INCORRECT": "wrong", "OTHER": "OTHER"}
__all__ = ["differing_rows", "drawn_by", "page_of", "row_keys"]


def row_keys(frame: pd.DataFrame) -> pd.Series[str]:
    """A name for each row that is the same in all arms: item, order shown, repeat.

    The index of an orientation would not do: two seeds give other orders under one index.
    """
    columns = (frame[name] for name in ("item_id", "order", "repeat"))
    keys = [
        f"{item}\x1f{','.join(str(int(option)) for option in order)}\x1f{int(repeat)}"
        for item, order, repeat in zip(*columns, strict=True)
    ]
    return pd.Series(keys, index=frame.index, dtype=object)


def drawn_by(key: str) -> str:
    """What rows are sorted by to be drawn: it depends on the row alone."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def differing_rows(arms: Sequence[StoredArm], grader: str) -> pd.DataFrame:
    """Rows that some arm reads otherwise than the baseline: another verdict or choice.

    Kinds of change take turns in a fixed draw, so that the first rows show all of them.

    Args:
        arms: The baseline, then the others.
        grader: Whose readings are compared.

    Returns:
        One row a row of the baseline: ``row_id``, ``change``, then ``verdict``, ``letter``,
        ``answer`` of each arm (``verdict: <arm>``), then what was shown. The index holds the
        key of each row, as `row_keys` has it.
    """
    table = _shown(arms[0])
    for arm in arms:
        table = table.merge(_said(arm, grader), on="key", how="left", validate="one_to_one")
    differs = pd.Series(False, index=table.index)
    change = pd.Series("", index=table.index, dtype=object)
    base = arms[0].name
    for arm in arms[1:]:
        before, after = table[f"verdict: {base}"], table[f"verdict: {arm.name}"]
        both = before.notna() & after.notna()
        moved = both & (before != after)
        other = both & (table[f"choices: {base}"] != table[f"choices: {arm.name}"])
        said = before.map(_WORDS) + " to " + after.map(_WORDS)
        kinds = said.where(moved, "another wrong option")
        change = change.mask((change == "") & (moved | other), kinds)
        differs |= moved | other
    found = table[differs].assign(change=change[differs])
    # In a fixed draw: in the order of the data all the first rows would be of one item.
    drawn = found["key"].map(drawn_by)
    found = found.iloc[drawn.argsort(kind="stable")]
    turn = found.groupby("change").cumcount()
    found = found.assign(turn=turn).sort_values(["turn", "change"], kind="stable")
    return found[[*_columns(arms), "key"]].set_index("key")


def _columns(arms: Sequence[StoredArm]) -> list[str]:
    said = [f"{what}: {arm.name}" for what in ("verdict", "letter", "answer") for arm in arms]
    reasons = [f"reason: {arm.name}" for arm in arms]
    return ["row_id", "change", *said, "question", "options_shown", "gold_letter", *reasons]


def _shown(arm: StoredArm) -> pd.DataFrame:
    rows = arm.generations
    shown = [
        page_of(*row) for row in zip(rows["options"], rows["order"], rows["labels"], strict=True)
    ]
    names = ["row_id", "question", "gold_letter"]
    return rows[names].assign(key=row_keys(rows), options_shown=shown)


def page_of(options: Sequence[str], order: Sequence[int], labels: Sequence[str]) -> str:
    """Options as they were shown, a line each; dashes where there were no labels.

    Example:
        >>> page_of(["iron", "tin"], [1, 0], ["A", "B"]).splitlines()
        ['A) tin', 'B) iron']
    """
    marks = [f"{label}) " for label in labels] if len(labels) else ["- "] * len(order)
    return "\n".join(mark + str(options[o]) for mark, o in zip(marks, order, strict=True))


def _said(arm: StoredArm, grader: str) -> pd.DataFrame:
    grades = arm.grades[grader]
    answers = arm.generations.set_index("row_id")["generation"]
    choices = grades["choices"] if "choices" in grades else grades["choice"].map(lambda c: [c])
    return pd.DataFrame(
        {
            "key": row_keys(grades),
            f"verdict: {arm.name}": grades["verdict"],
            f"letter: {arm.name}": grades["shown_letter"].fillna(""),
            f"answer: {arm.name}": grades["row_id"].map(answers),
            f"reason: {arm.name}": grades["reason"],
            f"choices: {arm.name}": choices.map(lambda named: ",".join(map(str, named))),
        }
    )
