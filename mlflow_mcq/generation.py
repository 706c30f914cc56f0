"""The rows of a recipe made ahead, by one process or by all that a launcher has started.

What is made is kept on disk, where the run of the same recipe finds it: generation may
take many GPUs and several machines, and everything after it takes one process.

0. All ranks compare what they are about to do, and end at once where that differs.
1. The main rank looks which items lack a row. A restart, or another number of ranks, does
   only these.
2. Items are cut into chunks, large ones first. A rank draws the number of its next chunk
   from a shared counter, so a slow rank holds up nobody, and nobody waits for anybody.
3. Each rank writes to a file of its own in one folder; a row's key is a hash of its content.
4. Rows that the main rank still lacks travel there: where ranks share no file system.

Which rank makes a row, and beside which others, does not change it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow.utils.logging_utils import eprint

from mlflow_mcq.agreement import Parts, agreed, parts_of_settings
from mlflow_mcq.datasets.frame import items_of
from mlflow_mcq.datasets.human_label import refuse_human_labels
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.streaming import load_part
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.kept import FoundEngine, KeptEngine
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.pool import PooledChat
from mlflow_mcq.errors import ModelError
from mlflow_mcq.experiment.running import arm_settings, handle_of
from mlflow_mcq.experiment.spec import ArmSpec, Recipe
from mlflow_mcq.pipeline import data_digest, generate, requests_for
from mlflow_mcq.ranks import Ranks, chunk_ends, join_ranks
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.records import Decoding, Item, Reply, Request
from mlflow_mcq.settings import Settings
from mlflow_mcq.spent import Spent
from mlflow_mcq.store.journal import Journal
from mlflow_mcq.store.ledger import Entry, enter
from mlflow_mcq.store.row_key import row_key
from mlflow_mcq.store.row_store import RowStore
from mlflow_mcq.unwrap import engine_of, journal_of, rows_folder, rows_name, speaks_chat

__all__ = ["ArmRows", "generate_recipe"]

_TOGETHER = 4096
"""Items whose rows travel at a time, so that a million do not lie in memory at once."""


@dataclass(frozen=True, slots=True)
class ArmRows:
    """What has become of the rows of one arm.

    Attributes:
        name: Of the arm.
        n_rows: How many it has.
        n_found: How many were there already.
        n_missing: How many have no answer; a run asks for them again.
        skipped: Why none were made ahead; empty where they were.
    """

    name: str
    n_rows: int = 0
    n_found: int = 0
    n_missing: int = 0
    skipped: str = ""


def generate_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> list[ArmRows]:
    """Make the rows of every arm of a recipe and keep them for its run.

    Every rank calls it, and all return the same.

    Args:
        path: As in `mlflow_mcq.run_recipe`.
        overrides: Likewise.

    Raises:
        McqError: The recipe is not usable, ranks disagree, or not one row has an answer.
    """
    ranks = join_ranks()

    def load() -> tuple[Recipe, Parts]:
        recipe = load_recipe(path, overrides)
        return recipe, _parts_of(recipe)

    recipe = agreed(ranks, "recipe", load)
    return [_arm_rows(recipe, arm, ranks) for arm in recipe.arms]


def _parts_of(recipe: Recipe) -> dict[str, str]:
    """What a recipe asks for; not where things lie, which may differ between machines."""
    parts = {"arms": ", ".join(arm.name for arm in recipe.arms)}
    for arm in recipe.arms:
        checked = arm_settings(recipe, arm)
        settings = checked.measured
        settings["cache"] = checked.cache if checked.cache in ("off", "run") else "a folder"
        if settings["few_shot"] is not None:
            settings["few_shot"]["path"] = None  # what is read from it stands in the prompts
        model = recipe.model_of(arm)
        parts |= parts_of_settings(settings, f"arm {arm.name}: ")
        parts[f"arm {arm.name}: kind of model"] = type(model).__name__
    return parts


def _arm_rows(recipe: Recipe, arm: ArmSpec, ranks: Ranks) -> ArmRows:
    settings = arm_settings(recipe, arm)
    model = recipe.model_of(arm)
    if model is None:
        return ArmRows(arm.name, skipped="its answers are in the data")
    if settings.cache == "off":
        return ArmRows(arm.name, skipped='with cache: "off" no row is kept')

    def read() -> tuple[Sequence[Item], Parts]:
        rows = list(
            read_data(load_part(*recipe.source_of(arm), settings), settings, None, None).rows
        )
        refuse_human_labels(rows, settings.columns)
        items = items_of(rows)
        digest = data_digest(items) if ranks.size > 1 else ""  # seconds, for a million
        return items, {"data": f"{len(items)} items, {digest}"}

    def load() -> tuple[ChatEngine | None, Parts]:
        # Several ranks are the processes already: none starts further ones.
        one = settings if ranks.size == 1 else settings.model_copy(update={"processes": 1})
        engine = _engine(model, one)
        return engine, {"kind of model": "none" if engine is None else type(engine.chat).__name__}

    items = agreed(ranks, "data", read)  # before minutes of loading weights
    engine = agreed(ranks, "model", load)
    if engine is None:
        return ArmRows(arm.name, skipped="what the model is cannot be told from its name")
    requests = agreed(ranks, "prompts", _prompts(engine, items, settings, ranks))
    if isinstance(engine.chat, (PooledChat, LocalChat)):
        return _Work(arm.name, engine, requests, settings, ranks).done()
    # A server is asked by one process: what it bears is bounded for that one.
    work = _Work(arm.name, engine, requests, settings, Ranks())
    return ranks.from_main(work.done)


def _prompts(
    engine: ChatEngine, items: Sequence[Item], settings: Settings, ranks: Ranks
) -> Callable[[], tuple[list[Request], Parts]]:
    chat: Any = engine.chat
    if isinstance(chat, LocalChat):
        # Where weights lie on the main rank's machine names them for all: on another one the
        # same files have other dates.
        chat.origin = ranks.from_main(lambda: chat.origin)

    def set_out() -> tuple[list[Request], Parts]:
        requests = requests_for(items, settings, chat=speaks_chat(engine, settings))
        digest = hashlib.sha256()
        for request in requests if ranks.size > 1 else ():
            # Without model and decoding, which are parts of their own.
            digest.update(row_key("", request, Decoding()))
        return requests, {
            "model": engine.fingerprint,
            "prompts": digest.hexdigest()[:12],
            "decoding": str(settings.decoding),
        }

    return set_out


def _engine(model: Any, settings: Settings) -> ChatEngine | None:
    """The engine that a run of the recipe would use; None where it keeps no rows."""
    import mlflow.pyfunc

    handle = handle_of(model, settings)
    if isinstance(handle, str):
        handle = mlflow.pyfunc.load_model(handle)
        engine = engine_of(handle, settings)
    else:
        engine = handle.engine
    return engine if isinstance(engine, ChatEngine) else None


class _Work:
    """One arm as one rank sees it."""

    def __init__(
        self,
        arm: str,
        engine: ChatEngine,
        requests: Sequence[Request],
        settings: Settings,
        ranks: Ranks,
    ) -> None:
        self._arm, self._engine, self._settings, self._ranks = arm, engine, settings, ranks
        self._items: dict[str, list[Request]] = {}
        for request in requests:
            self._items.setdefault(request.prompt.item.id, []).append(request)
        self._n_rows = len(requests)
        self._failure = ""

    def done(self) -> ArmRows:
        """Make what is missing, together with the other ranks."""
        requests = self._all(self._items)
        name = rows_name(self._engine, requests, self._settings) or ""
        journal: list[Journal | None] = []
        # First on the main rank: it takes the lock of the folder, or says who has it.
        self._ranks.from_main(
            lambda: journal.append(journal_of(self._engine, requests, self._settings))
        )
        if journal and journal[0] is not None:
            try:
                return self._with(journal[0].rows)
            except BaseException:
                if len(journal[0].rows):
                    eprint(f"this broke off; {journal[0].kept}")
                raise
            finally:
                journal[0].close(finished=False)
        with closing(RowStore(rows_folder(self._settings, name) or "")) as rows:
            return self._with(rows)

    def _with(self, rows: RowStore) -> ArmRows:
        n_before, pending = self._settled(rows)
        start = time.monotonic()
        self._make(rows, pending)
        if not self._ranks.is_main:
            rows.close()  # on the disk, before the main rank looks
        spent = self._ranks.gather(self._engine.spent)
        # A folder of the user's own serves other runs as well, which it did not cost.
        if self._settings.cache == "run" and any(one.n_rows > 0 for one in spent):
            seconds = time.monotonic() - start
            enter(rows.folder, Entry(sum(spent, Spent()), seconds, self._ranks.size))
        n_missing, pending = self._settled(rows, refresh=True)
        failures = self._ranks.gather(self._failure)

        def check() -> None:
            if n_missing == self._n_rows and any(failures):
                raise ModelError(f"arm {self._arm!r}", next(filter(None, failures)))

        self._ranks.from_main(check)
        return ArmRows(self._arm, self._n_rows, self._n_rows - n_before, n_missing)

    def _make(self, rows: RowStore, pending: Sequence[str]) -> None:
        """Draw chunks and answer them until none is left."""
        ends = chunk_ends(len(pending), self._ranks.size)
        draw = self._ranks.ticket()
        while (number := draw()) < len(ends):
            begin = ends[number - 1] if number else 0
            chunk = self._all(pending[begin : ends[number]])
            try:
                generate(KeptEngine(self._engine, rows), chunk, self._settings)
            except ModelError as error:
                # All rows of a chunk failed; others may not, and a run asks for these again.
                self._failure = self._failure or str(error)

    def _settled(self, rows: RowStore, refresh: bool = False) -> tuple[int, list[str]]:
        """How many rows there are not, and the items that lack them.

        Rows that only other ranks have come to the main one first.
        """

        def look() -> tuple[int, list[str]]:
            if refresh:
                rows.refresh()
            return self._missing(rows)

        n_missing, pending = self._ranks.from_main(look)
        if self._ranks.size == 1 or not pending:
            return n_missing, pending
        for begin in range(0, len(pending), _TOGETHER):
            mine: dict[bytes, Reply] = {}
            if not self._ranks.is_main:
                self._missing(rows, pending[begin : begin + _TOGETHER], mine)
            for replies in self._ranks.gather(mine):
                for key, reply in replies.items():
                    rows.put(key, reply)
        return self._ranks.from_main(lambda: self._missing(rows))

    def _missing(
        self,
        rows: RowStore,
        items: Sequence[str] | None = None,
        replies: dict[bytes, Reply] | None = None,
    ) -> tuple[int, list[str]]:
        """Rows of these items (None: of all) that are not on disk; what is goes to ``replies``."""
        found = FoundEngine(self._engine, rows, replies)
        asked = self._all(self._items if items is None else items)
        answers = generate(found, asked, self._settings)
        lacking = [answer.prompt.item.id for answer in answers if answer.reply.text is None]
        return len(lacking), list(dict.fromkeys(lacking))

    def _all(self, items: Sequence[str] | dict[str, list[Request]]) -> list[Request]:
        return [request for item in items for request in self._items[item]]
