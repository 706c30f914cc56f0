"""The strict rule: bare labels and option texts, nothing else."""

from __future__ import annotations

import pytest
from finishing import finishes
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.answer_words import ANSWER_WORDS
from mlflow_mcq.graders.strict import read_strict, strict_choice
from mlflow_mcq.graders.strict_row import read_strict_row
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import Generation, Item, Orientation, Prompt, Reply

PLANETS = ["Venus", "Saturn", "Neptune", "Mars"]
TEN = [f"item {n}" for n in range(10)]


@pytest.mark.parametrize(
    "reply",
    [
        *("B", "b", " B\n", "(B)", "(b)", "[B]", "{B}", "B)", "B.", "B:", "(B).", "b)"),
        *("**B**", "*B*", "__B__", "`B`", '"B"', "'B'", "“B”", "«B»", "「B」", "**B**.", "**(B)**"),
        *("$B$", r"\boxed{B}", r"$\boxed{B}$", r"\boxed{\text{B}}", r"\text{B}", r"\(B\)"),
        *(
            "<answer>B</answer>",
            "<answer>(B)</answer>",
            "Ｂ",
            "（Ｂ）",
            "【B】",
            "B<|im_end|>",
            "B</s>",
        ),
        *(
            "Answer: B",
            "ANSWER: b",
            "Answer: (B)",
            "Answer: **B**",
            "**Answer:** B",
            "**Answer**: B",
        ),
        *(
            "The answer is B.",
            "The correct answer is B",
            "Final answer: B",
            "Option B",
            "Choice: B",
        ),
        *("The correct option is (B).", "My answer is option B", r"Final answer: $\boxed{B}$"),
        *("B) Saturn", "B. Saturn", "(B) Saturn", "(B): Saturn.", "B: Saturn", "B - Saturn"),
        *("B Saturn", "B (Saturn)", "Saturn (B)", "B) SATURN", "B = Saturn", "B,Saturn"),
        *("The answer is **B**.", "The correct answer is **B. Saturn**.", "### Answer: B"),
        *("b) saturn", "**B)** Saturn", "**B. Saturn**", "B\nSaturn", "Answer: B) Saturn"),
        *("The correct answer is: **B. Saturn**", 'B) "Saturn"'),
        *("Saturn", "saturn", "Saturn.", '"Saturn"', "**Saturn**", "The answer is Saturn."),
        *("<think>A, or C?</think>B", "it cannot be C</think>\n\nB", "Answer: Answer: B"),
    ],
)
def test_a_label_or_its_own_text_settles(reply):
    assert strict_choice(reply, PLANETS) == 1


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("Antwort: B", id="German"),
        pytest.param("Die richtige Antwort ist B.", id="German sentence"),
        pytest.param("La bonne réponse est B", id="French"),
        pytest.param("L'option B", id="French option"),
        pytest.param("La respuesta correcta es B.", id="Spanish"),
        pytest.param("A resposta é B", id="Portuguese"),
        pytest.param("La risposta è B", id="Italian"),
        pytest.param("Het antwoord is B", id="Dutch"),
        pytest.param("Odpowiedź: B", id="Polish"),
        pytest.param("Правильный ответ: B", id="Russian"),
        pytest.param("Ответ — B", id="Russian dash"),
        pytest.param("Відповідь: B", id="Ukrainian"),
        pytest.param("Správná odpověď je B", id="Czech"),
        pytest.param("Răspunsul corect este B", id="Romanian"),
        pytest.param("A helyes válasz: B", id="Hungarian"),
        pytest.param("Oikea vastaus on B", id="Finnish"),
        pytest.param("Rätt svar är B", id="Swedish"),
        pytest.param("Svaret er B", id="Danish and Norwegian"),
        pytest.param("Η απάντηση είναι B", id="Greek"),
        pytest.param("Doğru cevap: B", id="Turkish"),
        pytest.param("התשובה היא B", id="Hebrew"),
        pytest.param("الإجابة الصحيحة هي B", id="Arabic"),
        pytest.param("پاسخ: B", id="Persian"),
        pytest.param("सही उत्तर B है", id="Hindi"),
        pytest.param("উত্তর: B", id="Bengali"),
        pytest.param("Jawabannya adalah B", id="Indonesian"),
        pytest.param("Đáp án là B", id="Vietnamese"),
        pytest.param("คำตอบคือ B", id="Thai"),
        pytest.param("正确答案是B", id="Chinese"),
        pytest.param("答案：（Ｂ）", id="Chinese full width"),
        pytest.param("答えはBです。", id="Japanese"),
        pytest.param("정답은 B입니다", id="Korean"),
    ],
)
def test_answer_words_of_many_languages(reply):
    assert strict_choice(reply, PLANETS) == 1


