"""Prompts: the instruction names the letters shown, and data is data, byte for byte."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.orientations import letters_for, orientations_for
from mlflow_mcq.protocols import (
    PROTOCOLS,
    Style,
    named_list,
    one_line_label,
    option_lines,
    prompt_family,
)
from mlflow_mcq.records import Item, Message, Orientation, Prompt

LEVER = Item("physics-lever", "Which tool lifts\na stone?", ("lever", "spoon", "sieve"), 0)
TURNED = Orientation(1, "rot1", (1, 2, 0))


def item_of(n: int, question: str = "Which?") -> Item:
    return Item("i", question, tuple(f"thing{i}" for i in range(n)), 0)


def text_of(prompt: Prompt) -> str:
    if isinstance(prompt.content, str):
        return prompt.content
    (message,) = prompt.content
    assert message.role == "user"
    return message.content


def rendered(item: Item, protocol: str = "letters", *, chat: bool = True, **own) -> str:
    (first, *_) = orientations_for(len(item.options), "as-is")
    return text_of(prompt_family(protocol, Style(**own))(item, first, chat=chat))


# Snapshots, byte for byte: any change here changes every measured number.

LETTERS = """\
Which tool lifts
a stone?

A) spoon
B) sieve
C) lever

Answer with the letter of one option only: A, B or C."""

REASONED = """\
Which tool lifts
a stone?

A) spoon
B) sieve
C) lever

Think step by step, then end with a line that says "Answer: " and the letter of one option: \
A, B or C."""

CLASSICS = ("letters", "letters-reasoned", "dashes")
"""They show question, then options, then the instruction."""

DASHES = """\
Which tool lifts
a stone?

- spoon
- sieve
- lever

