"""Settings of what stands before a question: solved examples."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mlflow_mcq.errors import SettingsError

__all__ = ["FewShotSettings"]

_GOLD = re.compile(r"balanced|as-is|all-at:[A-Z]{1,2}")


class FewShotSettings(BaseModel):
    """Few-shot examples.

    Attributes:
        path: Where the examples are: a file, ``hf:owner/name`` or a built set, as for data.
        split: Of it.
        rows: The examples themselves, in place of a file.
        k: How many stand before each item.
        gold: Where their gold stands: ``balanced`` over the slots, ``all-at:A`` (the first
            slot; B is the second, whatever the labels), or ``as-is``.
        seed: Of which are drawn and of how they are balanced.
        per_item: Draw for each item, by its id; otherwise all items have the same ones.
        moved: Where the items' gold is moved (``gold-at:k:...``), move that of the examples
            to the same slot in the same way, in place of ``gold``.
        rationale: Column of the reasoning that stands before an example's answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | dict[str, JsonValue] | None = None
    split: str | None = None
    rows: tuple[dict[str, JsonValue], ...] = ()
    k: int = Field(ge=1, le=100, strict=True)
    gold: str = "balanced"
    seed: int = Field(0, strict=True)
    per_item: bool = Field(True, strict=True)
    moved: bool = Field(False, strict=True)
    rationale: str | None = None

    def model_post_init(self, context: object) -> None:
        """Refuse what would be read in two ways, or not at all."""
        if not _GOLD.fullmatch(self.gold):
            raise SettingsError(
                "few_shot.gold", "must be balanced, as-is or all-at:A (a letter)", self.gold
            )
        if bool(self.path) == bool(self.rows):
            raise SettingsError("few_shot", "needs exactly one of path and rows")
        if self.moved and self.gold != "balanced":
            raise SettingsError(
                "few_shot.moved",
                "puts the gold of the examples where that of the items is, so it goes without "
                "few_shot.gold",
                self.gold,
            )
