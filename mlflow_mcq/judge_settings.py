"""Who judges, and how it is asked: a judge is part of the metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.records import Decoding

__all__ = [
    "GATEWAY",
    "JUDGE_WORDS",
    "JudgeSettings",
    "Prices",
    "check_member",
    "place_of",
    "refuse_idle",
    "refuse_objects",
]

JUDGE_WORDS = {
    "judge_model": "model",
    "judge_url": "base_url",
    "judge_key_env": "api_key_env",
}
"""How the command line calls the three things that name a judge."""

_REASON_TOKENS = 64

_STRICT = ConfigDict(extra="forbid", frozen=True)


GATEWAY = "mlflow"
"""In place of an address: the deployments target that MLflow is set to."""

_PLACES = {"endpoints:/": GATEWAY, "models:/": "local", "runs:/": "local"}


def place_of(model: str) -> str:
    """Where a model stands, if its name says so: the gateway, or here; else empty.

    Example:
        >>> place_of("endpoints:/chat"), place_of("models:/judge/3"), place_of("gpt-4.1")
        ('mlflow', 'local', '')
    """
    return next((place for start, place in _PLACES.items() if model.startswith(start)), "")


def refuse_objects(judge: object) -> None:
    """Refuse a judge of a run that is an object: no later run could ask it again.

    Raises:
        SettingsError: It is neither settings nor nothing.
    """
    if judge is None or isinstance(judge, (Mapping, JudgeSettings)):
        return
    raise SettingsError(
        "judge",
        "of a run must be given as settings, since its rows are stored to be read again by the "
        "same judge, and an object of this process is gone by then",
        type(judge).__name__,
        'Give JudgeSettings or {"model": ..., "base_url": ...}: the address of a server, '
        '"local" for weights that are loaded here (no network), or a model of endpoints:/ or '
        "models:/. An object reads in mlflow_mcq.graders.grade and mlflow_mcq.examine_judge.",
    )


def refuse_idle(name: str, given: object, evaluators: Iterable[str]) -> None:
    """Refuse a judge that no evaluator asks: its user would believe that it has read the answers.

    Args:
        name: What the judge was named by, as typed.
        given: What was given there.
        evaluators: Who reads the answers.

    Raises:
        SettingsError: A judge is given, and ``mcq_judge`` is not among them.
    """
    names = list(dict.fromkeys(evaluators))
    if given and "mcq_judge" not in names:
        raise SettingsError(
            name, f"names a judge, and nobody asks it: the evaluators are {', '.join(names)}",
            possible="Put mcq_judge among the evaluators, or leave the judge out.",
        )  # fmt: skip


class Prices(BaseModel):
    """What a judge costs, in one currency per million tokens.

    Attributes:
        prompt: Tokens read.
        reply: Tokens generated.
    """

    model_config = _STRICT

    prompt: float = Field(ge=0)
    reply: float = Field(ge=0)


class JudgeSettings(BaseModel):
    """Who judges, and how it is asked. A judge is part of the metric.

    Attributes:
        model: Name of the model at the server, or a path or hub name for ``local``. Without
            a ``base_url`` also ``endpoints:/name`` (MLflow's AI gateway, at its deployments
            target) and ``models:/name/version`` (a logged model, loaded here).
        base_url: OpenAI-compatible server, or ``"local"``; with ``endpoints:/name`` the
            gateway's address.
        api_key_env: Name of the environment variable with the key; None sends no key.
        api_key_header: Header of the key where it is no bearer: ``api-key`` for Azure OpenAI.
        query: Added to the URL of every call: ``{"api-version": ...}`` for Azure OpenAI.
            Only an ``api-version`` is ever logged.
        shape: ``extract``: the judge names an option and code compares. ``direct``: it
            is given the gold and answers CORRECT, INCORRECT or OTHER.
        temperature: At most 0.2: a judge that draws lots is no instrument.
        max_tokens: Room for a reply (thinking judges need more).
        concurrency: Most calls in flight at once; fewer while the server says 429 or 503.
        timeout_s: Seconds before a try of a call is given up.
        max_retries: Further tries on 408, 409, 429, 5xx, broken connections and broken replies.
        attempts: Times a row is asked before an unparsable reply is a judge error.
        batch_size: Rows at a time, for a local judge.
        check_rows: Most rows that the strict rule settles and the judge reads as well, to
            measure the judge: a sample drawn with the run's seed; 0 switches this off.
        exam_replies: Replies of the shipped exam that are put to it; None takes all, 0 none.
            The same judge sits each exam once on a machine.
        shuffle_options: Show the judge the options in an order of each row's own (seeded),
            so that the judge's preference for a position averages out.
        votes: Samples of each row; the reading with most votes counts, a tie is OTHER
            ``judges_split``.
        panel: Further judges; each gives one vote beside this one.
        rationale: Ask for a reason as well, before the verdict; it is kept with the reply,
            and verdicts are read as ever. Needs room: ``max_tokens`` of at least 64.
        cache_dir: Folder of the judge cache; None keeps none on disk. Only replies that
            hold a verdict are kept.
        prices: For the money spent; None counts tokens only.
        preflight: Ask one cheap question before the evaluated model is asked anything, so
            that a wrong key or model fails in seconds; a local judge needs none.
        max_calls: Most calls, panel, exam and checks included; None sets no limit. Rows
            beyond it are judge errors ``budget``, which can be regraded.
        max_judge_tokens: The same for tokens, read and generated together.
        overlap: A judge behind a server reads answers while the model still generates; one
            with a budget reads at the end, and so does a local one.
        canaries: Rows with known answers that are put to the judge beside the data: replies
            that try to steer it. At most as many as are shipped; 0 puts none.
    """

    model_config = _STRICT

    model: str = Field(min_length=1)
    base_url: str = Field(min_length=1)
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    api_key_header: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    query: dict[str, str] = Field(default_factory=dict)
    shape: Literal["extract", "direct"] = "extract"
    temperature: float = Field(default=0.0, ge=0.0, le=0.2)
    max_tokens: int = Field(default=256, ge=1)
    concurrency: int = Field(default=16, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=5, ge=0)
    attempts: int = Field(default=2, ge=1)
    batch_size: int = Field(default=16, ge=1)
    check_rows: int = Field(default=100, ge=0)
    exam_replies: int | None = Field(default=None, ge=0)
    shuffle_options: bool = False
    votes: int = Field(default=1, ge=1, le=25)
    panel: tuple[JudgeSettings, ...] = ()
    rationale: bool = False
    cache_dir: str | None = None
    prices: Prices | None = None
    preflight: bool = True
    max_calls: int | None = Field(default=None, ge=1)
    max_judge_tokens: int | None = Field(default=None, ge=1)
    overlap: bool = True
    canaries: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, given: Any) -> Any:
        """Enter where a model stands whose name says it."""
        if isinstance(given, Mapping) and not given.get("base_url"):
            place = place_of(str(given.get("model", "")))
            return {**given, "base_url": place} if place else given
        return given

    @property
    def decoding(self) -> Decoding:
        """How the judge's reply is drawn."""
        return Decoding(max_new_tokens=self.max_tokens, temperature=self.temperature)

    def model_post_init(self, context: Any) -> None:
        """Refuse what would do nothing, or could only fail."""
        if self.rationale and self.max_tokens < _REASON_TOKENS:
            raise SettingsError(
                "judge.max_tokens",
                f"must be at least {_REASON_TOKENS} where judge.rationale asks for a reason, or "
                "every reply is cut before its verdict",
                self.max_tokens,
                "Raise it, or leave judge.rationale out.",
            )
        for member in self.panel:
            check_member(self, member)


def check_member(judge: JudgeSettings, member: JudgeSettings) -> None:
    """Check a further judge against the one it votes beside.

    Raises:
        SettingsError: It is asked in another shape (an option and a verdict cannot be
            counted together), or sets what only the first judge can have.
    """
    if member.shape != judge.shape:
        raise SettingsError(
            "judge.panel",
            f"all judges are asked in one shape, here {judge.shape!r}",
            member.shape,
            "Set shape alike, or leave it out.",
        )
    for name in ("votes", "panel", "check_rows", "max_calls", "max_judge_tokens", "canaries"):
        if getattr(member, name) != JudgeSettings.model_fields[name].default:
            raise SettingsError(
                f"judge.panel.{name}",
                "is for the first judge only: each further one has one vote, and all share "
                "one budget",
                possible="Leave it out.",
            )
