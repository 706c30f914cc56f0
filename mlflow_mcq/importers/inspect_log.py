"""Logs of inspect_ai: ``.eval`` (a zip file) and ``.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.errors import DataError
from mlflow_mcq.given_path import existing_file
from mlflow_mcq.importers.answers import Imported, check_policy, gather, gold_of
from mlflow_mcq.importers.log_file import MOST_BYTES, json_of, zip_members
from mlflow_mcq.importers.shown import check_gold_alone, check_order, order_shown

__all__ = ["from_inspect_log"]

_ATTACHMENT = "attachment://"
# What the solver's own shuffling leaves in place of the model's words.
_REWRITTEN = re.compile(r"ANSWER: [A-Z0-9]+(?:, [A-Z0-9]+)*")
_SHUFFLED = "Choices were shuffled before generating"


def from_inspect_log(
    path: str | Path, *, order: str = "from-prompt", on_bad_rows: str = "error"
) -> pd.DataFrame:
    """Read the answers of an inspect_ai log.

    The order shown is read off the messages. Where the solver itself shuffled the choices
    (its deprecated ``shuffle``), inspect_ai writes "ANSWER: X" over the model's words and turns
    the prompt back: such an answer is lost, and its row refused. Reasoning blocks are not part
    of the answer. A sample without output has no generation.

    Args:
        path: The log.
        order: ``from-prompt``, or ``as-is`` where you know that the choices were shown in the
            order of the log although the prompt does not list them by letter.
        on_bad_rows: ``error`` or ``skip``.

    Returns:
        The table described in `mlflow_mcq.importers`, with the column ``epoch``.

    Raises:
        SettingsError: An argument is none of these.
        DataError: The file is no such log, or a sample cannot be read.

    Example:
        ``mlflow_mcq.evaluate(None, from_inspect_log("logs/run.eval"), judge=...)``
    """
    check_policy(on_bad_rows)
    check_order(order)
    path = existing_file(path)
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    log = {} if is_zip else _whole(path)
    heads = list(_heads(path)) if is_zip else [log]
    read = partial(_read, as_is=order == "as-is", shuffles=any(map(_shuffles, heads)))
    return gather(_members(path) if is_zip else _samples(path, log), read, path, on_bad_rows)


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    for name, data in zip_members(path, "samples/", ".json"):
        yield _named(path, json_of(data, f"{path.name}, {name}"))


def _heads(path: Path) -> Iterator[Any]:
    # A run that broke off has no header yet, only its start.
    for folder, name in (("header", "header.json"), ("_journal/", "start.json")):
        for member, data in zip_members(path, folder, name):
            yield json_of(data, f"{path.name}, {member}")


def _shuffles(head: Any) -> bool:
    """Whether a solver was told to shuffle the choices itself."""
    plan = head.get("plan") if isinstance(head, dict) else None
    steps = plan.get("steps") if isinstance(plan, dict) else None
    for step in steps if isinstance(steps, list) else ():
        params = step.get("params") if isinstance(step, dict) else None
        params = params if isinstance(params, dict) else {}
        inner = params.get("kwargs")
        if params.get("shuffle") or (isinstance(inner, dict) and inner.get("shuffle")):
            return True
    return False


def _whole(path: Path) -> Mapping[str, Any]:
    if path.stat().st_size > MOST_BYTES:
        raise DataError(
            f"file {path.name!r}",
            f"is larger than {MOST_BYTES // 2**20} MiB",
            path.stat().st_size,
            "Convert it with: inspect log convert --to eval",
        )
    log = json_of(path.read_bytes(), path.name)
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list):
        raise DataError(
            f"file {path.name!r}", "holds no samples: it is no log of inspect_ai, or only its head"
        )
    return log


def _samples(path: Path, log: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from (_named(path, sample) for sample in log["samples"])


def _named(path: Path, sample: Any) -> tuple[str, Any]:
    if not isinstance(sample, dict):
        return f"{path.name}, a sample", {}
    return f"{path.name}, sample {sample.get('id')!r} (epoch {sample.get('epoch')!r})", sample


def _read(
    sample: Mapping[str, Any], who: str, *, as_is: bool, shuffles: bool
) -> Sequence[Imported]:
    options = sample.get("choices")
    if not isinstance(options, list) or len(options) < 2:
        raise DataError(who, "holds no choices: it is no multiple-choice sample", options)
    options = [str(option) for option in options]
    scores = sample.get("scores")
    # The scorer `choice` knows letters only: "A" is never the text of another option.
    by_letter = isinstance(scores, dict) and "choice" in scores
    gold = gold_of(_target(sample, who), options, who, texts=not by_letter)
    text = _answer(sample)
    if (shuffles or _says_shuffled(scores)) and _REWRITTEN.fullmatch(text or ""):
        raise DataError(
            who,
            "the solver shuffled the choices and wrote over the model's words",
            text,
            "Run it again with shuffle_choices of the data set in place of the solver's shuffle.",
        )
    order = tuple(range(len(options)))
    if not as_is:
        check_gold_alone(options, gold, who)
        order = order_shown(_prompt(sample), options, who)
    more = {"epoch": sample.get("epoch")}
    item = Imported(
        str(sample.get("id")), _question(sample, who), tuple(options), gold, order, text, more
    )
    return [item]


def _target(sample: Mapping[str, Any], who: str) -> object:
    target = sample.get("target")
    if isinstance(target, list):
        if len(target) != 1:
            raise DataError(who, "has more than one right choice, or none", target)
        return target[0]
    return target


def _says_shuffled(scores: Any) -> bool:
    return any(
        isinstance(score, dict) and _SHUFFLED in str(score.get("explanation", ""))
        for score in (scores.values() if isinstance(scores, dict) else ())
    )


def _question(sample: Mapping[str, Any], who: str) -> str:
    given = sample.get("input")
    if isinstance(given, list):
        users = [m for m in given if isinstance(m, dict) and m.get("role") == "user"]
        given = _text(users[-1].get("content"), sample) if users else None
    if not isinstance(given, str) or not given.strip():
        raise DataError(who, "its input holds no question", given)
    return _resolved(given, sample)


def _prompt(sample: Mapping[str, Any]) -> str:
    messages = sample.get("messages")
    users = [
        _text(message.get("content"), sample) or ""
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and message.get("role") in ("user", "system")
    ]
    return "\n\n".join(users)


def _answer(sample: Mapping[str, Any]) -> str | None:
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return _text(message.get("content"), sample) if isinstance(message, dict) else None


def _text(content: Any, sample: Mapping[str, Any]) -> str | None:
    """The text of a message: reasoning, images and tool calls are no part of it."""
    if isinstance(content, str):
        return _resolved(content, sample)
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(_resolved(str(part.get("text", "")), sample) for part in parts)


def _resolved(text: str, sample: Mapping[str, Any]) -> str:
    attachments = sample.get("attachments")
    if text.startswith(_ATTACHMENT) and isinstance(attachments, dict):
        found = attachments.get(text.removeprefix(_ATTACHMENT))
        return found if isinstance(found, str) else text
    return text
