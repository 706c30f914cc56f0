"""What a judge has cost: calls, tokens, money."""

from __future__ import annotations

from dataclasses import dataclass

from mlflow_mcq.judge_settings import Prices
from mlflow_mcq.records import Reply

__all__ = ["Usage"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls of a judge, added up.

    Attributes:
        n_calls: Calls made, failed ones included.
        n_cached: Replies taken from the cache on disk; they cost nothing.
        prompt_tokens: Tokens read, as counted by the server; 0 for a failed call.
        reply_tokens: Tokens generated, likewise.
        money: In the currency of the prices; None where a price or a count is missing,
            since a sum without it would read as the cost and be too low.

    Example:
        >>> Usage(2, 0, 900, 4, 0.5) + Usage(1, 3, 100, 1, 0.25)
        Usage(n_calls=3, n_cached=3, prompt_tokens=1000, reply_tokens=5, money=0.75)
        >>> (Usage(money=1.0) + Usage(n_calls=1)).money is None
        True
    """

    n_calls: int = 0
    n_cached: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    money: float | None = None

    @classmethod
    def of_call(cls, reply: Reply, prices: Prices | None) -> Usage:
        """The cost of one call.

        Args:
            reply: What came back. A text for which no token was read was not counted by
                its server, so its price is unknown.
            prices: Per million tokens; None counts tokens only.

        Example:
            >>> Usage.of_call(Reply("A", n_prompt_tokens=800, n_tokens=2), None).prompt_tokens
            800
        """
        counted = reply.n_prompt_tokens > 0 or reply.error is not None
        money = None
        if prices is not None and counted:
            spent = reply.n_prompt_tokens * prices.prompt + reply.n_tokens * prices.reply
            money = spent / _MILLION
        return cls(1, 0, reply.n_prompt_tokens, reply.n_tokens, money)

    def __add__(self, other: Usage) -> Usage:
        known = self.money is not None and other.money is not None
        return Usage(
            self.n_calls + other.n_calls,
            self.n_cached + other.n_cached,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            (self.money or 0.0) + (other.money or 0.0) if known else None,
        )

    def named(self, prefix: str = "judge") -> dict[str, float]:
        """The numbers by the names under which they are logged; no cost where none is known.

        Example:
            >>> sorted(Usage().named())
            ['judge/n_cached', 'judge/n_calls', 'judge/prompt_tokens', 'judge/reply_tokens']
        """
        values = {
            f"{prefix}/n_calls": float(self.n_calls),
            f"{prefix}/n_cached": float(self.n_cached),
            f"{prefix}/prompt_tokens": float(self.prompt_tokens),
            f"{prefix}/reply_tokens": float(self.reply_tokens),
        }
        return values if self.money is None else values | {f"{prefix}/cost": self.money}
