"""The judge: a language model reads what the strict rule cannot settle.

Order of work for each generation: no text at all, the strict rule, then the judge. A
reply of the judge that cannot be read is an error of the judge, which is counted apart;
it never becomes a verdict on the evaluated model. A row may be read several times, by one
judge or by a panel; then the votes are counted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlflow_mcq.doors import Chat
from mlflow_mcq.draws import lot
from mlflow_mcq.graders.budget import SPENT
from mlflow_mcq.graders.judge_reply import JudgeReading
from mlflow_mcq.graders.missing import no_answer
from mlflow_mcq.graders.seat import Seat, seats_of
from mlflow_mcq.graders.strict_row import read_strict_row
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.graders.votes import Vote, counted
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Conversation, Generation, Grade, Reply, Verdict

__all__ = ["JudgeCheck", "JudgeGrader"]

_HINTS = {
    "length": "the reply was cut; raise judge.max_tokens",
    "content_filter": "the server's filter withheld the reply",
}
_LONGEST_EVIDENCE = 20_000


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """How often the judge agrees with rows that need no judge.

    Attributes:
        n: Rows put to it.
        n_agree: Rows on which it says what the strict rule says.
        n_failed: Rows that it could not read; neither agreement nor disagreement.
    """

    n: int
    n_agree: int
    n_failed: int

    @property
    def agreement(self) -> float | None:
        """Share of agreement among the rows that it read; None where it read none."""
        n_read = self.n - self.n_failed
        return self.n_agree / n_read if n_read else None


class JudgeGrader:
    """Grades by the strict rule first and by a judge where that abstains.

    Args:
        chat: The judge.
        settings: How it is asked.
        panel: Further judges with their settings; each gives one vote beside this one.

    Attributes:
        name: Prefix of its metrics.
        seats: The judge, then its panel.
        fingerprint: Twelve hex digits over all that changes a verdict: the model, the
            chat, the shape, the decoding, the order of options, reasons, the wording,
            the number of votes and the same of each further judge. It holds no secret.

    Raises:
        SettingsError: The panel is not that of the settings, or votes would be copies.

    Example:
        >>> from mlflow_mcq.records import Item, Orientation, Prompt
        >>> class Echo:
        ...     fingerprint, deterministic, speaks_chat = "echo", True, True
        ...
        ...     def ask(self, queries, decoding):
        ...         return ((place, Reply("A")) for place, _ in enumerate(queries))
        >>> item = Item("q", "Which?", ("x", "y"), gold=1)
        >>> prompt = Prompt(item, Orientation(1, "swap", (1, 0)), "letters", "", ("A", "B"))
        >>> judge = JudgeGrader(Echo(), JudgeSettings(model="echo", base_url="local"))
        >>> [grade] = judge.grade([Generation(prompt, 0, Reply("y, I would say"))])
        >>> grade.verdict, grade.choice, grade.reason
        (<Verdict.CORRECT: 'CORRECT'>, 1, 'judge')
    """

    name = "judge"

    def __init__(
        self,
        chat: Chat,
        settings: JudgeSettings,
        panel: Sequence[tuple[Chat, JudgeSettings]] = (),
    ) -> None:
        self.chat = chat
        self.settings = settings
        self.seats = seats_of(chat, settings, panel)
        self.fingerprint = _fingerprint(self.seats)

    @property
    def spent(self) -> str:
        """Which limit of the budget is reached, in words; empty where none is."""
        return self.seats[0].budget.spent

    @property
    def usage(self) -> Usage:
        """What all seats have cost so far: `grade` and `check` together."""
        first, *others = (seat.usage for seat in self.seats)
        return sum(others, first)

    def keep_in(self, folder: str | Path) -> None:
        """Keep the replies of all seats on disk, where the settings name no place of theirs."""
        for seat in self.seats:
            seat.keep_in(folder)

    def conversation(self, generation: Generation) -> Conversation:
        """Exactly what the first vote on a row asks, for people to read."""
        return self.seats[0].conversation(generation)

    def grade(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield one grade for each generation, in any order, as they are ready."""
        open_rows: list[Generation] = []
        for generation in generations:
            settled = self._without_judge(generation)
            if settled is None:
                open_rows.append(generation)
            else:
                yield settled
        yield from self._ask(open_rows)

    def read(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Yield the judge's own grade of each generation, in any order, past the strict rule.

        For measuring the judge: rows that need none are put to it as well.
        """
        yield from self._ask(generations)

    def check(self, grades: Sequence[Grade], seed: int = 0) -> JudgeCheck:
        """Put a sample of the rows that the strict rule settled to the judge as well.

        At most ``check_rows`` of the settings, whatever the number of rows, each with all
        votes.

        Args:
            grades: Grades of this grader.
            seed: Draws the sample, by the keys of the rows alone: not by their order, so a
                resumed run checks the same ones.
        """
        settled = [g for g in grades if g.reason == "strict" and g.choices]
        settled.sort(key=lambda grade: lot(seed, *grade.generation.key))
        # Rows that a spent budget leaves out say nothing about the judge.
        a_row = sum(seat.settings.votes for seat in self.seats)
        wanted = self.settings.check_rows * a_row
        n = self.seats[0].budget.room(wanted, wanted) // a_row
        sample = {grade.generation.key: grade for grade in settled[:n]}
        read = [*self._ask([grade.generation for grade in sample.values()])]
        n_failed = sum(grade.verdict is None for grade in read)
        n_agree = sum(self._same(grade, sample[grade.generation.key]) for grade in read)
        return JudgeCheck(len(read), n_agree, n_failed)

    def _same(self, judged: Grade, settled: Grade) -> bool:
        if judged.verdict is None:
            return False
        if self.settings.shape == "extract":
            return judged.choices == settled.choices
        return judged.verdict is settled.verdict

    def _without_judge(self, generation: Generation) -> Grade | None:
        """The grade of a row that needs no judge, or None."""
        missing = no_answer(generation, self.name)
        return missing or read_strict_row(generation, self.name)

    def _ask(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Collect the votes on each row, and grade it as soon as the last one is in."""
        ballots = [
            [ballot for place, row in enumerate(generations) for ballot in seat.ballots(place, row)]
            for seat in self.seats
        ]
        open_votes = Counter(ballot.place for per_seat in ballots for ballot in per_seat)
        votes: dict[int, dict[int, Vote]] = {}
        for seat, per_seat in zip(self.seats, ballots, strict=True):
            for ballot, reading, reply in seat.answer(per_seat):
                place, page = ballot.place, ballot.page
                grade = self._graded(ballot.row, reading, reply)
                lines = page.lines if page.shuffled else ()
                vote = Vote(seat.fingerprint, grade, lines)
                votes.setdefault(place, {})[ballot.number] = vote
                open_votes[place] -= 1
                if not open_votes[place]:
                    done = votes.pop(place)
                    # Sorted: replies arrive as they like, and the row must not show it.
                    yield self._counted(ballot.row, [v for _, v in sorted(done.items())])

    def _counted(self, row: Generation, votes: Sequence[Vote]) -> Grade:
        alone = self.settings.votes == 1 and len(self.seats) == 1
        grade = votes[0].grade if alone else counted(row, self.name, votes)
        return replace(grade, judge=self.fingerprint)

    def _graded(self, row: Generation, reading: JudgeReading, reply: Reply) -> Grade:
        raw = reply.text or ""
        if not reading.ok:
            return Grade.failed(row, self.name, _why(reading, reply), _evidence(raw))
        slots = reading.slots if reading.slot is None else (reading.slot,)
        if slots:
            return Grade.of_choices(row, self.name, _options(row, slots), "judge", raw)
        if reading.verdict in (None, Verdict.OTHER):
            return Grade.unread(row, self.name, "judge_other", raw)
        return Grade.of_verdict(row, self.name, reading.verdict, raw)


def _why(reading: JudgeReading, reply: Reply) -> str:
    """Why there is no verdict, in one line."""
    if reply.finish_reason == SPENT:
        return f"{SPENT}: {reply.error}; regrade the run with only=errors"
    hint = _HINTS.get(reply.finish_reason, "")
    return ": ".join(part for part in (reading.error, reply.error, hint) if part)


def _evidence(raw: str) -> str:
    """What cannot be read, as far as it helps: a megabyte in each row helps nobody."""
    if len(raw) <= _LONGEST_EVIDENCE:
        return raw
    return f"{raw[:_LONGEST_EVIDENCE]}… ({len(raw)} characters)"


def _options(row: Generation, slots: Sequence[int]) -> tuple[int, ...]:
    return tuple(row.prompt.orientation.order[slot] for slot in slots)


def _fingerprint(seats: Sequence[Seat]) -> str:
    first, *others = [seat.fingerprint for seat in seats]
    votes = seats[0].settings.votes
    if votes == 1 and not others:
        return first
    text = json.dumps([first, votes, others])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
