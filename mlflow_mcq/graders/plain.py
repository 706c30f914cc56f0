"""Grading of plain texts: no MLflow, no pandas, no run.

For users of other harnesses who have answers and want to know what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from mlflow_mcq.doors import Grader
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.graders.regex import ALL_REGEX_GRADERS
from mlflow_mcq.graders.strict import label_names
from mlflow_mcq.graders.strict_row import read_strict_row
from mlflow_mcq.nearest import known_names
from mlflow_mcq.records import (
    Generation,
    Grade,
    Item,
    Orientation,
    Policy,
    Prompt,
    Reply,
    Verdict,
)
from mlflow_mcq.roll_call import roll_call

__all__ = ["ABSTAINS", "PlainGrade", "grade"]

ABSTAINS = "abstains"


@dataclass(frozen=True, slots=True)
class PlainGrade:
    """What was read in one text.

    Attributes:
        choice: Index into the options as they were given; None where none or several were read.
        verdict: CORRECT, INCORRECT or OTHER. None where it is not known: there is no
            gold to compare with, the strict rule abstains, or the grader failed.
        reason: How it was read, or why not.
        error: Why the grader could not do its work; empty otherwise.
        several: Every option in ascending order where more than one was read.
    """

    choice: int | None
    verdict: Verdict | None
    reason: str
    error: str = ""
    several: tuple[int, ...] = ()


def grade(  # noqa: PLR0913 - everything that a row of a run knows, and all but two optional
    texts: Sequence[str | None],
    options: Sequence[str] | Sequence[Sequence[str]],
    gold: int | Sequence[int | Sequence[int]] | None = None,
    *,
    several_gold: Policy | None = None,
    grader: str | Grader = "strict",
    labels: Sequence[str] | None = None,
    question: str | Sequence[str] = "",
    orders: Sequence[int] | Sequence[Sequence[int]] | None = None,
) -> list[PlainGrade]:
    """Read answers to multiple-choice questions.

    Args:
        texts: The answers, raw, thinking included; None is an empty answer.
        options: Option texts, one list for all answers or one for each.
        gold: Index of the right option, for all or for each; None where unknown, and
            then OTHER is the only verdict. A list for an answer holds several.
        several_gold: ``any``: an answer that names one of them is right. ``all``: it must
            name exactly these. Must be said where a text has several golds.
        grader: ``strict``, the name of a regex baseline (``regex_naive``, ...), or any
            grader object: a judge, the analogy match, the similarity.
        labels: Labels in the order shown, for all. None means A, B, C, ...; an empty
            sequence means that none were shown.
        question: The question, for all or for each; only some graders read it.
        orders: ``order[slot]`` is the option shown in that slot, for all or for each;
            None where options were shown as they are given. Choices are always indices
            into ``options``, never slots.

    Returns:
        One result for each text, in the same order. Its ``verdict`` is None where it is not
        known: ``strict``, the default, leaves most prose to a judge (reason ``abstains``), and
        a judge may fail. Look before you take ``.value`` of it.

    Raises:
        DataError: The lists do not fit together, gold is no option, or several are right
            and ``several_gold`` is not said.
        SettingsError: No grader has this name, or a judge that is told the gold has none.
        ModelError: The grader lost or doubled a row.

    Example:
        >>> from mlflow_mcq.graders import grade
        >>> metals = ["iron", "mercury"]
        >>> right, refused = grade(["B", "I refuse"], metals, gold=1)
        >>> right.verdict, right.choice
        (<Verdict.CORRECT: 'CORRECT'>, 1)
        >>> refused.verdict, refused.reason  # only a judge can say OTHER here
        (None, 'abstains')
        >>> grade(["I refuse"], metals, gold=1, grader="regex_naive")[0].verdict
        <Verdict.OTHER: 'OTHER'>
        >>> grade(["A"], metals, gold=1, orders=[1, 0])[0].choice  # mercury stood first
        1
        >>> grade(["A, B"], metals, gold=[[0, 1]], several_gold="all")[0].verdict
        <Verdict.CORRECT: 'CORRECT'>
    """
    if isinstance(texts, str):
        raise DataError("grade", "texts must be a list of answers, not one text", texts)
    rows = len(texts)
    all_options = _per_row("options", options, rows, str)
    all_orders = [None] * rows if orders is None else _per_row("orders", orders, rows, Integral)
    all_golds = _each("gold", gold, rows, Integral)
    all_questions = _each("question", question, rows, str)
    generations = [
        _generation(_item(row, asked, shown, right, several_gold), text, order, labels)
        for row, asked, shown, right, text, order in zip(
            range(rows), all_questions, all_options, all_golds, texts, all_orders, strict=True
        )
    ]
    grades = _grades(grader, generations, blind=any(one is None for one in all_golds))
    return [
        one if known is not None else _without_gold(one)
        for one, known in zip(grades, all_golds, strict=True)
    ]


def _item(
    row: int, question: str, options: Sequence[str], gold: Any, policy: Policy | None
) -> Item:
    # Some place must stand for an unknown gold; its verdict is thrown away.
    lists = isinstance(gold, Iterable) and not isinstance(gold, str)
    golds: list[Any] = [0] if gold is None else [*gold] if lists else [gold]
    if not golds or (len(golds) > 1 and policy is None):
        raise DataError(
            f"row {row}",
            "several options are right, and what counts as a right answer is not said"
            if golds
            else "gold must be an option index, or a list of some",
            gold,
            'several_gold="any": one of them; "all": every one and no other.' if golds else "",
        )
    first, *more = golds
    return Item(str(row), question, tuple(options), first, {}, (*more,), policy or "any")


def _generation(
    item: Item, text: str | None, order: Sequence[int] | None, labels: Sequence[str] | None
) -> Generation:
    row, n = item.id, len(item.options)
    orientation = Orientation(0, "plain", tuple(range(n) if order is None else order))
    if len(orientation.order) != n:
        raise DataError(f"row {row}", f"order must place {n} options", orientation.order)
    names = label_names(n, labels)
    if names and len(names) != n:
        raise DataError(f"row {row}", f"there must be a label for each of {n} options", names)
    prompt = Prompt(item, orientation, "plain", item.question, names)
    return Generation(prompt, 0, Reply(text or ""))


def _grades(
    grader: str | Grader, generations: Sequence[Generation], blind: bool
) -> list[PlainGrade]:
    if grader == "strict":
        return [_strictly(generation) for generation in generations]
    if isinstance(grader, str):
        if grader not in ALL_REGEX_GRADERS:
            known = known_names(grader, ["strict", *ALL_REGEX_GRADERS])
            raise SettingsError("grader", "no grader has this name", grader, known)
        grader = ALL_REGEX_GRADERS[grader]
    if blind and getattr(getattr(grader, "settings", None), "shape", "") == "direct":
        raise SettingsError(
            "grader",
            "a judge of shape 'direct' compares with gold, and there is none",
            possible="Give gold, or use shape 'extract'.",
        )
    read = ((one.generation.key, one) for one in grader.grade(generations))
    asked = [generation.key for generation in generations]
    return [_plain(one) for one in roll_call(read, asked, (f"grader {grader.name!r}", "graded"))]


def _strictly(generation: Generation) -> PlainGrade:
    settled = read_strict_row(generation, "strict")
    # Abstaining is not OTHER: the answer may be there, for somebody who can read.
    return PlainGrade(None, None, ABSTAINS) if settled is None else _plain(settled)


def _plain(one: Grade) -> PlainGrade:
    return PlainGrade(one.choice, one.verdict, one.reason, one.error, one.several)


def _without_gold(one: PlainGrade) -> PlainGrade:
    known = one.verdict if one.verdict is Verdict.OTHER else None
    return PlainGrade(one.choice, known, one.reason, one.error, one.several)


def _each(name: str, value: Any, rows: int, kind: type) -> list[Any]:
    """One value for all rows, or one for each."""
    if value is None or isinstance(value, kind):
        return [value] * rows
    return _fitting(name, value, rows)


def _per_row(name: str, value: Any, rows: int, kind: type) -> list[Any]:
    """One list for all rows, or one for each."""
    values = [*value]
    if isinstance(value, str) or any(isinstance(one, str) and kind is not str for one in values):
        raise DataError("grade", f"{name} must be a list, or a list for each text", value)
    flat = [isinstance(one, kind) for one in values]
    if values and all(flat):
        return [tuple(values)] * rows
    if any(flat):
        raise DataError("grade", f"{name} must be one list, or only lists", value)
    return _fitting(name, values, rows)


def _fitting(name: str, values: Any, rows: int) -> list[Any]:
    if isinstance(values, str) or len(values) != rows:
        raise DataError("grade", f"{name} must be one for all {rows} texts or one for each", values)
    return [*values]
