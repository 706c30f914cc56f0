"""What an evaluation will ask for, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlflow_mcq.datasets.frame import Row, items_of
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.engines.handle import ModelHandle
from mlflow_mcq.engines.probe import memory_for, probe, rows_at_once
from mlflow_mcq.engines.tokenizer import raw_tokenizer
from mlflow_mcq.errors import McqError, SettingsError
from mlflow_mcq.extras import exam_left
from mlflow_mcq.front import check_targets, checked_settings, usable_model
from mlflow_mcq.judge_settings import JudgeSettings, refuse_idle
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.pipeline import family_for, requests_for
from mlflow_mcq.prompt_count import PromptCount, count_prompts
from mlflow_mcq.protocols import Protocol
from mlflow_mcq.records import Conversation, Request
from mlflow_mcq.settings import Settings

__all__ = ["Asked", "Cost", "cost_before", "cost_of", "said", "tokenizer_for"]

_ANSWERED_HERE = ("models:", "runs:", "endpoints:")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one arm will ask for; rows that are stored already are not asked again.

    Attributes:
        arm: Its name.
        n_items: Items.
        n_prompts: Prompts, both turns where there are two.
        n_distinct: Different ones; greedy decoding answers each once.
        n_tokens: Tokens of these prompts, each read whole; a second turn without the reply
            that stands in it.
        n_unique: Tokens of the prefix tree over them: the least that must be read.
        n_shared: The rest, which a plain loop reads again.
        estimate: How the tokens were estimated; empty where they were counted.
        n_judge_calls: Calls of the judge for its rows, one for each row and vote; fewer where
            the strict rule settles a row.
        n_judge_calls_most: The same where every reply is unreadable and must be asked for again.
        n_exam_calls: Calls for the exam of the judge, which it sits once a machine: replies
            that it has read here already are not counted.
        n_exam_calls_most: The same, likewise.
        scored: The letters are scored too, one more reading of each prompt.
        judge: Who judges; empty where nobody does.
        seconds: Of generation, fewest and most, estimated from a short try; None where
            nothing was tried.
        device_bytes: Weights, and keys and values of the rows answered at once; likewise.
        n_probed: Prompts that were answered for these two.
    """

    arm: str
    n_items: int
    n_prompts: int
    n_distinct: int
    n_tokens: int
    n_unique: int
    n_shared: int
    estimate: str = ""
    n_judge_calls: int = 0
    n_judge_calls_most: int = 0
    n_exam_calls: int = 0
    n_exam_calls_most: int = 0
    scored: bool = False
    judge: str = ""
    seconds: tuple[float, float] | None = None
    device_bytes: int | None = None
    n_probed: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """The model that will be asked, as far as it is known.

    Attributes:
        chat: It takes messages; None where only its tokenizer can say.
        tokenizer: Of transformers; None estimates tokens.
        handle: The model itself, where it is to be tried for a moment.
        probe: Prompts to be tried; 0 tries nothing.
        most: About so many prompts are counted, and more are estimated; None counts all.
    """

    chat: bool | None = None
    tokenizer: Any = None
    handle: ModelHandle | None = None
    probe: int = 0
    most: int | None = None

    @property
    def speaks_chat(self) -> bool:
        """Whether prompts are messages, unless a setting says so."""
        if self.chat is None:
            return bool(getattr(self.tokenizer, "chat_template", None))
        return self.chat


def cost_before(
    model: Any,
    data: Any,
    judge: Mapping[str, Any] | JudgeSettings | None = None,
    *,
    probe: int = 0,
    **more: Any,
) -> Cost:
    """Count what `mlflow_mcq.evaluate` would ask for with the same arguments; nobody is asked.

    Tokens are counted where the tokenizer is here: not for a server, a function or a logged
    model, where they are estimated from characters.

    Args:
        model: As in `mlflow_mcq.evaluate`. Weights are loaded only for a probe.
        data: Likewise.
        judge: Likewise.
        probe: So many prompts (in whole items, so perhaps a few more) are answered by a
            model that is loaded here, to estimate seconds and memory of all; 0 tries nothing.
        more: ``targets``, ``evaluators``, ``split`` and the settings, likewise.

    Raises:
        McqError: The arguments cannot be used, or a server was to be tried.

    Example:
        >>> data = [{"question": "2+2?", "options": ["3", "4"], "answer": 1}]
        >>> cost = cost_before(print, data, evaluators="mcq_regex", orientations="swap")
        >>> cost.n_prompts, cost.n_judge_calls, cost.estimate
        (2, 0, 'characters / 4')
    """
    targets, split = more.pop("targets", None), more.pop("split", None)
    check_targets(targets)
    names = more.pop("evaluators", None) or ["mcq_judge"]
    names = [names] if isinstance(names, str) else list(names)
    given = judge.model_dump() if isinstance(judge, JudgeSettings) else judge
    settings = checked_settings(more if given is None else {**more, "judge": given}, names)
    refuse_idle("judge", judge, names)
    frame = load_part(data, split, settings, targets)
    answers = None
    if targets is not None:
        if targets not in frame.columns:
            raise SettingsError("targets", "is not a column of the data", targets)
        frame, answers = frame.drop(columns=targets), frame[targets].tolist()
    rows = read_data(frame, settings, answers, targets).rows
    asked = None if model is None else _asked(model, settings, probe)
    return cost_of("arm", rows, settings, asked, "mcq_judge" in names)


