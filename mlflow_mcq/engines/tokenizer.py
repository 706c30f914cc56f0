"""Tokenizers of evaluated models, as the graders need them: the text and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mlflow_mcq.errors import ModelError

__all__ = ["ReplyTokenizer", "control_tokens", "load_tokenizer", "raw_tokenizer"]

_MARKUP = re.compile(r"[<\[{|｜].*[>\]}|｜]", re.DOTALL)


class ReplyTokenizer:
    """A transformers tokenizer that neither adds special tokens nor shows them.

    Plain ``tokenizer.encode`` begins with BOS for many models, which would make a window
    of eight tokens one of seven.

    Args:
        tokenizer: Of transformers; left as it is.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, spaces as they were."""
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text


def control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """The texts that a tokenizer turns into control tokens wherever they stand.

    Its special tokens, and those added later that look like markup: some models do not
    declare their tags of thinking or of tools as special. Other added tokens (runs of
    blanks, say) steer nothing.

    Args:
        tokenizer: Of transformers.
    """
    added = getattr(tokenizer, "added_tokens_decoder", None) or {}
    found = {*(getattr(tokenizer, "all_special_tokens", None) or ())}
    found |= {one.content for one in added.values() if one.special or _MARKUP.search(one.content)}
    return tuple(sorted(token for token in found if token.strip()))


def load_tokenizer(name: str) -> ReplyTokenizer:
    """Load a tokenizer by name or folder; ``demo:smollm2`` is the demo model's.

    Raises:
        ModelError: There is none under this name.
    """
    return ReplyTokenizer(raw_tokenizer(name, "analogy.tokenizer"))


def raw_tokenizer(name: str, who: str = "tokenizer") -> Any:
    """The same as transformers has it, with its chat template and special tokens.

    Args:
        name: A name or folder.
        who: Asks for it, as errors say.

    Raises:
        ModelError: There is none under this name.
    """
    from transformers import AutoTokenizer

    from mlflow_mcq.engines.demo import resolve_weights

    folder = resolve_weights(name)
    try:
        return AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(who, f"cannot be loaded ({reason})", name) from error