def test_at_least_twenty_languages_are_known():
    assert len(ANSWER_WORDS) >= 20


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(None, id="no reply"),
        pytest.param("", id="empty"),
        pytest.param(" \t\n ", id="blank"),
        pytest.param("Because of its rings", id="word that starts with a letter"),
        pytest.param("Answer: Don't ask me", id="word after the answer word"),
        pytest.param("Choice of words matters", id="answer word inside prose"),
        pytest.param("Antwort", id="answer word alone"),
        pytest.param("The right answer is", id="cut before the label"),
        pytest.param("B, because it has rings", id="prose after the label"),
        pytest.param("B is wrong", id="label that is rejected"),
        pytest.param("I pick B", id="prose before the label"),
        pytest.param("Not B", id="negation"),
        pytest.param("B\n\nQuestion: next one\nAnswer: C", id="made-up next question"),
        pytest.param("B\nC", id="two lines, two labels"),
        pytest.param("B, C", id="two labels"),
        pytest.param("B) C", id="label with a label as its text"),
        pytest.param("A or B", id="indecision"),
        pytest.param("(A)(B)", id="two brackets"),
        pytest.param("B?", id="question mark"),
        pytest.param("(B", id="bracket left open"),
        pytest.param("**B", id="bold left open"),
        pytest.param("E", id="letter that was not shown"),
        pytest.param("Answer: E", id="letter that was not shown, announced"),
        pytest.param("À", id="accented letter"),
        pytest.param("A\u0300", id="accent as a mark of its own"),
        pytest.param("В", id="Cyrillic look-alike"),
        pytest.param("b saturn flies", id="nothing between label and text, and more"),
        pytest.param("C) Saturn", id="label and text disagree"),
        pytest.param("B) Saturn, the ringed one", id="text goes on"),
        pytest.param("Saturn or Mars", id="two texts"),
        pytest.param("Satur", id="part of a text"),
        pytest.param("Pluto", id="text that was not shown"),
        pytest.param("None of these", id="option that was not offered"),
        pytest.param("<think>surely B", id="unfinished thinking"),
        pytest.param("<think>A</think>", id="thinking without an answer"),
        pytest.param("I'm sorry, I can't help.", id="refusal"),
    ],
)
def test_anything_else_is_left_to_the_judge(reply):
    assert strict_choice(reply, PLANETS) is None


@pytest.mark.parametrize(
    ("reply", "options", "slot"),
    [
        pytest.param("A", PLANETS, 0, id="capital A alone is a label"),
        pytest.param("a", PLANETS, None, id="lower-case a may be an article"),
        pytest.param("The answer is a", PLANETS, None, id="cut before 'a lever'"),
        pytest.param("(a)", PLANETS, 0, id="a in brackets"),
        pytest.param("a)", PLANETS, 0, id="a with a bracket"),
        pytest.param("option a", PLANETS, 0, id="option a"),
        pytest.param("I", TEN, None, id="pronoun"),
        pytest.param("i", TEN, None, id="lower-case i is a word in many languages"),
        pytest.param("(I)", TEN, 8, id="I in brackets"),
        pytest.param("Answer: I", TEN, 8, id="I announced"),
        pytest.param("A lever", ["a wedge", "a lever"], 1, id="article and noun is the text"),
        pytest.param("A lever", ["lever", "a lever"], 1, id="never label A with its text"),
        pytest.param("A wedge", ["wedge", "rope"], None, id="article before an option's text"),
    ],
)
def test_labels_that_are_words(reply, options, slot):
    assert strict_choice(reply, options) == slot


