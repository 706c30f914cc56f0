"""Decoding of local weights: exactly what the user set, one seed per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlflow_mcq.records import Decoding

if TYPE_CHECKING:
    import torch

__all__ = [
    "RowSampler",
    "StopTexts",
    "borrowed",
    "ends_with_stop",
    "eos_ids",
    "generation_config",
    "samplers",
    "warpers",
]


class RowSampler:
    """Draws the next token of each row from that row's own seed (Gumbel-max).

    Exponential noise is taken from the log-probabilities and the greedy search picks
    the highest: the same distribution as sampling, but a row's draw depends on its seed
    alone. transformers' own sampling takes one shared stream, so that an answer would
    change with the batch size, the order of the rows and whatever else drew numbers.

    Args:
        seeds: One seed for each row of the batch.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds = tuple(seeds)
        self._generators: list[torch.Generator] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Add the noise of one step; a token ruled out (-inf) stays ruled out."""
        import torch

        if not self._generators:
            self._generators = [
                torch.Generator(device=scores.device).manual_seed(seed) for seed in self._seeds
            ]
        noise = torch.empty_like(scores, dtype=torch.float32)
        for row, generator in enumerate(self._generators):
            noise[row].exponential_(generator=generator)
        return scores - noise.clamp_min(torch.finfo(torch.float32).tiny).log()


class StopTexts:
    """Ends a row once its generated text holds one of the stop texts.

    Only generated tokens are read. transformers' `stop_strings` also reads the end of
    the prompt, so that a stop text of two newlines would end an answer at its first
    newline wherever the prompt ends in the other one.

    Args:
        stop: The texts.
        tokenizer: Decodes the tokens.
        n_prompt: Length of the padded prompts.

    Attributes:
        ends: Number of generated tokens of each stopped row, the stop text included.
    """

    def __init__(self, stop: Sequence[str], tokenizer: Any, n_prompt: int) -> None:
        self._stop = tuple(stop)
        self._tokenizer = tokenizer
        self._n_prompt = n_prompt
        self.ends: dict[int, int] = {}

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Which rows have ended."""
        import torch

        for row, ids in enumerate(input_ids[:, self._n_prompt :].tolist()):
            if row not in self.ends and ends_with_stop(self._stop, self._tokenizer, ids):
                self.ends[row] = input_ids.shape[1] - self._n_prompt
        done = [row in self.ends for row in range(input_ids.shape[0])]
        return torch.tensor(done, device=input_ids.device)


def ends_with_stop(stop: Sequence[str], tokenizer: Any, new: Sequence[int]) -> bool:
    """Whether the newest of some generated tokens completes a stop text."""
    if not stop:
        return False
    # A stop text ends in the newest token, and a token is a byte at least: no need to
    # decode a long answer anew at each step.
    tail = max(len(text.encode()) for text in stop) + 8
    # Special tokens are kept: a stop text may be one of them.
    text = tokenizer.decode(list(new[-tail:]), skip_special_tokens=False)
    return any(one in text for one in stop)


def samplers(decoding: Decoding, seeds: Sequence[int]) -> list[Any]:
    """Logits processors of sampled decoding; none for greedy."""
    return [*warpers(decoding), RowSampler(seeds)] if decoding.temperature > 0 else []


def warpers(decoding: Decoding) -> list[Any]:
    """The steps of sampled decoding that need no seed; none for greedy."""
    if decoding.temperature <= 0:
        return []
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    steps: list[Any] = [TemperatureLogitsWarper(float(decoding.temperature))]
    if decoding.top_k > 0:
        steps.append(TopKLogitsWarper(decoding.top_k))
    if decoding.top_p < 1.0:
        steps.append(TopPLogitsWarper(decoding.top_p))
    return steps


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Every id that ends an answer, by the checkpoint or by the tokenizer.

    Both are read: chat models often end a turn with a token that only one of them names,
    and would run on into an invented next turn.
    """
    found: dict[int, None] = {}
    config = getattr(model, "generation_config", None)
    for value in (getattr(config, "eos_token_id", None), tokenizer.eos_token_id):
        for token in value if isinstance(value, list | tuple) else [value]:
            if token is not None:
                found[int(token)] = None
    return tuple(found)


def generation_config(decoding: Decoding, eos: Sequence[int], pad: int) -> Any:
    """A configuration that holds the user's decoding and nothing else.

    Greedy on purpose, also for sampling: the draw is made by `RowSampler`.
    """
    from transformers import GenerationConfig

    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=decoding.max_new_tokens,
        eos_token_id=list(eos) or None,
        pad_token_id=pad,
        use_cache=True,
    )


@contextmanager
def borrowed(model: Any, config: Any) -> Iterator[None]:
    """Put a model into evaluation with our configuration; give it back as it was.

    The checkpoint's own configuration is set aside, since `generate` fills every value
    that ours leaves open from it: a repetition penalty of 1.1 in the checkpoint would
    silently be part of the measurement. Training flags are put back module by module: a
    user who froze the dropout of one layer must find it frozen.
    """
    modules = list(model.modules())
    flags = [module.training for module in modules]
    kept = [(m, m.__dict__["generation_config"]) for m in modules if _has_config(m)]
    try:
        for module, _ in kept:
            module.generation_config = config
        model.eval()
        yield
    finally:
        for module, own in kept:
            module.generation_config = own
        for module, flag in zip(modules, flags, strict=True):
            module.training = flag


def _has_config(module: Any) -> bool:
    return "generation_config" in module.__dict__