def _asked(model: Any, settings: Settings, probe: int) -> Asked:
    if isinstance(model, str) and not probe:
        return Asked(tokenizer=tokenizer_for(model))
    held = usable_model(model, settings)
    if not isinstance(held, ModelHandle):
        return Asked(chat=settings.input_format == "messages", probe=probe)
    return Asked(held.chat.speaks_chat, getattr(held.chat, "tokenizer", None), held, probe)


def cost_of(
    arm: str, rows: Sequence[Row], settings: Settings, model: Asked | None, judged: bool
) -> Cost:
    """Count what an arm will ask for, by setting its prompts.

    Args:
        arm: Its name.
        rows: Its data.
        settings: Its settings.
        model: Its model; None where the data holds the answers.
        judged: Whether a judge reads it.

    Raises:
        McqError: A prompt cannot be set, or what is to be tried is not loaded here.
    """
    judge = settings.judge if judged else None
    told = "" if judge is None else json.dumps(judge.model_dump(mode="json"), sort_keys=True)
    if model is None:
        n_items, calls = len({row.item.id for row in rows}), _judge_calls(judge, len(rows))
        return Cost(arm, n_items, 0, 0, 0, 0, 0, judge=told, **calls)
    items = items_of(rows)
    chat = settings.as_chat(model.speaks_chat)
    requests = requests_for(items, settings, chat=chat)
    prompts = _prompts(requests, settings)
    count = count_prompts(prompts, model.tokenizer, model.most)
    return Cost(
        arm,
        len(items),
        count.n_prompts,
        count.n_distinct,
        count.n_tokens,
        count.n_unique,
        count.n_shared,
        count.estimate,
        **_judge_calls(judge, len(requests)),
        scored=settings.logprob.enabled,
        judge=told,
        **(_tried(model, prompts, count, settings) if model.probe else {}),
    )


def _prompts(requests: Sequence[Request], settings: Settings) -> list[list[Conversation]]:
    """The prompts of each item, both turns where there are two."""
    family = family_for(settings)
    two = isinstance(family, Protocol) and family.then is not None
    found: dict[str, list[Conversation]] = {}
    opened = set()
    for request in requests:
        mine = found.setdefault(request.prompt.item.id, [])
        if not (two and isinstance(family, Protocol)):
            mine.append(request.prompt.content)
            continue
        if (request.prompt.item.id, request.repeat) not in opened:
            opened.add((request.prompt.item.id, request.repeat))
            mine.append(request.prompt.content)
        mine.append(family.second(request.prompt, "").content)
    return [*found.values()]


