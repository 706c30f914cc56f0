"""A row that is being answered on the fast road."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlflow_mcq.engines.decoding import RowSampler
from mlflow_mcq.engines.drafts import SEEN

__all__ = ["Row"]


@dataclass(slots=True)
class Row:
    """A row under way; its slot is its place among the rows.

    Attributes:
        place: Of its prompt.
        ids: Of its prompt.
        sampler: Draws its tokens; None where the likeliest is taken.
        new: Tokens that it has said.
    """

    place: int
    ids: list[int]
    sampler: RowSampler | None
    new: list[int] = field(default_factory=list)

    @property
    def position(self) -> int:
        """Where that which is fed next stands, counted from the start of its prompt."""
        return len(self.ids) + len(self.new) - 1

    @property
    def token(self) -> int:
        """What is fed next."""
        return self.new[-1] if self.new else self.ids[-1]

    @property
    def newest(self) -> tuple[int, ...]:
        """The last tokens, by which the next one is guessed."""
        return tuple([*self.ids[-SEEN:], *self.new[-SEEN:]][-SEEN:])
