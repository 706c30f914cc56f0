"""Kinds of replies that parsers are known to misread: none is misread here.

Each row is a reply with what a careful reader says. The strict rule may say that or leave
it to the judge; the strict rule and a judge that never errs must say exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from mlflow_mcq.graders import JudgeGrader, read_strict
from mlflow_mcq.graders.regex import ALL_REGEX_GRADERS
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import (
    Decoding,
    Generation,
    Item,
    Orientation,
    Prompt,
    Query,
    Reply,
    Verdict,
)

RIVERS = ("Danube", "Nile", "Po", "Rhine")
SEAS = ("North", "North Sea", "Baltic", "Caspian")
YES_NO = ("Yes", "No")
NUMBERS = ("7", "8", "-7", "70")
BLOOD = ("Group A", "Group B", "Group O", "Group AB")
TEN = tuple(f"river {n}" for n in range(1, 11))


class Oracle:
    """A judge that is told the truth."""

    fingerprint, deterministic, speaks_chat = "oracle", True, True

    def __init__(self, slot: int | None) -> None:
        self.slot = slot

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        said = "OTHER" if self.slot is None else letters_for(26)[self.slot]
        return ((place, Reply(said)) for place, _ in enumerate(queries))


KINDS: dict[str, list[tuple[str | None, tuple[str, ...], int | None]]] = {
    "the announcing word begins with a label": [
        ("Answer: D", RIVERS, 3),
        ("Choice: B", RIVERS, 1),
        ("Antwort: Die Antwort ist B.", RIVERS, 1),
        ("Bonne réponse : D", RIVERS, 3),
        ("Answer Answer: C", RIVERS, 2),
    ],
    "a word that begins with a label": [
        ("Danube? Don't think so; it floods yearly, B.", RIVERS, 1),
        ("Clearly the Nile.", RIVERS, 1),
        ("Before the bridge you see it.", RIVERS, None),
        ("ANSWER: Cannot be determined", RIVERS, None),
        ("Answer: Don't have a clue", RIVERS, None),
        ("So the answer is Danube.", RIVERS, 0),
        ("The answer is Both of them.", RIVERS, None),
        ("Well, the answer is Contested.", RIVERS, None),
    ],
    "an option that was not offered": [
        ("ANSWER: None of them", RIVERS, None),
        ("Answer: All of the above", RIVERS, None),
        ("The answer is the Amazon.", RIVERS, None),
        ("The answer is F.", RIVERS, None),
    ],
    "articles and pronouns": [
        ("The answer is D because a river bends.", RIVERS, 3),
        ("B it is, as I recall.", TEN, 1),
        ("A delta forms slowly. A delta is flat. So D.", RIVERS, 3),
        ("I", TEN, None),
    ],
    "small letters": [("d", RIVERS, 3), ("answer: (c)", RIVERS, 2), ("b)", RIVERS, 1)],
    "wrapped labels": [
        ("Answer: __C__", RIVERS, 2),
        ("Final answer: `D`", RIVERS, 3),
        ("ANSWER: $D$", RIVERS, 3),
        ("**Answer: (D)**", RIVERS, 3),
        ("Answer: $C", RIVERS, 2),
        ("<answer> C </answer>", RIVERS, 2),
        ('{"answer": "C"}', RIVERS, 2),
        ('```json\n{"choice": "D"}\n```', RIVERS, 3),
        ("答案是：Ｃ", RIVERS, 2),
    ],
    "a label rejected after the answer": [
        ("ANSWER IS C. Many fall for A.", RIVERS, 2),
        ("C, nicht B.", RIVERS, 2),
        ("It is B; D is too short and A flows east.", RIVERS, 1),
        ("The correct answer is **A**. Why not B? Too long.", RIVERS, 0),
    ],
    "a label rejected before the answer": [
        ("Not A, but C.", RIVERS, 2),
        ("A and B are ruled out, so D", RIVERS, 3),
    ],
    "an early line that announces nothing": [
        ("Answer: let me think of the map first.\nIt ends in a delta.\nAnswer: B", RIVERS, 1),
        ("Answer depends on the source.\nanswer: D", RIVERS, 3),
    ],
    "the options copied": [
        ("(A) Danube\n(B) Nile\n(C) Po\n(D) Rhine\n\nAnswer: D", RIVERS, 3),
        ("A) Danube\nB) Nile\nC) Po\nD) Rhine", RIVERS, None),
        ("Danube / Nile / Po / Rhine", RIVERS, None),
    ],
    "a made-up next question": [
        ("C\n\nQuestion: Which lake?\nA) Como\nB) Garda\nAnswer: A", RIVERS, 2),
        ("D\nAnswer: B", RIVERS, None),
    ],
    "several options": [
        ("Both B and D fit.", RIVERS, None),
        ("A or C; hard to tell.", RIVERS, None),
        ("B/D", RIVERS, None),
    ],
    "one text inside another": [
        ("I go for the North Sea.", SEAS, 1),
        ("North Sea", SEAS, 1),
        ("No, notably nothing of the kind.", YES_NO, 1),
        ("Yes, a known notion.", YES_NO, 0),
        ("Group AB", BLOOD, 3),
    ],
    "a text that holds the label of another option": [
        ("Group B", BLOOD, 1),
        ("It is group A that fits.", BLOOD, 0),
        ("B) Group A", BLOOD, None),
    ],
    "a value that equals no option": [
        ("14", NUMBERS, None),
        ("7.0 exactly? No: 9", NUMBERS, None),
        ("0.7", NUMBERS, None),
    ],
    "a sign is part of the value": [("-7", NUMBERS, 2), ("C) -7", NUMBERS, 2)],
    "label and text disagree": [
        ("A) Nile", RIVERS, None),
        ("Answer: D. Danube", RIVERS, None),
        ("(B) 7", NUMBERS, None),
    ],
    "thinking": [
        ("<think>It must be A. Answer: A</think>\nD", RIVERS, 3),
        ("<think>Answer: B. Or is it", RIVERS, None),
        ("<think>Answer: B</think>", RIVERS, None),
    ],
    "nothing said": [
        (None, RIVERS, None),
        ("", RIVERS, None),
        ("\n \t", RIVERS, None),
        ("The right answer is", RIVERS, None),
        ("...", RIVERS, None),
    ],
    "a refusal": [
        ("As an AI, I cannot answer.", RIVERS, None),
        ("Sorry, but I can't do that.", RIVERS, None),
        ("I don't know.", TEN, None),
    ],
    "an accent": [
        ("À vrai dire, la D.", RIVERS, 3),
        ("Ç", RIVERS, None),
        ("Ä", RIVERS, None),
    ],
}
ROWS = [
    pytest.param(*row, id=f"{kind}: {(row[0] or 'none')[:30]}")
    for kind, rows in KINDS.items()
    for row in rows
]


def generation(reply: str | None, options: tuple[str, ...], gold: int = 0) -> Generation:
    item = Item("q", "Which?", options, gold)
    orientation = Orientation(0, "as-is", tuple(range(len(options))))
    prompt = Prompt(item, orientation, "letters", "Which?", letters_for(len(options)))
    return Generation(prompt, 0, Reply(reply or ""))


@pytest.mark.parametrize(("reply", "options", "slot"), ROWS)
def test_the_strict_rule_is_right_or_abstains(reply, options, slot):
    assert read_strict(reply, options, letters_for(len(options))).slot in (slot, None)


@pytest.mark.parametrize(("reply", "options", "slot"), ROWS)
def test_with_a_judge_that_never_errs_every_reply_is_read_right(reply, options, slot):
    grader = JudgeGrader(Oracle(slot), JudgeSettings(model="oracle", base_url="local"))
    for gold in range(len(options)):
        (grade,) = grader.grade([generation(reply, options, gold)])
        assert grade.choice == slot
        wanted = Verdict.CORRECT if slot == gold else Verdict.INCORRECT
        assert grade.verdict is (Verdict.OTHER if slot is None else wanted)


def test_every_published_parser_misreads_some_of_them():
    """Otherwise these rows would test nothing."""
    rows = [row for group in KINDS.values() for row in group]
    for name, grader in ALL_REGEX_GRADERS.items():
        misread = [
            reply
            for reply, options, slot in rows
            for grade in grader.grade([generation(reply, options)])
            if grade.choice not in (slot, None)
        ]
        assert len(misread) >= 3, name
