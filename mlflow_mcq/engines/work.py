"""What the fast road is given, what it gives back, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Ended", "Tally", "Work"]


@dataclass(frozen=True, slots=True)
class Work:
    """One prompt to be answered.

    Attributes:
        ids: Its token ids, at least one.
        seed: Of its sample; greedy decoding needs none.
    """

    ids: list[int]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """One answer.

    Attributes:
        place: Of its work.
        new: Generated ids, with the one that ended it.
        stopped: A stop text ended it.
        out_of_memory: There is none: not even this row alone fits.
    """

    place: int
    new: list[int]
    stopped: bool = False
    out_of_memory: bool = False


@dataclass(slots=True)
class Tally:
    """What was done, in tokens.

    Attributes:
        prompts: Tokens of all prompts, as a plain loop would read them.
        read: Prompt tokens that were read before decoding.
        fed: Tokens that went through the model in decoding.
        steps: Steps of decoding.
        slots: Most rows at once.
    """

    prompts: int = 0
    read: int = 0
    fed: int = 0
    steps: int = 0
    slots: int = 0
