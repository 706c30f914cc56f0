"""Results of Twinkle Eval: ``eval_results_*.jsonl``, ``results_*.json``, and older ``.json``.

The file repeats the question as it was sent, options included, and keeps nothing else of the
item: options are read out of that text, and an item is known again by its content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.errors import DataError
from mlflow_mcq.given_path import existing_file
from mlflow_mcq.importers.answers import Imported, check_policy, gather, gold_of
from mlflow_mcq.importers.log_file import MOST_BYTES, json_lines, json_of
from mlflow_mcq.importers.shown import check_gold_alone
from mlflow_mcq.orientations import letters_for

__all__ = ["from_twinkle"]

_LABEL = re.compile(r"^([A-Z]): ", re.MULTILINE)
_FIELD = re.compile(r"^([^\W\d]\w*): ", re.MULTILINE)


def from_twinkle(
    path: str | Path | Sequence[str | Path], *, on_bad_rows: str = "error"
) -> pd.DataFrame:
    """Read the answers that Twinkle Eval stored.

    Options stand in the file as they were shown, also shuffled ones. The first time an item
    is met sets the order of its data; later runs of it are orders of that. So give all runs
    that belong together in one call: several paths, or the ``results_*.json`` that names them
    (its runs are looked for beside it).

    The harness takes ``<think>`` blocks out of an answer before it stores it: they are not
    known here. Reasoning that a server sent apart is kept as the column ``reasoning``, and is
    no answer. Rows that a resumed run appended again are taken once.

    Args:
        path: One file, or several.
        on_bad_rows: ``error`` or ``skip``.

    Returns:
        The table described in `mlflow_mcq.importers`, with the columns ``reasoning`` and
        ``run`` (the file).

    Raises:
        SettingsError: ``on_bad_rows`` is neither.
        DataError: A file is of another kind, or a row cannot be read.

    Example:
        ``from_twinkle(["eval_results_x_run0.jsonl", "eval_results_x_run1.jsonl"])``
    """
    check_policy(on_bad_rows)
    given = [path] if isinstance(path, (str, Path)) else list(path)
    paths = [existing_file(one) for one in given]
    records = [record for one in paths for record in _records(one)]
    if not records:
        raise DataError("Twinkle Eval results", "hold no rows", [one.name for one in paths])
    reader = _Reader(_columns(row for _, _, row in records))
    named = ((who, (run, row)) for who, run, row in records)
    return gather(named, reader.read, paths[0], on_bad_rows)


Record = tuple[str, str, Mapping[str, Any]]
"""(name in errors, run, row)."""


def _records(path: Path) -> Iterator[Record]:
    if path.suffix.lower() == ".jsonl":
        for who, row in json_lines(path):
            yield who, path.name, _object(row, who)
        return
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"file {path.name!r}", f"is larger than {MOST_BYTES // 2**20} MiB")
    held = _object(json_of(path.read_bytes(), path.name), path.name)
    if isinstance(held.get("details"), list):
        yield from _details(held["details"], path.name)
        return
    results = [
        result
        for part in _values(held.get("dataset_results"))
        if isinstance(part, dict)
        for result in part.get("results") or ()
        if isinstance(result, dict)
    ]
    named = {name: None for result in results for name in _runs_named(result)}
    for number, result in enumerate(results):
        if isinstance(result.get("details"), list):
            yield from _details(result["details"], f"{path.name}, result {number}")
    # Only the name is used: a path inside a file must not lead anywhere else.
    for name in named:
        yield from _records(existing_file(path.parent / re.split(r"[\\/]", name)[-1]))


def _runs_named(result: Mapping[str, Any]) -> list[str]:
    runs = result.get("individual_runs")
    if isinstance(result.get("details"), list) or not isinstance(runs, dict):
        return []
    # Results that name results would be followed for ever.
    return [str(name) for name in runs.get("results") or () if str(name).endswith(".jsonl")]


def _details(rows: Sequence[Any], run: str) -> Iterator[Record]:
    for number, row in enumerate(rows):
        who = f"{run}, row {number}"
        yield who, run, _object(row, who)


def _object(held: Any, who: str) -> Mapping[str, Any]:
    if not isinstance(held, dict):
        raise DataError(who, "must be an object with named fields", held)
    return held


def _values(held: Any) -> Iterable[Any]:
    return held.values() if isinstance(held, dict) else ()


@dataclass
class _Reader:
    """Reads rows, and remembers the items it has met.

    Attributes:
        columns: Names of further columns that the harness wrote below the options.
        options: By item, its options in the order of the data.
        met: Rows that were read: run, item and sample.
    """

    columns: frozenset[str]
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    met: set[tuple[str, str, str]] = field(default_factory=set)

    def read(self, record: Any, who: str) -> Sequence[Imported]:
        run, row = record
        stem, shown = _split(row, who, self.columns)
        gold_slot = gold_of(row.get("correct_answer"), shown, who, texts=False)
        check_gold_alone(shown, gold_slot, who)
        text = _answer(row, who)
        content = json.dumps([row.get("question_id"), stem, sorted(shown), shown[gold_slot]])
        item_id = f"{row.get('question_id', 'q')}-{_digest(content)}"
        key = (run, item_id, str(row.get("sample_id", 0)))
        if key in self.met:
            return []
        self.met.add(key)
        options = self.options.setdefault(item_id, tuple(shown))
        order = _order(options, shown)
        more = {"reasoning": row.get("llm_reasoning_output"), "run": run}
        return [Imported(item_id, stem, options, order[gold_slot], order, text, more)]


def _split(
    row: Mapping[str, Any], who: str, columns: frozenset[str]
) -> tuple[str, tuple[str, ...]]:
    """The question and its options by slot, out of the text that was sent."""
    text = row.get("question")
    found = _block(text) if isinstance(text, str) else None
    if found is None or not isinstance(text, str):
        raise DataError(
            who,
            'its question must end with one list of options, "A: ..." and so on, a line each',
            text,
            "An option that holds such a line itself cannot be told apart from the list.",
        )
    start, ends = found
    bounds = [*(match.start() for match in ends[1:]), len(text)]
    parts = [text[m.end() : end].removesuffix("\n") for m, end in zip(ends, bounds, strict=True)]
    parts[-1] = _without_columns(parts[-1], columns, who)
    while len(parts) > 2 and not parts[-1].strip():
        parts.pop()  # an empty cell of a data set with fewer options here
    return text[:start].rstrip("\n"), tuple(parts)


def _block(text: str) -> tuple[int, list[re.Match[str]]] | None:
    """Where the last list of options begins, with its labels; None where it is not whole.

    The last one: a question may hold a dialogue between A and B.
    """
    labels = list(_LABEL.finditer(text))
    starts = [place for place, label in enumerate(labels) if label.group(1) == "A"]
    rest = labels[starts[-1] :] if starts else []
    whole = len(rest) >= 2 and [m.group(1) for m in rest] == list(letters_for(len(rest)))
    return (rest[0].start(), rest) if whole else None


def _without_columns(last: str, columns: frozenset[str], who: str) -> str:
    """The last option without the columns that the harness wrote below it."""
    for match in _FIELD.finditer(last, last.find("\n") + 1 or len(last)):
        if match.group(1) in columns:
            return last[: match.start()].rstrip("\n")
        raise DataError(
            who,
            "a line below the options may be a column of the data or part of the last option",
            match.group(0),
            "Only what stands below the options of every row is taken for a column.",
        )
    return last


def _columns(rows: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Names that stand below the options in every row: columns, not option text."""
    common: frozenset[str] | None = None
    for row in rows:
        text = row.get("question")
        found = _block(text) if isinstance(text, str) else None
        if found is None or not isinstance(text, str):
            continue
        last = text[found[1][-1].end() :]
        below = last[last.find("\n") + 1 or len(last) :]
        names = frozenset(_FIELD.findall(below))
        common = names if common is None else common & names
    return common or frozenset()


def _answer(row: Mapping[str, Any], who: str) -> str | None:
    text = row.get("llm_output")
    if text is None and row.get("logprob_scores") is not None:
        raise DataError(
            who, "comes from the method logit, which holds scores of the labels and no text"
        )
    if text is not None and not isinstance(text, str):
        raise DataError(who, "its llm_output must be a text", text)
    return text


def _order(options: Sequence[str], shown: Sequence[str]) -> tuple[int, ...]:
    free = list(range(len(options)))
    order = []
    for text in shown:
        option = next(i for i in free if options[i] == text)
        free.remove(option)
        order.append(option)
    return tuple(order)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
