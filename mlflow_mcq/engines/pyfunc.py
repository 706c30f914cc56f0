"""The engine of functions and pyfunc models: a DataFrame goes in, texts come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlflow_mcq.engines.chat_engine import row_name
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Conversation, Decoding, Generation, Message, Reply, Request
from mlflow_mcq.said import as_dicts

__all__ = ["OUTPUT_COLUMNS", "CallableEngine", "answer_text", "is_raw_transformers"]

OUTPUT_COLUMNS = (
    "prediction",
    "predictions",
    "generation",
    "output",
    "outputs",
    "text",
    "response",
)
"""Names under which a table of several columns may hold the answers."""

_RAW_CLASSES = {"Pipeline", "PreTrainedModel", "PeftModel", "GenerationMixin"}
_RAW_PACKAGES = {"transformers", "peft"}


def is_raw_transformers(model: object) -> bool:
    """Whether a "function" is really a transformers pipeline or model.

    MLflow takes any callable for a function, and such an object then fails only at the
    first row. Looked up by name: transformers is not imported to answer this.
    """
    return any(
        base.__name__ in _RAW_CLASSES and base.__module__.partition(".")[0] in _RAW_PACKAGES
        for base in type(model).__mro__
    )


class CallableEngine:
    """Evaluates a function, or the ``predict`` of a pyfunc model.

    Args:
        predict: Takes a DataFrame of one column, returns one text for each row: a list,
            tuple, array, Series or DataFrame. Answers are matched by position; an index
            that they carry is not looked at, since functions filter, sort and rebuild
            frames, and labels then pair answers with the wrong questions.
        input_column: Name of the column.
        batch_size: Rows at a time.
        messages: Cells are lists of ``{"role": ..., "content": ...}`` instead of texts.
        fingerprint: Name of the function in the stored rows.
        output_column: Column of the answers in a table of several; None looks for a
            usual name.

    Attributes:
        fingerprint: As given.
        speaks_chat: As ``messages``.
    """

    def __init__(
        self,
        predict: Callable[[Any], Any],
        input_column: str = "prompt",
        batch_size: int = 8,
        messages: bool = False,
        fingerprint: str = "function",
        output_column: str | None = None,
    ) -> None:
        self.fingerprint: str = fingerprint
        self._output_column = output_column
        self.speaks_chat: bool = messages
        self._predict = predict
        self._input_column = input_column
        self._batch_size = max(1, batch_size)

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield answers batch by batch, in order; how a function decodes is its own affair.

        Raises:
            ModelError: The function raised, or returned something other than one text
                for each row; says which row.
        """
        for start in range(0, len(requests), self._batch_size):
            batch = requests[start : start + self._batch_size]
            texts = self._answers(batch)
            for request, text in zip(batch, texts, strict=True):
                yield Generation(
                    request.prompt, request.repeat, Reply(text), engine=self.fingerprint
                )

    def _answers(self, batch: Sequence[Request]) -> list[str]:
        import pandas as pd

        cells = pd.Series([self._cell(request) for request in batch], dtype=object)
        try:
            got = self._predict(cells.to_frame(self._input_column))
        except Exception as error:
            raise ModelError(
                "function",
                f"failed on {_rows_name(batch)}: {type(error).__name__}: {error}",
                possible=f"It is given a DataFrame with one column, {self._input_column!r}.",
            ) from error
        if isinstance(got, pd.DataFrame):
            got = _answer_column(got, batch, self._output_column)
        values = _values(got, batch)
        if len(values) != len(batch):
            raise ModelError(
                "function",
                f"returned {len(values)} answers for {len(batch)} rows ({_rows_name(batch)})",
                got,
                "Return one text for each row.",
            )
        return [_text(value, request) for value, request in zip(values, batch, strict=True)]

    def _cell(self, request: Request) -> object:
        content: Conversation = request.prompt.content
        if not self.speaks_chat:
            if isinstance(content, str):
                return content
            raise ModelError(
                "function", f"takes texts; {row_name(request)} is chat messages", content
            )
        return as_dicts((Message("user", content),) if isinstance(content, str) else content)


def _rows_name(batch: Sequence[Request]) -> str:
    first, last = row_name(batch[0]), row_name(batch[-1])
    return first if len(batch) == 1 else f"the {len(batch)} rows from {first} to {last}"


def _values(got: Any, batch: Sequence[Request]) -> list[Any]:
    """The answers by position, whatever they are wrapped in."""
    import numpy as np
    import pandas as pd

    if isinstance(got, pd.Series):
        return list(got.array)
    if isinstance(got, np.ndarray) and got.ndim == 2 and got.shape[1] == 1:
        got = got[:, 0]
    if isinstance(got, np.ndarray) and got.ndim == 1:
        return list(got.tolist())
    if isinstance(got, list | tuple):
        return list(got)
    if isinstance(got, Mapping) and len(batch) == 1 and "choices" in got:
        return [got]
    # A bare text is refused for a single row too: the function would break on the
    # first batch of two, after an hour.
    raise ModelError(
        "function",
        f"must return a list, tuple, array, Series or DataFrame with one text for each row, "
        f"not one {type(got).__name__} for {_rows_name(batch)}",
        got,
        "It is called with a DataFrame of many prompts: "
        "lambda frame: [answer(prompt) for prompt in frame.iloc[:, 0]].",
    )


def _answer_column(frame: Any, batch: Sequence[Request], column: str | None) -> Any:
    if column is None and frame.shape[1] == 1:
        return frame.iloc[:, 0]
    known = (column,) if column is not None else OUTPUT_COLUMNS
    named = [name for name in known if list(frame.columns).count(name) == 1]
    if len(named) != 1:
        raise ModelError(
            "function",
            f"returned {frame.shape[1]} columns for {_rows_name(batch)}, and not exactly one "
            "of them is named as the answer",
            list(map(str, frame.columns)),
            f"Return one column, or name it one of: {', '.join(known)}.",
        )
    return frame[named[0]]


def _text(value: Any, request: Request) -> str:
    if isinstance(value, str):
        return str(value)
    said = answer_text(value)
    if said is None:
        raise ModelError(
            "function",
            f"must return a text for each row; for {row_name(request)} it returned "
            f"{type(value).__name__}",
            value,
        )
    return said


def answer_text(value: Any) -> str | None:
    """The text of a chat completion, of an agent's messages or of a response; else None."""
    choices = _part(value, "choices")
    if isinstance(choices, list | tuple) and choices:
        return _content_text(_part(choices[0], "message"))
    for name in ("messages", "output"):  # the last thing said is the answer
        said = _part(value, name)
        if isinstance(said, list | tuple) and said:
            return _content_text(said[-1])
    return None


def _content_text(message: Any) -> str | None:
    content = _part(message, "content")
    if isinstance(content, list | tuple):
        parts = [_part(part, "text") for part in content]
        return "".join(parts) if parts and all(isinstance(p, str) for p in parts) else None
    return content if isinstance(content, str) else None


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