@pytest.mark.parametrize(
    ("reply", "options", "labels", "slot"),
    [
        pytest.param("A", ["B", "A"], None, None, id="label and text cross"),
        pytest.param("(a)", ["B", "A"], None, None, id="also in brackets"),
        pytest.param("Answer: B", ["b", "x"], None, None, id="also in the other case"),
        pytest.param("A", ["A", "B"], None, 0, id="label and text agree"),
        pytest.param("2", ["2", "3"], ["1", "2"], None, id="numbers as labels and texts"),
        pytest.param("Option A", ["x", "Option A"], None, None, id="text that looks announced"),
        pytest.param("yes", ["yes", "no", "yes"], None, None, id="text shown twice"),
        pytest.param("C) yes", ["yes", "no", "yes"], None, 2, id="shown twice, label decides"),
        pytest.param("Dead", ["Dead", "Dead Sea"], None, 0, id="one text begins another"),
        pytest.param("CO", ["Co", "Mg"], None, None, id="capitals carry meaning"),
        pytest.param("AB", ["ab", "AB"], None, 1, id="exact text wins"),
        pytest.param("[0, 1]", ["(0, 1)", "x"], None, None, id="brackets carry meaning"),
        pytest.param("(0, 1)", ["(0, 1)", "[0, 1]"], None, 0, id="intervals told apart"),
        pytest.param("-7", ["7", "8"], None, None, id="sign carries meaning"),
        pytest.param("A) -7", ["7", "-7"], None, None, id="sign after a label"),
        pytest.param("A) -7", ["-7", "7"], None, 0, id="own text with a sign"),
    ],
)
def test_texts_that_could_be_taken_for_something_else(reply, options, labels, slot):
    assert strict_choice(reply, options, labels) == slot


@pytest.mark.parametrize(
    ("reply", "labels", "slot"),
    [
        pytest.param("12", [str(n) for n in range(1, 13)], 11, id="two digits, not 1"),
        pytest.param("Answer: 1", [str(n) for n in range(1, 13)], 0, id="one digit"),
        pytest.param("13", [str(n) for n in range(1, 13)], None, id="number out of range"),
        pytest.param("1.5", ["1", "2"], None, id="a number is no label with a text"),
        pytest.param("AB", letters_for(30), 27, id="two letters"),
        pytest.param("(ab)", letters_for(30), 27, id="two letters, lower case"),
        pytest.param("ii)", ["i", "ii", "iii"], 1, id="Roman"),
        pytest.param("D", ["C", "D", "E"], 1, id="labels that do not start at A"),
        pytest.param("A", ["C", "D", "E"], None, id="and A is none of them"),
    ],
)
def test_labels_are_matched_whole_and_by_slot(reply, labels, slot):
    assert strict_choice(reply, [f"text {n}" for n in range(len(labels))], labels) == slot


@pytest.mark.parametrize(
    ("reply", "slot"),
    [("Saturn", 1), ("The answer is Mars.", 3), ("B", None), ("(B)", None), ("B) Saturn", None)],
)
def test_without_shown_labels_only_texts_count(reply, slot):
    assert strict_choice(reply, PLANETS, ()) == slot


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param("B", "strict", id="label"),
        pytest.param("C) Saturn", "label_text_conflict", id="conflict"),
        pytest.param("Answer: (C) saturn.", "label_text_conflict", id="announced conflict"),
        pytest.param("D\nVenus", "label_text_conflict", id="conflict on two lines"),
        pytest.param("<think>B", "unfinished_thought", id="unfinished"),
        pytest.param("", "empty", id="empty"),
        pytest.param(None, "empty", id="none"),
        pytest.param("<think>B</think>\n", "empty", id="thought without answer"),
        pytest.param("C) Saturn has rings", "", id="prose is no conflict"),
        pytest.param("B, I think", "", id="abstains"),
    ],
)
def test_reasons(reply, reason):
    reading = read_strict(reply, PLANETS)
    assert reading.reason == reason
    assert reading.settled is bool(reason)
    assert (reading.slot is not None) is (reason == "strict")


