"""The one-line flow: items x orientations -> generations -> grades.

No MLflow and no pandas here. Everything right of the generations can be done again
without inference.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tqdm.auto import tqdm

from mlflow_mcq.datasets.examples import load_examples
from mlflow_mcq.doors import Engine, Grader, PromptFamily
from mlflow_mcq.errors import ModelError
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import Protocol, few_shot, prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Reply, Request
from mlflow_mcq.roll_call import roll_call
from mlflow_mcq.settings import Settings

__all__ = ["data_digest", "family_for", "generate", "grade", "opened", "requests_for"]

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
    render = family_for(settings)
    return [
        Request(prompt, repeat)
        for item in items
        for orientation in plan_for(item, settings.orientations, settings.seed)
        for prompt in [render(item, orientation, chat=chat)]
        for repeat in range(settings.repeats)
    ]


def family_for(settings: Settings) -> PromptFamily:
    """The protocol as the settings have it, with its examples read.

    Raises:
        McqError: The examples cannot be read or placed.
    """
    shots = None
    if settings.few_shot is not None:
        pool = load_examples(settings.few_shot, settings)
        shots = few_shot(pool, settings.few_shot, settings.orientations)
    return prompt_family(settings.protocol, settings.style, shots)


def generate(
    engine: Engine,
    requests: Sequence[Request],
    settings: Settings,
    show: Callable[[Generation], None] | None = None,
) -> tuple[Generation, ...]:
    """Ask the model everything, and check that every row came back once.

    Where a protocol has two turns, the first is asked once for each item and repeat: it
    shows no options, so all orientations continue from one and the same reply, and they
    differ in the order of options alone.

    Args:
        engine: Answers.
        requests: What is asked.
        settings: How.
        show: Shown each generation that counts as soon as it is there; of two turns the
            second.

    Returns:
        Generations in the order of ``requests``, whatever order the engine answered in. Of
        two turns it is the second, whose prompt holds the first; a row whose first turn
        failed has its error.

    Raises:
        ModelError: The model failed, or the engine lost or doubled a row.
    """
    family = prompt_family(settings.protocol, settings.style)
    if not isinstance(family, Protocol) or family.then is None:
        return _answers(engine, requests, settings, show)
    firsts = _firsts(engine, requests, settings)
    done: dict[int, Generation] = {}
    following: list[tuple[int, Request]] = []
    for place, request in enumerate(requests):
        first = _first(firsts, request)
        if first.reply.text is None:
            # Nothing more was sent, so nothing more stands in its prompt.
            failed = Reply(None, f"first turn: {first.reply.error}", first.reply.finish_reason)
            done[place] = Generation(request.prompt, request.repeat, failed, first.engine)
        else:
            prompt = family.second(request.prompt, first.reply.text)
            following.append((place, replace(request, prompt=prompt)))
    seconds = _answers(engine, [request for _, request in following], settings, show)
    done |= {place: answer for (place, _), answer in zip(following, seconds, strict=True)}
    return tuple(done[place] for place in range(len(requests)))


def opened(engine: Engine, requests: Sequence[Request], settings: Settings) -> list[Request]:
    """The second of two turns, as requests of their own, with the first one asked now.

    For callers that ask the model themselves: each orientation of an item, and of a repeat,
    goes on from one and the same reply.

    Args:
        engine: Answers the first turn.
        requests: What that asks; of a protocol with one turn they come back as they are.
        settings: How.

    Raises:
        ModelError: A first turn has no answer.
    """
    family = prompt_family(settings.protocol, settings.style)
    if not isinstance(family, Protocol) or family.then is None:
        return list(requests)
    firsts = _firsts(engine, requests, settings)
    failed = next((one for one in firsts.values() if one.reply.text is None), None)
    if failed is not None:
        raise ModelError("first turn", f"failed: {failed.reply.error}", failed.key)
    return [
        replace(one, prompt=family.second(one.prompt, str(_first(firsts, one).reply.text)))
        for one in requests
    ]


def _firsts(
    engine: Engine, requests: Sequence[Request], settings: Settings
) -> dict[tuple[str, int], Generation]:
    """The first of two turns, asked once for each item and repeat."""
    opening = {(r.prompt.item.id, r.repeat): r for r in reversed(requests)}
    return {
        (answer.prompt.item.id, answer.repeat): answer
        for answer in _answers(engine, [*opening.values()][::-1], settings)
    }


def _first(firsts: Mapping[tuple[str, int], Generation], request: Request) -> Generation:
    return firsts[request.prompt.item.id, request.repeat]


def _answers(
    engine: Engine,
    requests: Sequence[Request],
    settings: Settings,
    show: Callable[[Generation], None] | None = None,
) -> tuple[Generation, ...]:
    made = _watched(engine.generate(requests, settings.decoding), len(requests), "generating")
    pairs = ((one.key, one) for one in made)
    return roll_call(pairs, [one.key for one in requests], ("engine", "answered"), show)


def grade(grader: Grader, generations: Sequence[Generation]) -> tuple[Grade, ...]:
    """Read every generation with one grader, and check that every row came back once.

    Returns:
        Grades in the order of ``generations``.

    Raises:
        ModelError: The grader lost or doubled a row.
    """
    made = _watched(grader.grade(generations), len(generations), f"reading ({grader.name})")
    pairs = ((one.generation.key, one) for one in made)
    asked = [one.key for one in generations]
    return roll_call(pairs, asked, (f"grader {grader.name!r}", "graded"))


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
