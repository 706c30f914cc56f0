"""Log-probabilities of the labels after a prompt, from weights loaded here.

One token form is scored, the one that the tokenizer writes at that place: " A" where the
label goes on a line that ends in "Answer:", "A" where a chat template has just opened the
answer. Other forms (lower case, bold, a line break first) are not added up; what they take
shows as probability that is on no label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlflow_mcq.engines.compiled import explained
from mlflow_mcq.engines.decoding import borrowed
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.memory import within_memory
from mlflow_mcq.engines.weights import forward_names, longest_text
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import Conversation, Decoding, Prompt, Query
from mlflow_mcq.scores import LabelScores, check_labels

__all__ = ["LabelScorer", "without_longer"]


@dataclass(slots=True)
class _Plan:
    """One distinct prompt: its token ids, those of each label, and what was found."""

    context: list[int]
    labels: list[tuple[int, ...]]
    error: str = ""
    logprobs: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Row:
    """One row of a forward pass: a prompt and all tokens but the last of some labels.

    Labels of one token share a single row, the prompt as it is.
    """

    plan: _Plan
    head: tuple[int, ...]
    slots: list[int]

    @property
    def ids(self) -> list[int]:
        return [*self.plan.context, *self.head]


class LabelScorer:
    """Scores labels after exactly the text that `LocalChat` would answer.

    The whole vocabulary is the space: no temperature, nucleus or penalty is applied.

    Args:
        chat: The model; it and its tokenizer are left as they were.
        thinking: As in the decoding of the answers, since it changes the text sent. Before
            a reasoning model's thought all labels are unlikely; see the metric ``mass``.

    Attributes:
        fingerprint: Of the chat, so that scores and answers of one model bear one name.
    """

    def __init__(self, chat: LocalChat, thinking: bool | None = None) -> None:
        self._chat = chat
        self._decoding = Decoding(thinking=thinking)
        self.fingerprint: str = chat.fingerprint

    def score(self, prompts: Sequence[Prompt]) -> list[LabelScores]:
        """Score the labels of each prompt; equal prompts are read once.

        Args:
            prompts: With labels; chat messages or plain text.

        Returns:
            One record a prompt, in order. A prompt that does not fit the model, or that its
            chat template refuses, has an ``error`` and no numbers.

        Raises:
            ModelError: A prompt shows no labels, two labels have the same tokens, or
                the tokenizer has no chat template for chat messages.
        """
        check_labels(prompts)
        plans: dict[tuple[Conversation, tuple[str, ...]], _Plan] = {}
        for prompt in prompts:
            key = (prompt.content, prompt.labels)
            if key not in plans:
                plans[key] = self._plan(prompt)
        self._read([row for plan in plans.values() for row in self._rows(plan)])
        return [self._scores(prompt, plans[prompt.content, prompt.labels]) for prompt in prompts]

    def _plan(self, prompt: Prompt) -> _Plan:
        sent, context, error = self._chat.encode(Query(prompt.content), self._decoding)
        if error:
            return _Plan([], [], error)
        plain = isinstance(prompt.content, str)
        # A chat template has opened the answer itself; plain text goes on as people write.
        space = " " if plain and not sent[-1:].isspace() else ""
        endings = [space + label for label in prompt.labels]
        tokenizer = self._chat.tokenizer
        whole = tokenizer([sent + end for end in endings], add_special_tokens=plain)["input_ids"]
        labels = []
        for end, ids in zip(endings, whole, strict=True):
            if ids[: len(context)] != context:
                # The tokenizer joins the end of the prompt and the label into one token. The
                # model is sent the prompt's own tokens and cannot take them back.
                ids = [*context, *tokenizer(end, add_special_tokens=False)["input_ids"]]
            labels.append(tuple(ids[len(context) :]))
        if len(set(labels)) < len(labels) or () in labels:
            raise ModelError(
                "tokenizer",
                "gives two labels the same tokens, or one none, so the model cannot tell "
                f"them apart (item {prompt.item.id!r})",
                prompt.labels,
                "Use labels that the model's vocabulary knows.",
            )
        return _Plan(context, labels)

    def _rows(self, plan: _Plan) -> Iterable[_Row]:
        heads: dict[tuple[int, ...], list[int]] = {}
        for slot, label in enumerate(plan.labels):
            heads.setdefault(label[:-1], []).append(slot)
        limit = longest_text(self._chat.model)
        longest = len(plan.context) + max(map(len, heads), default=0)
        if limit is not None and longest > limit:
            # Never cut: a prompt without its head is another question.
            plan.error = "prompt_too_long"
        return [] if plan.error else [_Row(plan, head, slots) for head, slots in heads.items()]

    def _read(self, rows: list[_Row]) -> None:
        # The longest first: little padding, and a lack of memory shows at once.
        rows.sort(key=lambda row: len(row.ids), reverse=True)
        size, start = self._chat.batch_size, 0
        while start < len(rows):
            batch = rows[start : start + size]
            found = self._tried(batch)
            if found is None and len(batch) > 1:
                size = len(batch) // 2
                continue
            if found is None:
                batch[0].plan.error = f"out of memory on a row of {len(batch[0].ids)} tokens"
            for row, logprobs in zip(batch, found or [], strict=False):
                row.plan.logprobs |= dict(zip(row.slots, logprobs, strict=True))
            start += len(batch)

    def _tried(self, batch: list[_Row]) -> list[list[float]] | None:
        self._chat.ready()
        return within_memory(lambda: self._forward(batch))

    def _forward(self, batch: list[_Row]) -> list[list[float]]:
        """Log-probabilities of each row's labels, summed over their tokens."""
        import torch

        model = self._chat.model
        ids, mask = self._chat.padded([row.ids for row in batch], pad=0)
        n_last = 1 + max(len(row.head) for row in batch)
        options = {
            # Without them a padded row would start at a later position than alone.
            "position_ids": (mask.cumsum(-1) - 1).clamp_min(0),
            # A vocabulary wide for each token of each prompt would fill the memory.
            "logits_to_keep": n_last,
            "use_cache": False,
        }
        known = forward_names(model)
        options = {name: value for name, value in options.items() if name in known}
        # no_grad, not inference_mode: buffers that a model fills on the way (rotary
        # tables) would be unusable in the training step that follows.
        with borrowed(model, model.generation_config), torch.no_grad(), explained(model):
            out = model(input_ids=ids, attention_mask=mask, **options)
            logprobs = out.logits[:, -n_last:].float().log_softmax(-1)
        wanted = [[row.plan.labels[slot] for slot in row.slots] for row in batch]
        places = [
            (number, n_last - len(label) + place, token)
            for number, labels in enumerate(wanted)
            for label in labels
            for place, token in enumerate(label)
        ]
        # One transfer for the batch, instead of one for each label.
        values = iter(logprobs[tuple(torch.tensor(places).T.to(logprobs.device))].tolist())
        return [[sum(next(values) for _ in label) for label in labels] for labels in wanted]

    def _scores(self, prompt: Prompt, plan: _Plan) -> LabelScores:
        if any(math.isnan(value) for value in plan.logprobs.values()):
            plan.error = "the model's logits are not numbers (half precision may overflow)"
        if plan.error:
            return LabelScores(prompt, (), (), plan.error)
        logprobs = [plan.logprobs[slot] for slot in range(len(plan.labels))]
        spell = self._chat.tokenizer.convert_ids_to_tokens
        texts = tuple(" ".join(map(str, spell(list(label)))) for label in plan.labels)
        return LabelScores(prompt, tuple(without_longer(plan.labels, logprobs)), texts)


