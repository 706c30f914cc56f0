"""Norms in one call: the same numbers, and what is not such a norm stays as it is."""

from __future__ import annotations

import pytest
import torch
from tiny import ten_on_the_fast_road, tiny_of
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from mlflow_mcq.engines import norms
from mlflow_mcq.engines.norms import lent_norms, plain_norms, rms


def norm_of(n: int, eps: float = 1e-6) -> LlamaRMSNorm:
    norm = LlamaRMSNorm(n, eps)
    torch.manual_seed(n)
    torch.nn.init.normal_(norm.weight)
    return norm


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(1, 8), (5, 576), (2, 3, 64)], ids=str)
@pytest.mark.parametrize("eps", [1e-5, 1e-6, 1e-2])
def test_one_call_gives_what_six_give(shape: tuple[int, ...], scale: float, eps: float) -> None:
    norm = norm_of(shape[-1], eps)
    hidden = torch.randn(shape) * scale
    torch.testing.assert_close(rms(norm, hidden), norm(hidden))
    assert plain_norms(norm) == [norm]


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral", "phi3", "olmo2"])
def test_the_norms_of_a_family_are_known(kind: str) -> None:
    model = tiny_of(kind)
    found = [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    assert plain_norms(model) == found
    assert found


class AddsOneRMSNorm(LlamaRMSNorm):
    def forward(self, hidden):
        return super().forward(hidden) / self.weight * (1 + self.weight)


class GatedRMSNorm(LlamaRMSNorm):
    def forward(self, hidden, gate=None):
        return super().forward(hidden if gate is None else hidden * gate)


class OtherRMSNorm(torch.nn.Module):
    """The mean is taken off first, as a layer norm does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(8)), 1e-6

    def forward(self, hidden):
        return torch.nn.functional.layer_norm(hidden, (8,), self.weight, None, self.eps)


class NamelessRMSNorm(LlamaRMSNorm):
    """Its epsilon is kept where nobody looks."""

    def __init__(self) -> None:
        super().__init__(8)
        self._far = self.__dict__.pop("variance_epsilon")

    def forward(self, hidden):
        return hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self._far)


def replaced() -> LlamaRMSNorm:
    norm = norm_of(8)
    norm.forward = lambda hidden: hidden  # type: ignore[method-assign]
    return norm


OTHERS = {
    "one is added to the weight": AddsOneRMSNorm(8),
    "gated": GatedRMSNorm(8),
    "another formula": OtherRMSNorm(),
    "no epsilon": NamelessRMSNorm(),
    "forward replaced by somebody": replaced(),
    "half precision": norm_of(8).to(torch.bfloat16),
    "a layer norm": torch.nn.LayerNorm(8),
    "gemma's": tiny_of("gemma"),
}


@pytest.mark.parametrize("module", OTHERS.values(), ids=OTHERS.keys())
def test_what_is_no_such_norm_stays_as_it_is(module: torch.nn.Module) -> None:
    assert plain_norms(module) == []


def test_norms_are_lent_and_given_back() -> None:
    norm = norm_of(8)
    seen: list[int] = []
    norm.register_forward_hook(lambda *_: seen.append(1))
    hidden = torch.randn(3, 8)
    own = norm(hidden)

    def work() -> None:
        with lent_norms([norm]):
            assert "forward" in norm.__dict__
            torch.testing.assert_close(norm(hidden), own)
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert "forward" not in norm.__dict__
    assert len(seen) == 2


def test_a_forward_replaced_since_is_left_alone() -> None:
    norm = norm_of(8)
    [found] = plain_norms(norm)

    def own(hidden: torch.Tensor) -> torch.Tensor:
        return hidden

    norm.forward = own  # type: ignore[method-assign]
    with lent_norms([found]):
        assert norm.forward is own
    assert norm.forward is own


def test_the_fast_road_takes_its_norms_in_one_call(monkeypatch) -> None:
    n_calls = []
    monkeypatch.setattr(norms, "rms", lambda norm, x: n_calls.append(1) or rms(norm, x))
    model = tiny_of("llama")
    ten_on_the_fast_road(model)
    assert n_calls
    assert not any("forward" in module.__dict__ for module in model.modules())
