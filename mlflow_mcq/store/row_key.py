"""The key of a row: a hash over everything that changes what stands in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import lru_cache

from mlflow_mcq.records import Decoding, Request

__all__ = ["row_key"]

_FORMAT = 1


def row_key(model: str, request: Request, decoding: Decoding) -> bytes:
    """Sixteen bytes over model, row, exact prompt, decoding and seed.

    Two settings, two models or two data sets never share a row, even in one folder: a
    resumed run can only find what it would have made itself.

    Args:
        model: Identity of the model, weights included.
        request: Prompt and repeat.
        decoding: How the answer is drawn. The seed counts where lots are drawn only:
            a greedy answer does not depend on it.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt
        >>> item = Item("q", "Which?", ("x", "y"), gold=1)
        >>> request = Request(Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "?", ()))
        >>> greedy = row_key("m", request, Decoding(seed=1))
        >>> greedy == row_key("m", request, Decoding(seed=2))
        True
        >>> greedy == row_key("m", request, Decoding(temperature=0.6))
        False
    """
    content = request.prompt.content
    said = content if isinstance(content, str) else [[m.role, m.content] for m in content]
    order = request.prompt.orientation.order
    seed = request.seed(decoding.seed) if decoding.temperature > 0 else None
    # ASCII, so that half a surrogate pair in the data cannot break the encoding.
    row = json.dumps([_FORMAT, model, request.key, order, said])
    text = f"{row[:-1]}, {_drawn(decoding, seed)}]"
    return hashlib.sha256(text.encode("ascii")).digest()[:16]


@lru_cache(maxsize=8)
def _drawn(decoding: Decoding, seed: int | None) -> str:
    # Kept: it is the same for all rows of a greedy run, and costs more than the rest.
    return json.dumps({**asdict(decoding), "seed": seed}, sort_keys=True)
