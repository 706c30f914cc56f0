"""Protocols: what each shows, what it hides, and that labels lead back to options."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.graders import REGEX_GRADERS
from mlflow_mcq.graders.answer_words import without_lead
from mlflow_mcq.graders.judge_prompt import judge_conversation
from mlflow_mcq.graders.labels import fold
from mlflow_mcq.graders.strict import read_strict
from mlflow_mcq.orientations import orientations_for
from mlflow_mcq.protocols import (
    LABEL_STYLES,
    NOTA_TEXTS,
    PROTOCOLS,
    WORDINGS,
    Protocol,
    Style,
    check_labels,
    labels_for,
    prompt_family,
)
from mlflow_mcq.records import Generation, Item, Message, Orientation, Prompt, Reply
from mlflow_mcq.table import generations_frame, generations_from

RIVER = Item("river", "Which river is the longest?", ("Nile", "Oder", "Tagus", "Drava"), 0)
TURNED = Orientation(2, "rot2", (2, 3, 0, 1))


def text_of(prompt: Prompt) -> str:
    if isinstance(prompt.content, str):
        return prompt.content
    return "\n".join(message.content for message in prompt.content)


def shown(name: str, item: Item = RIVER, orientation: Orientation = TURNED, **style) -> Prompt:
    return prompt_family(name, Style(**style))(item, orientation, chat=True)


# What is shown and what is hidden


@pytest.mark.parametrize(
    ("name", "question", "options", "labels"),
    [
        pytest.param("letters", True, 4, 4, id="letters"),
        pytest.param("letters-reasoned", True, 4, 4, id="letters-reasoned"),
        pytest.param("letters-shuffled-labels", True, 4, 4, id="letters-shuffled-labels"),
        pytest.param("dashes", True, 4, 0, id="dashes"),
        pytest.param("no-labels", True, 4, 0, id="no-labels"),
        pytest.param("choices-only", False, 4, 4, id="choices-only"),
        pytest.param("none-of-the-above", True, 3, 4, id="none-of-the-above"),
        pytest.param("options-last", True, 0, 0, id="options-last, first turn"),
        pytest.param("cloze", True, 0, 0, id="cloze"),
        pytest.param("analogy", True, 4, 0, id="analogy"),
    ],
)
@pytest.mark.parametrize("chat", [True, False])
def test_each_protocol_shows_what_it_is_named_for(name, question, options, labels, chat) -> None:
    prompt = prompt_family(name)(RIVER, TURNED, chat=chat)
    text = text_of(prompt)
    assert (RIVER.question in text) is question
    assert sum(option in text for option in RIVER.options) == options
    assert len(prompt.labels) == labels
    assert prompt.protocol == name
    for label, option in zip(prompt.labels, prompt.shown, strict=bool(prompt.labels)):
        assert f"\n{label}) {option}" in text


def test_every_protocol_is_in_the_table_above_by_its_name() -> None:
    marks = test_each_protocol_shows_what_it_is_named_for.pytestmark
    (rows,) = [mark.args[1] for mark in marks if "labels" in mark.args[0]]
    assert {param.values[0] for param in rows} == set(PROTOCOLS)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("chat", [True, False])
def test_the_same_input_gives_the_same_bytes(name: str, chat: bool) -> None:
    one = prompt_family(name, Style(seed=3))(RIVER, TURNED, chat=chat)
    assert one == prompt_family(name, Style(seed=3))(replace(RIVER), TURNED, chat=chat)


HOSTILE = ["{labels}", "{kind}", "{question}{options}", "%s %(x)s", "\\1 \\g<0>", "a {b!r} }{"]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("language", WORDINGS)
def test_no_field_in_the_data_is_filled_in(name: str, text: str, language: str) -> None:
    style = {} if name == "analogy" else {"language": language}
    item = Item("i", f"Q {text} Q", (f"x {text} x", f"y {text} y"), 1)
    said = text_of(shown(name, item, Orientation(0, "as-is", (0, 1)), **style))
    n_shown = (name != "choices-only") + 2 * (name not in ("cloze", "options-last"))
    n_shown -= name == "none-of-the-above"
    assert said.count(text) == n_shown


def test_plain_text_stays_plain_for_a_model_that_speaks_chat() -> None:
    assert isinstance(prompt_family("analogy")(RIVER, TURNED, chat=True).content, str)
    assert text_of(shown("analogy")).endswith("\nAnswer:")


def test_an_analogy_is_never_its_own_example() -> None:
    puppy = Item("mine", "PUPPY :  dog", ("a : b", "c : d"), 0)
    text = text_of(shown("analogy", puppy, Orientation(0, "as-is", (0, 1))))
    assert text.count("Answer: ") == 3
    assert "kitten" not in text


# Labels


@pytest.mark.parametrize(
    ("style", "n", "labels"),
    [
        pytest.param("upper", 27, ("Z", "AA"), id="upper, past Z"),
        pytest.param("lower", 3, ("b", "c"), id="lower"),
        pytest.param("digits", 12, ("11", "12"), id="digits"),
        pytest.param("roman", 9, ("viii", "ix"), id="roman"),
        pytest.param("roman", 50, ("xlix", "l"), id="roman to fifty"),
        pytest.param("katakana", 5, ("エ", "オ"), id="katakana"),
        pytest.param("hangul", 4, ("다", "라"), id="hangul"),
        pytest.param("greek", 3, ("β", "γ"), id="greek"),
        pytest.param(("P", "Q", "R"), 3, ("Q", "R"), id="own list"),
    ],
)
def test_a_style_names_the_slots_in_order(style, n, labels) -> None:
    assert labels_for(style, n)[-2:] == labels


@pytest.mark.parametrize(
    ("language", "first"),
    [("ja", "ア"), ("ko", "가"), ("ru", "А"), ("ar", "أ"), ("hi", "क"), ("de", "A"), ("zh", "A")],
)
def test_native_labels_go_with_the_language(language: str, first: str) -> None:
    assert shown("letters", labels="native", language=language).labels[0] == first


@pytest.mark.parametrize("style", LABEL_STYLES)
def test_a_named_style_can_be_read_back(style: str) -> None:
    labels = LABEL_STYLES[style]()
    check_labels(labels)
    assert len(set(labels)) == len(labels)
    with pytest.raises(SettingsError, match="labels"):
        labels_for(style, len(labels) + 1)


@pytest.mark.parametrize("style", ["upper", "lower", "digits", "katakana", "hangul", "cyrillic"])
@pytest.mark.parametrize("name", ["letters", "letters-shuffled-labels"])
def test_a_bare_label_leads_to_the_option_beside_it(style: str, name: str) -> None:
    for orientation in orientations_for(4, "rotations"):
        prompt = shown(name, orientation=orientation, labels=style)
        for slot, label in enumerate(prompt.labels):
            assert read_strict(f"{label})", prompt.shown, prompt.labels).slot == slot
            line = f"{label}) {RIVER.options[orientation.order[slot]]}"
            assert line in text_of(prompt)


@pytest.mark.parametrize(
    ("labels", "noun"),
    [("upper", "letter"), ("digits", "number"), ("roman", "label"), (("P1", "P2"), "label")],
)
def test_the_instruction_calls_labels_what_they_are(labels, noun) -> None:
    item = Item("i", "?", ("x", "y"), 0)
    text = text_of(shown("letters", item, Orientation(0, "as-is", (0, 1)), labels=labels))
    assert f"Answer with the {noun} of one option only:" in text


# Shuffled labels


@given(st.integers(2, 9), st.integers(0, 50), st.text(max_size=5))
def test_shuffled_labels_are_the_same_labels_elsewhere(n: int, seed: int, item_id: str) -> None:
    item = Item(item_id, "?", tuple(f"thing{i}" for i in range(n)), 0)
    for orientation in orientations_for(n, "rotations"):
        prompt = shown("letters-shuffled-labels", item, orientation, seed=seed)
        assert sorted(prompt.labels) == sorted(labels_for("upper", n))
        # The instruction lists them in the order of the alphabet.
        assert text_of(prompt).endswith(text_of(shown("letters", item, orientation))[-20:])


def test_shuffled_labels_are_drawn_for_each_item_and_orientation() -> None:
    items = [replace(RIVER, id=f"i{n}") for n in range(40)]
    drawn = {
        (item.id, o.index): shown("letters-shuffled-labels", item, o).labels
        for item in items
        for o in orientations_for(4, "rotations")
    }
    # Of 24 orders each turns up in 160 draws, and gold's label is about as often A as D.
    assert len(set(drawn.values())) > 20
    tops = [labels[0] for labels in drawn.values()]
    assert all(20 < tops.count(letter) < 60 for letter in "ABCD")


@pytest.mark.parametrize("grader", REGEX_GRADERS)
def test_a_reader_of_letters_goes_from_label_to_slot_to_option(grader: str) -> None:
    for orientation in orientations_for(4, "rotations"):
        prompt = shown("letters-shuffled-labels", orientation=orientation, seed=1)
        for slot, label in enumerate(prompt.labels):
            (grade,) = REGEX_GRADERS[grader].grade([Generation(prompt, 0, Reply(label))])
            assert grade.choice == orientation.order[slot]
            assert grade.slot == slot


# Cloze: nothing was shown


@pytest.mark.parametrize("grader", REGEX_GRADERS)
def test_a_letter_names_nothing_where_no_option_was_shown(grader: str) -> None:
    (grade,) = REGEX_GRADERS[grader].grade([Generation(shown("cloze"), 0, Reply("A"))])
    assert (grade.choice, grade.reason) == (None, "options_unseen")


def test_an_option_named_unseen_has_no_slot() -> None:
    from mlflow_mcq.records import Grade

    grade = Grade.of_choice(Generation(shown("cloze"), 0, Reply("Nile")), "similarity", 0)
    assert grade.slot is None
    assert grade.generation.prompt.unseen


# None of the others


@pytest.mark.parametrize("language", WORDINGS)
def test_the_right_option_gives_way_and_stays_gold(language: str) -> None:
    prompt = shown("none-of-the-above", language=language)
    assert prompt.item.gold == RIVER.gold
    assert prompt.item.options[RIVER.gold] == WORDINGS[language].nota
    assert prompt.item.options[1:] == RIVER.options[1:]
    assert prompt.shown[prompt.gold_slot] in NOTA_TEXTS


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_a_share_of_items_loses_its_right_option_the_others_a_wrong_one(share: float) -> None:
    items = [replace(RIVER, id=f"i{n}") for n in range(400)]
    changed = [shown("none-of-the-above", item, nota_share=share).item for item in items]
    assert all(sum(o in NOTA_TEXTS for o in item.options) == 1 for item in changed)
    right = sum(item.options[item.gold] in NOTA_TEXTS for item in changed) / len(items)
    assert abs(right - share) < 0.08
    assert (right in (0.0, 1.0)) is (share in (0.0, 1.0))


def test_the_same_item_is_changed_alike_in_all_orientations() -> None:
    plan = orientations_for(4, "rotations")
    options = {shown("none-of-the-above", RIVER, o, nota_share=0.5).item.options for o in plan}
    assert len(options) == 1


@pytest.mark.parametrize("last", ["All of the above", "None of these", "Both A and C"])
def test_an_item_with_an_option_about_the_others_is_refused(last: str) -> None:
    item = Item("q9", "Which?", ("x", "y", last), 0)
    with pytest.raises(DataError, match="'q9'"):
        shown("none-of-the-above", item, Orientation(0, "as-is", (0, 1, 2)))


def test_one_of_several_right_options_is_never_replaced_alone() -> None:
    item = Item("q9", "Which?", ("x", "y", "z"), 0, also_right=(1,))
    with pytest.raises(DataError, match="several right options"):
        shown("none-of-the-above", item, Orientation(0, "as-is", (0, 1, 2)))


# Two turns


@pytest.mark.parametrize("chat", [True, False])
def test_the_first_reply_stands_in_the_second_prompt_as_it_came(chat: bool) -> None:
    family = prompt_family("options-last")
    assert isinstance(family, Protocol)
    reply = "  It is {labels}\n\nA) fake %s "
    second = family.second(family(RIVER, TURNED, chat=chat), reply)
    assert reply in text_of(second)
    assert second.labels == ("A", "B", "C", "D")
    assert "\nA) Tagus\nB) Drava\nC) Nile\nD) Oder\n" in text_of(second)
    if chat:
        assert [m.role for m in second.content] == ["user", "assistant", "user"]
        assert second.content[1] == Message("assistant", reply)
    else:
        assert second.content.startswith(family(RIVER, TURNED, chat=False).content)
        assert second.content.endswith("\nAnswer:")


def test_a_protocol_of_one_turn_has_no_second() -> None:
    family = prompt_family("letters")
    with pytest.raises(ValueError, match="no second turn"):
        family.second(shown("letters"), "B")


# Languages


@pytest.mark.parametrize("language", WORDINGS)
def test_every_language_has_words_of_its_own(language: str) -> None:
    fields = ("letters", "reasoned", "dashes", "text", "short", "first", "second", "guess", "nota")
    for name in fields:
        said = getattr(WORDINGS[language], name)
        assert said == said.strip() != ""
        others = [getattr(words, name) for key, words in WORDINGS.items() if key != language]
        assert said not in others
    for name in ("letters", "reasoned"):
        assert getattr(WORDINGS[language], name).count("{labels}") == 1


def test_the_languages_that_we_promise_are_there() -> None:
    promised = {*("en", "zh", "es", "de", "fr", "ja"), *("ko", "ar", "hi", "pt", "ru", "vi")}
    assert set(WORDINGS) >= promised


@pytest.mark.parametrize("language", WORDINGS)
@pytest.mark.parametrize("part", ["cue", "phrase"])
def test_the_strict_rule_knows_what_a_model_is_told_to_write(language: str, part: str) -> None:
    words = WORDINGS[language]
    lead = getattr(words, part)
    rest, found = without_lead(fold(lead + words.gap + "B)"))
    assert (rest, found.found) == ("B)", True)
    instruction = words.reasoned if part == "cue" else words.dashes
    assert lead in instruction


@pytest.mark.parametrize("language", WORDINGS)
def test_an_answer_after_the_cue_of_any_language_needs_no_judge(language: str) -> None:
    words, options = WORDINGS[language], ["kopper", "merkur", "tin"]
    for label, slot in (("B", 1), ("C", 2)):
        said = words.cue + words.gap + label
        assert read_strict(said, options, ("A", "B", "C")).slot == slot
    assert read_strict(words.phrase + words.gap + "merkur", options, ()).slot == 1


@pytest.mark.parametrize("name", sorted(set(PROTOCOLS) - {"analogy"}))
@pytest.mark.parametrize("text", ["مياه عذبة (نقية)", "שלום 12", "\u2067نص\u2069"])
def test_text_that_runs_from_right_to_left_is_left_alone(name: str, text: str) -> None:
    item = Item("i", text, (f"{text} 1", f"{text} 2", "b"), 2)
    said = text_of(shown(name, item, Orientation(0, "as-is", (0, 1, 2)), language="ar"))
    assert text in said
    marks = "\u2066\u2067\u2068\u2069\u200e\u200f\u202a\u202b\u202c"
    ours = said.replace(text, "")
    assert not any(mark in ours for mark in marks)


# One of your own


def test_your_own_protocol_is_another_with_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = PROTOCOLS["letters"]
    assert isinstance(letters, Protocol)
    hurried = replace(letters, name="hurried", ask=lambda page: page.item.question + " Quick!")
    monkeypatch.setitem(PROTOCOLS, "hurried", hurried)
    prompt = shown("hurried", labels="lower")
    assert text_of(prompt) == "Which river is the longest? Quick!"
    assert (prompt.protocol, prompt.labels) == ("hurried", ("a", "b", "c", "d"))


# Read again from the table


@pytest.mark.parametrize("name", ["letters-shuffled-labels", "cloze", "none-of-the-above"])
def test_what_was_shown_survives_the_table(name: str) -> None:
    prompt = shown(name, seed=1)
    rows = generations_frame([Generation(prompt, 0, Reply("Nile"))])
    (again,) = generations_from(rows)
    assert again.prompt.labels == prompt.labels
    assert again.prompt.orientation == prompt.orientation
    assert again.prompt.unseen is (name == "cloze")
    assert again.prompt.shown == prompt.shown


@pytest.mark.parametrize("name", ["letters", "letters-shuffled-labels", "dashes", "cloze"])
def test_a_judge_is_told_what_the_candidate_saw(name: str) -> None:
    asked = judge_conversation(Generation(shown(name, seed=1), 0, Reply("?")), "extract", chat=True)
    text = asked[-1].content
    assert ("WITHOUT letters" in text) is (name == "dashes")
    assert ("NOT these options" in text) is (name == "cloze")
    if name.startswith("letters"):
        prompt = shown(name, seed=1)
        for label, option in zip(prompt.labels, prompt.shown, strict=True):
            assert f"\n{label}) {option}" in text
