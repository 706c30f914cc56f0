"""The points of the curves of a training: when they are due, and in which run they stand."""

from __future__ import annotations

from typing import Any

import mlflow

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.training.probe import Probe

__all__ = ["Curves"]


class Curves:
    """A probe and the step at which it measured last, for callbacks of any trainer.

    Args:
        probe: Measures.
        every_n_steps: Optimizer steps between two points.

    Attributes:
        probe: Measures.
        values: The numbers of the last point.
        step: That of the last point; -1 before the first.

    Raises:
        SettingsError: The interval is no whole number from 1.
    """

    def __init__(self, probe: Probe, every_n_steps: int) -> None:
        steps: Any = every_n_steps
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise SettingsError("every_n_steps", "must be a whole number from 1", every_n_steps)
        self.probe = probe
        self.values: dict[str, float] = {}
        self.step = -1
        self._every = every_n_steps
        self._given_run = probe.run_id
        self._opened = False

    def begin(self, run_id: str | None = None) -> None:
        """Find the run of a training: another training has another run.

        Args:
            run_id: The trainer's own; the one that was named goes before it, and where there
                is neither the active one is taken, or one is opened.
        """
        self.probe.run_id = self._given_run or run_id
        if self.probe.run_id is None and mlflow.active_run() is None:
            mlflow.start_run()
            self._opened = True
        self.step = -1

    def is_due(self, step: int) -> bool:
        """Whether it is time for a point."""
        return step % self._every == 0

    def measure(self, step: int, model: Any, tokenizer: Any) -> None:
        """Measure and log, unless this step has its point already."""
        if step != self.step:
            self.step = step
            self.values = self.probe.log(model, tokenizer, step)

    def end(self) -> None:
        """Close the run, if it was opened here."""
        if self._opened:
            mlflow.end_run()
            self._opened = False
