"""One row of `mlflow.genai.evaluate`: an item in one orientation, and back.

MLflow hands a scorer three things and nothing else: ``inputs``, ``outputs`` and
``expectations``. So all that a grader must know stands in the expectations::

    gold     index of the right option, in the order of the data
    options  texts in the order of the data
    order    order[slot] is the option shown in that slot; as the data where left out
    mcq      names of the item and its orientation, labels, settings (`rotated` writes it)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlflow_mcq.datasets.stored import PROTOCOL as STORED
from mlflow_mcq.engines.pyfunc import answer_text
from mlflow_mcq.errors import DataError
from mlflow_mcq.graders.strict import label_names
from mlflow_mcq.records import (
    Conversation,
    Generation,
    Item,
    Message,
    Orientation,
    Prompt,
    Reply,
    Request,
)
from mlflow_mcq.said import as_dicts

__all__ = ["called_with", "generation_of", "row_of"]

_BY_HAND = "by-hand"
_TEXT, _MESSAGES = "prompt", "messages"
"""What a function of a row is given: one of these two, by name."""


def row_of(request: Request, place: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The row that asks one request.

    Args:
        request: An item in one orientation.
        place: Of the row among all: MLflow gives rows back as threads finish them.
        settings: What decided the rows, as far as it is not the default.

    Returns:
        ``inputs`` with ``prompt`` or ``messages`` and nothing else, since MLflow calls the
        predict function with them by name; ``expectations`` as above.
    """
    prompt, item = request.prompt, request.prompt.item
    return {
        "inputs": called_with(prompt),
        "expectations": {
            "gold": item.gold,
            "options": list(item.options),
            "order": list(prompt.orientation.order),
            # One value: MLflow writes each expectation of each row to its store by itself.
            "mcq": {
                "place": place,
                "item_id": item.id,
                "question": item.question,
                "golds": list(item.golds),
                "gold_policy": item.policy,
                "protocol": prompt.protocol,
                "orientation": prompt.orientation.index,
                "orientation_name": prompt.orientation.name,
                "repeat": request.repeat,
                "labels": list(prompt.labels),
                "settings": dict(settings),
            },
        },
    }


def called_with(prompt: Prompt) -> dict[str, Any]:
    """What a predict function is called with, by name: ``prompt`` or ``messages``."""
    content = prompt.content
    if isinstance(content, str):
        return {_TEXT: content}
    return {_MESSAGES: as_dicts(content)}


def generation_of(inputs: Any, outputs: Any, expectations: Any) -> Generation:
    """The answer that a row holds.

    Args:
        inputs: What was asked; of rows made by hand ``question`` is looked for as well.
        outputs: A text, or a chat completion. None is an answer that was never made.
        expectations: See the top of this module; ``mcq`` may be left out.

    Raises:
        DataError: There are no options, no gold, or they do not fit together.
    """
    expected = expectations if isinstance(expectations, Mapping) else {}
    asked = inputs if isinstance(inputs, Mapping) else {}
    options, gold = expected.get("options"), expected.get("gold")
    if not isinstance(options, Sequence) or isinstance(options, str) or gold is None:
        raise DataError(
            "expectations",
            "must hold options (a list of texts) and gold (the index of the right one)",
            sorted(map(str, expected)),
            "mlflow_mcq.rotated(data) makes such rows.",
        )
    told: Mapping[str, Any] = expected.get("mcq") or {}
    question = str(told.get("question", asked.get("question", asked.get(_TEXT, ""))))
    texts = tuple(map(str, options))
    item = Item(
        str(told.get("item_id") or _name_of(question, texts)),
        question,
        texts,
        gold,
        also_right=tuple(one for one in told.get("golds", ()) if one != gold),
        policy=told.get("gold_policy", "any"),
    )
    order = expected.get("order")
    orientation = Orientation(
        int(told.get("orientation", 0)),
        str(told.get("orientation_name", _BY_HAND)),
        tuple(range(len(texts))) if order is None else tuple(order),
    )
    if len(orientation.order) != len(texts):
        raise DataError("order", f"must place {len(texts)} options", orientation.order)
    labels = tuple(map(str, told["labels"])) if "labels" in told else label_names(len(texts), None)
    # Nobody knows how a page that was made by hand was made: no setting of ours describes it.
    protocol = str(told.get("protocol", STORED))
    prompt = Prompt(item, orientation, protocol, _asked(asked), labels)
    return Generation(prompt, int(told.get("repeat", 0)), _reply(outputs), "predict_fn")


def _reply(outputs: Any) -> Reply:
    if outputs is None:
        return Reply(None, "the predict function gave no answer")
    said = outputs if isinstance(outputs, str) else answer_text(outputs)
    if said is None:
        kind = type(outputs).__name__
        return Reply(None, f"the answer is no text and no chat completion, but a {kind}")
    return Reply(said)


def _asked(inputs: Mapping[str, Any]) -> Conversation:
    messages = inputs.get(_MESSAGES)
    if isinstance(messages, Sequence) and not isinstance(messages, str):
        return tuple(Message(str(m["role"]), str(m["content"])) for m in messages)
    return str(inputs.get(_TEXT, inputs.get("question", "")))


def _name_of(question: str, options: Sequence[str]) -> str:
    """A name of an item that was given none: the same for the same question and options."""
    text = json.dumps([question, sorted(options)])
    return f"row-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
