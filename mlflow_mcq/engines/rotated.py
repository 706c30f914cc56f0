"""The fast road: many prompts that have much in common, answered by one model.

How it works, from the outside in:

1. `families_of` builds a prefix tree over the token ids of all prompts. A beginning that
   many share (system prompt, few-shot examples, the head of the chat template) is read
   once and held once; the stem of an item is read once and copied to its rotations.
2. Rows live in the slots of a `Slab`, where the column is the position. Prompts are read
   packed, one behind the other without padding, and only attention sees rows. The last
   token of a prompt is left out: the first step of decoding feeds it, so that reading
   needs no logits, and ends with the keys of the last layer.
3. Each step feeds the newest token of every row, and behind it what `Drafts` guesses to
   come next, as far as the device has room. Rows that end leave, the last rows move into
   their slots, and new rows enter as soon as a quarter of the slots is free, or all that
   are left fit.
4. Attention over the held beginning and over a row's own keys are merged by log-sum-exp
   (`shared_attention`), so the beginning costs no memory per row.
5. Where memory does not suffice, the slots are halved and the rows under way start again:
   greedy decoding and one seed per row give the same tokens.

The output of a row never depends on the rows beside it; between two answers the model is
exactly as the user left it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from mlflow_mcq.engines.decoding import RowSampler, borrowed, ends_with_stop, warpers
from mlflow_mcq.engines.drafts import Drafts
from mlflow_mcq.engines.memory import free_memory, within_memory
from mlflow_mcq.engines.norms import lent_norms, plain_norms
from mlflow_mcq.engines.prefix_tree import Family, common, families_of, passes_of, pieces_of
from mlflow_mcq.engines.row import Row
from mlflow_mcq.engines.shared_attention import AllKept, Page, lent_attention
from mlflow_mcq.engines.slab import Held, Slab, token_bytes
from mlflow_mcq.engines.weights import cache_name, forward_names, hook_numbers
from mlflow_mcq.engines.wide_head import lent_head
from mlflow_mcq.engines.work import Ended, Tally, Work
from mlflow_mcq.records import Decoding

__all__ = ["RotatedGenerator", "most_rows"]

_MOST_SLOTS, _MOST_SLOTS_ELSEWHERE = {"cpu": 256}, 512
_PACK = {"cpu": 512}
_PACK_ELSEWHERE = 8192
"""Tokens that are read in one pass: enough to fill the processor, not more."""

_CHUNK = 512
"""Tokens of one prompt that are read in one pass: its mask grows with their number."""


class RotatedGenerator:
    """Answers prompts on the fast road.

    Args:
        model: A causal language model that `gate.refusal` lets through.
        tokenizer: Decodes what stop texts are looked for in.
        decoding: How answers are drawn.
        eos: Ids that end an answer.
        watch: Shown the logits of every step, as (place, number of tokens so far, logits).

    Attributes:
        tally: What has been done so far.
        n_slots: Most rows at once; set from the free memory, halved where that was wrong.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        decoding: Decoding,
        eos: Sequence[int],
        watch: Callable[[int, int, torch.Tensor], None] | None = None,
    ) -> None:
        self._model, self._tokenizer, self._decoding = model, tokenizer, decoding
        self._eos, self._watch = frozenset(eos), watch
        self._warpers = warpers(decoding)
        self._device = next(model.parameters()).device
        self._kind = model.dtype if model.dtype.is_floating_point else torch.float32
        config = model.config
        self._config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self._names = forward_names(model)
        self._cache_name = cache_name(model)
        self._hooked = bool(hook_numbers(model))
        self._norms = plain_norms(model)
        self.tally = Tally()
        self.n_slots = 0
        self._cap = most_rows(self._device.type)
        # The beginning that is held, and what is under way in the present family.
        self._beginning: list[int] = []
        self._shared: Held = []
        self._slab: Slab
        self._drafts: Drafts
        self._queue: deque[list[int]] = deque()
        self._entering: list[int] = []
        self._rows: list[Row] = []
        self._ended: list[Ended] = []

    def run(self, work: Sequence[Work]) -> Iterator[Ended]:
        """Answer everything; each place comes exactly once, in any order."""
        heads = [one.ids[:-1] for one in work]
        self.tally.prompts += sum(len(one.ids) for one in work)
        for family in families_of(heads):
            yield from self._family(family, work)
            del self._slab

    # --- one family: hold its beginning, then let rows come and go ---------------------

    def _family(self, family: Family, work: Sequence[Work]) -> Iterator[Ended]:
        places = [place for group in family.groups for place in group]
        longest = max(len(work[place].ids) for place in places) - family.n_shared
        n_columns = longest + self._decoding.max_new_tokens
        with self._lent():
            held = within_memory(lambda: self._hold(work[places[0]].ids[: family.n_shared]))
        self.n_slots = min(self._cap, self._affordable(n_columns), len(places))
        self._slab = self._new_slab(self.n_slots, n_columns)
        if held is None:
            yield from (Ended(place, [], out_of_memory=True) for place in places)
            return
        self._queue = deque(family.groups)
        self._drafts = Drafts(family.groups, self._device.type, self._eos)
        if self._decoding.temperature > 0:  # what is drawn cannot be looked up
            self._drafts.stop()
        while self._queue or self._rows:
            with self._lent():
                done = within_memory(lambda: self._burst(work))
            if done is None:
                self._retreat()
            ended, self._ended = self._ended, []
            yield from ended

    def _burst(self, work: Sequence[Work]) -> bool:
        """Work until enough rows have ended for others to enter."""
        if self._queue and self._room() >= self._enough():
            self._enter(work)
        while self._rows and len(self._ended) < self._enough():
            self._step()
        return True

    def _room(self) -> int:
        return self.n_slots - len(self._rows)

    def _enough(self) -> int:
        """Free slots at which new rows enter: reading a few at a time wastes the processor.

        The last ones enter as soon as they fit: they would go on alone when others have ended.
        """
        n_left = sum(map(len, self._queue)) or self.n_slots
        return max(1, min(self.n_slots // 4, n_left))

    def _affordable(self, n_columns: int) -> int:
        row = n_columns * token_bytes(self._config, self._kind.itemsize)
        return max(1, free_memory(self._device) // 2 // max(1, row))

    def _new_slab(self, n_slots: int, n_columns: int) -> Slab:
        layers = self._config.num_hidden_layers
        return Slab(layers, n_slots, n_columns, self._shared or None, self._device)

    def _retreat(self) -> None:
        """Start the rows under way again with half the slots; one that is alone is lost."""
        ended = {one.place for one in self._ended}
        places = [row.place for row in self._rows] + self._entering
        again = [place for place in dict.fromkeys(places) if place not in ended]
        self._rows, self._entering = [], []
        self._drafts.stop()
        if self.n_slots == 1:
            self._ended += [Ended(place, [], out_of_memory=True) for place in again]
        elif again:
            self._queue.appendleft(again)
        self._cap = self.n_slots = max(1, self.n_slots // 2)
        n_columns = self._slab.n_columns
        del self._slab  # its memory is needed for the smaller one
        self._slab = self._new_slab(self.n_slots, n_columns)

    # --- reading -----------------------------------------------------------------------

    def _hold(self, beginning: list[int]) -> bool:
        """Read a beginning and hold it; what it shares with the last one is kept."""
        n_kept = common(self._beginning, beginning)
        kept = [(keys[:, :, :n_kept], values[:, :, :n_kept]) for keys, values in self._shared]
        self._beginning, self._shared = beginning[:n_kept], kept if n_kept else []
        if n_kept < len(beginning):
            slab = self._new_slab(1, len(beginning) - n_kept)
            self._read(slab, [0], [beginning[n_kept:]], [n_kept])
            self._beginning, self._shared = beginning, slab.hold(len(beginning) - n_kept)
        return True

    def _enter(self, work: Sequence[Work]) -> None:
        entering = self._entering
        while self._queue:
            group = self._next_group(self._room() - len(entering), alone=not entering)
            if not group:
                break
            entering += group
        if entering:
            self._fill(sorted(entering, key=lambda place: work[place].ids), work)
            self._entering = []

    def _next_group(self, room: int, alone: bool) -> list[int]:
        """The next group that fits; one that never will is cut."""
        group = self._queue[0]
        if len(group) <= room:
            return self._queue.popleft()
        if not (alone and room and (not self._rows or len(group) > self.n_slots)):
            return []
        self._queue[0] = group[room:]
        return group[:room]

    def _fill(self, places: list[int], work: Sequence[Work]) -> None:
        """Read the prompts of sorted places into the next free slots, pass by pass."""
        first = len(self._rows)
        heads = [work[place].ids[:-1] for place in places]
        pieces = pieces_of(heads, self._slab.n_shared)
        for here in passes_of(pieces, _PACK.get(self._device.type, _PACK_ELSEWHERE)):
            for begin in sorted({piece.begin for piece in here if piece.source is not None}):
                same = [piece for piece in here if piece.begin == begin]
                self._slab.copy(
                    [first + piece.source for piece in same if piece.source is not None],
                    [first + piece.row for piece in same if piece.source is not None],
                    begin - self._slab.n_shared,
                )
            own = [piece for piece in here if len(piece)]
            if own:
                self._read(
                    self._slab,
                    [first + piece.row for piece in own],
                    [heads[piece.row][piece.begin : piece.end] for piece in own],
                    [piece.begin for piece in own],
                )
        sampled = self._decoding.temperature > 0
        for place in places:
            one = work[place]
            sampler = RowSampler([one.seed]) if sampled else None
            self._rows.append(Row(place, one.ids, sampler))
            self._drafts.learn(place, one.ids, self._slab.n_shared)
        self.tally.slots = max(self.tally.slots, len(self._rows))

    def _read(
        self, slab: Slab, slots: list[int], tokens: Sequence[list[int]], begins: Sequence[int]
    ) -> None:
        if len(tokens) == 1:
            [alone], [begin] = tokens, begins
            for at in range(0, len(alone), _CHUNK):
                self._read_pass(slab, slots, [alone[at : at + _CHUNK]], [begin + at])
        else:
            self._read_pass(slab, slots, tokens, begins)

    def _read_pass(
        self, slab: Slab, slots: list[int], tokens: Sequence[list[int]], begins: Sequence[int]
    ) -> None:
        # What the last layer makes of its keys would be thrown away; but a hook sees it all.
        ends_at = None if self._hooked else self._config.num_hidden_layers - 1
        page = slab.open(slots, [len(one) for one in tokens], begins, self._kind, ends_at)
        with suppress(AllKept):
            self._forward(slab, page, tokens, keep=1)
        self.tally.read += sum(map(len, tokens))

    # --- decoding ----------------------------------------------------------------------

    def _step(self) -> None:
        """Feed the newest token of every row and what may follow it; rows that end leave."""
        rows = self._rows
        guesses = self._guesses()
        fed = [[row.token, *guess] for row, guess in zip(rows, guesses, strict=True)]
        lengths, begins = [len(one) for one in fed], [row.position for row in rows]
        page = self._slab.open(slice(0, len(rows)), lengths, begins, self._kind)
        logits = self._forward(self._slab, page, fed, keep=0).float()
        self.tally.steps += 1
        self.tally.fed += len(logits)
        chosen = self._choose(logits)
        leaving, first = [], 0
        for slot, (row, guess) in enumerate(zip(rows, guesses, strict=True)):
            lines = slice(first, first + len(guess) + 1)
            if self._say(row, guess, chosen[lines], logits[lines]):
                leaving.append(slot)
            first = lines.stop
        if leaving:
            self._leave(leaving)

    def _say(self, row: Row, guess: list[int], chosen: list[int], logits: torch.Tensor) -> bool:
        """Take up the tokens chosen as far as the guesses before them hold; True at the end."""
        for at, (token, guessed) in enumerate(zip(chosen, [*guess, None], strict=True)):
            if self._watch is not None:
                self._watch(row.place, len(row.new), logits[at])
            self._drafts.heed(row.place, row.newest, token)
            row.new.append(token)
            over, stopped = self._is_over(row, token)
            if over:
                self._ended.append(Ended(row.place, row.new, stopped))
                self._drafts.end(row.place)
                return True
            if token != guessed:
                break
        return False

    def _guesses(self) -> list[list[int]]:
        """What is fed beside the newest token of each row; nothing where rows are drawn."""
        rows = self._rows
        # The last token of an answer is never fed, nor is what would stand beyond it.
        room = self._decoding.max_new_tokens - 1
        return [
            self._drafts.guess(row.place, row.newest, len(rows), room - len(row.new))
            for row in rows
        ]

    def _is_over(self, row: Row, token: int) -> tuple[bool, bool]:
        """Whether a row has ended, and whether a stop text did it."""
        stopped = ends_with_stop(self._decoding.stop, self._tokenizer, row.new)
        full = len(row.new) >= self._decoding.max_new_tokens
        return token in self._eos or stopped or full, stopped

    def _choose(self, logits: torch.Tensor) -> list[int]:
        if self._decoding.temperature > 0:
            for warp in self._warpers:
                logits = warp(None, logits)
            drawn = [
                row.sampler(logits, logits[slot : slot + 1])
                for slot, row in enumerate(self._rows)
                if row.sampler is not None
            ]
            logits = torch.cat(drawn)
        # torch's argmax goes over a vocabulary one number at a time, numpy's does not.
        likeliest = logits.numpy() if logits.device.type == "cpu" else logits
        return list(likeliest.argmax(-1).tolist())

    def _leave(self, slots: list[int]) -> None:
        """Let the last rows move into the slots of those that leave."""
        n_left = len(self._rows) - len(slots)
        gone = set(slots)
        holes = [slot for slot in slots if slot < n_left]
        movers = [slot for slot in range(n_left, len(self._rows)) if slot not in gone]
        if holes:
            most = max(self._rows[slot].position for slot in movers)
            self._slab.copy(movers, holes, most - self._slab.n_shared)
        for hole, mover in zip(holes, movers, strict=True):
            self._rows[hole] = self._rows[mover]
        del self._rows[n_left:]

    # --- the model ---------------------------------------------------------------------

    def _forward(
        self,
        slab: Slab,
        page: Page,
        tokens: Sequence[list[int]],
        keep: int,
    ) -> torch.Tensor:
        """Logits (T, vocabulary) of packed tokens; of the last ``keep`` only, 0 for all."""
        flat = [token for one in tokens for token in one]
        options: dict[str, Any] = {self._cache_name: slab.cache}
        if "logits_to_keep" in self._names:
            # A vocabulary wide for each token that is read would fill the memory.
            options["logits_to_keep"] = keep
        out = self._model(
            input_ids=torch.tensor([flat], device=self._device),
            position_ids=(page.column + slab.n_shared)[None],
            use_cache=True,
            page=page,
            **options,
        )
        logits: torch.Tensor = out.logits[0]
        return logits

    @contextmanager
    def _lent(self) -> Iterator[None]:
        # no_grad, not inference_mode: buffers that a model fills on the way (rotary tables)
        # would be unusable in the training step that follows.
        model = self._model
        with (
            borrowed(model, model.generation_config),
            lent_attention(model),
            lent_head(model),
            lent_norms(self._norms),
            torch.no_grad(),
        ):
            yield


def most_rows(kind: str) -> int:
    """Most rows at once on a kind of device, where memory allows."""
    return _MOST_SLOTS.get(kind, _MOST_SLOTS_ELSEWHERE)