def _tried(
    model: Asked,
    prompts: Sequence[Sequence[Conversation]],
    count: PromptCount,
    settings: Settings,
) -> dict[str, Any]:
    from mlflow_mcq.engines.local import LocalChat

    n = model.probe
    chat = None if model.handle is None else model.handle.chat
    if not isinstance(chat, LocalChat):
        raise SettingsError(
            "probe", "tries a model that is loaded here; a server or a function is not asked", n
        )
    some: list[Conversation] = []
    step = max(1, len(prompts) // n)
    for item in prompts[::step]:  # spread over the data: long items may stand together
        some += item if len(some) < n else []
    found = probe(chat, some, settings.decoding)
    n_rows = count.n_prompts if settings.decoding.temperature > 0 else count.n_distinct
    n_columns = found.longest + settings.decoding.max_new_tokens
    at_once = rows_at_once(chat, n_rows, n_columns)
    return {
        "seconds": found.seconds_for(n_rows, count.n_unique, at_once),
        "device_bytes": memory_for(chat, at_once, n_columns),
        "n_probed": found.n_prompts,
    }


def tokenizer_for(model: Any) -> Any:
    """The tokenizer of a model whose weights are named; None where it is not at hand."""
    if isinstance(model, LocalSettings):
        model = model.path
    if not isinstance(model, str) or model.startswith(_ANSWERED_HERE):
        return None
    try:
        return raw_tokenizer(model)
    except McqError:
        return None  # whether the model itself can be loaded is not for an estimate to say


def said(costs: Sequence[Cost]) -> list[str]:
    """Lines for people: the whole first, then each arm."""
    parts = [
        _many(len(costs), "arm"),
        _many(sum(cost.n_prompts for cost in costs), "prompt"),
        _tokens(
            sum(cost.n_tokens for cost in costs),
            sum(cost.n_shared for cost in costs),
            next((cost.estimate for cost in costs if cost.estimate), ""),
        ),
        _calls(costs),
    ]
    lines = ["this will take, where no row is stored yet: " + ", ".join(parts)]
    for cost in costs:
        line = f"  {cost.arm}: {_many(cost.n_items, 'item')}, {_many(cost.n_prompts, 'prompt')}, "
        line += _tokens(cost.n_tokens, cost.n_shared, cost.estimate)
        line += ", each read again for its letters" if cost.scored else ""
        line += f", {_many(cost.n_judge_calls, 'call')} of the judge" if cost.judge else ""
        lines.append(line + _probed(cost))
    return lines


def _calls(costs: Sequence[Cost]) -> str:
    # A judge sits its exam with the first of its arms.
    sat = {cost.judge: cost for cost in reversed(costs) if cost.judge}
    if not sat:
        return "no judge"
    n_exam = sum(cost.n_exam_calls for cost in sat.values())
    n_calls = sum(cost.n_judge_calls for cost in costs) + n_exam
    n_most = sum(cost.n_judge_calls_most for cost in costs)
    n_most += sum(cost.n_exam_calls_most for cost in sat.values())
    said = f"{_many(n_calls, 'call')} of a judge, one a row"
    said += f" and {n_exam:,} for its exam" if n_exam else ""
    return said + (f" (at most {n_most:,}, with every retry)" if n_most > n_calls else "")


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _tokens(n: int, n_shared: int, estimate: str) -> str:
    shared = f" of which {n_shared:,} are shared" if n_shared else ""
    return f"{n:,} tokens to prefill{shared}" + (f" (an estimate: {estimate})" if estimate else "")


def _probed(cost: Cost) -> str:
    if cost.seconds is None:
        return ""
    memory = "" if cost.device_bytes is None else f" and {cost.device_bytes / 1e9:.2g} GB"
    low, high = cost.seconds
    spans = f"{low:,.0f} to {high:,.0f} s{memory}"
    return f", about {spans} (an estimate: from {cost.n_probed} prompts)"


def _judge_calls(judge: JudgeSettings | None, n_rows: int) -> dict[str, Any]:
    """Calls for the rows of an arm, and for the exam: as expected, and at most.

    A row that the strict rule settles is put to the judge to check it, or not at all, so no
    row counts twice. Canaries are rows beside the data; each judge behind a server is asked
    one question ahead of all.
    """
    if judge is None:
        return {}
    n_left = exam_left(judge)
    rows, exam = _within(judge, n_rows, n_left, judge.votes + len(judge.panel))
    a_row = judge.votes * judge.attempts + sum(member.attempts for member in judge.panel)
    rows_most, exam_most = _within(judge, n_rows, n_left, a_row)
    return {
        "n_judge_calls": rows,
        "n_judge_calls_most": rows_most,
        "n_exam_calls": exam,
        "n_exam_calls_most": exam_most,
    }


def _within(judge: JudgeSettings, n_rows: int, n_exam: int, a_row: int) -> tuple[int, int]:
    """Calls for rows and exam, so many for each reply, within the judge's budget."""
    seats = [judge, *judge.panel]
    n_ahead = sum(seat.preflight and seat.base_url != "local" for seat in seats)
    rows, exam = (n_rows + judge.canaries) * a_row + n_ahead, n_exam * a_row
    if judge.max_calls is not None:
        most = max(judge.max_calls, n_ahead)  # what is asked ahead counts, and is never refused
        rows = min(rows, most)
        exam = min(exam, most - rows)
    return rows, exam
