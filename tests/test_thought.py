"""Thinking is not an answer."""

from __future__ import annotations

import pytest
from finishing import finishes
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders.thought import Answer, answer_part


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("C", Answer("C"), id="no thinking at all"),
        pytest.param("<think>D? no</think>C", Answer("C", "D? no"), id="think"),
        pytest.param("<THINKING>D</THINKING>\nC", Answer("\nC", "D"), id="thinking, capitals"),
        pytest.param("<reasoning>D</reasoning>C", Answer("C", "D"), id="reasoning"),
        pytest.param("[THINK]D[/THINK]C", Answer("C", "D"), id="square brackets"),
        pytest.param('<think budget="9">D</think>C', Answer("C", "D"), id="tag with attribute"),
        pytest.param("◁think▷D◁/think▷C", Answer("C", "D"), id="triangles"),
        pytest.param("so D, no, C</think>C", Answer("C", "so D, no, C"), id="lone closing tag"),
        pytest.param(
            "<think>the </reasoning> tag</think>C",
            Answer("C", "the </reasoning> tag"),
            id="another tag is only mentioned",
        ),
        pytest.param(
            "<think>a<think>b</think>C", Answer("C", "a<think>b"), id="opened twice, closed once"
        ),
        pytest.param("<think>a</think>b<think>c</think>D", Answer("bD", "ac"), id="two thoughts"),
        pytest.param(
            "<|channel|>analysis<|message|>D<|end|><|start|>assistant<|channel|>final<|message|>C",
            Answer("C", "D<|end|><|start|>assistant"),
            id="channels",
        ),
        pytest.param("analysisD, perhapsassistantfinalC", Answer("C", "D, perhaps"), id="bare"),
        pytest.param("<think></think>", Answer("", ""), id="nothing on either side"),
    ],
)
def test_answer_is_what_stands_outside_the_thinking(text, answer):
    assert answer_part(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<think>The answer is B", id="cut while thinking"),
        pytest.param("Let me see. <think>B", id="after a first sentence"),
        pytest.param("[THINK]B", id="square brackets"),
        pytest.param("<|channel|>analysis<|message|>B", id="channel"),
        pytest.param("<think>B</reasoning>", id="closed by another tag"),
    ],
)
def test_unclosed_thinking_leaves_no_answer(text):
    answer = answer_part(text)
    assert answer.unfinished
    assert "B" not in answer.text


@pytest.mark.parametrize(
    ("sent", "text", "unfinished"),
    [
        pytest.param("Q?<think>\n", "it is B", True, id="prompt opened it"),
        pytest.param("Q?<think>\n", "it is B</think>C", False, id="and the model closed it"),
        pytest.param("Q?<think>\n\n</think>\n\n", "B", False, id="thinking switched off"),
        pytest.param("What does <think> do?", "B", False, id="question about the tag"),
        pytest.param("Q?[THINK]", "it is B", True, id="square brackets"),
    ],
)
def test_prompt_may_have_opened_the_thinking(sent, text, unfinished):
    assert answer_part(text, sent).unfinished is unfinished


@given(st.text(alphabet="<>/thinkTHINK[]|chanel a", max_size=80), st.text(max_size=20))
def test_any_text_is_read_without_a_crash(text, sent):
    answer_part(text, sent)


@given(st.text(alphabet="abc ABC.\n"), st.text(alphabet="abc ABC.\n"))
def test_thought_and_answer_are_told_apart(thought, answer):
    assert answer_part(f"<think>{thought}</think>{answer}") == Answer(answer, thought)


@pytest.mark.parametrize(
    "unit", ["<think>", "</think>", "<think></think>", "[THINK]", "<", "<think "]
)
def test_a_megabyte_is_read_to_its_end(unit):
    assert finishes(answer_part, unit * (1_000_000 // len(unit)))
