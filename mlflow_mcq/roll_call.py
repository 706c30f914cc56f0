"""Whether every row that was given out came back once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mlflow_mcq.errors import ModelError

__all__ = ["roll_call"]

T = TypeVar("T")
_Key = tuple[str, str, int, int]


def roll_call(
    found: Iterable[tuple[_Key, T]],
    asked: Sequence[_Key],
    who: tuple[str, str],
    show: Callable[[T], None] | None = None,
) -> tuple[T, ...]:
    """What came back for each row, in the order in which the rows were given.

    Args:
        found: Rows by key, as they come.
        asked: Keys of those that were given.
        who: Its name in errors, and what it did with a row.
        show: Shown each as it comes.

    Raises:
        ModelError: One came twice, was not given, or did not come.

    Example:
        >>> a, b = ("a", "letters", 0, 0), ("b", "letters", 0, 0)
        >>> roll_call([(b, "second"), (a, "first")], [a, b], ("engine", "answered"))
        ('first', 'second')
    """
    name, did = who
    wanted, done = set(asked), dict[_Key, T]()
    for key, one in found:
        if key in done or key not in wanted:
            rule = "one row twice" if key in done else "a row that it was not given"
            raise ModelError(name, f"{did} {rule}", key)
        done[key] = one
        if show is not None:
            show(one)
    lost = [key for key in asked if key not in done]
    if lost:
        raise ModelError(name, f"lost {len(lost)} of {len(asked)} rows", lost[:5])
    return tuple(done[key] for key in asked)
