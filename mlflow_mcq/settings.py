"""Settings of one evaluation, checked before anything is run.

The same names are used by ``evaluator_config``, by `mlflow_mcq.evaluate` and by recipes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from mlflow_mcq.columns import Columns
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.faults import first_fault
from mlflow_mcq.grader_settings import (
    AnalogySettings,
    LogprobSettings,
    RegexSettings,
    SimilaritySettings,
)
from mlflow_mcq.judge_settings import JudgeSettings, Prices, place_of, refuse_objects
from mlflow_mcq.nearest import known_names
from mlflow_mcq.orientations import DEFAULT_SCHEME, check_scheme
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols import (
    PROTOCOLS,
    PROTOCOLS_FOR_ALL,
    WORDINGS_ALL,
    Style,
    prompt_family,
)
from mlflow_mcq.protocols.page_settings import (
    PAGE,
    Labels,
    Language,
    Mark,
    check_order,
    check_read,
    check_shots,
)
from mlflow_mcq.records import Decoding

__all__ = [
    "EVALUATORS",
    "OF_DATA",
    "READERS",
    "Columns",
    "JudgeSettings",
    "Settings",
    "check_reads_sets",
    "read_settings",
    "refuse_useless",
]

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

EVALUATORS = ("mcq_judge", "mcq_regex", "mcq_analogy", "mcq_similarity")
"""Our evaluators, as a configuration is nested by their names."""

_READ_SETS = ("mcq_judge",)


READERS = frozenset(
    {
        "judge",
        "regex",
        "analogy",
        "similarity",
        "logprob",
        "table_rows",
        "batch_size",
        "processes",
        "cache",
        "directory",
        "accept_changes",
        "lint",
    }
)
"""Settings of how rows are read or shown; they change no generation."""

OF_DATA = frozenset({"columns", "several_gold", "layout", "on_bad_rows", "limit", "shard"})
"""Settings of which items there are; they change no page of any of them."""


class Settings(BaseModel):
    """Everything that decides the rows and their grades.

    Attributes:
        judge: Who judges; None blocks judged numbers.
        protocol: Prompt family; its own defaults hold where nothing else is set.
        template: Own wording for ``letters``.
        labels: Name of a label style, or a list of labels.
        language: Of the instruction.
        mark: Before every option of ``dashes``.
        nota_share: Share of items whose right option ``none-of-the-above`` replaces.
        few_shot: Solved examples before every item.
        orientations: Scheme; see `mlflow_mcq.orientations`.
        repeats: Samples of each prompt.
        seed: Of shuffles and of sampling.
        max_new_tokens: Most tokens an answer may have.
        temperature: 0 is greedy.
        top_p: Nucleus.
        top_k: Most likely tokens kept; 0 keeps all.
        stop: Texts that end an answer.
        thinking: Switch of reasoning models' chat templates.
        batch_size: Rows at a time.
        processes: Of this machine that generate, for weights that are read from disk: one on
            each GPU, or ``auto`` for as many as there are GPUs. They stay for later arms over
            the same base. Rows are the same for any number.
        input_column: Column handed to a function or pyfunc.
        input_format: ``text`` or ``messages``; None takes what the model speaks.
        columns: Where things stand in the data.
        several_gold: Of rows with several right options. ``refuse`` stops at the first one;
            ``any``: an answer that names one of them is right; ``all``: every item asks for
            all right options, and an answer must name exactly these.
        layout: Native layout of the data; None detects it, ``plain`` reads columns only.
        on_bad_rows: ``error``, or ``skip`` to leave out, count and list unreadable rows.
        limit: Number of items, drawn with the seed so that every stratum keeps its share.
        shard: ``"i/n"``: the i-th of n shares of the items, i from 1.
        lint: Whether faults of the items are looked for and logged.
        table_rows: Rows of the tables shown in the browser; Parquet holds all.
        cache: ``run`` keeps rows on disk while the run is under way, so that the same
            evaluation started again after a crash goes on where it was; a folder keeps
            them for good and shares them between runs; ``off`` keeps none.
        directory: Folder for the rows of this evaluation alone, refused to any other one.
        accept_changes: Use ``directory`` although settings differ.
        regex: The published parsers.
        analogy: The 8-token analogy match.
        similarity: Embedding similarity.
        logprob: Letter log-probabilities.
    """

    model_config = _STRICT

    judge: JudgeSettings | None = None
    protocol: str = "letters"
    template: str | None = None
    labels: Labels = "upper"
    language: Language = "en"
    mark: Mark = "-"
    nota_share: float = Field(1.0, ge=0.0, le=1.0)
    few_shot: FewShotSettings | None = None
    orientations: str = DEFAULT_SCHEME
    repeats: int = Field(1, ge=1, strict=True)
    seed: int = Field(0, strict=True)
    max_new_tokens: int = Field(128, ge=1, strict=True)
    temperature: float = Field(0.0, ge=0.0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    top_k: int = Field(0, ge=0)
    stop: tuple[str, ...] = ()
    thinking: bool | None = Field(None, strict=True)
    batch_size: int = Field(8, ge=1, strict=True)
    processes: int | Literal["auto"] = 1
    input_column: str = "prompt"
    input_format: Literal["text", "messages"] | None = None
    columns: Columns = Columns()
    several_gold: Literal["refuse", "any", "all"] = "refuse"
    layout: str | None = None
    on_bad_rows: Literal["error", "skip"] = "error"
    limit: int | None = Field(None, ge=1, strict=True)
    shard: str | None = None
    lint: bool = Field(True, strict=True)
    table_rows: int = Field(1000, ge=1, le=2000)
    cache: str = Field("run", min_length=1)
    directory: str | None = Field(None, min_length=1)
    accept_changes: bool = Field(False, strict=True)
    regex: RegexSettings = RegexSettings()
    analogy: AnalogySettings = AnalogySettings()
    similarity: SimilaritySettings = SimilaritySettings()
    logprob: LogprobSettings = LogprobSettings()

    @field_validator("processes", mode="before")
    @classmethod
    def _legal_processes(cls, processes: Any) -> Any:
        if processes != "auto" and (type(processes) is not int or processes < 1):
            raise ValueError('must be a whole number from 1, or "auto"')
        return processes

    @field_validator("orientations")
    @classmethod
    def _legal_scheme(cls, scheme: str) -> str:
        check_scheme(scheme)
        return scheme

    @field_validator("shard")
    @classmethod
    def _legal_shard(cls, shard: str | None) -> str | None:
        match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", shard or "1/1")
        if match is None or int(match.group(1)) > int(match.group(2)):
            raise ValueError('must be "i/n" with i from 1 to n, such as "1/4"')
        return shard

    @model_validator(mode="before")
    @classmethod
    def _as_the_protocol_has_it(cls, given: Any) -> Any:
        """Enter a protocol's own settings where the user gives none.

        Here and not when they are used: what is logged, stored and compared must be what
        was used.
        """
        if not isinstance(given, Mapping):
            return given
        defaults = getattr(PROTOCOLS.get(str(given.get("protocol"))), "defaults", {})
        return {**defaults, **given}

    def model_post_init(self, context: Any) -> None:
        """Find the prompt family now, not after an hour of generation."""
        prompt_family(self.protocol, self.style)
        shots = self.few_shot
        changed = [n for n in PAGE if getattr(self, n) != type(self).model_fields[n].default]
        check_read(
            self.protocol, changed + ["few_shot.rationale"] * bool(shots and shots.rationale)
        )
        check_shots(self.protocol, shots)
        check_order(self.protocol, self.orientations, bool(shots and shots.moved))
        self._check_sets()

    def _check_sets(self) -> None:
        """Refuse what cannot ask for sets of options."""
        if self.several_gold != "all":
            return
        if self.protocol not in PROTOCOLS_FOR_ALL:
            raise SettingsError(
                "protocol",
                'has no wording that asks for all right options, as several_gold "all" does',
                self.protocol,
                f"Use one of {', '.join(PROTOCOLS_FOR_ALL)}.",
            )
        if self.language not in WORDINGS_ALL:
            rule = 'has no wording that asks for all right options, as several_gold "all" does'
            known = f"Use one of {', '.join(WORDINGS_ALL)}."
            raise SettingsError("language", rule, self.language, known)
        if self.logprob.enabled:
            raise SettingsError(
                "logprob.enabled",
                'scores one label at a time and several_gold "all" asks for sets of them',
                possible="Leave it out.",
            )

    @property
    def style(self) -> Style:
        """How pages are set."""
        return Style(
            self.labels, self.language, self.mark, self.template, self.nota_share, self.seed
        )

    @property
    def decoding(self) -> Decoding:
        """How the evaluated model's answers are drawn."""
        names = Decoding.__dataclass_fields__
        return Decoding(**{k: v for k, v in self.model_dump().items() if k in names})

    def as_chat(self, speaks_chat: bool) -> bool:
        """Whether prompts are chat messages, for a model that speaks in them or does not."""
        chosen = self.input_format
        return speaks_chat if chosen is None else chosen == "messages"

    @property
    def measured(self) -> dict[str, Any]:
        """The settings that decide which rows are generated (not how they are read)."""
        return self.model_dump(exclude=set(READERS))

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits over `measured`."""
        text = json.dumps(self.measured, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_settings(config: Mapping[str, Any] | None, name: str = "mcq_judge") -> Settings:
    """Check a configuration, flat or nested by evaluator name.

    Args:
        config: What the user gave.
        name: The evaluator asked; ``{name: {...}}`` is unwrapped.

    Raises:
        JudgeNotConfigured: A judge is there but says not who it is.
        SettingsError: Anything else, with the nearest legal name of an unknown setting.

    Example:
        >>> read_settings({"mcq_judge": {"orientations": "swap"}}).orientations
        'swap'
    """
    given = dict(config or {})
    own = given.get(name)
    # Nested for several evaluators at once: the others' part is not ours.
    given = {k: v for k, v in given.items() if not (k in EVALUATORS and isinstance(v, Mapping))}
    given |= dict(own) if isinstance(own, Mapping) else {}
    judge = given.get("judge")
    # Values are not repeated: what stands in the wrong place may be a key.
    if isinstance(judge, str):
        raise JudgeNotConfigured("a text in place of the judge's settings")
    refuse_objects(judge)
    if isinstance(judge, Mapping):
        placed = bool(place_of(str(judge.get("model", ""))))
        needed = ("model",) if placed else ("model", "base_url")
        missing = [name for name in needed if not judge.get(name)]
        unknown = [str(name) for name in judge if name not in JudgeSettings.model_fields]
        odd = f", but with {', '.join(unknown)}" if unknown else ""
        if missing:
            raise JudgeNotConfigured(f"a judge without {' and '.join(missing)}{odd}")
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise _as_settings_error(error) from None


def refuse_useless(settings: Settings, names: AbstractSet[str], why: str, possible: str) -> None:
    """Refuse settings that somebody has set where they do nothing, a default spelt out included.

    Args:
        settings: As they were read.
        names: Those that do nothing here.
        why: What they say, and why that is of no use.
        possible: What to do.

    Raises:
        SettingsError: One of them is set; all are named.
    """
    useless = sorted(settings.model_fields_set & names)
    if useless:
        raise SettingsError(", ".join(useless), why, possible=possible)


def check_reads_sets(evaluator: str, several_gold: str) -> None:
    """Check that an evaluator can read answers that name several options.

    Raises:
        SettingsError: All right options are asked for, and it reads single ones only.
    """
    if several_gold == "all" and evaluator not in _READ_SETS:
        raise SettingsError(
            evaluator,
            'reads single options, and several_gold "all" asks for every right one',
            possible=f'Use {", ".join(_READ_SETS)}, or several_gold "any".',
        )


_ROOMS: dict[str, type[BaseModel]] = {
    "judge": JudgeSettings,
    "judge.prices": Prices,
    "judge.panel": JudgeSettings,
    "judge.panel.prices": Prices,
    "columns": Columns,
    "few_shot": FewShotSettings,
    "regex": RegexSettings,
    "analogy": AnalogySettings,
    "similarity": SimilaritySettings,
    "logprob": LogprobSettings,
}

# No name is near it: "temperature" was no help to who wanted a system prompt.
_SYSTEM = (
    "A system message is part of a protocol: put the words at the head of template, or see "
    '"A system prompt" in docs/protocols.md.'
)


def _as_settings_error(error: ValidationError) -> SettingsError:
    fault = first_fault(error)
    where = ".".join(map(str, fault.where))
    room = ".".join(part for part in fault.where[:-1] if isinstance(part, str))
    if fault.kind == "unknown":
        legal = _ROOMS.get(room, Settings).model_fields
        system = not room and fault.name.casefold().startswith("system")
        known = _SYSTEM if system else known_names(fault.name, legal)
        # The value is not repeated: what stands under an unknown name may be a key.
        return SettingsError(where, "is not a setting", possible=known)
    last = fault.where[-1] if fault.where else ""
    if room.startswith("judge") and last == "api_key_env":
        # People paste the key itself here: never repeat it.
        return SettingsError(
            where, "must be the name of an environment variable", possible="Not the key itself."
        )
    # A judge that is wrong as a whole may hold a key or credentials anywhere.
    whole = (
        where in ("judge", "judge.panel")
        or ".query" in where
        or (
            room.startswith("judge") and (isinstance(last, int) or isinstance(fault.given, Mapping))
        )
    )
    got = type(fault.given).__name__ if whole else fault.given
    return SettingsError(where, fault.rule, got)
