"""Native layouts: data sets that are read without a word about their columns."""

from mlflow_mcq.datasets.layouts import ai2, exam, page, passage, story, truth
from mlflow_mcq.datasets.layouts.layout import Fields, Layout

__all__ = ["LAYOUTS", "Fields", "Layout"]

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for family in (ai2, exam, passage, story, truth, page)
    for layout in family.LAYOUTS
}
"""All of them by name."""
