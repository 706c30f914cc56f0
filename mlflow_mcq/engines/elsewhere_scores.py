"""Log-probabilities of labels from a model in resident workers, or in an in-process vLLM.

Both give what `mlflow_mcq.scores.LabelScores` is, in the way of their own: workers score as one
process does, up to the rounding that rows side by side in a batch make (1e-6); vLLM lists its
likeliest tokens, as a server does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlflow_mcq.engines.pool import PooledChat
from mlflow_mcq.engines.remote_scores import merged, scores_of_listed
from mlflow_mcq.engines.vllm_chat import VllmChat
from mlflow_mcq.records import Conversation, Prompt
from mlflow_mcq.scores import LabelScores, check_labels

__all__ = ["PooledScorer", "VllmScorer"]


class PooledScorer:
    """Has the workers of a pool score labels, each a share of the prompts.

    Args:
        chat: The model in its workers.
        thinking: As in `mlflow_mcq.engines.label_scores.LabelScorer`.

    Attributes:
        fingerprint: Of the chat.
    """

    def __init__(self, chat: PooledChat, thinking: bool | None = None) -> None:
        self._chat, self._thinking = chat, thinking
        self.fingerprint: str = chat.fingerprint

    def score(self, prompts: Sequence[Prompt]) -> list[LabelScores]:
        """As `LabelScorer.score`.

        Raises:
            ModelError: As there; or a worker ended.
        """
        check_labels(prompts)
        found = dict(self._chat.score(prompts, self._thinking))
        # The caller's own prompts: a copy of each from another process would only take memory.
        return [replace(found[place], prompt=prompt) for place, prompt in enumerate(prompts)]


class VllmScorer:
    """Scores labels by vLLM's likeliest tokens after each prompt, read in one step.

    Args:
        chat: The model in vLLM.
        thinking: As in `mlflow_mcq.engines.label_scores.LabelScorer`.

    Attributes:
        fingerprint: Of the chat.
    """

    def __init__(self, chat: VllmChat, thinking: bool | None = None) -> None:
        self._chat, self._thinking = chat, thinking
        self.fingerprint: str = chat.fingerprint

    def score(self, prompts: Sequence[Prompt]) -> list[LabelScores]:
        """Score the labels of each prompt; equal prompts are asked once.

        Returns:
            One record a prompt, in order; a label that is not among the likeliest tokens has a
            bound (see `mlflow_mcq.engines.remote_scores`), a prompt that could not be asked an
            ``error``.

        Raises:
            ModelError: A prompt shows no labels.
        """
        check_labels(prompts)
        contents: list[Conversation] = list(dict.fromkeys(prompt.content for prompt in prompts))
        found = dict(zip(contents, self._chat.likeliest(contents, self._thinking), strict=True))
        return [_scored(prompt, found[prompt.content]) for prompt in prompts]


def _scored(prompt: Prompt, found: Sequence[tuple[str, float]] | str) -> LabelScores:
    if isinstance(found, str):
        return LabelScores(prompt, (), (), found)
    return scores_of_listed(prompt, merged(found))
