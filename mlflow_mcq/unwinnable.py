"""Items that no reply can win in the analogy match, said before a model is run for hours."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mlflow_mcq.doors import Engine, Tokenizer
from mlflow_mcq.engines.tokenizer import ReplyTokenizer
from mlflow_mcq.graders.analogy import unwinnable
from mlflow_mcq.records import Item

__all__ = ["tokenizer_of", "warn_unwinnable"]

_log = logging.getLogger(__name__)
_MOST_NAMED = 5


def tokenizer_of(engine: Engine) -> Tokenizer | None:
    """The evaluated model's tokenizer; None where the model is not here."""
    chat = getattr(engine, "chat", None)
    tokenizer = getattr(chat, "tokenizer", None)
    return None if tokenizer is None else ReplyTokenizer(tokenizer)


def warn_unwinnable(items: Sequence[Item], tokenizer: Tokenizer | None, window: int) -> list[Item]:
    """Warn of items whose gold is longer than the window, where a tokenizer is known.

    A warning and no refusal: published runs hold such items, and leaving them out is the
    user's decision.

    Returns:
        These items; none where no tokenizer is known.
    """
    found = [] if tokenizer is None else unwinnable(items, tokenizer, window)
    if found:
        _log.warning(
            "mcq_analogy: the gold of %d of %d items is longer than the window of %d tokens, so "
            "no reply to them can be right (items %s); see the table mcq_unwinnable",
            len(found), len(items), window,
            ", ".join(repr(item.id) for item in found[:_MOST_NAMED]),
        )  # fmt: skip
    return found
