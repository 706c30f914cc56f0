"""An MLflow client for one run, which is a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class FolderClient:
    """As much of `MlflowClient` as a run that is put on record needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tags = self._read("tags")
        self.metrics = self._read("metrics")

    def get_run(self, run_id: str) -> Any:
        data = SimpleNamespace(tags=self.tags, params={}, metrics=self.metrics)
        return SimpleNamespace(info=SimpleNamespace(artifact_uri=str(self.folder)), data=data)

    def log_batch(
        self,
        run_id: str,
        metrics: Sequence[Any] = (),
        params: Sequence[Any] = (),
        tags: Sequence[Any] = (),
    ) -> None:
        self.metrics |= {f"{one.key} {one.step}": one.value for one in metrics}
        self.tags |= {one.key: one.value for one in tags}
        self._write("metrics", self.metrics)
        self._write("tags", self.tags)

    def log_artifact(self, run_id: str, path: str) -> None:
        shutil.copy(path, self.folder)

    def _read(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _write(self, name: str, values: dict[str, Any]) -> None:
        # A store of MLflow writes a batch whole or not at all.
        new = self.folder / f"{name}.new"
        new.write_text(json.dumps(values))
        new.rename(self.folder / f"{name}.json")
