"""What one pass reads: no more than its keys ask for, and not too much at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_rotated import alone, ended, generator, rotations, work_of
from tiny import byte_tokenizer, tiny_model

from mlflow_mcq.engines import rotated
from mlflow_mcq.engines.rotated import RotatedGenerator
from mlflow_mcq.engines.work import Work
from mlflow_mcq.records import Decoding

N_NEW = 5


class Counted(torch.nn.Module):
    """A part of a model that counts the tokens which pass through it."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.passes: list[int] = []

    def forward(self, states: torch.Tensor) -> Any:
        self.passes.append(states.shape[1])
        return self.inner(states)


def counted(model: Any, layer: int) -> list[int]:
    """Tokens that will pass through the feed-forward part of a layer, pass by pass."""
    own = model.model.layers[layer]
    own.mlp = part = Counted(own.mlp)
    return part.passes


def test_the_last_layer_works_for_new_tokens_only() -> None:
    model, work = tiny_model(max_position_embeddings=512), work_of(rotations())
    first, last = counted(model, 0), counted(model, -1)
    made = generator(model, Decoding(max_new_tokens=N_NEW))
    answers = ended(made.run(work))
    assert sum(first) == made.tally.read + made.tally.fed
    assert sum(last) == made.tally.fed
    plain = tiny_model(max_position_embeddings=512)
    assert all(answers[place].new == alone(plain, one.ids, N_NEW) for place, one in enumerate(work))


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_users_hook_on_the_last_layer_sees_every_token(kind: str) -> None:
    model, work = tiny_model(max_position_embeddings=512), work_of(rotations())
    seen: list[int] = []
    part = model.model.layers[-1].mlp
    getattr(part, kind)(lambda *given: seen.append(given[1][0].shape[1]))
    made = generator(model, Decoding(max_new_tokens=N_NEW))
    ended(made.run(work))
    assert sum(seen) == made.tally.read + made.tally.fed


@pytest.mark.parametrize("most", [1, 40, 10_000])
def test_a_pass_is_as_large_as_the_device_likes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rotated._PACK, "cpu", most)
    model, work = tiny_model(max_position_embeddings=512), work_of(rotations())
    passes = counted(model, 0)
    made = generator(model, Decoding(max_new_tokens=N_NEW))
    answers = ended(made.run(work))
    read = passes[: len(passes) - made.tally.steps]
    beginning, *others = read
    assert sum(read) == made.tally.read
    pieces = [len(one.ids) - 1 - beginning for one in work]
    assert max(others) <= max(most, *pieces)
    plain = tiny_model(max_position_embeddings=512)
    assert all(answers[place].new == alone(plain, one.ids, N_NEW) for place, one in enumerate(work))


def test_a_long_prompt_is_read_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotated, "_CHUNK", 30)
    model = tiny_model(max_position_embeddings=512)
    passes = counted(model, 0)
    ids = work_of(rotations())[0].ids
    made = generator(model, Decoding(max_new_tokens=N_NEW))
    answers = ended(made.run([Work(ids)]))
    assert passes[:-N_NEW] == [30] * ((len(ids) - 1) // 30) + [(len(ids) - 1) % 30]
    assert answers[0].new == alone(model, ids, N_NEW)


def test_the_last_rows_enter_as_soon_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    # 16 slots: others enter where four are free, but the seventeenth waits for one alone.
    monkeypatch.setitem(rotated._MOST_SLOTS, "cpu", 16)
    model = tiny_model(max_position_embeddings=512)
    work = work_of([f"{'so ' * n}what?" for n in range(17)])
    first = [alone(model, one.ids, 12) for one in work]
    end = first[0][3]
    made = RotatedGenerator(model, byte_tokenizer(), Decoding(max_new_tokens=12), [end])
    step, waited = made._step, []

    def watched() -> None:
        left = sum(map(len, made._queue))
        waited.append(left)
        assert not left or made.n_slots - len(made._rows) < left
        step()

    made._step = watched  # type: ignore[method-assign]
    answers = ended(made.run(work))
    assert sorted(answers) == list(range(17))
    assert len({len(one.new) for one in answers.values()}) > 1  # they did not end together
    assert waited[0] == 1
