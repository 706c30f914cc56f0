"""A seat: one judge with its settings, asked for some votes on each row.

Here is what a reply costs before it is one: each different query is asked once, the
cache is looked at first, and an unreadable reply is asked for again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlflow_mcq.doors import Chat
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.graders.budget import SPENT, Budget
from mlflow_mcq.graders.judge_cache import JudgeCache, query_key
from mlflow_mcq.graders.judge_page import JudgePage, page_of
from mlflow_mcq.graders.judge_prompt import JUDGE_PROMPT_VERSION, judge_conversation
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.judge_settings import JudgeSettings, check_member
from mlflow_mcq.records import Conversation, Generation, Query, Reply

__all__ = ["Ballot", "Seat", "seats_of"]


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote on one row, before it is given.

    Attributes:
        place: Of the row among those asked about.
        number: Of the vote among all votes on the row.
        row: What is to be read.
        page: The judge's list of options.
        query: What is asked.
    """

    place: int
    number: int
    row: Generation
    page: JudgePage
    query: Query


class Seat:
    """One judge.

    Args:
        chat: The model.
        settings: How it is asked.
        first: Number of its first vote among those of all seats: each vote sees another
            order of the options where they are shuffled.
        budget: What it shares with other seats; None takes that of its settings.

    Attributes:
        fingerprint: Twelve hex digits over all that changes one reply of this judge or
            how it is read; holds no secret.
        usage: What it has cost so far.
    """

    def __init__(
        self, chat: Chat, settings: JudgeSettings, first: int = 0, budget: Budget | None = None
    ) -> None:
        self.budget = budget or Budget(settings.max_calls, settings.max_judge_tokens)
        self.chat = chat
        self.settings = settings
        self.first = first
        # Known where the tokenizer is here; a server keeps its own to itself.
        self._control = tuple(getattr(chat, "control_tokens", ()))
        self.fingerprint = _fingerprint(chat, settings)
        self.usage = Usage(money=None if settings.prices is None else 0.0)
        folder = settings.cache_dir
        self._cache = JudgeCache(folder, self.fingerprint) if folder is not None else None
        self._memory: dict[str, Reply] | None = None

    def remember(self) -> None:
        """Give every reply again to the same query, errors too, until told to forget.

        Where rows come in parts, a question that two parts hold must be asked once, as it is
        where they come together.
        """
        self._memory = {}

    def forget(self) -> None:
        """Forget what was remembered; a cache on disk stays."""
        self._memory = None

    def keep_in(self, folder: str | Path) -> None:
        """Keep replies in this folder, unless the settings name another."""
        if self._cache is None:
            self._cache = JudgeCache(folder, self.fingerprint)

    @property
    def draws_lots(self) -> bool:
        """Whether the same question can have two answers."""
        return not (self.chat.deterministic and self.settings.temperature == 0)

    def ballots(self, place: int, row: Generation) -> list[Ballot]:
        """The votes of this judge on one row.

        The same query twice is one vote: where a judge draws no lots and the options
        have no further order, a copy of a vote would decide by being counted twice.
        """
        found: dict[Query, Ballot] = {}
        for vote in range(self.settings.votes):
            page = self._page(row, vote)
            query = Query(self._asked(row, page), seed=vote if self.draws_lots else 0)
            found.setdefault(query, Ballot(place, self.first + vote, row, page, query))
        return [*found.values()]

    def conversation(self, row: Generation) -> Conversation:
        """Exactly what the first vote on a row asks."""
        return self._asked(row, self._page(row, 0))

    def answer(self, ballots: Sequence[Ballot]) -> Iterator[tuple[Ballot, JudgeReading, Reply]]:
        """Yield a reading for each ballot, in any order, as they are ready."""
        waiting: dict[Query, list[Ballot]] = {}
        for ballot in ballots:
            waiting.setdefault(ballot.query, []).append(ballot)
        # The same question to a judge without lots has the same unreadable answer.
        rounds = self.settings.attempts if self.draws_lots else 1
        for attempt in range(rounds):
            again: dict[Query, list[Ballot]] = {}
            for query, reply, reading in self._round(waiting, attempt):
                last = attempt + 1 == rounds or reading.status != "judge_parse_failure"
                if reading.ok or last:
                    # Equal queries show equal options; only their order in the data may
                    # differ, so each row translates its slot by itself.
                    yield from ((ballot, reading, reply) for ballot in waiting[query])
                else:
                    again[query] = waiting[query]
            if not again:
                return
            waiting = again

    def _page(self, row: Generation, vote: int) -> JudgePage:
        turn = self.first + vote if self.settings.shuffle_options else None
        return page_of(row, turn, JUDGE_PROMPT_VERSION)

    def _asked(self, row: Generation, page: JudgePage) -> Conversation:
        chosen = self.settings
        return judge_conversation(
            row, chosen.shape, self.chat.speaks_chat, page, chosen.rationale, self._control
        )

    def _round(
        self, waiting: dict[Query, list[Ballot]], attempt: int
    ) -> Iterator[tuple[Query, Reply, JudgeReading]]:
        """One reply for each query: from the cache, or from the chat."""
        fresh: dict[Query, Query] = {}
        for query, ballots in waiting.items():
            # Another seed for each attempt of each vote.
            sent = replace(query, seed=query.seed + attempt * self.settings.votes)
            told = self._recalled(sent)
            if told is not None:  # counted when it was asked
                yield query, told, self.read(told, ballots[0])
                continue
            known = self._cache.get(sent) if self._cache is not None else None
            reading = self.read(known, ballots[0]) if known else None
            if known is None or reading is None or not reading.ok:
                fresh[sent] = query
                continue
            self.usage += Usage(n_cached=1, money=0.0)
            self._keep(sent, known)
            yield query, known, reading
        for sent, reply in self._replies([*fresh]):
            query = fresh[sent]
            reading = self.read(reply, waiting[query][0])
            if reading.ok and self._cache is not None:  # an empty one has length 0
                self._cache.put(sent, reply)
            self._keep(sent, reply)
            yield query, reply, reading

    def _recalled(self, sent: Query) -> Reply | None:
        memory = self._memory
        return memory.get(query_key(self.fingerprint, sent)) if memory else None

    def _keep(self, sent: Query, reply: Reply) -> None:
        if self._memory is not None:
            self._memory[query_key(self.fingerprint, sent)] = reply

    def charge(self, reply: Reply) -> None:
        """Enter a call that was made."""
        cost = Usage.of_call(reply, self.settings.prices)
        self.usage += cost
        self.budget.spend(cost)

    def _replies(self, queries: list[Query]) -> Iterator[tuple[Query, Reply]]:
        """One reply for each query, as far as the budget goes."""
        while queries:
            room = self.budget.room(len(queries), self.settings.concurrency)
            if not room:
                # No call was made, so none is charged.
                unpaid = Reply(None, self.budget.spent, SPENT)
                yield from ((query, unpaid) for query in queries)
                return
            for query, reply in self._answers(queries[:room]):
                self.charge(reply)
                yield query, reply
            queries = queries[room:]

    def _answers(self, queries: list[Query]) -> Iterator[tuple[Query, Reply]]:
        """One reply for each query, even where the chat breaks its promise."""
        waiting = dict(enumerate(queries))
        for place, reply in self.chat.ask(queries, self.settings.decoding):
            if place in waiting:
                yield waiting.pop(place), reply
        for query in waiting.values():
            yield query, Reply(None, "the judge gave no reply")

    def read(self, reply: Reply, ballot: Ballot) -> JudgeReading:
        """Read a reply to a ballot; its slots are those of the candidate's page."""
        # A text beside an error is not an answer.
        text = None if reply.error is not None else reply.text
        shown, page = ballot.row.prompt.shown, ballot.page
        options = tuple(shown[slot] for slot in page.slots)
        several = ballot.row.prompt.item.takes_all
        reading = parse_judge_reply(text, self.settings.shape, page.names, options, several)
        slot = None if reading.slot is None else page.slots[reading.slot]
        return replace(
            reading, slot=slot, slots=tuple(sorted(page.slots[s] for s in reading.slots))
        )