def without_longer(labels: Sequence[tuple[int, ...]], logprobs: Sequence[float]) -> list[float]:
    """Take from each label the probability of longer labels that begin with its tokens.

    Where digits are tokens of their own, "1" is at least as likely as "10" whatever the
    model thinks: "10" could never be picked, and the labels together could have more than
    all the probability there is.

    Args:
        labels: Distinct token ids by slot.
        logprobs: Sum over the tokens of each label, natural logarithms.

    Returns:
        Log-probability that the text goes on with the label and not with a longer one;
        -inf where rounding leaves nothing.

    Example:
        >>> import math
        >>> own = without_longer([(1,), (1, 0), (2,)], [math.log(p) for p in (0.5, 0.4, 0.3)])
        >>> [round(math.exp(value), 6) for value in own]
        [0.1, 0.4, 0.3]
    """
    own = list(logprobs)
    for slot in sorted(range(len(labels)), key=lambda slot: -len(labels[slot])):
        short = labels[slot]
        longer = [
            other
            for other, label in enumerate(labels)
            if len(label) > len(short) and label[: len(short)] == short
        ]
        if longer and own[slot] > -math.inf:
            share = sum(math.exp(min(0.0, own[other] - own[slot])) for other in longer)
            own[slot] = own[slot] + math.log1p(-share) if share < 1 else -math.inf
    return own
