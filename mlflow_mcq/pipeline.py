"""The one-line flow: items x orientations -> generations -> grades.

No MLflow and no pandas here. Everything right of the generations can be done again
without inference.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tqdm.auto import tqdm

from mlflow_mcq.doors import Engine, Grader
from mlflow_mcq.errors import ModelError
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.prompts import prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Request
from mlflow_mcq.settings import Settings

__all__ = ["data_digest", "generate", "grade", "requests_for"]

T = TypeVar("T")


def requests_for(items: Iterable[Item], settings: Settings, *, chat: bool) -> list[Request]:
    """Every item in every orientation, as often as it is sampled.

    Args:
        items: Items with unique ids.
        settings: Protocol, orientations, seed and repeats.
        chat: Whether the model takes chat messages.

    Returns:
        Requests in the order of items, then orientations, then repeats.

    Example:
        >>> item = Item("q", "Liquid metal?", ("iron", "mercury"), 1)
        >>> [r.prompt.gold_slot for r in requests_for([item], Settings(), chat=False)]
        [1, 0]
    """
    render = prompt_family(settings.protocol, settings.template)
    return [
        Request(prompt, repeat)
        for item in items
        for orientation in plan_for(item, settings.orientations, settings.seed)
        for prompt in [render(item, orientation, chat=chat)]
        for repeat in range(settings.repeats)
    ]


def generate(
    engine: Engine, requests: Sequence[Request], settings: Settings
) -> tuple[Generation, ...]:
    """Ask the model everything, and check that every row came back once.

    Returns:
        Generations in the order of ``requests``, whatever order the engine answered in.

    Raises:
        ModelError: The model failed, or the engine lost or doubled a row.
    """
    answers = engine.generate(requests, settings.decoding)
    shown = _watched(answers, len(requests), "generating")
    done: dict[tuple[str, str, int, int], Generation] = {}
    for generation in shown:
        if generation.key in done:
            raise ModelError("engine", "answered one row twice", generation.key)
        done[generation.key] = generation
    lost = [request.key for request in requests if request.key not in done]
    if lost:
        raise ModelError("engine", f"lost {len(lost)} of {len(requests)} rows", lost[:5])
    return tuple(done[request.key] for request in requests)


def grade(grader: Grader, generations: Sequence[Generation]) -> tuple[Grade, ...]:
    """Read every generation with one grader, and check that every row came back once.

    Returns:
        Grades in the order of ``generations``.

    Raises:
        ModelError: The grader lost or doubled a row.
    """
    done: dict[tuple[str, str, int, int], Grade] = {}
    for one in _watched(grader.grade(generations), len(generations), f"reading ({grader.name})"):
        if one.generation.key in done:
            raise ModelError(f"grader {grader.name!r}", "graded one row twice", one.generation.key)
        done[one.generation.key] = one
    if len(done) != len(generations):
        lost = [g.key for g in generations if g.key not in done]
        raise ModelError(f"grader {grader.name!r}", f"lost {len(lost)} rows", lost[:5])
    return tuple(done[generation.key] for generation in generations)


def data_digest(items: Iterable[Item]) -> str:
    """Twelve hex digits over ids, questions, options and golds, in order.

    MLflow's own digest skips list columns and rows beyond 10,000, so two data sets
    that differ in their options alone would pass as one.
    """
    digest = hashlib.sha256()
    for item in items:
        row: list[object] = [item.id, item.question, item.options, item.golds[0]]
        # Only where there are several: data with one gold an item keeps its digest.
        row += [item.golds] if item.also_right else []
        digest.update(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def _watched(things: Iterable[T], total: int, what: str) -> Iterator[T]:
    # Nothing is drawn for work under two seconds, or where nobody is watching.
    watching = sys.stderr.isatty() or "ipykernel" in sys.modules
    return iter(tqdm(things, total=total, desc=what, unit="row", delay=2, disable=not watching))
