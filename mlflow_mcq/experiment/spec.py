"""A recipe as it is written: an experiment, its arms, and what is shown of them together."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from mlflow_mcq.comparison.arms import TRACE_ROWS
from mlflow_mcq.errors import StoreError
from mlflow_mcq.faults import first_fault
from mlflow_mcq.given_path import home_path
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.nearest import known_names
from mlflow_mcq.settings import Settings

__all__ = ["ArmSpec", "Evaluators", "Model", "Recipe", "RegradeSpec", "RemoteSpec", "shown_model"]


def _several(evaluators: Any) -> Any:
    # `evaluators: mcq_regex` means the same as in `mlflow_mcq.evaluate`.
    return (evaluators,) if isinstance(evaluators, str) else evaluators


Evaluators = Annotated[tuple[str, ...], BeforeValidator(_several)]


class RemoteSpec(BaseModel):
    """A model behind a server; see `mlflow_mcq.remote_model` for what each part means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str
    model: str
    api_key_env: str | None = None
    concurrency: int = Field(16, ge=1)
    chat: bool = True
    timeout_s: float = Field(120.0, gt=0)
    api_key_header: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    query: dict[str, str] = Field(default_factory=dict)
    preflight: bool = True


def _named(model: Any) -> Any:
    """Read a mapping as what it means: tried as every kind, errors would be those of the wrong."""
    if isinstance(model, Mapping):
        return _remote(model) if "base_url" in model else read_local(model)
    return model


def _remote(model: Mapping[str, Any]) -> RemoteSpec:
    try:
        return RemoteSpec.model_validate(dict(model))
    except ValidationError as error:
        fault = first_fault(error)
        hint = known_names(fault.name, RemoteSpec.model_fields) if fault.kind == "unknown" else ""
        raise ValueError(f"{fault.where[0]}: {fault.rule}. {hint}".rstrip(". ")) from None


Model = str | RemoteSpec | LocalSettings
_Model = Annotated[Model, BeforeValidator(_named)]
Data = str | dict[str, Any]
_OF_REGRADE = {"name", "experiment", "regrade", "judge", "tables", "figures"}


def _refuse_misspelt(extra: Mapping[str, Any] | None, own: Sequence[str], who: str) -> None:
    """Refuse a key that is no setting but nearly one of a recipe's own, which nobody else knows.

    Raises:
        ValueError: There is one.
    """
    for name in extra or {}:
        if name in Settings.model_fields:
            continue
        near = difflib.get_close_matches(name, [*own, *Settings.model_fields], n=1, cutoff=0.6)
        if near and near[0] in own:
            raise ValueError(f'{name} is no key of {who}. Did you mean "{near[0]}"?')


class ArmSpec(BaseModel):
    """One arm: a name, a model, and any setting that differs from the recipe's own.

    Attributes:
        name: Of the run.
        model: As in `mlflow_mcq.evaluate`, or ``{base_url, model, api_key_env}``, or
            ``{path, adapter, dtype, ...}``.
        data: Where it is not the recipe's own.
        split: Of the data, likewise.
        evaluators: Likewise.
        original: The arm that this one attacks: its accuracy on the order of the data, less
            that of this arm, is the attack gap.
        variant: Of the data; a panel of the temperature plot each.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1)
    model: _Model | None = None
    data: Data | None = None
    split: str | None = None
    evaluators: Evaluators | None = None
    original: str | None = None
    variant: str = ""

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, arm: Any) -> Any:
        if not isinstance(arm, Mapping | ArmSpec):
            raise ValueError(f"an arm is a mapping with a name, as in - name: letters; got {arm!r}")
        return arm


class RegradeSpec(BaseModel):
    """Finished arms to be read again, without inference.

    Attributes:
        of: Name of a recipe (its newest comparison is taken), a whole ``mcq.comparison``, or
            the id of a run.
        only: As in `mlflow_mcq.regrade`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: str = Field(min_length=1)
    only: str | tuple[str, ...] = "all"


