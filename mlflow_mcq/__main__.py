"""The command line as a module: ``python -m mlflow_mcq run recipe.yaml``."""

from __future__ import annotations

import sys

from mlflow_mcq.cli.root import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
