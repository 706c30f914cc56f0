"""Whether all processes are about to do the same; said before any of them begins.

Each puts up what it is about to do, in parts with a name: data, prompts, a setting, the
model, the version of this package. Where one differs every process ends with the same error,
which says whose part that is: within seconds, and not when a process has waited in vain.

`agreed` is for work that all processes are known to begin: it waits for everybody, and finds
out one that has died. `SameCall` is for a call that the main process may also make alone: it
waits for nobody.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from mlflow_mcq.board import Board, open_board
from mlflow_mcq.errors import ModelError
from mlflow_mcq.ranks import Ranks

__all__ = ["Parts", "SameCall", "agreed", "digest_of", "parts_of_settings"]

T = TypeVar("T")
Parts = Mapping[str, str]

_BEAT_S = 1.0
_SILENCE_S = 60.0
"""Longest silence of a process that lives: loading weights may hold it up for seconds."""

_PATIENCE_S = 1800.0
"""How long one that lives may be behind; torch.distributed waits as long by default."""

_SETTLE_S = 1.0
"""Once a difference is seen, for others to come, so that the error names all who differ."""

_SHOWN = 40
_LONGEST = 120
_PACKAGE = Path(__file__).parent


def digest_of(*texts: str) -> str:
    """Twelve hex digits over texts, in order.

    Example:
        >>> digest_of("ab", "c") == digest_of("ab", "c"), digest_of("ab", "c") == digest_of("abc")
        (True, False)
    """
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:12]


def parts_of_settings(settings: Mapping[str, Any], of: str = "") -> dict[str, str]:
    """A part for each setting, and one for the version of this package.

    What is long, or holds further settings, stands there as a digest: an error is no place
    for a judge's address.

    Args:
        settings: As `Settings.model_dump` gives them.
        of: Put in front of each name, such as the arm.

    Example:
        >>> parts_of_settings({"seed": 3})["setting seed"]
        '3'
    """
    parts = {"package version": _version()}
    for name, value in settings.items():
        text = json.dumps(value, default=str, sort_keys=True)
        long = isinstance(value, Mapping) or len(text) > _SHOWN
        parts[f"{of}setting {name}"] = digest_of(text) if long else text
    return parts


def _version() -> str:
    try:
        return version("mlflow-mcq")
    except PackageNotFoundError:  # run from its sources
        return "not installed"


def agreed(ranks: Ranks, what: str, prepare: Callable[[], tuple[T, Parts]]) -> T:
    """Prepare something on every process, and go on only where all have prepared the same.

    Args:
        ranks: All processes; each comes here, in the same order of calls.
        what: What is prepared, for the errors.
        prepare: Gives it, and its parts.

    Returns:
        What was prepared here.

    Raises:
        ModelError: Processes differ, or another one failed, died or is half an hour behind.
            The same error on all who came.
        Exception: What ``prepare`` raised here; the others hear of it.

    Example:
        >>> agreed(Ranks(), "data", lambda: ([1, 2], {"data": digest_of("1, 2")}))
        [1, 2]
    """
    if ranks.size == 1:
        return prepare()[0]
    board = open_board(f"agreed/{what}")
    board.draw("came")
    try:
        value = _told(board, ranks, what, prepare)
    except Exception:
        board.leave()
        if ranks.is_main:
            board.see_off()  # its end may be that of the store
        raise
    board.leave()
    return value


def _told(board: Board, ranks: Ranks, what: str, prepare: Callable[[], tuple[T, Parts]]) -> T:
    try:
        with _beating(board, ranks.index):
            value, parts = prepare()
    except BaseException as error:
        why = f"failed with {type(error).__name__} as it prepared the {what}: {error}"
        board.put(f"told/{ranks.index}", ("failed", why))
        raise
    board.put(f"told/{ranks.index}", ("ready", parts))
    heard = _heard(board, ranks, what)
    for number, (kind, said) in heard.items():
        if kind == "failed":
            raise ModelError(f"process {number}", said)
    _compare({number: said for number, (_, said) in heard.items()})
    return value


@contextmanager
def _beating(board: Board, index: int) -> Iterator[None]:
    """Say again and again that this process lives, whatever it is busy with."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_BEAT_S):
            try:
                board.draw(f"beat/{index}")
            except ModelError:  # the store has gone: this process will find out itself
                return

    thread = threading.Thread(target=beat, name="mcq-beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _heard(board: Board, ranks: Ranks, what: str) -> dict[int, tuple[str, Any]]:
    """What each process has told; of some only, where these differ already.

    Raises:
        ModelError: One is silent, or far behind.
    """
    heard: dict[int, tuple[str, Any]] = {}
    beats: dict[int, tuple[int, float]] = {}
    start, settled, pause = time.monotonic(), 0.0, 0.005
    while True:
        for number in set(range(ranks.size)) - heard.keys():
            if board.has(f"told/{number}"):
                heard[number] = board.take(f"told/{number}")
        now = time.monotonic()
        if len(heard) == ranks.size or (settled and now > settled):
            return dict(sorted(heard.items()))
        if not settled and any(one != heard[ranks.index] for one in heard.values()):
            settled = now + _SETTLE_S
        for number in set(range(ranks.size)) - heard.keys():
            beat = board.drawn(f"beat/{number}")
            if number not in beats or beats[number][0] != beat:
                beats[number] = (beat, now)
            silent = now - beats[number][1] > _SILENCE_S
            if silent or now - start > _PATIENCE_S:
                how = f"has not said a word for {_SILENCE_S:.0f} s" if silent else "is not ready"
                raise ModelError(
                    f"process {number}",
                    f"{how}, and the others wait for its {what}",
                    possible="Its own output says why. The rows made so far are kept.",
                )
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _compare(told: Mapping[int, Parts]) -> None:
    """Raise where one has another part than the first.

    Raises:
        ModelError: It does.
    """
    words = _difference(told)
    if words is not None:
        raise ModelError(*words)


def _difference(told: Mapping[int, Parts]) -> tuple[str, str, str, str] | None:
    """The words of the error; None where all have the same.

    Example:
        >>> _difference({0: {"data": "a"}, 1: {"data": "a"}}) is None
        True
        >>> _difference({0: {"data": "a", "seed": "1"}, 2: {"data": "b", "seed": "1"}})[:2]
        ('process 2', 'differs from process 0 in data (b on process 2, a on process 0)')
    """
    first = min(told)
    names = list(dict.fromkeys(name for parts in told.values() for name in parts))
    odd = [number for number in sorted(told) if dict(told[number]) != dict(told[first])]
    if not odd:
        return None
    differ = []
    for name in names:
        base = told[first].get(name)
        other = next((number for number in odd if told[number].get(name) != base), None)
        if other is not None:
            here = _cut(told[other].get(name))
            differ.append(f"{name} ({here} on process {other}, {_cut(base)} on process {first})")
    more = f" and {len(differ) - 5} more" if len(differ) > 5 else ""
    who = f"process {odd[0]}" if len(odd) == 1 else f"processes {', '.join(map(str, odd))}"
    verb = "differs" if len(odd) == 1 else "differ"
    return (
        who,
        f"{verb} from process {first} in {', '.join(differ[:5])}{more}",
        "",
        "Give every process the same data, settings, model and version of this package.",
    )


def _cut(value: str | None) -> str:
    text = "none" if value is None else value
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


class SameCall:
    """A call at one place of the program: the processes that come there must mean the same.

    All run one program, so what the n-th call of a place is about has to be the same for all;
    a call that the main process makes alone stands at another place.

    Args:
        ranks: All processes.
        parts: What is called for.
        board: Where that is put up; None is that of the next call of this place.
    """

    def __init__(self, ranks: Ranks, parts: Parts, board: Board | None = None) -> None:
        place, self._line = _place()
        self._ranks, self._parts = ranks, parts
        self._board = board or open_board(f"place/{place}")
        self._board.put(f"parts/{ranks.index}", dict(parts))
        self._board.draw("came")
        # Whoever comes later of two sees both.
        self._unseen = set(range(1, ranks.size)) if ranks.is_main else {0}

    def check(self) -> None:
        """End this process where another differs from the main one. Waits for nobody.

        Raises:
            ModelError: One does; the same error on all who look.
        """
        if self._board.has("differs"):
            raise ModelError(*self._board.take("differs"))
        there = [number for number in self._unseen if self._board.has(f"parts/{number}")]
        for number in there:
            if self._board.take(f"parts/{number}") != self._parts:
                self._refuse()
        # The main one looks once: who comes after it looks itself.
        self._unseen = set() if self._ranks.is_main else self._unseen - set(there)

    def compare_model(self, theirs: str, mine: str) -> None:
        """Compare what is known only once the weights are loaded.

        Args:
            theirs: Name of the main process's model.
            mine: Of the one here.

        Raises:
            ModelError: They differ; the main process ends with it as well.
        """
        if theirs != mine:
            self._raise(_difference({0: {"model": theirs}, self._ranks.index: {"model": mine}}))

    def leave(self) -> None:
        """Say that this process has what it came for."""
        self._board.leave()

    def see_off(self) -> None:
        """Wait, on the main process, until all who came have read why it ends."""
        self._board.see_off()

    def _refuse(self) -> None:
        """Name all who differ, as soon as everybody is there or has had time to come."""
        end = time.monotonic() + _SETTLE_S
        told: dict[int, Parts] = {}
        while len(told) < self._ranks.size and time.monotonic() < end:
            for number in set(range(self._ranks.size)) - told.keys():
                if self._board.has(f"parts/{number}"):
                    told[number] = self._board.take(f"parts/{number}")
            time.sleep(0.01)
        self._raise(_difference(told))

    def _raise(self, words: tuple[str, str, str, str] | None) -> None:
        if words is None:
            return
        who, rule, got, possible = words
        only = " A call that process 0 makes alone must stand on another line of the program."
        if self._board.draw("author") == 0:
            at = f"{rule}, in the call at {self._line}"
            self._board.put("differs", (who, at, got, possible + only))
        raise ModelError(*self._board.take("differs"))


def _place() -> tuple[str, str]:
    """Where the program stands: a digest over the lines that led here, and the nearest of them.

    The whole stack, or every call of a helper of the user's own would be one place; names of
    files and not of folders, which differ between machines.
    """
    frames = [(Path(f.f_code.co_filename), line) for f, line in traceback.walk_stack(None)]
    theirs = next((one for one in frames if _PACKAGE not in one[0].parents), frames[-1])
    lines = [f"{path.name}:{at}" for path, at in frames]
    return digest_of(*lines), f"{theirs[0].name}:{theirs[1]}"
