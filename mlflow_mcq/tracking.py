"""What lands in MLflow, and under which name. The only writer.

========================================  ==============================================
``<grader>/<metric>``                     means over all rows
``<grader>_by_orientation/<metric>``      the same, with ``step`` = orientation index
``mcq_generations``, ``mcq_grades``       every row in Parquet, the most telling as tables
``mcq_by_orientation``, ``mcq_confusion`` tables
``mcq_summary``                           every number, and why some do not exist
========================================  ==============================================
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.models.evaluation.artifacts import (
    ImageEvaluationArtifact,
    JsonEvaluationArtifact,
    ParquetEvaluationArtifact,
    TextEvaluationArtifact,
)
from mlflow.models.evaluation.base import EvaluationArtifact
from mlflow.tracking.context.registry import resolve_tags

from mlflow_mcq.errors import RunInUse

__all__ = [
    "RunLog", "capped", "joined", "legal_names", "no_advice", "quiet", "refuse_used",
    "run_beside",
]  # fmt: skip

_log = logging.getLogger(__name__)
_KINDS: dict[str, type[EvaluationArtifact]] = {
    ".png": ImageEvaluationArtifact,
    ".json": JsonEvaluationArtifact,
    ".parquet": ParquetEvaluationArtifact,
    ".txt": TextEvaluationArtifact,
    ".html": TextEvaluationArtifact,
}
_LOGGED_TABLES = "mlflow.loggedArtifacts"
_LONGEST_PARAM = 500


class _Quiet:
    """Counts who wants silence, and what the switch was before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before = False

    def turn(self, by: int) -> None:
        """Count one in or out; the switch moves with the first in and the last out."""
        from mlflow.utils import autologging_utils as switch

        with self.lock:
            if self.depth == 0:
                self.before = switch._AUTOLOGGING_GLOBALLY_DISABLED
            self.depth += by
            silent = True if self.depth else self.before
            switch._AUTOLOGGING_GLOBALLY_DISABLED = silent


_QUIET = _Quiet()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep MLflow's autologging away from our own model and judge calls.

    During `evaluate` MLflow traces every call of a client that it knows: fifty calls
    would become fifty traces in the user's experiment. MLflow's own context manager is
    not used: it forgets a caller's silence, and two threads leave it switched off.
    """
    _QUIET.turn(+1)
    try:
        yield
    finally:
        _QUIET.turn(-1)


@contextmanager
def no_advice() -> Iterator[None]:
    """Leave out MLflow's advice on training sets, given at every table with numbered answers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Hint: Inferred schema contains integer")
        yield