def test_a_cut_reply_may_have_lost_its_last_words():
    seas = ["Red Sea", "Red Sea coral", "Black Sea"]
    assert read_strict("Red Sea", seas).slot == 0
    assert read_strict("Red Sea", seas, cut=True).reason == ""
    assert read_strict("B) Red Sea", seas, cut=True).reason == ""
    assert read_strict("Black Sea", seas, cut=True).slot == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(Reply("", finish_reason="eos"), "empty", id="silent"),
        pytest.param(Reply("", finish_reason="length"), "truncated", id="cut to nothing"),
        pytest.param(Reply("Ma", finish_reason="length"), None, id="cut within a word"),
    ],
)
def test_a_row_that_names_nothing_says_why(reply: Reply, reason: str | None) -> None:
    item = Item("q", "Which?", tuple(PLANETS), gold=3)
    prompt = Prompt(item, Orientation(0, "as-is", (0, 1, 2, 3)), "letters", "?", tuple("ABCD"))
    grade = read_strict_row(Generation(prompt, 0, reply), "strict")
    assert (grade and grade.reason) == reason


def test_what_was_sent_may_have_opened_the_thinking():
    assert read_strict("B", PLANETS, sent="Q?<think>\n").reason == "unfinished_thought"
    assert read_strict("C?</think>B", PLANETS, sent="Q?<think>\n").slot == 1


label_sets = st.one_of(
    st.integers(2, 40).map(letters_for),
    st.integers(2, 30).map(lambda n: tuple(str(i + 1) for i in range(n))),
    st.integers(2, 20).map(lambda n: letters_for(26)[-n:]),
)


@given(st.data(), label_sets)
def test_law_a_bare_label_settles_to_its_slot(data, labels):
    n = len(labels)
    texts = data.draw(st.lists(st.text("xyz éß.()", min_size=4), min_size=n, max_size=n))
    slot = data.draw(st.integers(0, n - 1))
    clash = any(t.strip("()[]{}.: ").casefold() == labels[slot].casefold() for t in texts)
    if not clash:
        assert strict_choice(f"({labels[slot]})", texts, labels) == slot
        if labels[slot] != "I":
            assert strict_choice(labels[slot], texts, labels) == slot


@given(st.text(), st.lists(st.text(), max_size=6), st.none() | st.lists(st.text(), max_size=6))
def test_law_nothing_makes_it_raise_or_leave_the_page(text, options, labels):
    slot = strict_choice(text, options, labels)
    assert slot is None or 0 <= slot < len(options)


@given(st.permutations(["copper", "iron", "mercury", "tin", "zinc"]), st.integers(0, 4))
def test_law_a_text_is_found_wherever_it_is_shown(shown, slot):
    labels = letters_for(5)
    for reply in (shown[slot], f"{labels[slot]}) {shown[slot]}", f"Answer: {labels[slot]}"):
        assert shown[strict_choice(reply, shown)] == shown[slot]


@given(st.sampled_from("ABCD"), st.text(alphabet="abcdefg ,;!?", min_size=2, max_size=40))
def test_law_prose_after_a_label_never_settles(label, prose):
    reply = f"{label}, {prose}"
    slot = strict_choice(reply, PLANETS)
    # What is left of blank prose is "A,", which is no form of a label either.
    assert slot is None


HOSTILE = ["(", "<think>", "</think>", "*", '"', r"\boxed{", "A ", "answer ", "</s>", "\n", "（"]


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("options", [PLANETS, ["x" * 2_000_000, "y"]], ids=["short", "long option"])
def test_a_hostile_megabyte_is_read_in_linear_time(unit, options):
    text = unit * (1_000_000 // len(unit))
    assert finishes(lambda reply: strict_choice(reply, options), text)
