"""What a judge may cost at most: calls and tokens, counted while it works."""

from __future__ import annotations

from mlflow_mcq.graders.usage import Usage

__all__ = ["SPENT", "Budget"]

SPENT = "budget"
"""How the error of a row begins that was not asked about, since the budget was spent."""


class Budget:
    """Calls and tokens that are left, for a judge and its panel together.

    Nothing is cut off: calls in flight are waited for and count. So calls never exceed
    their limit, and tokens do by what the last calls cost more than the mean before them.

    Args:
        max_calls: None for any number.
        max_tokens: Read and generated together; None for any number.

    Example:
        >>> budget = Budget(max_tokens=1000)
        >>> budget.room(50, at_once=16)  # the first calls say what one costs
        16
        >>> budget.spend(Usage(16, 0, 784, 16))
        >>> budget.room(50, at_once=16)  # 200 tokens are left, and 50 go into a call
        4
    """

    def __init__(self, max_calls: int | None = None, max_tokens: int | None = None) -> None:
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self._calls = self._tokens = 0

    def spend(self, usage: Usage) -> None:
        """Count what some calls have cost; replies from the cache cost nothing."""
        self._calls += usage.n_calls
        self._tokens += usage.prompt_tokens + usage.reply_tokens

    def room(self, wanted: int, at_once: int = 1) -> int:
        """How many of the calls wanted may be made now.

        Args:
            wanted: Calls that wait.
            at_once: Calls to be made while nobody knows what one costs.
        """
        room = wanted
        if self.max_calls is not None:
            room = min(room, self.max_calls - self._calls)
        if self.max_tokens is not None:
            left = self.max_tokens - self._tokens
            mean = self._tokens / self._calls if self._calls else 0.0
            room = min(room, int(left / mean) if mean else at_once if left > 0 else 0)
        return max(0, room)

    @property
    def spent(self) -> str:
        """Which limit is reached, in words; empty where none is."""
        if self.max_calls is not None and self._calls >= self.max_calls:
            return f"judge.max_calls ({self.max_calls}) is spent"
        if self.max_tokens is not None and not self.room(1):
            return (
                f"judge.max_judge_tokens ({self.max_tokens}) is spent, or too little is left for "
                "another call"
            )
        return ""
