"""Curves for Lightning; its package is an extra of ours: ``mlflow-mcq[lightning]``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from mlflow_mcq.engines.spread import refuse_sharded
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.training.curves import Curves
from mlflow_mcq.training.probe import Probe

__all__ = ["McqLightningCallback"]


def _callback_class() -> Any:
    """Lightning's `Callback`, under either of its two names; `object` where it is missing.

    The fault is then said when a callback is made: tools that import every module must not
    stumble over an extra.
    """
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(name).Callback
        except ModuleNotFoundError as error:
            # A package that lacks something of its own is broken, not missing.
            if error.name not in (name, name.partition(".")[0]):
                raise
    return object


_Callback: Any = _callback_class()


class McqLightningCallback(_Callback):  # type: ignore[misc]
    """Measures before the first step, every n steps, and after the last.

    Numbers go into the run of the trainer's `MLFlowLogger`, else into the active one, by step;
    where there is none, one is opened. The main process measures.

    Args:
        data: As in `mlflow_mcq.evaluate`.
        every_n_steps: Optimizer steps between two points of the curves.
        tokenizer: Of the model.
        model: Finds the transformers model in the module that is trained; None takes its
            attribute ``model``.
        settings: As in `Probe`: ``judge``, ``evaluators``, ``orientations``, ``limit``, ...

    Raises:
        McqError: Data or settings are not usable.
    """

    def __init__(
        self,
        data: Any,
        every_n_steps: int = 100,
        *,
        tokenizer: Any,
        model: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        if _Callback is object:
            raise SettingsError(
                "McqLightningCallback",
                "needs Lightning, which is not installed",
                possible='pip install "mlflow-mcq[lightning]"',
            )
        super().__init__()
        self._curves = Curves(Probe(data, **settings), every_n_steps)
        self._tokenizer = tokenizer
        self._find = model or (lambda module: module.model)

    @property
    def probe(self) -> Probe:
        """What measures."""
        return self._curves.probe

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Check what would fail at every point, and measure the model as it comes."""
        if not trainer.is_global_zero:
            return
        refuse_sharded(self._find(pl_module))
        self._curves.begin(_run_of_logger(trainer))
        self._measure(trainer, pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *batch: Any, **more: Any) -> None:
        """Measure, where it is time; batches whose gradients are still collected are no step."""
        if trainer.is_global_zero and self._curves.is_due(trainer.global_step):
            self._measure(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure the model as it is in the end."""
        if not trainer.is_global_zero:
            return
        self._measure(trainer, pl_module)
        self._curves.end()

    def _measure(self, trainer: Any, module: Any) -> None:
        self._curves.measure(trainer.global_step, self._find(module), self._tokenizer)


def _run_of_logger(trainer: Any) -> str | None:
    for logger in getattr(trainer, "loggers", None) or []:
        if type(logger).__name__ == "MLFlowLogger":
            return str(logger.run_id)
    return None
