"""What pydantic finds wrong, as the one fault that helps most."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

__all__ = ["Fault", "first_fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of what somebody has written.

    Attributes:
        where: Names and numbers that lead to it; empty where the whole is wrong.
        kind: ``unknown`` for a name that nobody knows, ``missing`` for one that is needed,
            ``illegal`` for a value.
        rule: What is wrong, as the end of a sentence.
        given: The value met; of a missing name whatever stands around it. It may hold a key.
    """

    where: tuple[str | int, ...]
    kind: str
    rule: str
    given: object

    @property
    def name(self) -> str:
        """What it concerns; empty where the whole is wrong."""
        return str(self.where[-1]) if self.where else ""


_KINDS = {"extra_forbidden": "unknown", "missing": "missing"}


def first_fault(error: ValidationError) -> Fault:
    """The fault to name first.

    A misspelt name leaves the right one missing: the misspelling is what helps.
    """
    faults = error.errors(include_url=False, include_context=False)
    first = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    said = first["msg"].removeprefix("Value error, ")
    kind = _KINDS.get(first["type"], "illegal")
    return Fault(first["loc"], kind, said[:1].lower() + said[1:], first["input"])
