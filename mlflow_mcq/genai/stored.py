"""What `mlflow.genai.evaluate` has left in the store: answers, and verdicts on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mlflow
from mlflow.entities import Expectation, Feedback

from mlflow_mcq.errors import DataError
from mlflow_mcq.genai.feedback import MARK, grade_from
from mlflow_mcq.genai.row import generation_of
from mlflow_mcq.named_run import run_named
from mlflow_mcq.records import Generation, Grade
from mlflow_mcq.trace_search import in_experiment

__all__ = ["StoredRow", "stored_rows"]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row of a run.

    Attributes:
        generation: The answer.
        grades: What each of our scorers read in it, by name.
        judged: Names of the scorers that asked a judge.
        settings: What decided the rows, as `mlflow_mcq.rotated` wrote it.
    """

    generation: Generation
    grades: Mapping[str, Grade]
    judged: frozenset[str]
    settings: Mapping[str, Any]


def stored_rows(run_id: str) -> list[StoredRow]:
    """The rows of a run that scorers of ours have read, in the order of the data.

    Raises:
        DataError: A row holds no options or no gold.
    """
    run = run_named(run_id)
    place = in_experiment(mlflow.search_traces, run.info.experiment_id)
    traces = mlflow.search_traces(**place, run_id=run_id, return_type="list")
    found = []
    for trace in traces:
        said = [a for a in trace.info.assessments if isinstance(a, Feedback)]
        ours = [one for one in said if MARK in (one.metadata or {})]
        if ours:
            found.append((_place(trace), trace, ours, {one.name for one in said}))
    found.sort(key=lambda row: row[0])
    rows = [_row(trace, ours, names) for _, trace, ours, names in found]
    return _numbered(rows)


def _place(trace: Any) -> tuple[int, int]:
    told = _expectations(trace).get("mcq")
    place = told.get("place", 0) if isinstance(told, Mapping) else 0
    return int(place), int(trace.info.request_time)


def _row(trace: Any, ours: Sequence[Feedback], names: set[str]) -> StoredRow:
    expected = _expectations(trace)
    root = trace.data.spans[0] if trace.data.spans else None
    inputs, outputs = (root.inputs, root.outputs) if root is not None else (None, None)
    try:
        generation = generation_of(inputs, outputs, expected)
    except DataError as error:
        raise DataError(f"trace {trace.info.trace_id}", *error.args[1:]) from None
    grades = {one.name: grade_from(one, generation) for one in ours}
    judged = frozenset(name for name in grades if f"{name}_error" in names)
    told = expected.get("mcq")
    settings = told.get("settings", {}) if isinstance(told, Mapping) else {}
    return StoredRow(generation, grades, judged, settings)


def _expectations(trace: Any) -> dict[str, Any]:
    return {a.name: a.value for a in trace.info.assessments if isinstance(a, Expectation)}


def _numbered(rows: Sequence[StoredRow]) -> list[StoredRow]:
    """Rows with keys of their own: rows made by hand may ask the same thing twice."""
    seen: Counter[tuple[str, str, int, int]] = Counter()
    done = []
    for row in rows:
        key = row.generation.key
        if seen[key]:
            again = replace(row.generation, repeat=row.generation.repeat + seen[key])
            grades = {n: replace(g, generation=again) for n, g in row.grades.items()}
            row = replace(row, generation=again, grades=grades)
        seen[key] += 1
        done.append(row)
    return done
