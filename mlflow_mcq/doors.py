"""The doors: everything that can be replaced, one Protocol each, on one page.

Built-in engines, chats and graders enter by these same doors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mlflow_mcq.records import (
    Decoding,
    Generation,
    Grade,
    Item,
    Orientation,
    Prompt,
    Query,
    Reply,
    Request,
)
from mlflow_mcq.scores import LabelScores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Chat", "Embedder", "Engine", "Grader", "PromptFamily", "Scorer", "Tokenizer"]


class PromptFamily(Protocol):
    """Turns an item in one orientation into a prompt (a *protocol* of the field)."""

    def __call__(self, item: Item, orientation: Orientation, *, chat: bool) -> Prompt:
        """Render the same bytes for the same input on any machine."""
        ...


@runtime_checkable
class Chat(Protocol):
    """A language model that answers conversations: a server, or weights loaded here.

    Attributes:
        fingerprint: Names the model and everything but the decoding that changes its
            answers; holds no secret.
        deterministic: Asking the same thing again gives the same answer.
        speaks_chat: It takes chat messages; otherwise plain text.
    """

    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    @property
    def deterministic(self) -> bool: ...  # noqa: D102
    @property
    def speaks_chat(self) -> bool: ...  # noqa: D102

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Yield ``(place in queries, reply)`` as answers arrive, each place exactly once.

        A call that fails is a Reply with ``error``, never an exception: one bad row
        must not lose the others.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """Produces the answers of the evaluated model.

    Attributes:
        fingerprint: As for `Chat`.
        speaks_chat: It wants chat messages; otherwise plain text.
    """

    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    @property
    def speaks_chat(self) -> bool: ...  # noqa: D102

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield one generation for each request, in any order, as they are ready.

        Raises:
            ModelError: The model cannot answer; says which row.
        """
        ...


@runtime_checkable
class Grader(Protocol):
    """Reads generations.

    Attributes:
        name: Prefix of its metrics.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation, in any order, as they are ready."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Reads log-probabilities of labels off a model instead of letting it answer.

    Attributes:
        fingerprint: Of the model that is read, as for `Chat`.
    """

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    def score(self, prompts: Sequence[Prompt]) -> list[LabelScores]:
        """Score every prompt, in the order given; one that fails has an ``error``.

        Raises:
            ModelError: A prompt shows no labels, or the model cannot tell them apart.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        fingerprint: Names the model and everything that changes its vectors.
    """

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text, in their order: (n texts, n dimensions), L2-normalised."""
        ...


@runtime_checkable
class Tokenizer(Protocol):
    """Cuts text into the tokens of one model."""

    def encode(self, text: str) -> Sequence[int]:
        """The ids of a text; no special tokens are added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens show nothing."""
        ...
