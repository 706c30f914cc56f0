"""What an evaluation has cost, as numbers of its run.

========================================= ===========================================
``cost/prompt_tokens``                    of all rows made, as a plain loop would read them
``cost/tokens_prefilled``, ``_saved``     of these really read; the difference
``cost/tokens_generated``                 of the answers
``cost/tokens_per_second``                generated tokens / seconds of generation
``cost/generation_seconds``, ``_share``   likewise ``judging`` and ``embedding``; shares of
                                          these three together, in [0, 1]
``cost/judging_overlapped_seconds``       part of judging that went on beside generation
``cost/judge_prompt_tokens``, ``cost/judge_reply_tokens``
========================================= ===========================================

Rows that were found on disk cost nothing here; those made ahead count with what they took.
What it will cost is counted in `mlflow_mcq.forecast`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.metrics import Summary
from mlflow_mcq.spent import Spent

__all__ = ["STAGES", "cost_after"]

STAGES = ("generation", "judging", "embedding")


def cost_after(spent: Spent | None, seconds: Mapping[str, float], usage: Usage | None) -> Summary:
    """The numbers under ``cost/``.

    Args:
        spent: Of generation; None where the engine counts nothing.
        seconds: Wall time by stage, of those in `STAGES` that took place.
        usage: Of the judge, where one read.

    Example:
        >>> numbers = cost_after(Spent(2, 40, 25, 10), {"generation": 5.0}, None)
        >>> numbers.values["cost/tokens_saved"], numbers.values["cost/tokens_per_second"]
        (15.0, 2.0)
    """
    found = Summary()
    whole = sum(seconds.values())
    for stage, took in seconds.items():
        found.values[f"cost/{stage}_seconds"] = took
        found.rate(f"cost/{stage}_share", took, whole, "seconds")
    if usage is not None:
        found.values["cost/judge_prompt_tokens"] = float(usage.prompt_tokens)
        found.values["cost/judge_reply_tokens"] = float(usage.reply_tokens)
    found.add(_generated(spent, seconds.get("generation", 0.0)))
    return found


def _generated(spent: Spent | None, seconds: float) -> Summary:
    """Tokens of generation, and why some of them are not known."""
    found = Summary()
    if spent is None or (spent.n_rows and not spent.prompt_tokens):
        found.undefined["cost/tokens_generated"] = "undefined: the model counts no tokens"
        return found
    found.values["cost/prompt_tokens"] = float(spent.prompt_tokens)
    found.values["cost/tokens_generated"] = float(spent.generated)
    if spent.n_rows:
        found.rate("cost/tokens_per_second", spent.generated, seconds, "seconds")
    else:
        found.undefined["cost/tokens_per_second"] = "undefined: every row was there already"
    if spent.prefilled is None:
        found.undefined["cost/tokens_prefilled"] = "undefined: a server does not say what it read"
    else:
        found.values["cost/tokens_prefilled"] = float(spent.prefilled)
        found.values["cost/tokens_saved"] = float(spent.prompt_tokens - spent.prefilled)
    return found
