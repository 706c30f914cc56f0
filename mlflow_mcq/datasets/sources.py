"""Where data comes from: files, the hub, MLflow data sets, tables, lists of dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.built import built_frame, built_name
from mlflow_mcq.datasets.files import frame_of, load_frame
from mlflow_mcq.datasets.frame import as_frame
from mlflow_mcq.datasets.hub import SCHEME, frame_from_dataset, load_hub
from mlflow_mcq.errors import DataError

__all__ = ["load_data"]


def load_data(data: Any, split: str | None = None) -> pd.DataFrame:
    """A table from anything that holds items.

    Args:
        data: A path (.jsonl, .json, .csv, .parquet), ``hf:owner/name[:config][@revision]``,
            a built set (see `mlflow_mcq.datasets.built`), a DataFrame, a list of dicts, a
            dict of columns (lists of one length), a `datasets.Dataset` or `DatasetDict`, or an
            MLflow data set.
        split: The split to take, of a hub data set or by a column ``split``.

    Returns:
        The rows as they stand; ``attrs["source"]`` names where they came from.

    Raises:
        DataError: It cannot be read, or has no such split.
        SettingsError: The arguments of a built set are not usable.

    Example:
        >>> load_data([{"question": "2+2?", "options": ["3", "4"], "answer": 1}]).shape
        (1, 3)
    """
    if isinstance(data, str) and data.startswith(SCHEME):
        frame = load_hub(data, split)
        frame.attrs["source"] = data
        return frame
    if built_name(data) is not None:
        return _of_split(built_frame(data), split, str(built_name(data)))
    if isinstance(data, (str, Path)):
        frame = load_frame(data)
        frame.attrs["source"] = Path(data).name
        return _of_split(frame, split, Path(data).name)
    if hasattr(data, "to_list") and hasattr(data, "column_names"):
        return frame_from_dataset(data, "data", split)
    if isinstance(data, dict) and data and all(hasattr(v, "column_names") for v in data.values()):
        return frame_from_dataset(data, "data", split)
    if isinstance(data, Mapping) and not data:
        raise DataError("data", "holds no rows", data)
    if isinstance(data, Mapping) and all(
        v is None or isinstance(v, Mapping) for v in data.values()
    ):
        return built_frame(data)  # a name that is not known: says which are
    return _of_split(_table(data), split, "data")


def _table(data: Any) -> pd.DataFrame:
    if isinstance(data, pd.DataFrame):
        return data
    if hasattr(data, "ds"):  # MLflow's data set over one of the hub
        return frame_of(data.ds.to_list())
    held = getattr(data, "df", None)
    if isinstance(held, pd.DataFrame):  # MLflow's data set over a table
        return held
    if hasattr(data, "to_evaluation_dataset"):
        return as_frame(data.to_evaluation_dataset().features_data)
    if isinstance(data, Sequence) and all(isinstance(row, dict) for row in data):
        return frame_of(list(data))
    if isinstance(data, Mapping) and all(isinstance(cells, list) for cells in data.values()):
        return _of_columns(data)
    one = isinstance(data, Mapping) and all(isinstance(name, str) for name in data)
    raise DataError(
        "data",
        "must be a DataFrame, a list of dicts, a dict of columns, an MLflow dataset or a path",
        type(data).__name__,
        "One item is a list of one: [item]." if one else "",
    )


def _of_columns(data: Mapping[str, list[Any]]) -> pd.DataFrame:
    """A table from a list for each column."""
    lengths = {str(name): len(cells) for name, cells in data.items()}
    if len(set(lengths.values())) > 1:
        raise DataError("data", "columns of a dict must be of one length", lengths)
    return frame_of(
        [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    )


def _of_split(frame: pd.DataFrame, split: str | None, name: str) -> pd.DataFrame:
    if split is None:
        return frame
    if "split" not in frame.columns:
        raise DataError(name, "has no splits: there is no column of that name", split)
    chosen = frame[frame["split"].astype(str) == split]
    if not len(chosen):
        known = sorted(map(str, frame["split"].unique()))[:10]
        raise DataError(name, "has no such split", split, f"Has {', '.join(known)}.")
    return chosen
