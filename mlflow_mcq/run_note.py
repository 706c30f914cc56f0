"""The description of a run: its summary and alarms in Markdown, for MLflow's own page.

A description may hold the user's words: ours stand between two marks, and only what is
between them is ever replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mlflow_mcq.chance import chance_said
from mlflow_mcq.diagnostics.arm import Alarm

__all__ = ["NOTE", "escaped", "summary_note", "table_lines", "with_section"]

NOTE = "mlflow.note.content"
_LONGEST = 3_500  # a description is a tag, of 8,000 characters at most, and may hold two sections
_COLUMNS = {
    "accuracy": "accuracy",
    "low": "accuracy_low",
    "high": "accuracy_high",
    "decided": "accuracy_decided",
    "OTHER": "other_rate",
    "same in all orders": "consistency",
    "rows": "n_rows",
}


def summary_note(values: Mapping[str, float], alarms: Sequence[Alarm]) -> str:
    """An arm in a table and a list: numbers by grader, guessing on nonsense, what to distrust.

    Args:
        values: Numbers by their logged names.
        alarms: Those that fired.

    Example:
        >>> note = summary_note({"judge/accuracy": 0.5, "judge/n_rows": 8.0}, [])
        >>> print(note.splitlines()[2].replace(" &nbsp;", ""))
        | judge | 0.500 | – | – | – | – | – | 8 |
    """
    graders = [name[: -len("/accuracy")] for name in values if name.endswith("/accuracy")]
    rows = [
        (grader, *(_cell(values.get(f"{grader}/{key}")) for key in _COLUMNS.values()))
        for grader in sorted(graders, key=lambda name: name != "judge")
    ]
    lines = table_lines(("read by", *_COLUMNS), rows)
    guessed = [escaped(line) for line in chance_said(values)]
    lines += ["", "**Guessing**: " + "; ".join(guessed)] if guessed else []
    said = [f"- **{a.name}**: {escaped(a.found)}. {escaped(a.next_step)}" for a in alarms]
    return "\n".join([*lines, "", "**Alarms**" + ("" if said else ": none"), "", *said])


def with_section(note: str | None, name: str, text: str) -> str:
    """A description with one section of ours put in, or put in the place of an older one.

    Example:
        >>> old = with_section("my words", "mcq", "first")
        >>> with_section(old, "mcq", "second").count("my words")
        1
    """
    mark, end = f"[//]: # (begin {name})", f"[//]: # (end {name})"
    text = text if len(text) <= _LONGEST else text[:_LONGEST].rsplit("\n", 1)[0] + "\n\n…"
    section = f"{mark}\n\n{text}\n\n{end}"
    old = note or ""
    place = re.search(re.escape(mark) + ".*?" + re.escape(end), old, flags=re.DOTALL)
    if place is not None:
        return old[: place.start()] + section + old[place.end() :]
    return f"{old}\n\n{section}" if old else section


def escaped(text: str) -> str:
    """A text that Markdown shows as it is.

    Example:
        >>> escaped("a|b <i> [x]")
        'a\\\\|b &lt;i&gt; \\\\[x\\\\]'
    """
    text = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*\[\]|#~])", r"\\\1", text.replace(">", "&gt;"))


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    # MLflow's page leaves no space between columns.
    cells = [[f"{cell} &nbsp;" for cell in map(escaped, row)] for row in (columns, *rows)]
    lines = [cells[0], ["---"] * len(columns), *cells[1:]]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value > 1 else f"{value:.3f}"
