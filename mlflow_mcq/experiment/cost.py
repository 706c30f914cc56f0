"""What a recipe will ask for, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.engines.tokenizer import ReplyTokenizer, load_tokenizer
from mlflow_mcq.errors import McqError
from mlflow_mcq.experiment.spec import Model, RemoteSpec
from mlflow_mcq.graders.exam import load_exam
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.pipeline import family_for, requests_for
from mlflow_mcq.protocols import Protocol
from mlflow_mcq.records import Conversation
from mlflow_mcq.settings import Settings

__all__ = ["CHARACTERS_A_TOKEN", "Cost", "cost_of", "said", "tokenizer_for"]

CHARACTERS_A_TOKEN = 4
"""Of English prose under common tokenizers; other scripts take fewer. Never said as a count."""

_MOST_COUNTED = 2_000
_ANSWERED_HERE = ("models:", "runs:")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one arm will ask for, at most: rows that are stored already are not asked again.

    Attributes:
        arm: Its name.
        n_items: Items.
        n_prompts: Prompts, both turns where there are two.
        n_tokens: Tokens of these prompts, each read whole; a second turn without the reply
            that stands in it.
        estimate: How the tokens were estimated; empty where they were counted.
        n_judge_calls: Calls of the judge for its rows, every one needing all its attempts.
        n_exam_calls: Calls for the exam of the judge, which it sits once a machine.
        scored: The letters are scored too, one more reading of each prompt.
        judge: Who judges; empty where nobody does.
    """

    arm: str
    n_items: int
    n_prompts: int
    n_tokens: int
    estimate: str = ""
    n_judge_calls: int = 0
    n_exam_calls: int = 0
    scored: bool = False
    judge: str = ""


def cost_of(
    arm: str,
    frame: pd.DataFrame,
    settings: Settings,
    model: Model | None,
    judged: bool,
    tokenizer: ReplyTokenizer | None = None,
) -> Cost:
    """Count what an arm will ask for, by reading its data and setting its prompts.

    Args:
        arm: Its name.
        frame: Its data.
        settings: Its settings.
        model: Its model; None where the data holds the answers.
        judged: Whether a judge reads it.
        tokenizer: That of the model; None estimates.

    Raises:
        McqError: The data cannot be read, or a prompt cannot be set: before anything is asked.
    """
    rows = read_data(frame, settings).rows
    judge = settings.judge if judged else None
    told = "" if judge is None else json.dumps(judge.model_dump(mode="json"), sort_keys=True)
    if model is None:
        n_items = len({row.item.id for row in rows})
        return Cost(arm, n_items, 0, 0, "", *_judge_calls(judge, len(rows)), judge=told)
    items = items_of(rows)
    chat = _speaks_chat(model, settings, tokenizer)
    requests = requests_for(items, settings, chat=chat)
    contents = [request.prompt.content for request in requests]
    family = family_for(settings)
    if isinstance(family, Protocol) and family.then is not None:
        firsts = {(r.prompt.item.id, r.repeat): r.prompt.content for r in requests}
        seconds = [family.second(request.prompt, "").content for request in requests]
        contents = [*firsts.values(), *seconds]
    return Cost(
        arm,
        len(items),
        len(contents),
        _n_tokens(contents, tokenizer),
        _estimate(len(contents), tokenizer),
        *_judge_calls(judge, len(requests)),
        settings.logprob.enabled,
        told,
    )


def tokenizer_for(model: Model | None) -> ReplyTokenizer | None:
    """The tokenizer of a model whose weights are named; None where it is not at hand."""
    if isinstance(model, LocalSettings):
        model = model.path
    if not isinstance(model, str) or model.startswith(_ANSWERED_HERE):
        return None
    try:
        return load_tokenizer(model)
    except McqError:
        return None  # whether the model itself can be loaded is not for an estimate to say


def said(costs: Sequence[Cost]) -> list[str]:
    """Lines for people: the whole first, then each arm."""
    # A judge sits its exam with the first of its arms.
    exams = {cost.judge: cost.n_exam_calls for cost in reversed(costs) if cost.judge}
    n_calls = sum(cost.n_judge_calls for cost in costs) + sum(exams.values())
    parts = [
        _many(len(costs), "arm"),
        _many(sum(cost.n_prompts for cost in costs), "prompt"),
        _tokens(
            sum(cost.n_tokens for cost in costs),
            next((cost.estimate for cost in costs if cost.estimate), ""),
        ),
        f"at most {_many(n_calls, 'call')} of a judge" if exams else "no judge",
    ]
    lines = ["this will take, at most: " + ", ".join(parts)]
    for cost in costs:
        line = f"  {cost.arm}: {_many(cost.n_items, 'item')}, {_many(cost.n_prompts, 'prompt')}, "
        line += _tokens(cost.n_tokens, cost.estimate)
        line += ", each read again for its letters" if cost.scored else ""
        lines.append(line + (f", {_many(cost.n_judge_calls, 'call')}" if cost.judge else ""))
    return lines


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _tokens(n: int, estimate: str) -> str:
    return f"{n:,} tokens to prefill" + (f" (an estimate: {estimate})" if estimate else "")


def _estimate(n_prompts: int, tokenizer: ReplyTokenizer | None) -> str:
    if tokenizer is None:
        return f"characters / {CHARACTERS_A_TOKEN}"
    return f"from {_MOST_COUNTED:,} prompts or more" if n_prompts >= 2 * _MOST_COUNTED else ""


def _judge_calls(judge: JudgeSettings | None, n_rows: int) -> tuple[int, int]:
    """Calls for the rows of an arm, and for the exam; every vote needing all its attempts.

    A row that the strict rule settles is put to the judge to check it, or not at all, so no
    row counts twice. Canaries are rows beside the data; each judge behind a server is asked
    one question ahead of all.
    """
    if judge is None:
        return 0, 0
    seats = [judge, *judge.panel]
    a_row = judge.votes * judge.attempts + sum(member.attempts for member in judge.panel)
    n_ahead = sum(seat.preflight and seat.base_url != "local" for seat in seats)
    n_replies = len(load_exam())
    n_exam = n_replies if judge.exam_replies is None else min(judge.exam_replies, n_replies)
    rows, exam = (n_rows + judge.canaries) * a_row + n_ahead, n_exam * a_row
    if judge.max_calls is not None:
        most = max(judge.max_calls, n_ahead)  # what is asked ahead counts, and is never refused
        rows = min(rows, most)
        exam = min(exam, most - rows)
    return rows, exam


def _speaks_chat(model: Model, settings: Settings, tokenizer: ReplyTokenizer | None) -> bool:
    if settings.input_format is not None:
        return settings.input_format == "messages"
    if isinstance(model, RemoteSpec):
        return model.chat
    return tokenizer is not None and tokenizer.speaks_chat


def _n_tokens(contents: Sequence[Conversation], tokenizer: ReplyTokenizer | None) -> int:
    step = max(1, len(contents) // _MOST_COUNTED)
    # Every n-th of very many: a count must not take longer than it is worth.
    some = contents[::step]
    if not some:
        return 0
    if tokenizer is not None:
        n = sum(map(tokenizer.n_tokens, some))
    else:
        n = -(-sum(map(_characters, some)) // CHARACTERS_A_TOKEN)
    return round(n * len(contents) / len(some))


def _characters(content: Conversation) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(len(message.content) for message in content)
