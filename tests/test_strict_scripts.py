"""The strict rule over label sets of many scripts: what settles, and what never does."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.homographs import is_word
from mlflow_mcq.graders.labels import fold
from mlflow_mcq.graders.option_texts import option_texts, slots_showing, wanted
from mlflow_mcq.graders.strict import read_strict, strict_choice
from mlflow_mcq.graders.thought import answer_part

LABEL_SETS = {
    "capitals": tuple("ABCDE"),
    "beyond Z": ("Y", "Z", "AA", "AB", "AC"),
    "lower case": tuple("bcdfg"),
    "numbers": tuple("12345"),
    "ten and more": ("8", "9", "10", "11", "12"),
    "Roman": ("ii", "iii", "iv", "vi", "vii"),
    "Roman capitals": ("II", "III", "IV", "V", "VI"),
    "bracketed Roman": ("(i)", "(ii)", "(iii)", "(iv)", "(v)"),
    "bracketed": ("(A)", "(B)", "(C)", "(D)", "(E)"),
    "one bracket": ("A)", "B)", "C)", "D)", "E)"),
    "katakana": tuple("アイウエオ"),
    "hangul": tuple("가나다라마"),
    "jamo": tuple("ㄱㄴㄷㄹㅁ"),
    "Cyrillic": tuple("АБВГД"),
    "Greek": tuple("αβγδε"),
    "Greek capitals": tuple("ΑΒΓΔΕ"),
    "Arabic": tuple("أبجده"),
    "Hebrew": tuple("אבגדה"),
    "Devanagari": tuple("कखगघङ"),
    "Thai": tuple("กขคงจ"),
    "Bengali": tuple("কখগঘঙ"),
    "full width": tuple("ＡＢＣＤＥ"),
    "heavenly stems": tuple("甲乙丙丁戊"),
    "circled": tuple("①②③④⑤"),
    "Arabic-Indic digits": tuple("١٢٣٤٥"),
}
SETS = [pytest.param(labels, id=name) for name, labels in LABEL_SETS.items()]
TEXTS = ["a tall oak", "Pine", "birch (white)", "The maple tree", "12.5 m of yew"]

# L stands for the label, T for its option's text; both are put in by `fill`.
LONE = (
    *("<L>.", "<L>)", "(<L>)", "[<L>]", "{<L>}", "<L>:", "(<L>).", " <L>) \n"),
    *("**<L>**", "***<L>***"),
    *("【<L>】", "「<L>」", "『<L>』", "（<L>）", "［<L>］", "〔<L>〕", "《<L>》"),
    *("<L>。", "<L>："),
    *("**(<L>)**", "**<L>**.", "**<L>.**", "__<L>__", "`<L>`", "```\n<L>\n```", "<L>)<|im_end|>"),
    *(r"\boxed{<L>}", r"$\boxed{<L>}$", r"\boxed{\text{<L>}}", r"\text{<L>}", r"\mathbf{<L>}"),
    *(r"$\boxed{\mathrm{<L>}}$.", r"\(\boxed{<L>}\)", r"\[\boxed{<L>}\]", r"\boxed{(<L>)}"),
    *("<answer><L></answer>", "Answer: (<L>)", "**Answer:** <L>)", "Answer: **<L>**"),
    *("The answer is (<L>)", "The answer is **<L>**.", "Option <L>", "### Answer: (<L>)"),
    r"The final answer is $\boxed{<L>}$.",
)  # fmt: skip
BARE = (
    *("<L>", " <L>\n", '"<L>"', "'<L>'", "“<L>”", "«<L>»", "„<L>“", "*<L>*", "$<L>$"),
    "Answer: <L>",
    *("Answer is <L>", "The correct answer is: <L>", "Ans: <L>", '{"answer": "<L>"}', "<L>!"),
    *("Antwort: <L>", "La bonne réponse est <L>.", "La respuesta correcta es <L>.", "选<L>"),
    *("A resposta é <L>.", "La risposta è <L>.", "Het antwoord is <L>.", "Odpowiedź: <L>"),
    *("Правильный ответ: <L>.", "Відповідь: <L>", "Odpověď: <L>", "Odpoveď: <L>", "Odgovor: <L>"),
    *("Одговор: <L>", "Отговор: <L>", "Răspuns: <L>", "Válasz: <L>", "Vastaus: <L>", "Vastus: <L>"),
    *("Svar: <L>", "Απάντηση: <L>", "Cevap: <L>", "תשובה: <L>", "الإجابة: <L>", "پاسخ: <L>"),
    *("सही उत्तर <L> है।", "উত্তর: <L>", "பதில்: <L>", "సమాధానం: <L>", "Jawaban: <L>", "Sagot: <L>"),
    *("Jibu: <L>", "Đáp án: <L>", "คำตอบคือ <L>", "答案：<L>", "正确答案是<L>。", "答え：<L>"),
    *("正解は<L>です。", "정답: <L>", "정답은 <L>입니다.", "Atsakymas: <L>", "Erantzuna: <L>"),
)  # fmt: skip
PAIRED = (
    *("<L>. <T>", "<L>) <T>", "(<L>) <T>", "<L>: <T>", "<L>\n<T>", "<L>.\n<T>", "<L>\n\n<T>"),
    "[<L>] <T>",
    *("<L>) <T>.", "(<L>): <T>", "**<L>. <T>**", "**<L>)** <T>", "**<L>**. <T>", "**<L>**: <T>"),
    *("<L>) **<T>**", "<L>. `<T>`", '<L>) "<T>"', "（<L>） <T>", "Answer: <L>) <T>", "<T> (<L>)"),
    *("The answer is <L>) <T>.", "The correct answer is **<L>. <T>**.", "Option <L>: <T>"),
    *("Antwort: <L>) <T>", "答案：<L>. <T>", "Ответ: <L>) <T>", r"\boxed{<L>) <T>}"),
)  # fmt: skip


def fill(template: str, label: str, text: str = "") -> str:
    return template.replace("<L>", label).replace("<T>", text)


def core(label: str) -> str:
    return label.strip("()")


@pytest.mark.parametrize("labels", SETS)
def test_a_label_with_punctuation_settles_in_any_script(labels):
    for template, (slot, label) in product(LONE, enumerate(labels)):
        assert strict_choice(fill(template, core(label)), TEXTS, labels) == slot


@pytest.mark.parametrize("labels", SETS)
def test_a_bare_label_settles_unless_it_is_a_word(labels):
    for template, (slot, label) in product(BARE, enumerate(labels)):
        choice = strict_choice(fill(template, core(label)), TEXTS, labels)
        if choice is None:  # a word of some language, written without label punctuation
            assert is_word(core(label), labels) or core(label) == "I"
        else:
            assert choice == slot


@pytest.mark.parametrize("labels", SETS)
def test_a_label_with_its_own_text_settles_in_any_script(labels):
    for template, (slot, (label, text)) in product(
        PAIRED, enumerate(zip(labels, TEXTS, strict=True))
    ):
        for written in (text, text.upper()):
            reply = fill(template, core(label), written)
            assert strict_choice(reply, TEXTS, labels) == slot, reply


@pytest.mark.parametrize("labels", SETS)
def test_a_label_with_another_text_never_settles_on_an_option(labels):
    for template, (slot, label) in product(PAIRED, enumerate(labels)):
        reply = fill(template, core(label), TEXTS[(slot + 1) % len(TEXTS)])
        assert strict_choice(reply, TEXTS, labels) is None, reply


@pytest.mark.parametrize("labels", SETS)
@pytest.mark.parametrize(
    "template",
    [
        *("<L> <M>", "<L>, <M>", "<L> or <M>", "<L>/<M>", "<L>、<M>", "(<L>)(<M>)", "<L>\n<M>"),
        *("<L>) <M>", "Answer: <L> <M>", "Answer: <L>, (<M>)", "**<L>** **<M>**", "<L> (<M>)"),
        *("not <L>", "<L> is wrong", "<L>?", "<L> because of <M>", "I pick <L>", "<L>… no, <M>"),
        *("Answer: <L>\nAnswer: <M>", "A: <L> B: <M>", "<L> - <M>", "<L>. <M>.", "<L><M>"),
    ],
)
def test_two_labels_and_prose_are_the_judges(template, labels):
    one, two = core(labels[1]), core(labels[2])
    if fold(one + two) not in map(core, labels):
        reply = template.replace("<L>", one).replace("<M>", two)
        assert strict_choice(reply, TEXTS, labels) is None


ALPHABETS = {
    "Latin": tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "Latin small": tuple("abcdefghijklmnopqrstuvwxyz"),
    "Russian": tuple("АБВГДЕЖЗИКЛМНОПРСТУ"),
    "Russian small": tuple("абвгдежзиклмнопрсту"),
    "Greek small": tuple("αβγδεζηθικλμνξο"),
}


@pytest.mark.parametrize(
    ("word", "script"),
    [
        pytest.param("a", "Latin", id="English a"),
        pytest.param("I", "Latin", id="English I"),
        pytest.param("o", "Latin", id="Spanish, Portuguese and Polish o"),
        pytest.param("e", "Latin", id="Portuguese and Italian e"),
        pytest.param("i", "Latin", id="Polish i"),
        pytest.param("w", "Latin", id="Polish w"),
        pytest.param("z", "Latin", id="Polish z"),
        pytest.param("y", "Latin", id="Spanish y"),
        pytest.param("a", "Latin small", id="a among small labels"),
        pytest.param("o", "Latin small", id="o among small labels"),
        pytest.param("а", "Russian", id="Russian а"),
        pytest.param("и", "Russian", id="Russian и"),
        pytest.param("в", "Russian small", id="Russian в among small labels"),
        pytest.param("ο", "Greek small", id="Greek ο"),
    ],
)
def test_homographs_settle_only_with_label_punctuation(word, script):
    labels = ALPHABETS[script]
    texts = [f"text {n}" for n in range(len(labels))]
    slot = [label.lower() for label in labels].index(word.lower())
    for doubtful in (word, f" {word}\n", f'"{word}"', f"The answer is {word}", f"*{word}*"):
        assert strict_choice(doubtful, texts, labels) is None, doubtful
    for meant in (f"({word})", f"{word})", f"Option {word}", rf"\boxed{{{word}}}", f"`{word}`"):
        assert strict_choice(meant, texts, labels) == slot, meant
    assert read_strict(f"Answer: {word}", texts, labels, cut=True).slot is None


@pytest.mark.parametrize("name", ["NO", "no", "in", "IT"])
def test_two_letter_labels_that_are_words(name):
    labels = ("IN", "IT", "NO", "OK")
    choice = strict_choice(name, ["w", "x", "y", "z"], labels)
    assert choice == (labels.index(name) if name.isupper() else None)


@pytest.mark.parametrize(
    ("reply", "options", "labels"),
    [
        pytest.param("2 apples", ["pears", "apples"], ("1", "2"), id="a number and a noun"),
        pytest.param("1 - 2", ["2", "7"], ("1", "2"), id="a difference"),
        pytest.param("1.5", ["5", "7"], ("1", "2"), id="a decimal"),
        pytest.param("- 2", ["x", "y"], ("1", "2"), id="minus two is no list item"),
        pytest.param("A wedge", ["wedge", "rope"], None, id="an article and a noun"),
        pytest.param("B) co", ["x", "CO", "Co"], None, id="case that tells two options apart"),
        pytest.param("The answer is a b", ["x", "y"], ("a", "b"), id="two small labels"),
        pytest.param("La respuesta es la a", ["x", "y"], None, id="article and homograph"),
        pytest.param('{"answer": "A", "why": "B"}', ["x", "y"], None, id="JSON with more in it"),
        pytest.param("Wrong: B", ["x", "y"], None, id="a word that announces no answer"),
        pytest.param("not pine (B)", ["oak", "pine"], None, id="negated text before its label"),
    ],
)
def test_what_only_looks_like_a_label(reply, options, labels):
    assert strict_choice(reply, options, labels) is None


@pytest.mark.parametrize(
    ("reply", "slot"),
    [
        pytest.param("La respuesta es la B", 1, id="Spanish article"),
        pytest.param("A resposta é a B.", 1, id="Portuguese article"),
        pytest.param("La respuesta es la luna", 2, id="article of the text"),
        pytest.param("- B", 1, id="list item"),
        pytest.param("→ (B)", 1, id="arrow"),
        pytest.param('{"answer": "la luna"}', 2, id="JSON with a text"),
        pytest.param('"El sol".', 0, id="quotes inside the full stop"),
        pytest.param("<|START_RESPONSE|>B<|END_RESPONSE|>", 1, id="response tokens"),
    ],
)
def test_further_ways_to_say_it(reply, slot):
    assert strict_choice(reply, ["el sol", "un cometa", "la luna"]) == slot


@pytest.mark.parametrize(
    "opening_and_closing",
    [
        *(("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")),
        *(("<thoughts>", "</thoughts>"), ("<reasoning>", "</reasoning>")),
        *(("<analysis>", "</analysis>"), ("<seed:think>", "</seed:think>")),
        *(("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<|think|>", "<|/think|>")),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        (
            "<|channel|>analysis<|message|>",
            "<|end|><|start|>assistant<|channel|>final<|message|>",
        ),
    ],
    ids=lambda pair: pair[0],
)
def test_thinking_is_never_read(opening_and_closing):
    opening, closing = opening_and_closing
    texts = ["oak", "pine", "yew"]
    assert strict_choice(f"{opening}A? No.{closing}\n\nB", texts) == 1
    assert strict_choice(f"{opening}A{closing}{opening}C{closing}B", texts) == 1
    assert strict_choice(f"{opening}A {opening}C{closing}B", texts) == 1
    assert read_strict(f"{opening}B", texts).reason == "unfinished_thought"
    assert read_strict(f"{opening}B{closing}", texts).reason == "empty"
    assert answer_part(f"{opening}B").unfinished


def test_the_turn_may_begin_with_its_own_marks():
    final = "<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>"
    reply = "<|start|>assistant<|channel|>analysis<|message|>A?" + final
    assert strict_choice(reply, ["oak", "pine", "yew"]) == 1


option_lists = st.lists(
    st.sampled_from(["iron", "Iron", "iron.", "CO", "Co", "a b", " tin  can ", "B", "(A)", "鉄"]),
    min_size=2, max_size=14,
)  # fmt: skip


@given(option_lists, st.sampled_from(["iron", "Iron.", '"Co".', "co", "tin can", "**x**", "B", ""]))
def test_law_a_scan_finds_what_the_table_finds(options, text):
    assert slots_showing(wanted(text), options) == option_texts(tuple(options)).find(text)


@given(
    st.lists(st.sampled_from(["iron", "tin", "cast iron", "Tin", "iron.", "B", "b. Ü"]),
             min_size=2, max_size=5),
    st.data(),
)  # fmt: skip
def test_law_a_pair_settles_only_on_the_slot_of_its_label(options, data):
    labels = "ABCDE"[: len(options)]
    label = data.draw(st.sampled_from(labels))
    text = data.draw(st.sampled_from(options))
    template = data.draw(st.sampled_from(PAIRED))
    choice = strict_choice(fill(template, label, text), options)
    assert choice in (None, labels.index(label))


@given(st.text(max_size=60), st.sampled_from([*LABEL_SETS.values()]))
def test_law_reading_twice_reads_the_same(text, labels):
    # Shapes are remembered; a memory that leaks between label sets would show here.
    first = read_strict(text, TEXTS, labels)
    read_strict(text, TEXTS, ())
    read_strict(text, TEXTS, None, cut=True)
    assert read_strict(text, TEXTS, labels) == first
