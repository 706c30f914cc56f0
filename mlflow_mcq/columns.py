"""Where things stand in the data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Columns"]


class Columns(BaseModel):
    """Where things stand in the data; None looks for the usual names.

    Attributes:
        question: Column of the question.
        options: Column with a list or JSON text; None also finds columns A, B, C, ...
        answer: Column of the answer; MLflow's ``targets`` wins.
        answer_as: How to read an answer: ``auto`` refuses what can be read in two ways.
        id: Column of the item id; None numbers the rows.
        generation: Column of stored answers (only without a model).
        order: Column with the order shown to the model, as a list of option indices
            (only without a model).
        human_label: Column where a person says CORRECT, INCORRECT or OTHER of a stored
            answer, for some rows (only without a model).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str | None = None
    options: str | None = None
    answer: str | None = None
    answer_as: Literal["auto", "letter", "index", "number", "text"] = "auto"
    id: str | None = None
    generation: str | None = None
    order: str | None = None
    human_label: str | None = None
