"""Where this package keeps what is made once on a machine."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_home"]


def cache_home() -> Path:
    """The folder that ``MLFLOW_MCQ_CACHE`` names, or ``~/.cache/mlflow_mcq``."""
    return Path(os.environ.get("MLFLOW_MCQ_CACHE") or Path.home() / ".cache" / "mlflow_mcq")
