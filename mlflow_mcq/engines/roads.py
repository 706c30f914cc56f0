"""Which road local weights take, and why.

========== ======================================================================
``tree``   the fast road: `RotatedGenerator`
``prefix`` `generate` with the keys of a shared beginning copied into each batch
``plain``  `generate`, prompts of like length together
========== ======================================================================

All three give the same tokens in float32. In half precision any batched path, plain
`generate` too, differs from any other in a few rows whose best tokens nearly tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlflow_mcq.engines.decoding import borrowed, eos_ids, generation_config
from mlflow_mcq.engines.gate import refusal
from mlflow_mcq.engines.memory import is_shortage, within_memory
from mlflow_mcq.engines.prefix_tree import common, families_of
from mlflow_mcq.engines.weights import hook_numbers
from mlflow_mcq.engines.work import Work
from mlflow_mcq.records import Decoding

if TYPE_CHECKING:
    import torch

    from mlflow_mcq.engines.rotated import RotatedGenerator

__all__ = ["Road", "RoadChoice", "disagreement"]

_FEW = 8
"""Fewer rows than this do not pay for the check."""

_CHECKED_TOKENS = 8
_CHECKED_BEGINNING = 160
"""Tokens of a shared beginning that the check reads: eight examples would cost it half a
minute on a processor, and show nothing that a few lines do not."""

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
_TOLERANCE_HALF = 0.1
"""Greatest difference of two logits, in standard deviations over the vocabulary.

Rounding gives 1e-5 in float32 and 0.02 in bfloat16; a window, a soft cap or a position
that is one off gives more than 1.
"""


@dataclass(frozen=True, slots=True)
class Road:
    """How rows were generated.

    Attributes:
        name: ``tree``, ``prefix`` or ``plain``.
        reason: Why this one.
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class RoadChoice:
    """Decides for one model whether it takes the fast road; checks it once.

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer.
        padded: Pads rows on the left, as `LocalChat.padded` does.
    """

    def __init__(self, model: Any, tokenizer: Any, padded: Callable[..., tuple[Any, Any]]) -> None:
        self._model, self._tokenizer, self._padded = model, tokenizer, padded
        # A beginning that is held takes code of its own: each kind is checked at its first use.
        # Hooks may come and go between two calls, and decide whether rows may lie packed.
        self._checked: dict[tuple[bool, tuple[int, ...]], str] = {}

    def refusal(self, rows: Sequence[list[int]], decoding: Decoding) -> str:
        """Why these rows must not take the fast road; empty where they may.

        The first answer for a kind of rows costs a check on up to three of them.
        """
        longest = max(map(len, rows), default=0) + decoding.max_new_tokens
        found = refusal(self._model, longest)
        if found:
            return found
        sample = _sample(rows)
        held = families_of([row[:-1] for row in sample])[0].n_shared > 0 if sample else False
        kind = (held, hook_numbers(self._model))
        if kind not in self._checked:
            if len(rows) < _FEW:
                return f"{len(rows)} rows are too few to pay for a check"
            self._checked[kind] = self._check(sample)
        return self._checked[kind]

    def generator(self, decoding: Decoding, watch: Any = None) -> RotatedGenerator:
        """The fast road itself."""
        from mlflow_mcq.engines.rotated import RotatedGenerator

        eos = eos_ids(self._model, self._tokenizer)
        return RotatedGenerator(self._model, self._tokenizer, decoding, eos, watch)

    def _check(self, rows: list[list[int]]) -> str:
        found = within_memory(lambda: self._compared(rows))
        return "the check ran out of memory" if found is None else found

    def _compared(self, rows: list[list[int]]) -> str:
        plain = self._plainly(rows)
        fast: dict[tuple[int, int], torch.Tensor] = {}

        def watch(place: int, step: int, logits: torch.Tensor) -> None:
            fast[place, step] = logits.clone()

        try:
            generator = self.generator(Decoding(max_new_tokens=_CHECKED_TOKENS), watch)
            answers = {one.place: one for one in generator.run([Work(row) for row in rows])}
        except Exception as error:
            if is_shortage(error):
                raise
            return f"the check failed with {type(error).__name__}: {error}".split("\n")[0]
        if any(one.out_of_memory for one in answers.values()):
            return "the check ran out of memory"
        kind = str(getattr(self._model, "dtype", "")).rpartition(".")[2]
        allowed = _TOLERANCE.get(kind, _TOLERANCE_HALF)
        for place in range(len(rows)):
            steps = [fast[place, step] for step in range(len(answers[place].new))]
            worst = disagreement(plain[place], steps)
            if not worst <= allowed:  # also where it is no number
                return (
                    f"the check differs from plain generation by {worst:.2g} standard "
                    f"deviations of the logits, {allowed:g} are allowed"
                )
        return ""

    def _plainly(self, rows: list[list[int]]) -> list[list[torch.Tensor]]:
        """Logits of each step of each row, by plain `generate`."""
        import torch

        eos = eos_ids(self._model, self._tokenizer)
        pad = eos[0] if eos else 0
        ids, mask = self._padded(rows, pad)
        config = generation_config(Decoding(max_new_tokens=_CHECKED_TOKENS), eos, pad)
        config.return_dict_in_generate = config.output_logits = True
        with borrowed(self._model, config), torch.no_grad():
            out = self._model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        return [[step[place].float() for step in out.logits] for place in range(len(rows))]


def disagreement(plain: Sequence[torch.Tensor], fast: Sequence[torch.Tensor]) -> float:
    """How far the logits of one row are apart, up to where the tokens part.

    Args:
        plain: Logits of each step, (vocabulary,).
        fast: The same on the other road; it may have fewer steps.

    Returns:
        Greatest difference in standard deviations of the plain logits; 0 is best.
        Infinite where there is nothing to compare.
    """
    worst = float("inf")
    for one, other in zip(plain, fast, strict=False):
        apart = float((one - other).abs().max() / one.std().clamp_min(1e-12))
        worst = apart if worst == float("inf") or not apart <= worst else worst
        if one.argmax() != other.argmax():
            break
    return worst


def _sample(rows: Sequence[list[int]]) -> list[list[int]]:
    """Two rows with a stem of their own and one from elsewhere, or what there is.

    Of a long beginning that they share the middle is left out.
    """
    groups = [group for one in families_of([r[:-1] for r in rows]) for group in one.groups]
    pair = next((group[:2] for group in groups if len(group) > 1), groups[0] if groups else [])
    others = [place for group in groups for place in group if place not in pair]
    sample = [list(rows[place]) for place in [*pair, *others[-1:]]]
    n_shared = min((common(sample[0][:-1], row[:-1]) for row in sample), default=0)
    half = _CHECKED_BEGINNING // 2
    if n_shared <= _CHECKED_BEGINNING:
        return sample
    return [row[:half] + row[n_shared - half :] for row in sample]