Choose one of the options above. End with the words "the answer is" followed by the full text \
of that option."""


@pytest.mark.parametrize(
    ("protocol", "text", "cue", "labels"),
    [
        pytest.param("letters", LETTERS, "\nAnswer:", ("A", "B", "C"), id="letters"),
        pytest.param(
            "letters-reasoned", REASONED, "\nReasoning:", ("A", "B", "C"), id="letters-reasoned"
        ),
        pytest.param("dashes", DASHES, "\nAnswer:", (), id="dashes"),
    ],
)
def test_each_family_is_put_on_paper_exactly_so(protocol, text, cue, labels) -> None:
    family = prompt_family(protocol)
    chat = family(LEVER, TURNED, chat=True)
    assert chat.content == (Message("user", text),)
    assert family(LEVER, TURNED, chat=False).content == text + cue
    assert (chat.item, chat.orientation, chat.protocol) == (LEVER, TURNED, protocol)
    assert chat.labels == labels
    assert chat.gold_slot == 2


# The letters named


@pytest.mark.parametrize("protocol", ["letters", "letters-reasoned"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 10, 26, 27, 30])
def test_the_instruction_names_exactly_the_letters_shown(protocol: str, n: int) -> None:
    text = rendered(item_of(n), protocol)
    instruction = text.rpartition("\n\n")[2].rpartition(": ")[2]
    assert tuple(re.findall(r"\b[A-Z]{1,2}\b", instruction)) == letters_for(n)
    assert tuple(re.findall(r"^(\w+)\) ", text, re.MULTILINE)) == letters_for(n)


@pytest.mark.parametrize("chat", [True, False])
def test_dashes_show_no_letters_at_all(chat: bool) -> None:
    text = rendered(item_of(9), "dashes", chat=chat)
    assert text.count("\n- thing") == 9
    assert not re.search(r"^\w\)|\b[B-Z]\b", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], ""),
        (["A"], "A"),
        (["A", "B"], "A or B"),
        (["A", "B", "C"], "A, B or C"),
        (["Y", "Z", "AA", "AB"], "Y, Z, AA or AB"),
    ],
)
def test_names_are_joined_as_a_sentence_does(names, sentence) -> None:
    assert named_list(names) == sentence


# Data is data

HOSTILE = [
    *("{question}", "{options}", "{labels}", "{gold}", "{0}", "{}", "{", "}", "{{x}}", "{a!r:>9}"),
    *("100 %", "%s %d %(name)s %", "$HOME ${x}", r"\1 \g<0> \n", "a\\", '{"k": "v"}'),
    *("<b>&amp;</b>", "```", "<|im_end|>", "[INST]", "'\"", "x\ty", "{question}{options}{labels}"),
]

WORLD = [
    pytest.param("ما عاصمة الأردن؟ (عمّان)", id="Arabic"),
    pytest.param("\u2067שלום\u2069 abc", id="Hebrew with direction marks"),
    pytest.param("\u202eabc\u202c", id="overridden direction"),
    pytest.param("東京はどこの首都ですか。", id="Japanese"),
    pytest.param("全角Ａ）與半角A)", id="full-width letters"),
    pytest.param("한국어", id="Korean"),
    pytest.param("e\u0301 and é stay two things", id="not normalised"),
    pytest.param("👩‍👩‍👧 🇯🇵", id="emoji sequences"),
    pytest.param("a\u00a0b\u200bc", id="invisible spaces"),
]


@pytest.mark.parametrize("text", [*(pytest.param(t, id=ascii(t)) for t in HOSTILE), *WORLD])
@pytest.mark.parametrize("protocol", CLASSICS)
@pytest.mark.parametrize("chat", [True, False])
def test_a_text_of_the_data_comes_out_as_it_is(text: str, protocol: str, chat: bool) -> None:
    assert text in rendered(item_of(3, text), protocol, chat=chat)
    shown = rendered(Item("i", "Which?", (text, "other"), 0), protocol, chat=chat)
    mark = "- " if protocol == "dashes" else "A) "
    assert f"\n{mark}{text}\n" in shown


one_line_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=30
).filter(str.strip)


@given(
    one_line_texts,
    st.lists(one_line_texts, min_size=2, max_size=8),
    st.sampled_from(CLASSICS),
    st.booleans(),
)
def test_a_prompt_is_the_snapshot_with_other_words(question, options, protocol, chat) -> None:
    item = Item("i", question, tuple(options), 0)
    labels = () if protocol == "dashes" else letters_for(len(options))
    text = rendered(item, protocol, chat=chat)
    assert text.startswith(f"{question}\n\n{option_lines(options, labels)}\n\n")
    assert text == rendered(item, protocol, chat=chat)


# One option, one block


@pytest.mark.parametrize(
    ("text", "block"),
    [
        pytest.param("one", "A) one", id="one line"),
        pytest.param("one\ntwo", "A) one\n | two", id="two lines"),
        pytest.param("one\nB) two", "A) one\n | B) two", id="a label on its own line"),
        pytest.param("one\r\nB) two", "A) one\n | B) two", id="Windows line end"),
        pytest.param("one\rB) two", "A) one\n | B) two", id="old Mac line end"),
        pytest.param("one\u2028B) two", "A) one\n | B) two", id="line separator"),
        pytest.param("one\u2029B) two", "A) one\n | B) two", id="paragraph separator"),
        pytest.param("one\x85B) two", "A) one\n | B) two", id="next line"),
        pytest.param("one\x0cB) two", "A) one\n | B) two", id="form feed"),
        pytest.param("one\n\nB) two", "A) one\n | \n | B) two", id="blank line between"),
        pytest.param("\none", "A) \n | one", id="break at the front"),
        pytest.param("one\n", "A) one", id="break at the end"),
        pytest.param("  code\n    more", "A)   code\n |     more", id="indents are kept"),
        pytest.param("", "A) ", id="nothing"),
    ],
)
def test_an_option_with_line_breaks_stays_one_option(text: str, block: str) -> None:
    assert one_line_label("A) ", text) == block


@given(st.lists(st.text().filter(str.strip), min_size=2, max_size=6), st.booleans())
def test_there_are_as_many_labelled_lines_as_options(options, lettered) -> None:
    labels = letters_for(len(options)) if lettered else ()
    lines = option_lines(options, labels).splitlines()
    marked = [line for line in lines if not line.startswith(" | ")]
    assert len(marked) == len(options)
    if lettered:
        assert [line.partition(")")[0] for line in marked] == list(labels)
    else:
        assert all(line.startswith("- ") for line in marked)


# Nothing else is printed


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("chat", [True, False])
def test_metadata_gold_and_the_order_are_never_printed(protocol: str, chat: bool) -> None:
    meta = {"domain": "Metallurgy", "NO": "4711", "source": "field notes"}
    bare = Item("q-0815", "Which one melts first?", ("wax", "glass"), 1)
    full = Item("q-0815", "Which one melts first?", ("wax", "glass"), 0, meta)
    text = rendered(full, protocol, chat=chat)
    assert not re.search(r"q-0815|Metallurgy|domain|4711|NO\b|notes|gold|rot|nan", text)
    if protocol != "none-of-the-above":  # it says itself where gold was
        assert "None" not in text
        assert text == rendered(bare, protocol, chat=chat)


# Own wording


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("{question}|{options}|{labels}", "Which?|A) p\nB) q|A or B", id="all fields"),
        pytest.param("{options}|{question}", "A) p\nB) q|Which?", id="letters not named"),
        pytest.param(
            '{question}{options} Reply {"letter": "{labels}"}',
            'Which?A) p\nB) q Reply {"letter": "A or B"}',
            id="JSON braces",
        ),
        pytest.param(
            "{question}{options} {} {0} { other } {the letter} %s {{",
            "Which?A) p\nB) q {} {0} { other } {the letter} %s {{",
            id="other braces and percents",
        ),
        pytest.param("{question} {question}{options}", "Which? Which?A) p\nB) q", id="twice"),
        pytest.param(
            "{question}{options} {{labels}} {{x}}", "Which?A) p\nB) q {labels} {x}", id="a word"
        ),
        pytest.param(
            r"{question}{options} \boxed{letter} \frac{a}{b} x_{i}",
            "Which?A) p\nB) q \\boxed{letter} \\frac{a}{b} x_{i}",
            id="mathematics",
        ),
    ],
)
def test_own_wording_is_filled_in_and_otherwise_left_alone(template: str, text: str) -> None:
    assert rendered(Item("i", "Which?", ("p", "q"), 0), template=template) == text


def test_a_field_inside_the_data_is_not_filled_in_by_own_wording() -> None:
    item = Item("i", "{options} {{x}} {y}", ("{labels}", "{question}"), 0)
    text = rendered(item, template="{question}|{options}|{labels}")
    assert text == "{options} {{x}} {y}|A) {labels}\nB) {question}|A or B"


@pytest.mark.parametrize(
    "template", ["", "{question}", "{options}", "question options", "{{question}}{options}"]
)
def test_own_wording_must_show_question_and_options(template: str) -> None:
    with pytest.raises(SettingsError, match=r"\{question\} and \{options\}"):
        prompt_family("letters", Style(template=template))


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param("{label}", r"Did you mean \{labels\}\? Known: ", id="a letter short"),
        pytest.param("{optoins}", r"Did you mean \{options\}\?", id="two letters changed"),
        pytest.param("{Question}", r"Did you mean \{question\}\?", id="a capital"),
        pytest.param("{choices}", r"'\{choices\}'. Known: .*write \{\{choices\}\}", id="far"),
        pytest.param("{答案}", r"write \{\{答案\}\}", id="another script"),
    ],
)
def test_a_field_that_is_not_known_never_reaches_the_model(field: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        prompt_family("letters", Style(template="{question}\n{options}\n" + field))


@pytest.mark.parametrize("name", ["", "Letters", "letter", "dash"])
def test_an_unknown_family_is_refused_and_the_known_listed(name: str) -> None:
    with pytest.raises(SettingsError, match="Known: analogy, choices-only, cloze"):
        prompt_family(name)


def test_a_family_of_your_own_enters_by_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    def shout(item: Item, orientation: Orientation, *, chat: bool) -> Prompt:
        return Prompt(item, orientation, "shout", item.question.upper(), ())

    monkeypatch.setitem(PROTOCOLS, "shout", shout)
    assert rendered(item_of(2), "shout") == "WHICH?"
