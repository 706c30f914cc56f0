"""What making rows has taken."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Spent"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Rows made, and their tokens.

    Attributes:
        n_rows: Rows made; not those found on disk.
        prompt_tokens: Tokens of their prompts, as a plain loop over rows would read them.
        prefilled: Prompt tokens that the model really read: what several prompts share
            counts once. None where that is not known, as for a server.
        generated: Tokens of the answers.

    Example:
        >>> Spent(1, 10, 4, 3) + Spent(1, 10, 10, 2)
        Spent(n_rows=2, prompt_tokens=20, prefilled=14, generated=5)
        >>> (Spent(1, 10, None, 3) + Spent()).prefilled is None
        True
        >>> Spent(2, 20, 14, 5) - Spent(1, 10, 4, 3)
        Spent(n_rows=1, prompt_tokens=10, prefilled=10, generated=2)
    """

    n_rows: int = 0
    prompt_tokens: int = 0
    prefilled: int | None = 0
    generated: int = 0

    def __add__(self, other: Spent) -> Spent:
        known = self.prefilled is not None and other.prefilled is not None
        return Spent(
            self.n_rows + other.n_rows,
            self.prompt_tokens + other.prompt_tokens,
            (self.prefilled or 0) + (other.prefilled or 0) if known else None,
            self.generated + other.generated,
        )

    def __sub__(self, other: Spent) -> Spent:
        minus = None if other.prefilled is None else -other.prefilled
        return self + Spent(-other.n_rows, -other.prompt_tokens, minus, -other.generated)
