"""Curves in a training by Lightning itself, where it is installed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mlflow
import numpy as np
import pytest
import torch
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model
from torch.utils.data import DataLoader, Dataset

pl = pytest.importorskip("lightning.pytorch", exc_type=ImportError)

DATA = [
    {"id": f"q{n}", "question": f"{n}+1?", "options": ["less", "more"], "answer": "AB"[n % 2]}
    for n in range(3)
]
TOKENIZER = byte_tokenizer(PLAIN_TEMPLATE, pad="</s>")


class Texts(Dataset[torch.Tensor]):
    """Random bytes, drawn anew at each look by all three generators."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, place: int) -> torch.Tensor:
        ids = torch.randint(2, 250, (8,))
        ids[0] = random.randrange(2, 250)
        ids[1] = int(np.random.randint(2, 250))
        return ids


class Module(pl.LightningModule):  # type: ignore[misc]
    """Checks at each batch that it is in the state in which it was left."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tiny_model(attention_dropout=0.3)
        self.model.train()
        self.model.config.use_cache = False
        self.losses: list[float] = []

    def training_step(self, batch: torch.Tensor, place: int) -> torch.Tensor:
        assert self.model.training
        assert torch.is_grad_enabled()
        assert not self.model.config.use_cache
        loss: torch.Tensor = self.model(input_ids=batch, labels=batch).loss
        return loss

    def validation_step(self, batch: torch.Tensor, place: int) -> None:
        assert not self.model.training
        self.losses.append(float(self.model(input_ids=batch, labels=batch).loss))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 1e-2)


@pytest.fixture
def callback() -> Callable[..., Any]:
    from mlflow_mcq.training import McqLightningCallback

    def made(every_n_steps: int) -> Any:
        return McqLightningCallback(
            DATA,
            every_n_steps,
            tokenizer=TOKENIZER,
            max_new_tokens=2,
            template="{question}\n{options}\n",
            orientations="swap",
        )

    return made


def fitted(callbacks: list[Any], logger: Any = False) -> Module:
    """Two epochs of six batches; two batches make a step, and three lie between validations."""
    pl.seed_everything(3, verbose=False)
    module = Module()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=2,
        accumulate_grad_batches=2,
        val_check_interval=3,
        limit_val_batches=1,
        callbacks=callbacks,
        logger=logger,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(Texts(), batch_size=2), DataLoader(Texts(), batch_size=2))
    return module


def steps(run_id: str) -> list[int]:
    history = mlflow.MlflowClient().get_metric_history(run_id, "mcq/regex_bounded/other_rate")
    return [one.step for one in history]


def test_training_and_validation_are_bit_for_bit_those_without_the_callback(
    callback: Callable[..., Any], store: None
) -> None:
    with mlflow.start_run() as run:
        measured = fitted([callback(4)])
    plain = fitted([])
    for (name, one), other in zip(measured.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other), name
    assert measured.losses == plain.losses
    assert steps(run.info.run_id) == [0, 4, 6]  # steps and not batches, and the end


def test_curves_go_into_the_run_of_lightnings_own_logger(
    callback: Callable[..., Any], store: None
) -> None:
    logger = pl.loggers.MLFlowLogger("curves", tracking_uri=mlflow.get_tracking_uri())
    fitted([callback(3)], logger)
    assert mlflow.active_run() is None
    assert steps(logger.run_id) == [0, 3, 6]
