"""Faults in items that make their scores mean less than they seem to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.lint_set import ItemNumber, choices_only, gold_position, longest_is_gold
from mlflow_mcq.datasets.reading import BadRow, read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.datasets.tally import FROM_ZERO
from mlflow_mcq.errors import DataError
from mlflow_mcq.orientations import duplicate_options, fixed_options
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Settings, read_settings

__all__ = ["LintReport", "lint_items", "lint_read"]

_SUMMARY = ("metric", "value", "low", "high", "chance", "n_items", "note")
WHOLE_SET = "(all items)"
"""Stands in the column ``item`` where the fault is one of the set."""


@dataclass(frozen=True, slots=True, eq=False)
class LintReport:
    """What was found.

    Attributes:
        findings: One row a fault: ``item``, ``rule``, ``detail``.
        summary: One row a number: metric, value, interval, chance, items, note.
        said: How the data was read: its layout, how many items, how answers count.
    """

    findings: pd.DataFrame
    summary: pd.DataFrame
    said: str = ""

    @property
    def numbers(self) -> dict[str, float]:
        """The defined numbers by name."""
        defined = self.summary[self.summary["value"].notna()]
        return {str(k): float(v) for k, v in zip(defined["metric"], defined["value"], strict=True)}

    @property
    def undefined(self) -> dict[str, str]:
        """Why the other numbers do not exist."""
        missing = self.summary[self.summary["value"].isna()]
        return {str(k): str(v) for k, v in zip(missing["metric"], missing["note"], strict=True)}

    def __str__(self) -> str:
        counts = self.findings["rule"].value_counts()
        lines = [f"{n:>6}  {rule}" for rule, n in counts.items()] or ["no faults found"]
        return "\n".join(lines)


def lint_items(data: Any, *, split: str | None = None, **settings: Any) -> LintReport:
    """Look for faults in items: in single ones, and in the set as a whole.

    ==========================  ==========================================================
    ``unreadable``              the row is no item; the detail says why
    ``empty_option``            an option without text
    ``gold_outside``            the answer names none of the options, or is missing
    ``duplicate_id``            two rows carry one id
    ``duplicate_options``       two options say the same
    ``position_dependent``      "all of the above", "both A and C": they cannot be moved
    ``option_inside_another``   the words of one option occur in another
    ``identical_question``      the same question stands in another item
    ``gold_position``           the gold stands in some positions too often
    ``longest_is_gold``         the longest option is right more often than by chance
    ``choices_only``            the right option is known by its words alone
    ``counted_from``            answers fit a count from 0 and a count from 1
    ==========================  ==========================================================

    Args:
        data: Anything that `mlflow_mcq.evaluate` reads, a hub address included.
        split: Split of the data.
        settings: ``columns``, ``layout``, ``limit``, ``shard``, ``seed``, as in `evaluate`.

    Returns:
        Findings and summary.

    Raises:
        McqError: The data is no table of items, or a setting is not usable.

    Example:
        >>> rows = [{"id": "q", "question": "2+2?", "options": ["4", "5", "4"], "answer": "A"}]
        >>> lint_items(rows).findings[["item", "rule"]].values.tolist()
        [['q', 'duplicate_options']]
    """
    asked = read_settings({**settings, "on_bad_rows": "skip"})
    reading = read_data(load_part(data, split, asked), asked)
    return lint_read([row.item for row in reading.rows], reading.bad, asked, reading.said)


def lint_read(
    items: Sequence[Item], bad: Sequence[BadRow], settings: Settings, said: str = ""
) -> LintReport:
    """Lint items that were read already, with the rows that could not be and what was said."""
    rows = [
        {"item": f"row {one.row}", "rule": _kind(one.error), "detail": str(one.error)}
        for one in bad
    ]
    for rule, find in _RULES.items():
        rows += [{"item": i, "rule": rule, "detail": detail} for i, detail in find(items)]
    whole = {"gold_position": gold_position(items), "longest_is_gold": longest_is_gold(items)}
    whole["choices_only"] = choices_only(items, settings.seed)
    rows += [
        {"item": WHOLE_SET, "rule": rule, "detail": number.fault}
        for rule, number in whole.items()
        if number.fault
    ]
    if FROM_ZERO in said:
        # Whoever lints and reads "no faults" would go on with every gold one option off.
        rows.append({"item": WHOLE_SET, "rule": "counted_from", "detail": FROM_ZERO})
    findings = pd.DataFrame(rows, columns=["item", "rule", "detail"])
    return LintReport(findings, _summary(findings, list(whole.values()), len(items)), said)


def _summary(findings: pd.DataFrame, numbers: Sequence[ItemNumber], n_items: int) -> pd.DataFrame:
    single = findings[findings["item"] != WHOLE_SET]
    rows: list[Mapping[str, object]] = [
        {"metric": "n_items_with_faults", "value": float(single["item"].nunique())}
    ]
    rows += [
        {"metric": f"n_{rule}", "value": float((single["rule"] == rule).sum())}
        for rule in (*_KINDS.values(), "unreadable", *_RULES)
    ]
    rows = [{**row, "n_items": n_items, "note": ""} for row in rows]
    rows += [
        {
            "metric": one.name,
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "chance": one.chance,
            "n_items": one.n,
            "note": one.note or one.fault,
        }
        for one in numbers
    ]
    return pd.DataFrame(rows, columns=list(_SUMMARY))


_KINDS = {
    r"is empty or no text|must be a text": "empty_option",
    r"names none of the options|is outside the options|must be one of the labels"
    r"|gold must be|the answer is missing|holds no answer": "gold_outside",
}
_Found = Iterator[tuple[str, str]]


def _kind(error: DataError) -> str:
    rule = str(error.args[1])
    return next((kind for words, kind in _KINDS.items() if re.search(words, rule)), "unreadable")


def _duplicate_ids(items: Sequence[Item]) -> _Found:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            yield item.id, "an earlier row carries this id"
        seen.add(item.id)


def _duplicate_options(items: Sequence[Item]) -> _Found:
    for item in items:
        twins = duplicate_options(item.options)
        if twins:
            gold = "; the gold option is one of them" if {*item.golds} & {*twins} else ""
            yield item.id, f"options {[i + 1 for i in twins]} say the same{gold}"


def _position_dependent(items: Sequence[Item]) -> _Found:
    for item in items:
        fixed = sorted(fixed_options(item.options))
        if fixed:
            texts = [item.options[i] for i in fixed]
            yield item.id, f"cannot be moved: {texts}"


def _inside_another(items: Sequence[Item]) -> _Found:
    for item in items:
        texts = [" ".join(option.split()).casefold() for option in item.options]
        pairs = [
            (i + 1, j + 1)
            for i, one in enumerate(texts)
            for j, other in enumerate(texts)
            if one != other and one in other and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", other)
        ]
        if pairs:
            yield item.id, "; ".join(f"option {i} occurs in option {j}" for i, j in pairs)


def _identical(items: Sequence[Item]) -> _Found:
    first: dict[str, Item] = {}
    for item in items:
        question = " ".join(item.question.split()).casefold()
        other = first.setdefault(question, item)
        if other is not item:
            same = sorted(other.options) == sorted(item.options)
            yield (
                item.id,
                f"asks what {other.id!r} asks, with {'the same' if same else 'other'} options",
            )


_RULES: dict[str, Callable[[Sequence[Item]], _Found]] = {
    "duplicate_id": _duplicate_ids,
    "duplicate_options": _duplicate_options,
    "position_dependent": _position_dependent,
    "option_inside_another": _inside_another,
    "identical_question": _identical,
}
