"""Scores of labels: what a model would say next, read off instead of generated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mlflow_mcq.errors import DataError, ModelError
from mlflow_mcq.records import Prompt, Request

__all__ = ["LabelScores", "check_labels"]

_TIED_WITHIN = 1e-5
"""Nats. The rounding of float32 log-probabilities down to -50 is about 4e-6."""


@dataclass(frozen=True, slots=True)
class LabelScores:
    """How likely a model finds each label to come next after one prompt.

    Attributes:
        prompt: What was sent.
        logprobs: Natural logarithms by slot, at most 0 and NOT normalised over the labels:
            the model may rather say something else. Empty exactly when ``error`` is set.
        token_texts: By slot, the tokens scored as the vocabulary spells them: ``ĠA`` is not
            the same token as ``A``.
        error: Why the prompt could not be scored.
        bounded: Slots whose number is an upper bound and no more: a server lists its
            likeliest tokens only. No such label is likelier than a listed one, so `best`
            holds; sums over labels do not.

    Raises:
        DataError: Not one number for each label, or one that is NaN; or a bound for a slot
            that is not there, or for all of them.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation
        >>> item = Item("q", "Liquid metal?", ("iron", "mercury", "tin"), 1)
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1, 2)), "letters", "?", tuple("ABC"))
        >>> LabelScores(prompt, (-1.5, -1.5, -3.0), ("A", "B", "C")).best
        (0, 1)
    """

    prompt: Prompt
    logprobs: tuple[float, ...]
    token_texts: tuple[str, ...]
    error: str = ""
    bounded: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        expected = 0 if self.error else len(self.prompt.labels)
        if len(self.logprobs) != expected or len(self.token_texts) != expected:
            raise DataError(
                f"scores of item {self.prompt.item.id!r}",
                "hold one log-probability and one token text for each label, or an error",
                (self.logprobs, self.token_texts, self.error),
            )
        if any(math.isnan(value) for value in self.logprobs):
            raise DataError(
                f"scores of item {self.prompt.item.id!r}", "must be numbers", self.logprobs
            )
        if self.bounded and not set(self.bounded) < set(range(expected)):
            raise DataError(
                f"scores of item {self.prompt.item.id!r}",
                "hold bounds for some of the slots only",
                self.bounded,
            )

    @property
    def key(self) -> tuple[str, str, int]:
        """(item id, protocol, orientation index): all repeats of a prompt share its scores."""
        return Request(self.prompt).key[:3]

    @property
    def best(self) -> tuple[int, ...]:
        """The slots with the highest log-probability; several where they tie.

        An argmax breaks ties towards the first slot: a model that cannot tell the options
        apart would read as one that prefers A. Closer than 1e-5 nats is a tie.
        """
        top = max(self.logprobs, default=0.0)
        return tuple(
            slot
            for slot, value in enumerate(self.logprobs)
            if value == top or value > top - _TIED_WITHIN
        )

    @property
    def tied(self) -> bool:
        """Two labels or more share the highest log-probability."""
        return len(self.best) > 1

    @property
    def pick(self) -> int | None:
        """The slot of the most likely label; None on a tie or without scores."""
        return self.best[0] if len(self.best) == 1 else None


def check_labels(prompts: Iterable[Prompt]) -> None:
    """Check that every prompt shows labels that could be scored.

    Raises:
        ModelError: One shows none; says which.
    """
    for prompt in prompts:
        if not prompt.labels:
            raise ModelError(
                f"prompt of item {prompt.item.id!r}",
                "shows no labels, so there is nothing whose log-probability could be read",
                prompt.protocol,
                "Use a protocol with letters, or switch logprob.enabled off.",
            )
