"""How many prompts there are, and how much of them is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlflow_mcq.engines.encoding import encode
from mlflow_mcq.engines.prefix_tree import common
from mlflow_mcq.records import Conversation

__all__ = ["CHARACTERS_A_TOKEN", "PromptCount", "count_prompts"]

CHARACTERS_A_TOKEN = 4
"""Of English prose under common tokenizers; other scripts take fewer. Never said as a count."""


@dataclass(frozen=True, slots=True)
class PromptCount:
    """Prompts and their tokens.

    Attributes:
        n_prompts: All of them.
        n_distinct: Different ones; greedy decoding answers each once.
        n_tokens: Tokens of all, each read whole, as a plain loop does.
        n_unique: Tokens of the prefix tree over them: the least that must be read.
        estimate: How the tokens were estimated; empty where they were counted.
    """

    n_prompts: int
    n_distinct: int
    n_tokens: int
    n_unique: int
    estimate: str = ""

    @property
    def n_shared(self) -> int:
        """Tokens that a plain loop would read again."""
        return self.n_tokens - self.n_unique


def count_prompts(
    items: Sequence[Sequence[Conversation]], tokenizer: Any = None, most: int | None = None
) -> PromptCount:
    """Count prompts and tokens.

    Args:
        items: The prompts of each item together: they have a stem in common.
        tokenizer: Of transformers, with its chat template; None estimates from characters.
        most: Where there are twice as many prompts or more, about so many of them are
            counted, in whole items spread over the data, and the rest is estimated: what
            items share among themselves stays as it is, the rest grows with their number.

    Raises:
        ModelError: Chat messages for a tokenizer that has no chat template.

    Example:
        >>> def letters(text, add_special_tokens):
        ...     return {"input_ids": [ord(sign) for sign in text]}
        >>> count = count_prompts([["?xy", "?yx"]], letters)
        >>> count.n_tokens, count.n_unique, count.n_shared
        (6, 5, 1)
    """
    prompts = [prompt for item in items for prompt in item]
    n_distinct = len(set(prompts))
    step = 1 if most is None else max(1, len(prompts) // most)
    some = [prompt for item in items[::step] for prompt in item]
    estimate = [f"from {len(some):,} prompts"] if step > 1 else []
    encoded = _encoded(some, tokenizer)
    rows = sorted(encoded.values())
    n_tokens = sum(len(encoded[prompt]) for prompt in some)
    n_unique = sum(map(len, rows)) - sum(map(common, rows, rows[1:]))
    if step > 1:
        times = len(prompts) / len(some)
        # Sorted: what the first and the last share, all of them share.
        head = common(rows[0], rows[-1])
        n_tokens, n_unique = round(n_tokens * times), round(head + (n_unique - head) * times)
    if tokenizer is None:
        estimate.append(f"characters / {CHARACTERS_A_TOKEN}")
        n_tokens, n_unique = -(-n_tokens // CHARACTERS_A_TOKEN), -(-n_unique // CHARACTERS_A_TOKEN)
    return PromptCount(len(prompts), n_distinct, n_tokens, n_unique, ", ".join(estimate))


def _encoded(prompts: Sequence[Conversation], tokenizer: Any) -> dict[Conversation, Any]:
    distinct = dict.fromkeys(prompts)
    if tokenizer is None:
        return {prompt: _characters(prompt) for prompt in distinct}
    return {prompt: encode(tokenizer, prompt)[1] for prompt in distinct}


def _characters(prompt: Conversation) -> str:
    return prompt if isinstance(prompt, str) else "".join(message.content for message in prompt)
