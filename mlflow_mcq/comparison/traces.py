"""A sample of rows as traces, for looking at arms row by row in MLflow's *Evaluation runs*.

A full `mlflow.genai.evaluate` costs some 300 ms a row. A trace here is one record with its
assessments in it, and the spans of an arm follow in one batch.
"""

from __future__ import annotations

import base64
import json
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import (
    AssessmentSource,
    Feedback,
    TraceData,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.entities.span import Span
from mlflow.exceptions import MlflowException
from mlflow.tracing.client import TracingClient
from mlflow.tracing.constant import TraceTagKey

from mlflow_mcq.comparison.arms import StoredArm
from mlflow_mcq.comparison.differing import drawn_by, page_of, row_keys
from mlflow_mcq.table import storable
from mlflow_mcq.trace_search import in_experiment

__all__ = ["log_traces", "sampled_keys"]

_log = logging.getLogger(__name__)
_TAG = "mcq.row"
_SOURCE_RUN = "mlflow.sourceRun"
_PREVIEW = 1_000
_SHARE_DIFFERING = 0.8
_MOST_PER_SEARCH = 500


def log_traces(
    arms: Sequence[StoredArm], grader: str, differing: Sequence[str], n_rows: int
) -> int:
    """Log the same rows of every arm; rows that an arm has as traces already are left alone.

    Requests are equal for the same item and order in every arm, whatever its prompts look
    like, since MLflow lines up rows whose inputs are the same.

    Args:
        arms: The baseline, then the others.
        grader: Whose readings stand beside the answers.
        differing: Keys of rows on which arms differ, the most telling first.
        n_rows: At most so many rows of each arm.

    Returns:
        Traces logged. A store that takes none is warned about and costs nothing else.
    """
    keys = sampled_keys(arms, grader, differing, n_rows)
    n_logged = 0
    for arm in arms if keys else ():
        try:
            n_logged += _log_arm(arm, grader, keys)
        except (MlflowException, NotImplementedError) as error:
            # A file store says nothing but the name of its error.
            why = str(error) or f"the store keeps none ({type(error).__name__})"
            _log.warning("rows of %s are not logged as traces: %s", arm.name, why)
    return n_logged


def sampled_keys(
    arms: Sequence[StoredArm], grader: str, differing: Sequence[str], n_rows: int
) -> list[str]:
    """Rows to show: those on which arms differ first, then graders, then a fixed draw.

    A fifth is left for rows without any disagreement, or nobody would ever see where all
    arms are wrong in the same way. The draw depends on the rows alone.
    """
    shared = set(row_keys(arms[0].grades[grader]))
    for arm in arms[1:]:
        shared &= set(row_keys(arm.grades[grader]))
    telling = [key for key in differing if key in shared]
    graders = {key for arm in arms for key in _read_differently(arm)} & shared
    telling += sorted(graders - set(telling), key=drawn_by)
    rest = sorted(shared - set(telling), key=drawn_by)
    n_telling = max(round(n_rows * _SHARE_DIFFERING), n_rows - len(rest))
    first = telling[:n_telling]
    return [*first, *rest[: n_rows - len(first)]]


def _read_differently(arm: StoredArm) -> set[str]:
    readings = pd.concat(list(arm.grades.values()))
    n_verdicts = readings.groupby("row_id")["verdict"].nunique()
    one = next(iter(arm.grades.values()))
    return set(row_keys(one[one["row_id"].isin(n_verdicts[n_verdicts > 1].index)]))


def _log_arm(arm: StoredArm, grader: str, keys: Sequence[str]) -> int:
    grades = arm.grades[grader]
    table = grades.assign(key=row_keys(grades)).set_index("key")
    shown = arm.generations.assign(key=row_keys(arm.generations)).set_index("key")
    client, experiment = TracingClient(), str(arm.run.info.experiment_id)
    known = _known(arm, experiment)
    source = _source(arm, grader)
    spans = []
    now = time.time_ns()
    for place, key in enumerate(keys):
        name = drawn_by(key)[:16]
        if name in known:
            continue
        # The page shows the newest first: what stands first here must be the newest.
        at = now - place * 1_000_000
        info, span = _trace(arm, (shown.loc[key], table.loc[key]), source, at)
        info.tags[_TAG] = name
        spans.append((client.start_trace(info), span))
    if spans:
        _log_spans(client, experiment, spans)
    return len(spans)


def _log_spans(
    client: TracingClient, experiment: str, spans: Sequence[tuple[TraceInfo, Span]]
) -> None:
    if not hasattr(TraceTagKey, "SPANS_LOCATION"):
        for info, span in spans:  # an older MLflow (3.4) reads them from a file of each trace
            client._upload_trace_data(info, TraceData([span]))
        return
    client.log_spans(experiment, [span for _, span in spans])


def _known(arm: StoredArm, experiment: str) -> set[str]:
    """Rows of the arm that an earlier comparison has logged: twice would pair them wrongly."""
    client, token, known = MlflowClient(), None, set()
    while True:
        found = client.search_traces(
            **in_experiment(client.search_traces, experiment),
            filter_string=f"metadata.`{_SOURCE_RUN}` = '{arm.run_id}'",
            max_results=_MOST_PER_SEARCH,
            page_token=token,
            include_spans=False,
        )
        known |= {trace.info.tags.get(_TAG, "") for trace in found}
        token = found.token
        if not token:
            return known


def _source(arm: StoredArm, grader: str) -> AssessmentSource:
    model = arm.params.get("judge_model")
    if grader == "judge" and model:
        return AssessmentSource(source_type="LLM_JUDGE", source_id=model)
    return AssessmentSource(source_type="CODE", source_id=grader)


def _trace(
    arm: StoredArm, row: tuple[Any, Any], source: AssessmentSource, at: int
) -> tuple[TraceInfo, Span]:
    shown, grade = row
    trace_id, span_id = secrets.token_bytes(16), secrets.token_bytes(8)
    asked = _request(shown)
    request, response = (json.dumps(v, ensure_ascii=False) for v in (asked, shown["generation"]))
    info = TraceInfo(
        trace_id=f"tr-{trace_id.hex()}",
        trace_location=TraceLocation.from_experiment_id(str(arm.run.info.experiment_id)),
        request_time=at // 1_000_000,
        state=TraceState.OK,
        request_preview=asked[:_PREVIEW],
        response_preview=str(shown["generation"])[:_PREVIEW],
        execution_duration=0,
        trace_metadata={
            _SOURCE_RUN: arm.run_id,
            "mlflow.trace_schema.version": "3",
            "mlflow.traceInputs": request[:_PREVIEW],
            "mlflow.traceOutputs": response[:_PREVIEW],
        },
        tags={"mlflow.traceName": str(shown["row_id"])},
    )
    info.assessments = _assessments(grade, source, {"mlflow.assessment.sourceRunId": arm.run_id})
    for one in info.assessments:
        one.trace_id = info.trace_id
        one.span_id = span_id.hex()
    return info, _span((trace_id, span_id), (str(shown["row_id"]), at), request, response)


def _request(shown: Any) -> str:
    # The index of the orientation is not in it: arms may number the same orders differently.
    page = page_of(shown["options"], shown["order"], ())
    name = str(shown["item_id"]) + (f", repeat {shown['repeat']}" if shown["repeat"] else "")
    return str(storable(f"{shown['question']}\n{page}\n({name})"))


def _assessments(
    grade: Any, source: AssessmentSource, metadata: Mapping[str, str]
) -> list[Feedback]:
    """What a reader of the row needs; a row without a verdict says why and counts nowhere."""
    said = str(grade["judge_reply"] or "")
    why = str(grade["reason"] or "") + (f"; the judge said: {said}" if said else "")
    verdict = grade["verdict"]
    if not isinstance(verdict, str):
        values: dict[str, Any] = {"verdict": "JUDGE_ERROR"}
        why = str(grade["error"])
    else:
        values = {
            "verdict": verdict,
            "correct": verdict == "CORRECT",
            "other": verdict == "OTHER",
        }
        if pd.notna(grade["slot"]):
            values["slot"] = int(grade["slot"]) + 1
    return [
        Feedback(name=name, value=value, source=source, rationale=why, metadata=dict(metadata))
        for name, value in values.items()
    ]


def _span(ids: tuple[bytes, bytes], name: tuple[str, int], request: str, response: str) -> Span:
    trace_id, span_id = (base64.b64encode(one).decode() for one in ids)
    return Span.from_dict(
        {
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": "",
            "name": name[0],
            "start_time_unix_nano": name[1],
            "end_time_unix_nano": name[1],
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "events": [],
            "attributes": {
                "mlflow.traceRequestId": json.dumps(f"tr-{ids[0].hex()}"),
                "mlflow.spanType": json.dumps("LLM"),
                "mlflow.spanInputs": request,
                "mlflow.spanOutputs": response,
            },
        }
    )
