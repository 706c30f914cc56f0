"""The report: one HTML file that needs no network and runs no script.

Every text in it may come from a model under test, so all of it is escaped, and a content
policy in the page forbids scripts and requests even if something should slip through.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from mlflow_mcq.comparison.answers import answers, headline
from mlflow_mcq.comparison.contrasts import Contrast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PageData", "inline_svg", "render_page"]

_MOST_ROWS = 200
_LONGEST_TEXT = 1_200
_MOST_CHARS = 2_000_000
_MOST_DELTAS = 400
_PLACEHOLDER = "#010203"  # what becomes the colour of text, light or dark
_NOT_SHOWN = {
    "note", "test", "baseline", "bootstrap_low", "bootstrap_high", "detectable",
    "items_to_settle",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PageData:
    """What the report shows.

    Attributes:
        title: Name of the comparison.
        contrasts: One a treatment.
        names: Of the arms, the baseline first.
        tables: ``arms_compared``, ``deltas``, ``alarms`` and ``differing``.
        figures: Functions that draw them.
        forced: Whether judges differ.
    """

    title: str
    contrasts: Sequence[Contrast]
    names: Sequence[str]
    tables: Mapping[str, pd.DataFrame]
    figures: Sequence[Callable[[], Figure]]
    forced: bool


def render_page(data: PageData) -> str:
    """The report as HTML; below 5 MB whatever the number of rows and arms."""
    first = data.contrasts[0]
    rows = _rows(data.tables["differing"], data.names)
    n_differing = len(data.tables["differing"])
    deltas = data.tables["deltas"]
    shown = deltas[[name for name in deltas.columns if name not in _NOT_SHOWN]]
    return _template().render(
        title=data.title,
        subtitle=f"Baseline: {data.names[0]}. Read by {first.grader}; rows are paired by item, "
        "order shown and repeat.",
        forced=data.forced,
        contrasts=[
            {
                "title": f"{one.treatment.name} against {one.baseline.name}",
                "headline": headline(one),
                "answers": answers(one),
            }
            for one in data.contrasts
        ],
        alarms=data.tables["alarms"].to_dict("records"),
        arms=_cells(data.tables["arms_compared"].drop(columns=["role", "run_id"])),
        deltas=_cells(shown.head(_MOST_DELTAS)),
        figures=[Markup(inline_svg(draw)) for draw in data.figures],
        rows=rows,
        rows_said=f"{len(rows):,} of {n_differing:,} rows, kinds of change taking turns; "
        "mcq_differing_rows.parquet holds all of them.",
        names=list(data.names),
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    loader = PackageLoader("mlflow_mcq.comparison", ".")
    return Environment(loader=loader, autoescape=True).get_template("page.html")


def inline_svg(draw: Callable[[], Figure]) -> str:
    """A figure as SVG whose lines and texts take the colour of the page around it."""
    import matplotlib

    names = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    style: Any = dict.fromkeys((*names, "axes.titlecolor"), _PLACEHOLDER)
    style |= {"svg.fonttype": "none", "axes.facecolor": "none", "figure.facecolor": "none"}
    buffer = io.StringIO()
    with matplotlib.rc_context(style):
        draw().savefig(buffer, format="svg", transparent=True)
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return svg.replace(_PLACEHOLDER, "currentColor")


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return {"columns": [str(name).replace("_", " ") for name in table.columns], "rows": rows}


def _cell(value: Any) -> dict[str, Any]:
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return {"number": True, "text": "–"}
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) > 1
        small = 0 < abs(value) < 0.0005
        text = f"{value:,.0f}" if whole else "< 0.001" if small and value > 0 else f"{value:.3f}"
        return {"number": True, "text": text}
    return {"number": isinstance(value, int), "text": str(value)}


def _rows(differing: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """The first rows, as many as a page can bear."""
    rows, n_chars = [], 0
    for row in differing.head(_MOST_ROWS).to_dict("records"):
        said = [{what: _text(row[f"{what}: {name}"]) for what in _SAID} for name in names]
        page = f"{_text(row['question'])}\n{_text(row['options_shown'])}"
        page += f"\ngold: {row['gold_letter']}" if _text(row["gold_letter"]) else ""
        n_chars += len(page) + sum(len(text) for one in said for text in one.values())
        if n_chars > _MOST_CHARS:
            break
        rows.append({"id": row["row_id"], "change": row["change"], "page": page, "said": said})
    return rows


_SAID = ("verdict", "letter", "answer", "reason")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + " …"
