"""The vocabulary in blocks: the same numbers, the model's own ways untouched."""

from __future__ import annotations

import pytest
import torch
from tiny import ten_on_the_fast_road, tiny_of

from mlflow_mcq.engines import roads, wide_head
from mlflow_mcq.engines.wide_head import in_blocks, lent_head


class Model(torch.nn.Module):
    def __init__(self, n: int, bias: bool = False) -> None:
        super().__init__()
        self.lm_head = torch.nn.Linear(8, n, bias=bias)

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.lm_head


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 9000])
@pytest.mark.parametrize("shape", [(1, 8), (7, 8), (1, 3, 8)], ids=str)
def test_blocks_give_what_the_whole_gives(n: int, shape: tuple[int, ...], bias: bool) -> None:
    head = torch.nn.Linear(8, n, bias=bias)
    hidden = torch.randn(shape)
    torch.testing.assert_close(in_blocks(head, hidden), head(hidden))


def test_a_wide_head_is_lent_and_given_back() -> None:
    model = Model(9000)
    seen: list[int] = []
    model.lm_head.register_forward_hook(lambda *_: seen.append(1))
    hidden = torch.randn(3, 8)
    own = model.lm_head(hidden)

    def work() -> None:
        with lent_head(model):
            assert "forward" in model.lm_head.__dict__
            torch.testing.assert_close(model.lm_head(hidden), own)
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert "forward" not in model.lm_head.__dict__
    assert len(seen) == 2


class Adapted(torch.nn.Linear):
    """As adapters and quantised layers are: a linear layer of another kind."""


def replaced(model: Model) -> None:
    model.lm_head.forward = lambda hidden: hidden  # type: ignore[method-assign]


def adapted(model: Model) -> None:
    model.lm_head = Adapted(8, 9000)


def narrow(model: Model) -> None:
    model.lm_head = torch.nn.Linear(8, 100)


@pytest.mark.parametrize("change", [replaced, adapted, narrow])
def test_a_head_of_another_kind_stays_as_it_is(change) -> None:
    model = Model(9000)
    change(model)
    before = dict(model.lm_head.__dict__)
    with lent_head(model):
        assert model.lm_head.__dict__ == before
    assert model.lm_head.__dict__ == before


def test_a_model_without_a_head_is_no_trouble() -> None:
    with lent_head(torch.nn.Identity()):
        pass


def test_the_fast_road_works_in_blocks(monkeypatch) -> None:
    n_calls = []
    monkeypatch.setattr(wide_head, "_WIDE", 1)
    monkeypatch.setattr(
        wide_head, "in_blocks", lambda head, x: n_calls.append(1) or in_blocks(head, x)
    )
    ten_on_the_fast_road(tiny_of("llama"))
    assert n_calls


def test_the_check_leaves_the_middle_of_a_long_beginning_out() -> None:
    beginning = list(range(1000))
    rows = [[*beginning, 2000 + n // 2, 3000 + n, 5] for n in range(12)]
    sample = roads._sample(rows)
    assert [row[-3:] for row in sample[:2]] == [rows[0][-3:], rows[1][-3:]]
    assert len(sample) == 3
    for row in sample:
        assert row[:-3] == [*range(80), *range(920, 1000)]
    short = [row[900:] for row in rows]
    assert all(row in short for row in roads._sample(short))
