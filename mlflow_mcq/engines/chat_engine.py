"""The engine of chat models: requests become queries, replies become generations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow_mcq.doors import Chat
from mlflow_mcq.engines import first_question
from mlflow_mcq.engines.openai_chat import OpenAIChat
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Decoding, Generation, Query, Reply, Request
from mlflow_mcq.spent import Spent

__all__ = ["ChatEngine", "row_name"]

_NAMED_ROWS = 3


def row_name(request: Request) -> str:
    """A row as errors name it.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt
        >>> item = Item("q7", "Which?", ("a", "b"), 0)
        >>> row_name(Request(Prompt(item, Orientation(0, "rot0", (0, 1)), "letters", "?", ())))
        "item 'q7', rot0, repeat 0"
    """
    prompt = request.prompt
    return f"item {prompt.item.id!r}, {prompt.orientation.name}, repeat {request.repeat}"


class ChatEngine:
    """Evaluates any `Chat`: weights loaded here, or a server.

    Args:
        chat: The model.
        preflight: Ask a server one short question before the first row. It is no row, and
            in no count of rows or tokens.

    Attributes:
        fingerprint: Of the chat.
        speaks_chat: Of the chat.
        spent: What its rows have taken so far.
    """

    def __init__(self, chat: Chat, *, preflight: bool = False) -> None:
        self.chat = chat
        self.fingerprint: str = chat.fingerprint
        self.speaks_chat: bool = chat.speaks_chat
        self.spent = Spent()
        self._unasked = preflight

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Generation]:
        """Yield answers as they come; a row without one carries the reason.

        One filtered reply must not lose the others: such a row is a generation whose
        reply holds an error, counted apart and in no denominator.

        Raises:
            ModelError: Not a single row has an answer, or the server serves nobody.
        """
        if requests and self._unasked and isinstance(self.chat, OpenAIChat):
            first_question.ask_first(self.chat, decoding)
            self._unasked = False
        queries = [Query(r.prompt.content, r.seed(decoding.seed)) for r in requests]
        waiting = set(range(len(queries)))
        failed: list[tuple[Request, str]] = []
        for place, reply in self._counted(queries, decoding):
            waiting.discard(place)
            request = requests[place]
            if reply.text is None:
                failed.append((request, reply.error or "no text"))
            yield self._generation(request, reply)
        for place in sorted(waiting):
            failed.append((requests[place], "the chat never answered"))
            yield self._generation(requests[place], Reply(None, failed[-1][1]))
        if failed and len(failed) == len(requests):
            raise _failure(failed, len(requests))

    def _counted(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """The replies as they come; what they took is entered at the end."""
        before: int | None = getattr(self.chat, "prefilled", None)
        n_rows = prompt_tokens = generated = 0
        try:
            for place, reply in self.chat.ask(queries, decoding):
                n_rows += 1
                prompt_tokens += reply.n_prompt_tokens
                generated += reply.n_tokens
                yield place, reply
        finally:  # also where a row cannot be kept and the others are never asked for
            after: int | None = getattr(self.chat, "prefilled", None)
            read = None if before is None or after is None else after - before
            self.spent += Spent(n_rows, prompt_tokens, read, generated)

    def _generation(self, request: Request, reply: Reply) -> Generation:
        return Generation(request.prompt, request.repeat, reply, engine=self.fingerprint)


def _failure(failed: Sequence[tuple[Request, str]], n_rows: int) -> ModelError:
    names = "; ".join(row_name(request) for request, _ in failed[:_NAMED_ROWS])
    more = len(failed) - _NAMED_ROWS
    return ModelError(
        "model",
        f"{len(failed)} of {n_rows} rows could not be answered "
        f"({names}{f'; and {more} more' if more > 0 else ''})",
        possible=f"The first error: {failed[0][1]}",
    )
