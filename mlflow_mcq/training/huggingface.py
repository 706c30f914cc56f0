"""Curves for the Trainer of transformers."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from mlflow_mcq.engines.spread import refuse_sharded
from mlflow_mcq.errors import ModelError
from mlflow_mcq.ranks import present_ranks
from mlflow_mcq.training.curves import Curves
from mlflow_mcq.training.probe import Probe

__all__ = ["McqCallback"]

_EVAL, _OURS = "eval_", "mcq/"


class McqCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Measures before the first step, every n steps, and after the last.

    Numbers go into the run that is active when training begins (that of transformers' own
    MLflow callback, too), by step; where none is, one is opened. Among several processes the
    main one measures, and the others wait for it at their next step.

    The Trainer can choose by these numbers: ``metric_for_best_model="mcq/judge/accuracy"`` (with
    ``load_best_model_at_end``, say, or early stopping) finds them among its own as
    ``eval_mcq/judge/accuracy``, and each of its evaluations is then a point of the curves, too.

    Args:
        data: As in `mlflow_mcq.evaluate`.
        every_n_steps: Optimizer steps between two points of the curves.
        tokenizer: Of the model; None takes the Trainer's ``processing_class``.
        settings: As in `Probe`: ``judge``, ``evaluators``, ``orientations``, ``limit``, ...

    Raises:
        McqError: Data or settings are not usable.

    Example:
        ``Trainer(..., callbacks=[McqCallback("toy.csv", every_n_steps=50)])``
    """

    def __init__(
        self, data: Any, every_n_steps: int = 100, *, tokenizer: Any = None, **settings: Any
    ) -> None:
        self._curves = Curves(Probe(data, **settings), every_n_steps)
        self._tokenizer = tokenizer
        self._training = False

    @property
    def probe(self) -> Probe:
        """What measures."""
        return self._curves.probe

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Check what would fail at every point, and measure the model as it comes."""
        self._training = True
        if not state.is_world_process_zero:
            return
        refuse_sharded(more["model"])
        self._tokenizer_of(more)
        self._curves.begin()
        self._measure(state, more)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Measure, where it is time, and at the last step."""
        # Not at the end of training: the Trainer may have put its best weights back by then.
        step = state.global_step
        due = self._curves.is_due(step) or step == state.max_steps
        if state.is_world_process_zero and due:
            self._measure(state, more)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any
    ) -> None:
        """Put the numbers of this step beside the Trainer's own, on every process."""
        if not self._training or metrics is None:
            return
        chosen_by = str(getattr(args, "metric_for_best_model", None) or "")
        wanted = chosen_by.removeprefix(_EVAL).startswith(_OURS)
        if wanted and state.is_world_process_zero:
            self._measure(state, more)
        found = self._curves.values if self._curves.step == state.global_step else {}
        if wanted:  # each process chooses by itself, and must choose the same
            found = present_ranks().from_main(lambda: found)
        metrics.update({f"{_EVAL}{name}": value for name, value in found.items()})

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Measure the model as it is in the end, unless it is that of an earlier step again."""
        self._training = False
        if not state.is_world_process_zero:
            return
        if not getattr(args, "load_best_model_at_end", False):
            self._measure(state, more)
        self._curves.end()

    def _measure(self, state: Any, more: dict[str, Any]) -> None:
        self._curves.measure(state.global_step, more["model"], self._tokenizer_of(more))

    def _tokenizer_of(self, more: dict[str, Any]) -> Any:
        found = self._tokenizer or more.get("processing_class") or more.get("tokenizer")
        found = getattr(found, "tokenizer", found)  # a processor of text and pictures
        if found is None:
            raise ModelError(
                "McqCallback",
                "needs the tokenizer of the model",
                possible="Trainer(..., processing_class=tokenizer), or McqCallback(tokenizer=...).",
            )
        return found
