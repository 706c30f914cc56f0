"""What a run says of its data: the layout, the rows left out, the faults of its items."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from mlflow_mcq.arm import Arm
from mlflow_mcq.datasets.lint import lint_read
from mlflow_mcq.datasets.reading import Reading
from mlflow_mcq.datasets.stored import PROTOCOL as STORED
from mlflow_mcq.tracking import RunLog, capped

__all__ = ["describe", "report_data"]

_SHOWN = ("n_items_with_faults", "gold_position_p", "longest_is_gold", "choices_only_accuracy")


def describe(arm: Arm, reading: Reading) -> Arm:
    """Enter how an arm's data was read, and what is wrong with its items."""
    arm.reading = reading
    prompts = [generation.prompt for generation in arm.generations]
    slots = Counter(prompt.gold_slot for prompt in prompts if not prompt.item.also_right)
    highest, name = max(slots.values(), default=0), "data/gold_slot_share_highest"
    arm.numbers.rate(name, highest, slots.total(), "rows with one right option")
    arm.numbers.values |= {
        "data/n_items": float(len(arm.items)),
        "data/n_skipped": float(len(reading.bad)),
    }
    if arm.settings.lint:
        arm.lint = lint_read(arm.items, reading.bad, arm.settings, reading.said)
        numbers, undefined = arm.lint.numbers, arm.lint.undefined
        arm.numbers.values |= {f"lint/{k}": numbers[k] for k in _SHOWN if k in numbers}
        arm.numbers.undefined |= {f"lint/{k}": undefined[k] for k in _SHOWN if k in undefined}
    return arm


def report_data(arm: Arm, log: RunLog) -> None:
    """Put it on record; nothing where the data was not read in this run."""
    if arm.reading is None:
        return
    if arm.generations[0].prompt.protocol != STORED:
        log.params({"mcq.layout": arm.reading.layout})
    log.tags({"mcq.layout": arm.reading.layout, "mcq.data": arm.reading.said})
    rows = arm.settings.table_rows
    if arm.reading.bad:
        log.table("mcq_bad_rows", capped(_bad_rows(arm.reading), rows))
    if arm.lint is not None:
        log.table("mcq_lint", capped(arm.lint.findings, rows))
        log.table("mcq_lint_summary", arm.lint.summary)


def _bad_rows(reading: Reading) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"row": one.row, "where": one.error.args[0], "error": str(one.error)}
            for one in reading.bad
        ]
    )