class Recipe(BaseModel):
    """An experiment. Keys that are not listed here are settings of all arms.

    Attributes:
        name: Of the comparison.
        experiment: MLflow experiment; None uses the active one.
        data: Path of the data, relative to the recipe; ``hf:owner/name``; or a built set:
            ``nonsense:1000``, ``{analogy: {pairs: f}}`` (see `mlflow_mcq.datasets.built`).
        split: Of the data; see `mlflow_mcq.evaluate`.
        limit: Number of items, drawn with the seed; None takes all.
        model: For arms that name none.
        evaluators: Which of ours. Where no judge is named, ``mcq_judge`` is left out and that
            is said; where it is the only one, the recipe is refused.
        baseline: The arm that all others are compared with, on the rows they share.
        compare: Whether arms are compared at the end, where there are several.
        trace_rows: Rows of each arm that the comparison logs as traces; 0 logs none.
        tables: Beside the table of arms: ``repeats``, one a repeat and their aggregate;
            ``chosen``, how often each option is chosen.
        figures: ``temperature``: accuracy against temperature.
        arms: At least one, unless arms are read again.
        regrade: Arms to be read again in place of new ones.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1)
    experiment: str | None = None
    data: Data | None = None
    split: str | None = None
    limit: int | None = Field(None, ge=1, strict=True)
    model: _Model | None = None
    evaluators: Evaluators = ("mcq_judge",)
    baseline: str | None = None
    compare: bool = True
    trace_rows: int = Field(TRACE_ROWS, ge=0)
    tables: tuple[Literal["repeats", "chosen"], ...] = ()
    figures: tuple[Literal["temperature"], ...] = ()
    arms: tuple[ArmSpec, ...] = ()
    regrade: RegradeSpec | None = None

    @model_validator(mode="after")
    def _whole(self) -> Recipe:
        """Check that there is something to do, and that arms speak of arms that exist."""
        _refuse_misspelt(self.model_extra, [*Recipe.model_fields], "a recipe")
        for arm in self.arms:
            _refuse_misspelt(arm.model_extra, [*ArmSpec.model_fields], f"arm {arm.name}")
        if self.regrade is not None:
            given = self.model_fields_set | set(self.model_extra or ())
            useless = sorted(given - _OF_REGRADE)
            if useless:
                raise ValueError(
                    f"regrade reads stored answers: it does not take {', '.join(useless)}"
                )
            return self
        if not self.arms:
            raise ValueError("arms: there must be at least one")
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError(f"arms must have different names, not {', '.join(names)}")
        for arm in self.arms:
            if arm.data is None and self.data is None:
                raise ValueError(f"arm {arm.name}: names no data, and neither does the recipe")
        _refuse_shared({arm.name: self.settings_of(arm).get("directory") for arm in self.arms})
        named = [arm.original for arm in self.arms if arm.original] + [self.baseline or names[0]]
        unknown = [name for name in named if name not in names]
        if unknown:
            raise ValueError(f"{unknown[0]} is no arm; there are {', '.join(names)}")
        return self

    def settings_of(self, arm: ArmSpec) -> dict[str, Any]:
        """The settings of one arm: the recipe's, then its own.

        A directory of the recipe's holds one for each arm, since arms are different evaluations.
        """
        drawn = {} if self.limit is None else {"limit": self.limit}
        own = arm.model_extra or {}
        found = {**drawn, **(self.model_extra or {}), **own}
        whole = found.get("directory")
        if isinstance(whole, str) and whole and "directory" not in own:
            found["directory"] = str(Path(whole, f"arm-{quote(arm.name, safe=' ')}"))
        return found

    def model_of(self, arm: ArmSpec) -> Model | None:
        """The model of one arm."""
        return arm.model if arm.model is not None else self.model

    def source_of(self, arm: ArmSpec) -> tuple[Data, str | None]:
        """Data and split of one arm; data of its own does not take the recipe's split."""
        if arm.data is not None:
            return arm.data, arm.split
        return self.data or "", arm.split if arm.split is not None else self.split

    def evaluators_of(self, arm: ArmSpec) -> list[str]:
        """Who reads one arm: without a judge those that need none, where there are any."""
        named = list(arm.evaluators if arm.evaluators is not None else self.evaluators)
        rest = [name for name in named if name != "mcq_judge"]
        return rest if rest and not self.settings_of(arm).get("judge") else named


def _refuse_shared(directories: Mapping[str, Any]) -> None:
    """An arm in another's directory would be refused hours later, or find that one's rows."""
    first: dict[str, str] = {}
    for name, directory in directories.items():
        if not isinstance(directory, str):
            continue
        place = os.path.realpath(home_path(directory, "directory", StoreError))
        if place in first:
            raise ValueError(
                f"arms {first[place]} and {name} name one directory ({directory}): it holds the "
                "rows of one evaluation. Name it for the whole recipe, and each arm has a folder "
                "of its own in it"
            )
        first[place] = name


def shown_model(model: Model | None) -> str:
    """What a model is called."""
    if isinstance(model, LocalSettings):
        return model.shown
    return model.model if isinstance(model, RemoteSpec) else str(model)