def seats_of(
    chat: Chat, settings: JudgeSettings, panel: Sequence[tuple[Chat, JudgeSettings]] = ()
) -> tuple[Seat, ...]:
    """The seats of a judge and its panel.

    Args:
        chat: The judge.
        settings: How it is asked, and how many votes it has.
        panel: Further judges with one vote each.

    Raises:
        SettingsError: The settings name another panel than is given, a member has
            settings that only the judge can have, or votes would be copies of each other.
    """
    given = tuple(member for _, member in panel)
    if settings.panel and settings.panel != given:
        raise SettingsError(
            "judge.panel",
            f"names {len(settings.panel)} further judges; others were connected",
            len(given),
            "Pass them as JudgeGrader(chat, settings, panel=[(chat, settings), ...]).",
        )
    for member in given:
        check_member(settings, member)
    seats = [Seat(chat, settings)]
    for number, (other, member) in enumerate(panel):
        seats.append(Seat(other, member, settings.votes + number, seats[0].budget))
    _refuse_copies(seats)
    return tuple(seats)


def _refuse_copies(seats: Sequence[Seat]) -> None:
    seen: set[str] = set()
    for seat in seats:
        if seat.draws_lots or seat.settings.shuffle_options:
            continue
        if seat.settings.votes > 1:
            raise SettingsError(
                "judge.votes",
                "this judge gives the same reply to the same question at temperature 0, so its "
                "votes would be copies of the first",
                seat.settings.votes,
                "Use shuffle_options: true (another order for each vote), a temperature up to "
                "0.2, or a panel of other judges.",
            )
        if seat.fingerprint in seen:
            raise SettingsError(
                "judge.panel",
                "names one judge twice, whose votes would be copies",
                seat.settings.model,
                "Name another judge, or use shuffle_options: true.",
            )
        seen.add(seat.fingerprint)


def _fingerprint(chat: Chat, settings: JudgeSettings) -> str:
    parts = {
        "model": settings.model,
        "chat": chat.fingerprint,
        "shape": settings.shape,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "shuffle_options": settings.shuffle_options,
        "rationale": settings.rationale,
        "prompt": JUDGE_PROMPT_VERSION,
    }
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
