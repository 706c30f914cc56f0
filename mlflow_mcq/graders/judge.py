"""The judge: a language model reads what the strict rule cannot settle.

Order of work for each generation: no text at all, the strict rule, then the judge. A
reply of the judge that cannot be read is an error of the judge, which is counted apart;
it never becomes a verdict on the evaluated model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mlflow_mcq.doors import Chat
from mlflow_mcq.graders.judge_prompt import (
    JUDGE_PROMPT_VERSION,
    judge_conversation,
    judge_labels,
)
from mlflow_mcq.graders.judge_reply import JudgeReading, parse_judge_reply
from mlflow_mcq.graders.missing import no_answer
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.graders.thought import sent_text
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.records import Conversation, Generation, Grade, Query, Reply, Verdict

__all__ = ["JudgeCheck", "JudgeGrader"]

_CUT = "length"


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

    Attributes:
        chat: The judge.
        settings: How it is asked.
        name: Prefix of its metrics.
        fingerprint: Twelve hex digits over all that changes a verdict: the model, the
            chat, the shape, the decoding and the wording. It holds no secret.

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

    def __init__(self, chat: Chat, settings: JudgeSettings) -> None:
        self.chat = chat
        self.settings = settings
        self.fingerprint = _fingerprint(chat, settings)

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

    def check(self, grades: Sequence[Grade]) -> JudgeCheck:
        """Put a sample of the rows that the strict rule settled to the judge as well.

        Args:
            grades: Grades of this grader. The sample depends on the keys of the rows
                alone, so a resumed run checks the same ones.
        """
        settled = [g for g in grades if g.reason == "strict" and g.choice is not None]
        settled.sort(key=lambda grade: _lot(grade.generation))
        sample = {grade.generation.key: grade for grade in settled[: self.settings.check_rows]}
        read = [*self._ask([grade.generation for grade in sample.values()])]
        n_failed = sum(grade.verdict is None for grade in read)
        n_agree = sum(self._same(grade, sample[grade.generation.key]) for grade in read)
        return JudgeCheck(len(read), n_agree, n_failed)

    def _same(self, judged: Grade, settled: Grade) -> bool:
        if judged.verdict is None:
            return False
        if self.settings.shape == "extract":
            return judged.choice == settled.choice
        return judged.verdict is settled.verdict

    def _without_judge(self, generation: Generation) -> Grade | None:
        """The grade of a row that needs no judge, or None."""
        missing = no_answer(generation, self.name)
        if missing is not None:
            return missing
        prompt, reply = generation.prompt, generation.reply
        cut = reply.finish_reason == _CUT
        sent = sent_text(generation)
        reading = read_strict(reply.text, prompt.shown, prompt.labels, sent, cut)
        if reading.slot is not None:
            choice = prompt.orientation.order[reading.slot]
            return Grade.of_choice(generation, self.name, choice, reading.reason)
        if reading.reason == "empty" and cut:
            return Grade.unread(generation, self.name, "truncated")
        return Grade.unread(generation, self.name, reading.reason) if reading.settled else None

    def _ask(self, generations: Sequence[Generation]) -> Iterator[Grade]:
        """Ask for each different conversation once, and again where a reply is unreadable."""
        rows: dict[Conversation, list[Generation]] = {}
        for generation in generations:
            asked = judge_conversation(generation, self.settings.shape, self.chat.speaks_chat)
            rows.setdefault(asked, []).append(generation)
        # The same question to a deterministic judge has the same unreadable answer.
        rounds = 1 if self.chat.deterministic else self.settings.attempts
        for attempt in range(rounds):
            again: dict[Conversation, list[Generation]] = {}
            for asked, reply in self._replies([*rows], attempt):
                # Equal conversations show equal options; only their order in the data
                # may differ, so each row translates the slot by itself.
                reading = self._parse(reply, rows[asked][0])
                last = attempt + 1 == rounds or reading.status != "judge_parse_failure"
                if reading.ok or last:
                    yield from (self._graded(row, reading, reply) for row in rows[asked])
                else:
                    again[asked] = rows[asked]
            if not again:
                return
            rows = again

    def _replies(
        self, conversations: list[Conversation], attempt: int
    ) -> Iterator[tuple[Conversation, Reply]]:
        """One reply for each conversation, even where the chat breaks its promise."""
        if not conversations:
            return
        waiting = dict(enumerate(conversations))
        queries = [Query(conversation, seed=attempt) for conversation in conversations]
        for place, reply in self.chat.ask(queries, self.settings.decoding):
            if place in waiting:
                yield waiting.pop(place), reply
        for conversation in waiting.values():
            yield conversation, Reply(None, "the judge gave no reply")

    def _parse(self, reply: Reply, row: Generation) -> JudgeReading:
        # A text beside an error is not an answer.
        text = None if reply.error is not None else reply.text
        shown = row.prompt.shown
        labels = row.prompt.labels or judge_labels(len(shown))
        return parse_judge_reply(text, self.settings.shape, labels, shown)

    def _graded(self, row: Generation, reading: JudgeReading, reply: Reply) -> Grade:
        raw = reply.text or ""
        if not reading.ok:
            error = reading.error + (f": {reply.error}" if reply.error else "")
            if reply.finish_reason == _CUT:
                error += ": the reply was cut; raise judge.max_tokens"
            grade = Grade.failed(row, self.name, error, raw)
        elif reading.slot is not None:
            choice = row.prompt.orientation.order[reading.slot]
            grade = Grade.of_choice(row, self.name, choice, "judge", raw)
        elif reading.verdict in (None, Verdict.OTHER):
            grade = Grade.unread(row, self.name, "judge_other", raw)
        else:
            grade = Grade.of_verdict(row, self.name, reading.verdict, raw)
        return replace(grade, judge=self.fingerprint)


def _lot(generation: Generation) -> bytes:
    key = json.dumps(generation.key, ensure_ascii=True)
    return hashlib.sha256(key.encode()).digest()


def _fingerprint(chat: Chat, settings: JudgeSettings) -> str:
    parts = {
        "model": settings.model,
        "chat": chat.fingerprint,
        "shape": settings.shape,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "prompt": JUDGE_PROMPT_VERSION,
    }
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
