"""What to do about data that is not a table of items: the hints of errors, and nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

__all__ = ["from_file", "near_column", "nested", "split_column", "split_options"]

_FLATTEN = "No column is looked into where it holds dicts: pass pandas.json_normalize(rows)"
_SIGNS = {";": '";"', "\t": '"\\t"', "|": '"|"'}


def from_file(error: BaseException) -> str:
    """How to read a file that is no UTF-8; empty for another fault."""
    if not isinstance(error, UnicodeDecodeError):
        return ""
    return (
        'Save it as UTF-8, or pass a DataFrame: pandas.read_csv(path, encoding="latin-1"), with '
        "the encoding that it has."
    )


def near_column(named: str, names: Sequence[str]) -> str:
    """The column that was meant, and those that there are.

    Example:
        >>> near_column("Richtig", ["Frage", "richtig"])
        'Did you mean "richtig"? Has [\\'Frage\\', \\'richtig\\']'
    """
    outer = named.partition(".")[0]
    if outer != named and outer in names:
        return f"{_FLATTEN}, whose columns are named like {named!r}. Has {list(names)}"
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(named.casefold(), folded, n=1, cutoff=0.6)
    hint = f'Did you mean "{folded[near[0]]}"? ' if near else ""
    return f"{hint}Has {list(names)}{split_column(names)}"


def nested(cell: object, column: str = "") -> str:
    """How to lay open what stands inside a cell; empty where it is no dict.

    Example:
        >>> nested({"text": "2 + 2?"}, "prompt").partition("whose ")[2]
        "columns are named like 'prompt.text'."
        >>> nested("2 + 2?", "prompt")
        ''
    """
    if not isinstance(cell, Mapping) or not cell:
        return ""
    inner = f"{column}.{next(iter(cell))}"
    return f"{_FLATTEN}{f', whose columns are named like {inner!r}' if column else ''}."


def split_column(names: Sequence[str]) -> str:
    """How to part a table that was read as one column; empty where it was not.

    Example:
        >>> split_column(["Frage;A;B"])
        '. One column: parted by something else than commas? Pass pandas.read_csv(path, sep=";").'
    """
    if len(names) != 1:
        return ""
    sign = next((shown for sign, shown in _SIGNS.items() if sign in names[0]), "")
    if not sign:
        return ""
    read = f"pandas.read_csv(path, sep={sign})"
    return f". One column: parted by something else than commas? Pass {read}."


def split_options(cell: str) -> str:
    """How to part a text that holds several options.

    Example:
        >>> split_options("iron|tin")
        'Part it first: data[column] = data[column].str.split("|").'
        >>> split_options("iron")
        'Give a list, JSON text (["iron", "tin"]), or a column for each option.'
    """
    for sign in ("|", ";", "\n", "\t", ", ", ","):
        if len([part for part in cell.split(sign) if part.strip()]) > 1:
            shown = sign.replace("\n", "\\n").replace("\t", "\\t")
            return f'Part it first: data[column] = data[column].str.split("{shown}").'
    return 'Give a list, JSON text (["iron", "tin"]), or a column for each option.'
