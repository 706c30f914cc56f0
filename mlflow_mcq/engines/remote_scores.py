"""Log-probabilities of the labels after a prompt, as an OpenAI-compatible server lists them.

A server lists its likeliest tokens and no others. A label that is not listed is no likelier
than the last one that is, nor than all that is left of probability 1: that bound stands in
for its number, and is marked as one. Which label is likeliest is known all the same, as
long as one of them is listed; where none is, the prompt has no scores. Leaving out every
prompt with an unlisted label would leave out those on which the model is sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlflow_mcq.engines.http_client import HttpClient
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.engines.pace import CallError
from mlflow_mcq.records import Conversation, Decoding, Prompt, Query
from mlflow_mcq.scores import LabelScores, check_labels

__all__ = ["RemoteScorer", "merged", "scores_of_listed"]

_SIZES = (20, 5)
"""Tokens asked for: most chat servers list 20, OpenAI's plain completions 5."""
_TRIES = 3
_ROUNDING = 1e-6
"""Of the sum over the list: float32 does not know less than this from nothing."""
_WRITTEN_SPACES = ("\u2581", "\u0120")
"""As vocabularies spell a blank; servers that pass tokens on unread send it so."""

_Listed = Mapping[str, float]


class RemoteScorer:
    """Scores labels by one call a distinct prompt, for one token, greedily.

    One token form is scored for a prompt, "A" or " A", whichever carries more of the
    listed probability: adding both up would favour the labels of which both are listed.

    Args:
        chat: The server; prompts go where its answers come from.
        thinking: As in the decoding of the answers. A reasoning model starts with its
            thought, so that labels are seldom listed.

    Attributes:
        fingerprint: Of the chat, so that scores and answers of one model bear one name.
    """

    def __init__(self, chat: OpenAIChat, thinking: bool | None = None) -> None:
        self._chat = chat
        self._decoding = Decoding(max_new_tokens=1, thinking=thinking)
        self._sizes: tuple[int, ...] = _SIZES
        self.fingerprint: str = chat.fingerprint

    def score(self, prompts: Sequence[Prompt]) -> list[LabelScores]:
        """Score the labels of each prompt; equal prompts are asked once.

        The first prompts go alone: a server that gives no log-probabilities is left in
        peace after three, and the others bear its reason.

        Args:
            prompts: With labels; chat messages or plain text.

        Returns:
            One record a prompt, in order; one that fails, or whose labels are not listed,
            has an ``error`` and no numbers.

        Raises:
            ModelError: A prompt shows no labels.
        """
        check_labels(prompts)
        contents = list(dict.fromkeys(prompt.content for prompt in prompts))
        found: dict[Conversation, _Listed | str] = {}
        for content in contents[:_TRIES]:
            found |= self._ask([content])
            if not isinstance(found[content], str):
                found |= self._ask([one for one in contents if one not in found])
                break
        why = f"not asked, since the server failed before: {next(iter(found.values()), '')}"
        return [_scored(prompt, found.get(prompt.content, why)) for prompt in prompts]

    def _ask(self, contents: Sequence[Conversation]) -> dict[Conversation, _Listed | str]:
        answers = self._chat.each([Query(content) for content in contents], self._listed)
        return {contents[place]: answer for place, answer in answers}

    async def _listed(self, client: HttpClient, query: Query) -> _Listed | str:
        try:
            return _read(await self._completion(client, query))
        except Exception as error:  # noqa: BLE001  one bad row must not lose the others
            return self._chat.told(error)

    async def _completion(self, client: HttpClient, query: Query) -> dict[str, Any]:
        for n_listed in self._sizes:
            more: dict[str, Any] = {"logprobs": True, "top_logprobs": n_listed}
            if isinstance(query.content, str):
                more = {"logprobs": n_listed}
            try:
                got = await self._chat.completion(client, query, self._decoding, **more)
            except CallError as error:
                if error.status != 400 or n_listed == self._sizes[-1]:
                    raise
                continue
            self._sizes = (n_listed,)
            return got
        raise AssertionError("the last size returns or raises")


def _read(got: Mapping[str, Any]) -> _Listed | str:
    """The listed tokens of a completion, or why there are none.

    Both shapes are read from either endpoint: servers mix them.
    """
    found = got["choices"][0].get("logprobs")
    content, tops = _part(found, "content"), _part(found, "top_logprobs")
    pairs: list[tuple[Any, Any]] = []
    if isinstance(content, list) and content:
        listed = _part(content[0], "top_logprobs")
        pairs = [(_part(one, "token"), _part(one, "logprob")) for one in listed or []]
    elif isinstance(tops, list) and tops and isinstance(tops[0], dict):
        pairs = list(tops[0].items())
    if not pairs or not all(isinstance(token, str) and _is_log(value) for token, value in pairs):
        return "the server sent no log-probabilities that can be read"
    return merged(pairs)


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else None


def _is_log(value: Any) -> bool:
    return isinstance(value, (int, float)) and not math.isnan(value)


def merged(pairs: Sequence[tuple[str, float]]) -> _Listed:
    """Log-probabilities by token; those of tokens that are spelt alike are added up.

    Example:
        >>> round(merged([("ĠA", -1.0), (" A", -1.0)])[" A"], 3)
        -0.307
    """
    listed: dict[str, float] = {}
    for token, value in pairs:
        name = " " + token[1:] if token.startswith(_WRITTEN_SPACES) else token
        whole = float(np.logaddexp(value, listed[name])) if name in listed else value
        listed[name] = min(0.0, whole)  # rounding may leave it a hair above
    return listed


def _scored(prompt: Prompt, found: _Listed | str) -> LabelScores:
    if isinstance(found, str):
        return LabelScores(prompt, (), (), found)
    return scores_of_listed(prompt, found)


def scores_of_listed(prompt: Prompt, listed: _Listed) -> LabelScores:
    """The scores of labels, from the likeliest tokens and their log-probabilities.

    Args:
        prompt: With labels.
        listed: The likeliest tokens after it, all of them.

    Returns:
        Scores with a bound for each label that is not listed; an ``error`` where none is,
        or where one label begins another: by one token "1" cannot be told from "10".

    Example:
        >>> from mlflow_mcq.records import Item, Orientation
        >>> item = Item("q", "?", ("x", "y", "z"), 0)
        >>> prompt = Prompt(item, Orientation(0, "as-is", (0, 1, 2)), "letters", "?", tuple("ABC"))
        >>> score = scores_of_listed(prompt, {"A": -0.1, "The": -3.0, "C": -4.0})
        >>> score.pick, score.logprobs, score.bounded
        (0, (-0.1, -4.0, -4.0), (1,))
    """
    labels = prompt.labels
    if any(one != other and other.startswith(one) for one in labels for other in labels):
        return LabelScores(prompt, (), (), "labels that begin with one another are not one token")
    forms = [tuple(lead + label for label in labels) for lead in ("", " ")]
    form = max(
        forms, key=lambda names: sum(math.exp(listed.get(name, -math.inf)) for name in names)
    )
    known = {slot: listed[name] for slot, name in enumerate(form) if name in listed}
    if not known:
        why = f"no label is among the {len(listed)} likeliest tokens that the server lists"
        return LabelScores(prompt, (), (), why)
    left = max(1 - sum(map(math.exp, listed.values())), _ROUNDING)
    bound = min(*listed.values(), math.log(left), max(known.values()))
    return LabelScores(
        prompt,
        tuple(known.get(slot, bound) for slot in range(len(labels))),
        form,
        bounded=tuple(slot for slot in range(len(labels)) if slot not in known),
    )
