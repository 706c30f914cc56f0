"""The notebooks run as they stand, and say what is committed in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from pages import ROOT, name_of

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
_MOST_BYTES = 30_000


def printed(notebook: Any) -> list[str]:
    """What each cell writes to standard output."""
    return [
        "".join(one.text for one in cell.outputs if one.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_says_what_is_committed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel starts in another folder, and must find this very checkout.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    committed = nbformat.read(path, as_version=4)
    told = printed(committed)
    assert sum(map(bool, told)) >= 3
    where = {"metadata": {"path": str(tmp_path)}}
    ran = NotebookClient(committed, timeout=300, kernel_name="python3", resources=where).execute()
    assert printed(ran) == told


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_small_and_holds_text_only(path: Path) -> None:
    assert path.stat().st_size < _MOST_BYTES
    cells = nbformat.read(path, as_version=4).cells
    kinds = {(one.output_type, one.get("name")) for c in cells for one in c.get("outputs", ())}
    assert kinds <= {("stream", "stdout")}


def test_the_notebooks_are_on_their_page() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 2
    assert all(f"(notebooks/{path.name})" in page for path in NOTEBOOKS)
