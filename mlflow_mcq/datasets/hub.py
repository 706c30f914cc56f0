"""Data from the Hugging Face hub, or from a folder that `datasets` can read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from mlflow_mcq.datasets.files import frame_of
from mlflow_mcq.datasets.scheme import SCHEME
from mlflow_mcq.errors import DataError

__all__ = ["SCHEME", "frame_from_dataset", "load_hub"]

_ADDRESS = re.compile(r"hf:(?P<name>[^:@]+)(?::(?P<config>[^@]+))?(?:@(?P<revision>.+))?")


def load_hub(address: str, split: str | None = None) -> pd.DataFrame:
    """Load ``hf:owner/name``, with ``:config`` and ``@revision`` where they are wanted.

    What is in the cache of `datasets` is used without a network. A folder may stand in
    place of a name: one with data files, or one that `Dataset.save_to_disk` wrote.

    Args:
        address: As above.
        split: Which split; None takes the only one.

    Raises:
        DataError: It cannot be loaded, or holds several splits and none is named.

    Example:
        ``load_hub("hf:allenai/ai2_arc:ARC-Challenge", split="test")``
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise DataError("data", "must be hf:owner/name[:config][@revision]", address)
    import datasets

    faults = (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError)
    try:
        held = _load(match.group("name"), match.group("config"), match.group("revision"))
    except faults as error:
        raise DataError(
            address,
            f"cannot be loaded ({type(error).__name__}: {str(error)[:300]})",
            possible="Without a network only what is in the cache is found: load it once with "
            "datasets.load_dataset where there is one, or give a file.",
        ) from error
    return frame_from_dataset(held, address, split)


def frame_from_dataset(held: Any, name: str, split: str | None = None) -> pd.DataFrame:
    """A table from a `Dataset`, or from one split of a `DatasetDict`.

    Raises:
        DataError: The split is missing, or none is named where there are several.
    """
    if isinstance(held, dict):
        splits = list(held)
        if split is None and len(splits) == 1:
            split = splits[0]
        if split not in held:
            rule = "holds several splits, and none is named" if split is None else "has no split"
            got = ... if split is None else split
            raise DataError(name, rule, got, f"Say split: one of {', '.join(map(str, splits))}.")
        held = held[split]
    elif split is not None and str(getattr(held, "split", None)) != split:
        raise DataError(name, "is one split already, of another name", split)
    # As rows of objects: pandas would turn a column of ints with one gap into floats.
    return frame_of(held.to_list())


def _load(name: str, config: str | None, revision: str | None) -> Any:
    import datasets

    folder = Path(name)
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        return datasets.load_from_disk(name)
    return datasets.load_dataset(name, config, revision=revision)
