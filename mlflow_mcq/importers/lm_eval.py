"""Samples of lm-evaluation-harness: ``samples_<task>_<date>.jsonl`` (``--log_samples``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.errors import DataError
from mlflow_mcq.given_path import existing_file
from mlflow_mcq.importers.answers import Imported, check_policy, gather, gold_of
from mlflow_mcq.importers.log_file import json_lines
from mlflow_mcq.importers.shown import check_gold_alone, check_order, order_shown
from mlflow_mcq.orientations import letters_for

__all__ = ["from_lm_eval_samples"]

_QUESTIONS = ("question", "stem", "Question", "query", "input", "problem")
_OPTIONS = ("options", "choices", "endings")


def from_lm_eval_samples(
    path: str | Path,
    *,
    question: str | None = None,
    options: str | None = None,
    order: str = "from-prompt",
    on_bad_rows: str = "error",
) -> pd.DataFrame:
    """Read the answers of a generative multiple-choice task of lm-evaluation-harness.

    The harness stores one line a filter for the same answer: each answer is taken once, as it
    was before any filter. A log-likelihood task holds no text and is refused. The harness
    writes an answer that never came as the text "None": it cannot be told apart from that word.

    Args:
        path: ``samples_<task>_<date>.jsonl``.
        question: Field of the question in ``doc``; None looks for the usual names.
        options: Field of the options in ``doc``; None looks for the usual names, and for
            fields A, B, C, ...
        order: ``from-prompt``, or ``as-is`` where you know that the options were shown in the
            order of ``doc`` although the prompt does not list them by letter.
        on_bad_rows: ``error`` or ``skip``.

    Returns:
        The table described in `mlflow_mcq.importers`; ``id`` is the harness' ``doc_id``.

    Raises:
        SettingsError: An argument is none of these.
        DataError: The file is of another kind, or a line cannot be read.

    Example:
        ``from_lm_eval_samples("samples_mmlu_pro_law_2025-01-01T00-00-00.jsonl")``
    """
    check_policy(on_bad_rows)
    check_order(order)
    path = existing_file(path)
    reader = _Reader(question, options, order == "as-is")
    return gather(json_lines(path), reader.read, path, on_bad_rows)


@dataclass
class _Reader:
    """Reads lines, and remembers which answers it has met.

    Attributes:
        question: Field of the question, or None.
        options: Field of the options, or None.
        as_is: The caller vouches for the order.
        filters: By document, the filter whose lines are read.
        unfiltered: Answers met in lines that name no filter (older files).
    """

    question: str | None
    options: str | None
    as_is: bool
    filters: dict[str, str] = field(default_factory=dict)
    unfiltered: set[tuple[str, str]] = field(default_factory=set)

    def read(self, line: Any, who: str) -> Sequence[Imported]:
        doc = line.get("doc") if isinstance(line, dict) else None
        if not isinstance(doc, dict) or "resps" not in line:
            raise DataError(who, "is no sample of lm-evaluation-harness", sorted(line or ()))
        prompt = _prompt(line, who)
        texts = _texts(line["resps"], who)
        name = str(line.get("doc_id"))
        if self._is_known(line, name, texts):
            return []
        options = self._options(doc, who)
        slots = tuple(range(len(options)))
        order = slots if self.as_is else order_shown(prompt, options, who)
        shown = [options[option] for option in order]
        gold = order[gold_of(line.get("target"), shown, who)]
        if not self.as_is:
            check_gold_alone(options, gold, who)
        asked = self._question(doc, who)
        return [Imported(name, asked, tuple(options), gold, order, text) for text in texts]

    def _is_known(self, line: Mapping[str, Any], name: str, texts: Sequence[str | None]) -> bool:
        if "filter" in line:
            mine = str(line["filter"])
            return self.filters.setdefault(name, mine) != mine
        key = (name, json.dumps(texts))
        known = key in self.unfiltered
        self.unfiltered.add(key)
        return known

    def _question(self, doc: Mapping[str, Any], who: str) -> str:
        held = doc.get("question")
        if self.question is None and isinstance(held, dict):  # ARC and its kin nest it
            doc = held
        names = (self.question,) if self.question else _QUESTIONS
        found = next((doc[n] for n in names if isinstance(doc.get(n), str)), None)
        if not found:
            hint = "Name the field: from_lm_eval_samples(path, question=...)."
            raise DataError(who, "its doc holds no question", sorted(doc), hint)
        return str(found)

    def _options(self, doc: Mapping[str, Any], who: str) -> list[str]:
        held = doc.get("question")
        places = (doc, held) if isinstance(held, dict) else (doc,)
        names = (self.options,) if self.options else _OPTIONS
        for place in places:
            for name in names:
                texts = _option_texts(place.get(name))
                if texts:
                    return texts
        letters = [letter for letter in letters_for(26) if doc.get(letter) not in (None, "")]
        if self.options is None and letters and letters == list(letters_for(len(letters))):
            return [str(doc[letter]) for letter in letters]
        hint = "Name the field: from_lm_eval_samples(path, options=...)."
        raise DataError(who, "its doc holds no list of options", sorted(doc), hint)


def _option_texts(cell: Any) -> list[str]:
    if isinstance(cell, dict):
        cell = cell.get("text")
    if not isinstance(cell, list) or len(cell) < 2:
        return []
    if all(isinstance(one, dict) and "text" in one for one in cell):
        cell = [one["text"] for one in cell]
    return [str(one) for one in cell] if all(isinstance(c, (str, int, float)) for c in cell) else []


def _prompt(line: Mapping[str, Any], who: str) -> str:
    given = line.get("arguments")
    calls = list(given.values()) if isinstance(given, dict) else given
    calls = calls if isinstance(calls, list) else []
    parts = [list(call.values()) if isinstance(call, dict) else call for call in calls]
    parts = [part for part in parts if isinstance(part, list) and part]
    if len(parts) > 1 or any(len(p) > 1 and isinstance(p[1], str) for p in parts):
        raise DataError(
            who,
            "comes from a log-likelihood task, which holds scores of the options and no text",
            possible="Run a generative variant of the task (output_type: generate_until).",
        )
    if not parts:
        raise DataError(who, "holds no prompt (arguments)", given)
    return _prompt_text(parts[0][0])


def _prompt_text(sent: Any) -> str:
    """The prompt as text; chat messages, also in the JSON text that the harness makes of them."""
    while isinstance(sent, list) and len(sent) == 1:
        sent = sent[0]
    if isinstance(sent, str) and sent.lstrip().startswith("[{"):
        try:
            sent = json.loads(sent)
        except (ValueError, RecursionError):
            return str(sent)
    if isinstance(sent, list):
        spoken = [m for m in sent if isinstance(m, dict) and m.get("role") != "assistant"]
        return "\n\n".join(str(message.get("content", "")) for message in spoken)
    if isinstance(sent, dict):
        return str(sent.get("content", ""))
    return str(sent)


def _texts(resps: Any, who: str) -> list[str | None]:
    """The samples of the one request of a document."""
    if isinstance(resps, list) and len(resps) == 1 and isinstance(resps[0], list):
        resps = resps[0]
    if not isinstance(resps, list) or not all(r is None or isinstance(r, str) for r in resps):
        raise DataError(who, "holds no texts (resps): it comes from a log-likelihood task", resps)
    return list(resps)
