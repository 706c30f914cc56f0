"""A language model whose weights are loaded here, with transformers.

The model and its tokenizer belong to the user: both are left exactly as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlflow_mcq.engines.compiled import explained
from mlflow_mcq.engines.decoding import (
    StopTexts,
    borrowed,
    eos_ids,
    generation_config,
    samplers,
)
from mlflow_mcq.engines.encoding import encode
from mlflow_mcq.engines.memory import within_memory
from mlflow_mcq.engines.prefix import SharedPrefix, families
from mlflow_mcq.engines.roads import Road, RoadChoice
from mlflow_mcq.engines.tokenizer import control_tokens
from mlflow_mcq.engines.weights import longest_text, weights_fingerprint
from mlflow_mcq.engines.work import Work
from mlflow_mcq.errors import ModelError
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.records import Decoding, Query, Reply

__all__ = ["LocalChat", "load_local", "load_weights"]


@dataclass(slots=True)
class _Row:
    """One distinct conversation, with the places in the queries that asked it."""

    sent: str
    ids: list[int]
    seed: int
    places: list[int] = field(default_factory=list)


class LocalChat:
    """A causal language model in memory.

    Decoding is exactly what is asked for: sampling values and penalties stored in the
    checkpoint are not inherited.

    Args:
        model: A transformers causal language model.
        tokenizer: Its tokenizer.
        batch_size: Rows at a time where the fast road is closed; halved by itself where
            memory does not suffice. The fast road takes as many as memory allows.

    Attributes:
        road: How the last rows were generated, and why; None before the first.
        fingerprint: Twelve hex digits over configuration, weights and chat template.
        deterministic: Always True: sampling is seeded row by row.
        speaks_chat: The tokenizer has a chat template.
        control_tokens: Texts that must not reach it from data.
        prefilled: Prompt tokens read so far; what rows share counts once. Self-checks are
            not counted.
        origin: Where the weights were read; empty for a model that its owner has in memory,
            and may change, or hang hooks on, between two rows.
        settings: How the weights were loaded; None for a model in its owner's memory.

    Raises:
        ModelError: ``model`` cannot generate.
    """

    deterministic: bool = True

    def __init__(self, model: Any, tokenizer: Any, batch_size: int = 8) -> None:
        if not hasattr(model, "generate") and hasattr(model, "module"):
            model = model.module  # as Accelerate and DistributedDataParallel wrap it
        if not hasattr(model, "generate"):
            raise ModelError(
                "model", "must be a causal language model of transformers", type(model).__name__
            )
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = max(1, batch_size)
        self._prefix_shown = self._prefix_fails = False
        self._choice = RoadChoice(model, tokenizer, self.padded)
        self.road: Road | None = None
        self.origin = ""
        self.prefilled = 0
        self.settings: LocalSettings | None = None
        self.speaks_chat: bool = bool(getattr(tokenizer, "chat_template", None))
        self.control_tokens: tuple[str, ...] = control_tokens(tokenizer)
        self.fingerprint: str = weights_fingerprint(
            model, getattr(tokenizer, "chat_template", None)
        )

    def ready(self) -> None:
        """Have the weights as this chat knows them, where others use them too."""

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Answer on the fast road where it is shown to be exact, batch by batch elsewhere.

        The longest prompts come first: rows side by side are alike in length, and a lack of
        memory shows at once instead of after an hour.

        Raises:
            ModelError: Chat messages for a tokenizer that has no chat template, or the model
                is compiled and that failed.
        """
        with explained(self.model):
            yield from self._asked(queries, decoding)

    def _asked(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        rows: dict[tuple[object, int], _Row] = {}
        sampled = decoding.temperature > 0
        for place, query in enumerate(queries):
            key = (query.content, query.seed if sampled else 0)
            if key not in rows:
                sent, ids, error = self.encode(query, decoding)
                if error:
                    yield place, Reply(None, error)
                    continue
                rows[key] = _Row(sent, ids, key[1])
            rows[key].places.append(place)
        fitting = []
        for row in rows.values():
            if self._fits(row, decoding):
                fitting.append(row)
            else:
                # Never cut: a prompt without its head is another question.
                yield from _each(row, _unanswered(row, "prompt_too_long"))
        refused = self._choice.refusal([row.ids for row in fitting], decoding)
        if not refused:
            yield from self._on_tree(fitting, decoding)
            return
        self.road = Road("plain", refused)
        for places in families([row.ids for row in fitting]):
            yield from self._in_batches([fitting[place] for place in places], decoding)

    def _on_tree(self, rows: list[_Row], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        self.road = Road("tree", "agrees with plain generation on the rows checked")
        eos = eos_ids(self.model, self.tokenizer)
        generator = self._choice.generator(decoding)
        for one in generator.run([Work(row.ids, row.seed) for row in rows]):
            row = rows[one.place]
            if one.out_of_memory:
                yield from _each(row, _out_of_memory(row))
            else:
                end = len(one.new) if one.stopped else None
                yield from _each(row, self._reply(row, one.new, eos, end))
        # The last token of each prompt is read in the first step of decoding.
        self.prefilled += generator.tally.read + len(rows)

    def _in_batches(self, rows: list[_Row], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        rows.sort(key=lambda row: len(row.ids), reverse=True)
        prefix = self._shared(rows, decoding)
        if prefix is not None and self.road is not None:
            self.road = Road("prefix", self.road.reason)
        n_shared = len(prefix.ids) if prefix is not None else 0
        self.prefilled += n_shared
        size, start = self.batch_size, 0
        while start < len(rows):
            batch = rows[start : start + size]
            replies = self._within_memory(batch, decoding, prefix)
            if replies is None and len(batch) > 1:
                size = len(batch) // 2
                continue
            for row, reply in zip(batch, replies or [_out_of_memory(batch[0])], strict=True):
                yield from _each(row, reply)
            self.prefilled += sum(len(row.ids) - n_shared for row in batch)
            start += len(batch)

    def _shared(self, rows: list[_Row], decoding: Decoding) -> SharedPrefix | None:
        """The beginning that all rows share, where continuing from it is shown to be exact.

        One row is answered both ways. A model for which they differ is read plainly: it
        would be wrong without an error on every row.
        """
        if self._prefix_fails or len(rows) < 2:
            return None
        with borrowed(self.model, self.model.generation_config):
            prefix = SharedPrefix(self.model, [row.ids for row in rows])
        if not prefix.ids:
            return None
        if not self._prefix_shown:
            plain = self._within_memory(rows[:1], decoding, None)
            shared = self._within_memory(rows[:1], decoding, prefix)
            self._prefix_shown = plain is not None and plain == shared
            self._prefix_fails = not self._prefix_shown
        return prefix if self._prefix_shown else None

    def _within_memory(
        self, batch: list[_Row], decoding: Decoding, prefix: SharedPrefix | None
    ) -> list[Reply] | None:
        return within_memory(lambda: self._answer(batch, decoding, prefix))

    def _answer(
        self, batch: list[_Row], decoding: Decoding, prefix: SharedPrefix | None
    ) -> list[Reply]:
        import torch

        eos = eos_ids(self.model, self.tokenizer)
        pad = self.tokenizer.pad_token_id
        # An existing id: a new pad token would need a row the embeddings do not have.
        pad = pad if pad is not None else (eos[0] if eos else 0)
        shared = prefix.ids if prefix else []
        ids, mask = self.padded([row.ids for row in batch], pad, len(shared))
        stopped = StopTexts(decoding.stop, self.tokenizer, ids.shape[1]) if decoding.stop else None
        config = generation_config(decoding, eos, pad)
        # no_grad, not inference_mode: buffers that a model fills on the way (rotary
        # tables) would be unusable in the training step that follows.
        with borrowed(self.model, config), torch.no_grad():
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=config,
                logits_processor=samplers(decoding, [row.seed for row in batch]),
                stopping_criteria=[stopped] if stopped else [],
                **(prefix.arguments(self.model, len(batch)) if prefix else {}),
            )
        ends = stopped.ends if stopped else {}
        return [
            self._reply(row, new, eos, ends.get(place))
            for place, (row, new) in enumerate(
                zip(batch, out[:, ids.shape[1] :].tolist(), strict=True)
            )
        ]

    def padded(self, rows: list[list[int]], pad: int, n_shared: int = 0) -> tuple[Any, Any]:
        """Ids and attention mask of rows that end together, on the model's device."""
        # By hand and on the left: the tokenizer's own padding side and pad token stay as
        # the user set them, and padding on the right would corrupt every shorter row. A
        # shared beginning stays in front, where its keys and values stand.
        import torch

        width = max(map(len, rows))
        gaps = [width - len(row) for row in rows]
        shared = [row[:n_shared] for row in rows]
        own = [row[n_shared:] for row in rows]
        parts = list(zip(shared, gaps, own, strict=True))
        ids = torch.tensor([head + [pad] * gap + tail for head, gap, tail in parts])
        mask = torch.tensor(
            [[1] * len(head) + [0] * gap + [1] * len(tail) for head, gap, tail in parts]
        )
        device = next(self.model.parameters()).device
        return ids.to(device), mask.to(device)

    def _reply(self, row: _Row, new: list[int], eos: Sequence[int], end: int | None) -> Reply:
        # What follows the end of a row is padding, even where it looks like EOS.
        new = new if end is None else new[:end]
        cut = next((place for place, token in enumerate(new) if token in eos), None)
        reason = "eos" if cut is not None else "length" if end is None else "stop"
        kept = tuple(new[:cut])
        return Reply(
            text=self.tokenizer.decode(list(kept), skip_special_tokens=True),
            finish_reason=reason,
            token_ids=kept,
            n_prompt_tokens=len(row.ids),
            n_tokens=len(kept),
            sent=row.sent,
        )

    def _fits(self, row: _Row, decoding: Decoding) -> bool:
        limit = longest_text(self.model)
        return limit is None or len(row.ids) + decoding.max_new_tokens <= limit

    def encode(self, query: Query, decoding: Decoding) -> tuple[str, list[int], str]:
        """The text sent, its token ids, and what went wrong.

        Raises:
            ModelError: Chat messages for a tokenizer that has no chat template.
        """
        return encode(self.tokenizer, query.content, decoding.thinking)


def _each(row: _Row, reply: Reply) -> Iterator[tuple[int, Reply]]:
    return ((place, reply) for place in row.places)


def _unanswered(row: _Row, reason: str) -> Reply:
    return Reply("", finish_reason=reason, n_prompt_tokens=len(row.ids), sent=row.sent)


def _out_of_memory(row: _Row) -> Reply:
    return Reply(None, f"out of memory on a single row of {len(row.ids)} prompt tokens")


def load_local(path_or_name: str, batch_size: int = 8) -> LocalChat:
    """Load a model and its tokenizer from a folder or a hub name, with nothing else set.

    Code that comes with a checkpoint is never run.

    Args:
        path_or_name: A folder written by ``save_pretrained``, or a name at the hub.
        batch_size: Rows at a time.

    Raises:
        ModelError: Nothing is there, or it is not a causal language model.
    """
    from mlflow_mcq.engines.loading import Base

    return Base(LocalSettings(path=path_or_name)).chat(None, batch_size)


def load_weights(
    path_or_name: str, dtype: str, for_model: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Any, Any]:
    """A model in evaluation mode and its tokenizer, on the CPU unless ``for_model`` says else.

    Args:
        path_or_name: Folder or hub name.
        dtype: A torch dtype by name, or ``auto``.
        for_model: Further options of the model's ``from_pretrained``.
        options: Further options of both ``from_pretrained``.

    Raises:
        ModelError: Nothing is there, or it is not a causal language model.
    """
    import transformers

    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    argument = "dtype" if version >= (4, 56) else "torch_dtype"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path_or_name, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path_or_name, **{argument: dtype}, **(for_model or {}), **options
        )
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(
            f"model {path_or_name!r}",
            f"cannot be loaded: {str(error).rstrip('. ')}",
            possible="Give a folder written by save_pretrained, or the name of a causal language "
            "model at the hub. A model behind a server is mlflow_mcq.remote_model(base_url=..., "
            "model=...).",
        ) from error
    return model.eval(), tokenizer
