"""The part of a reply that holds the answer: levels, edges, and hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders import mentions as mentions_of
from mlflow_mcq.graders.mentions import last_mention, mentions, plain
from mlflow_mcq.graders.refusals import REFUSALS, is_refusal
from mlflow_mcq.graders.spans import Span, extract_span

METALS = ("copper", "zinc", "nickel", "silver")


@pytest.mark.parametrize(
    ("reply", "text", "level"),
    [
        pytest.param("I think the answer is zinc.", "zinc", 1, id="plain"),
        pytest.param("The answer is zinc? No: the answer is nickel.", "nickel", 1, id="last one"),
        pytest.param("THE ANSWER IS: Zinc", "Zinc", 1, id="capitals"),
        pytest.param("the answer is :  zinc", "zinc", 1, id="blank before the colon"),
        pytest.param("The answer is:\n\nzinc\n\nIt is cheap.", "zinc", 1, id="on the next line"),
        pytest.param("The answer\nis zinc", "zinc", 1, id="marker over two lines"),
        pytest.param("**The answer is** zinc", "zinc", 1, id="bold marker"),
        pytest.param("**The answer is zinc.**", "zinc", 1, id="all bold"),
        pytest.param("The answer is **zinc**.", "zinc", 1, id="bold answer"),
        pytest.param("The **answer** is: *zinc*!", "zinc", 1, id="bold word"),
        pytest.param('The answer is "zinc."', "zinc", 1, id="quoted with its full stop"),
        pytest.param("The answer is:\n- zinc", "zinc", 1, id="bullet"),
        pytest.param("The answer is:\n```\nzinc\n```", "zinc", 1, id="code block"),
        pytest.param(r"The answer is $\boxed{\text{zinc}}$.", "zinc", 1, id="LaTeX"),
        pytest.param("The answer is\n\\[\n\\boxed{zinc}\n\\]", "zinc", 1, id="LaTeX display"),
        pytest.param("The answer is Zn (atomic number 30).", "Zn (atomic number 30)", 1, id="both"),
        pytest.param("The answer is about 3.5 g of it. Yes.", "about 3.5 g of it", 1, id="decimal"),
        pytest.param("The answer is B. It is cheap.", "B", 1, id="label, then a sentence"),
        pytest.param("The answer is B. zinc.", "B. zinc", 1, id="label with its text"),
        pytest.param("The answer is no. 5 there.", "no. 5 there", 1, id="number sign"),
        pytest.param("The answer is no. Never.", "no", 1, id="the word no"),
        pytest.param("The answer is zinc. So the answer is", "zinc", 1, id="cut after a marker"),
        pytest.param("The answer is: Answer: zinc", "zinc", 2, id="empty before the next marker"),
        pytest.param("Answer: zinc", "zinc", 2, id="colon"),
        pytest.param("**Final Answer:** zinc", "zinc", 2, id="bold colon"),
        pytest.param("answer : zinc\nQuestion: next", "zinc", 2, id="ends with its line"),
        pytest.param("Answer：zinc", "zinc", 2, id="full-width colon"),
        pytest.param("(Answer: zinc)", "zinc", 2, id="bracket opened before"),
        pytest.param("Answer: zinc\nAnswer: nickel", "nickel", 2, id="last colon"),
        pytest.param("The answer is zinc.\nAnswer: nickel", "zinc", 1, id="level 1 goes first"),
        pytest.param("Nickel is dear, Zinc is not!", "zinc", 3, id="last option named"),
        pytest.param("The answer isn't zinc", "zinc", 3, id="no marker in isn't"),
        pytest.param("Zincs and coppery things. Bye.", "Bye", 4, id="options are bounded"),
        pytest.param("Hm. Metals shine! Zn, I think.", "Zn, I think", 4, id="last sentence"),
        pytest.param("See Dr. Wu, i.e. the U.S. expert", None, 4, id="abbreviations"),
        pytest.param("Use 2.5 g, e.g. of Zn.", "Use 2.5 g, e.g. of Zn", 4, id="decimal, e.g."),
        pytest.param("First line\nZn\n\n", "Zn", 4, id="last line"),
        pytest.param("这是金属。是锌。", "是锌", 4, id="Chinese full stop"),
        pytest.param("<think>The answer is nickel.</think>Zn.", "Zn", 4, id="not the thinking"),
    ],
)
def test_levels_and_edges(reply, text, level):
    assert extract_span(reply, METALS) == Span(text or reply, level)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n\t", id="blank"),
        pytest.param("...", id="nothing but full stops"),
        pytest.param("<think>The answer is zinc", id="thinking that never ended"),
        pytest.param("<think>zinc</think>\n", id="nothing after the thinking"),
    ],
)
def test_nothing_to_read(reply):
    assert extract_span(reply, METALS) is None


def test_thinking_that_the_prompt_opened():
    assert extract_span("The answer is zinc", METALS, sent="...<think>\n") is None


OWN_STOPS = (
    *("J. R. Smith", "It rises. Then it falls.", "5!", "3.5", "U.S."),
    *("Is it? Yes.", "Washington, D.C."),
)


@pytest.mark.parametrize("option", OWN_STOPS)
@pytest.mark.parametrize("before", ["So the answer is ", "Answer: ", "I pick ", ""])
def test_an_option_is_never_cut_at_its_own_full_stops(option, before):
    span = extract_span(f"{before}{option}\nNext.", ("Nobody", option))
    assert span is not None
    assert span.text == option


@given(st.sampled_from(METALS), st.sampled_from([" ", "\n", " : ", ":\n\n", ": **", " *"]))
def test_spacing_never_loses_level_1(metal, gap):
    span = extract_span(f"Hm.\nThe answer is{gap}{metal}\n\nAnother line.", METALS)
    assert span is not None
    assert (span.text.strip("*"), span.level) == (metal, 1)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_gives_a_span_that_it_holds_or_none(text):
    span = extract_span(text)
    assert span is None or (span.text in text and span.text.strip())


HOSTILE = {
    "full stops": "." * 10**6,
    "sentences": ". " * 500_000,
    "markers": "answer is " * 100_000,
    "half markers": "answer " * 140_000,
    "blanks in a marker": "answer" + " " * 10**6 + "is",
    "blanks after": "answer is" + "\n" * 10**6,
    "combining marks": "a" + "\u0301\u0316" * 500_000,
    "options": "zinc " * 200_000,
    "nearly options": "zinc" * 250_000,
    "stars": "*" * 10**6,
    "brackets": "answer: " + ")" * 10**6,
    "abbreviations": "e.g. " * 200_000,
    "tags": "<think>" * 140_000 + "</think>",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_of_hostile_text_ends(text):
    # No clock: anything slower than linear would take hours on these.
    span = extract_span(text, METALS)
    assert span is None or len(span.text) <= 2000


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot answer this question.",
        "I'm sorry, but I can’t help with that.",
        "As an AI language model, I have no opinion.",
        "I don't know",
        "There is not enough information.",
        "None of the above",
        "Das kann ich leider nicht beantworten.",
        "Je ne sais pas.",
        "No puedo responder a esa pregunta.",
        "Não sei.",
        "Non posso rispondere.",
        "Ik weet het niet.",
        "Nie wiem.",
        "Я не могу ответить на этот вопрос.",
        "Nevím.",
        "En tiedä.",
        "Bilmiyorum.",
        "لا أعرف",
        "मुझे नहीं पता",
        "Tôi không biết.",
        "Saya tidak tahu.",
        "我无法回答这个问题。",
        "わかりません。",
        "모르겠습니다.",
        "ไม่สามารถตอบได้",
    ],
)
def test_refusals_in_many_languages(reply):
    assert is_refusal(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "zinc",
        "Zinc cannot rust.",
        "It can help plants.",
        "Ich weiß, Zink.",
        "Je sais: le zinc.",
        "No, zinc.",
        "I'm not sure, but zinc.",
        "The unknown knows.",
    ],
)
def test_answers_that_are_no_refusals(reply):
    assert not is_refusal(reply)


def test_an_option_that_reads_like_a_refusal_is_an_answer():
    assert not is_refusal("None of the above.", ["zinc", "None of the above"])
    assert is_refusal("I don't know.", ["zinc", "None of the above"])


def test_the_refusal_table_covers_twenty_languages():
    assert len(REFUSALS) >= 20


@given(
    text=st.text("abAB_1 .,-éア\u200d\u0301", max_size=40),
    option=st.text("abA_1 .-éア\u0301", min_size=1, max_size=3),
)
def test_a_mention_is_what_no_neighbour_goes_on_with(text: str, option: str) -> None:
    said, wanted = plain(text), plain(option)
    starts, start = [], 0
    while wanted and (start := said.find(wanted, start)) >= 0:
        end = start + len(wanted)
        joined = start > 0 and mentions_of._joined(said[start - 1], said[start])
        free = not joined and mentions_of._bounded(said, start, end)
        starts += [start] if free else []
        start = end if free else start + 1
    assert [mention.start for mention in mentions(text, [option])] == starts
    last = last_mention(text, [option])
    assert (last is not None) == bool(starts)
