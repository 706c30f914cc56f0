"""Multiple-choice evaluation for MLflow that you can trust.

The public names are loaded when they are first used: importing this package costs
next to nothing, and never imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow_mcq import extra_metrics, scorers, training
    from mlflow_mcq.chance import chance_band
    from mlflow_mcq.comparison.compare import compare
    from mlflow_mcq.comparison.gate import fail_if_worse, loss_thresholds
    from mlflow_mcq.datasets.analogies import analogy_items
    from mlflow_mcq.datasets.lint import lint_items
    from mlflow_mcq.datasets.nonsense import nonsense_items
    from mlflow_mcq.engines.handle import local_model, remote_model
    from mlflow_mcq.exam_door import examine_judge
    from mlflow_mcq.forecast import cost_before
    from mlflow_mcq.front import evaluate
    from mlflow_mcq.genai.evaluation import genai_evaluate
    from mlflow_mcq.genai.folded import folded
    from mlflow_mcq.genai.rotated import rotated
    from mlflow_mcq.graders.judge_reply import parse_judge_reply
    from mlflow_mcq.graders.strict import strict_choice
    from mlflow_mcq.importers.inspect_log import from_inspect_log
    from mlflow_mcq.importers.lm_eval import from_lm_eval_samples
    from mlflow_mcq.importers.twinkle import from_twinkle
    from mlflow_mcq.orientations import orientations_for
    from mlflow_mcq.recipe import run_recipe
    from mlflow_mcq.regrading import regrade

__all__ = [
    "analogy_items",
    "chance_band",
    "compare",
    "cost_before",
    "evaluate",
    "examine_judge",
    "extra_metrics",
    "fail_if_worse",
    "folded",
    "from_inspect_log",
    "from_lm_eval_samples",
    "from_twinkle",
    "genai_evaluate",
    "lint_items",
    "local_model",
    "loss_thresholds",
    "nonsense_items",
    "orientations_for",
    "parse_judge_reply",
    "regrade",
    "remote_model",
    "rotated",
    "run_recipe",
    "scorers",
    "strict_choice",
    "training",
]

_ROOMS = {
    "analogy_items": "datasets.analogies",
    "chance_band": "chance",
    "compare": "comparison.compare",
    "cost_before": "forecast",
    "fail_if_worse": "comparison.gate",
    "loss_thresholds": "comparison.gate",
    "evaluate": "front",
    "folded": "genai.folded",
    "genai_evaluate": "genai.evaluation",
    "rotated": "genai.rotated",
    "examine_judge": "exam_door",
    "lint_items": "datasets.lint",
    "from_inspect_log": "importers.inspect_log",
    "from_lm_eval_samples": "importers.lm_eval",
    "from_twinkle": "importers.twinkle",
    "local_model": "engines.handle",
    "nonsense_items": "datasets.nonsense",
    "orientations_for": "orientations",
    "parse_judge_reply": "graders.judge_reply",
    "regrade": "regrading",
    "remote_model": "engines.handle",
    "run_recipe": "recipe",
    "strict_choice": "graders.strict",
}

_MODULES = ("extra_metrics", "scorers", "training")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