class RunLog:
    """One run that is being written to.

    Attributes:
        run_id: The run.
        artifacts: What was stored, as MLflow's `EvaluationResult` wants it.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.artifacts: dict[str, EvaluationArtifact] = {}
        self._client = MlflowClient()
        self._root = self._client.get_run(run_id).info.artifact_uri.rstrip("/")

    def tags(self, tags: Mapping[str, object]) -> None:
        """Set tags."""
        self._client.log_batch(self.run_id, tags=[RunTag(k, str(v)) for k, v in tags.items()])

    def tag(self, name: str) -> str | None:
        """One tag as it stands, or None."""
        value = self._client.get_run(self.run_id).data.tags.get(name)
        return None if value is None else str(value)

    def params(self, params: Mapping[str, object]) -> None:
        """Set parameters; one that stands already with another value is kept, and said.

        MLflow refuses to change a parameter. A caller who evaluates twice in one run
        (every epoch, say) must not lose the second evaluation to that.
        """
        there = self._client.get_run(self.run_id).data.params
        new = {}
        for name, value in params.items():
            text = str(value)[:_LONGEST_PARAM]
            if there.get(name, text) != text:
                _log.warning(
                    "run %s keeps %s=%s; this evaluation used %s (see mcq_settings.json)",
                    self.run_id, name, there[name], text,
                )  # fmt: skip
            else:
                new[name] = text
        self._client.log_batch(self.run_id, params=[Param(k, v) for k, v in new.items()])

    def metrics(
        self, values: Mapping[str, float], step: int = 0, model_id: str | None = None
    ) -> None:
        """Log numbers, linked to a logged model where one is known."""
        now = int(time.time() * 1000)
        link: dict[str, Any] = {"model_id": model_id} if model_id else {}
        names = legal_names(values)
        batch = [Metric(names[k], float(v), now, step, **link) for k, v in values.items()]
        for start in range(0, len(batch), 500):
            self._client.log_batch(self.run_id, metrics=batch[start : start + 500])

    def table(self, name: str, frame: pd.DataFrame) -> None:
        """Store a table that the artifact page shows and `EvaluationResult.tables` finds.

        Written whole: MLflow's own `log_table` appends to what an earlier evaluation left.
        """
        file = f"{name}.json"
        self._text(file, frame.to_json(orient="split", index=False, force_ascii=False) or "{}")
        tags = self._client.get_run(self.run_id).data.tags
        known = json.loads(tags.get(_LOGGED_TABLES, "[]"))
        entry = {"path": file, "type": "table"}
        if entry not in known:
            self.tags({_LOGGED_TABLES: json.dumps([*known, entry])})

    def parquet(self, name: str, frame: pd.DataFrame) -> None:
        """Store every row; the browser only downloads it."""
        with self._staged(f"{name}.parquet") as path:
            frame.to_parquet(path, index=False, compression="zstd")

    def parquet_parts(self, name: str, parts: Iterable[pd.DataFrame]) -> None:
        """The same of a table that comes in parts, so that it is never a DataFrame as a whole."""
        import pyarrow.parquet as pq

        with self._staged(f"{name}.parquet") as path:
            pq.write_table(joined(parts), path, compression="zstd")

    def text(self, file: str, text: str) -> None:
        """Store a text; a name ending in .txt is shown as it is, never as HTML."""
        self._text(file, text)

    def figure(self, name: str, figure: Any) -> None:
        """Store a picture."""
        with self._staged(f"{name}.png") as path:
            figure.savefig(path)

    def _text(self, file: str, text: str) -> None:
        with self._staged(file) as path:
            path.write_text(text, encoding="utf-8", errors="backslashreplace")

    @contextmanager
    def _staged(self, file: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            yield path
            self._client.log_artifact(self.run_id, str(path))
        stem, kind = Path(file).stem, Path(file).suffix
        name = f"{stem}_parquet" if kind == ".parquet" else stem
        # The content is left to be loaded on demand: a run may hold a million rows.
        self.artifacts[name] = _KINDS[kind](f"{self._root}/{file}")


def capped(frame: pd.DataFrame, rows: int, first: Iterable[bool] | None = None) -> pd.DataFrame:
    """The rows that a browser can bear: the marked ones first, then the others in order.

    A table of 20,000 rows takes MLflow's page minutes, one of 100,000 kills the tab.
    """
    if first is None:
        return frame.head(rows)
    mask = pd.Series(list(first), index=frame.index, dtype=bool)
    return pd.concat([frame[mask], frame[~mask]]).head(rows)


def refuse_used(run_id: str) -> None:
    """One run holds one arm.

    MLflow cannot take a number back: what the second evaluation leaves undefined, or has fewer
    orientations for, would stand there as the first one left it.

    Raises:
        RunInUse: The run holds one.
    """
    if RunLog(run_id).tag("mcq.settings") is not None:
        raise RunInUse(
            f"run {run_id}",
            "holds an evaluation already, and a run is one arm",
            possible="Evaluate in a run of its own: mlflow.start_run(), with nested=True "
            "inside another run.",
        )


def run_beside(experiment_id: str, name: str) -> mlflow.ActiveRun:
    """Open a run beside others, and never as a child of a run that is under way.

    MLflow folds children under their parent, where nobody looks for a result.
    """
    if mlflow.active_run() is None:
        return mlflow.start_run(experiment_id=experiment_id, run_name=name)
    made = MlflowClient().create_run(experiment_id, run_name=name, tags=resolve_tags())
    return mlflow.start_run(run_id=made.info.run_id, nested=True)


def joined(parts: Iterable[pd.DataFrame]) -> Any:
    """One Arrow table of DataFrames with the same columns; it holds a row in half the memory.

    A column that is empty in one part takes the type that it has in the others.
    """
    import pyarrow as pa

    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]
    return pa.concat_tables(tables, promote_options="permissive")


def legal_names(names: Iterable[str], *, flat: bool = False) -> dict[str, str]:
    """What MLflow takes as names of metrics, and still a different one for each.

    MLflow refuses a whole batch for one bad sign, and names of arms and labels are a user's.

    Args:
        names: Each once; all that are logged together.
        flat: They are last parts of longer names, so a ``/`` is no legal sign either.

    Returns:
        The legal form by name: other signs become ``_``, and where two names would become
        one, both end in a mark of their own.

    Example:
        >>> legal_names(["T=0.2", "plain", "../x"])
        {'T=0.2': 'T_0.2', 'plain': 'plain', '../x': '_/x'}
        >>> len(set(legal_names(["T=1", "T@1", "T_1"]).values()))
        3
    """
    legal = {name: _legal(name.replace("/", "_") if flat else name) for name in names}
    times = Counter(legal.values())
    return {
        name: f"{one}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"
        if times[one] > 1
        else one
        for name, one in legal.items()
    }


def _legal(name: str) -> str:
    signs = re.sub(r"[^\w\-./: ]", "_", name)
    # A name is a path to MLflow: no part of it may be empty or lead elsewhere.
    return "/".join(re.sub(r"^(?:|\.\.?)$", "_", part) for part in signs.split("/"))
