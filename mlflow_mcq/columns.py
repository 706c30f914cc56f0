"""Where things stand in the data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic_core import PydanticCustomError

__all__ = ["Columns"]


class Columns(BaseModel):
    """Where things stand in the data; None looks for the usual names.

    Attributes:
        question: Column of the question.
        options: Column with a list or JSON text, or several columns with one option each,
            in their order; None also finds columns A, B, C, ...
        answer: Column of the answer; MLflow's ``targets`` wins.
        answer_as: How to read an answer: ``auto`` refuses what can be read in two ways.
        id: Column of the item id; None numbers the rows.
        generation: Column of stored answers (only without a model).
        order: Column with the order shown to the model, as a list of option indices
            (only without a model).
        human_label: Column where a person says CORRECT, INCORRECT or OTHER of a stored
            answer, for some rows (only without a model); found as ``human_label`` too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str | None = None
    options: str | tuple[str, ...] | None = None
    answer: str | None = None
    answer_as: Literal["auto", "letter", "index", "number", "text"] = "auto"
    id: str | None = None
    generation: str | None = None
    order: str | None = None
    human_label: str | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _one_or_several(cls, given: object) -> object:
        # A union reports every branch that failed, under names that nobody typed.
        if given is None or isinstance(given, str):
            return given
        several = list(given) if isinstance(given, (list, tuple)) else []
        texts = all(isinstance(name, str) for name in several)
        if not texts or len(several) < 2 or len(set(several)) < len(several):
            raise PydanticCustomError(
                "options", "must be a column, or a list of two or more, one for each option"
            )
        return tuple(several)
