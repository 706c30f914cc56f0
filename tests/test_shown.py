"""The order shown is read off the prompt, and only where it stands there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError
from mlflow_mcq.importers.shown import check_gold_alone, order_shown
from mlflow_mcq.orientations import letters_for

METALS = ["iron", "mercury", "tin"]


@pytest.mark.parametrize(
    ("prompt", "options", "order"),
    [
        pytest.param("Q?\n\nA) tin\nB) iron\nC) mercury", METALS, (2, 0, 1), id="A)"),
        pytest.param("Q?\nA. iron\nB. mercury\nC. tin\nAnswer:", METALS, (0, 1, 2), id="A."),
        pytest.param("(A) mercury\n(B) tin\n(C) iron\nSay it:", METALS, (1, 2, 0), id="(A)"),
        pytest.param("A: tin\nB: mercury\nC: iron", METALS, (2, 1, 0), id="A:"),
        pytest.param("[A] tin\n[B] mercury\n[C] iron", METALS, (2, 1, 0), id="[A]"),
        pytest.param("  A) tin\r\n\r\n  B) iron \r\n  C) mercury", METALS, (2, 0, 1), id="spaces"),
        pytest.param(
            "A. iron\nB. mercury\nC. tin\nAnswer: B\n\nA. tin\nB. mercury\nC. iron\nAnswer:",
            METALS, (2, 1, 0), id="the last of two lists",
        ),
        pytest.param(
            "A. wood\nB. stone\nAnswer: B\n\nA. tin\nB. iron\nC. mercury\nAnswer:",
            METALS, (2, 0, 1), id="an example before it",
        ),
        pytest.param("A) 42\nB) 4\nC) 2", ["4", "42", "2"], (1, 0, 2), id="one begins another"),
        pytest.param(
            "A) x\nB) y\nB) z", ["z", "x\nB) y"], (1, 0), id="an option that looks like two"
        ),
        pytest.param("A) a\nb\nB) c", ["c", "a\nb"], (1, 0), id="two lines"),
        pytest.param("A) 是\nB) 不是", ["不是", "是"], (1, 0), id="another script"),
        pytest.param("A) a {x} %s\nB) .*", [".*", "a {x} %s"], (1, 0), id="nothing is a pattern"),
        pytest.param("A) no\nB) no\nC) yes", ["yes", "no", "no"], (1, 2, 0), id="equal wrong ones"),
    ],
)  # fmt: skip
def test_lettered_lists(prompt: str, options: list[str], order: tuple[int, ...]) -> None:
    assert order_shown(prompt, options, "row") == order


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        pytest.param("Is it iron, mercury or tin?", METALS, id="prose"),
        pytest.param("- iron\n- mercury\n- tin", METALS, id="dashes"),
        pytest.param("A) iron\nB) mercury", METALS, id="one missing"),
        pytest.param("A) iron\nB) mercury\nC) tiny", METALS, id="another text"),
        pytest.param("A) iron\nC) mercury\nB) tin", METALS, id="letters out of order"),
        pytest.param("say A) iron\nB) mercury\nC) tin", METALS, id="within a line"),
        pytest.param("A) iron B) mercury C) tin", METALS, id="all in a line"),
        pytest.param("", METALS, id="nothing"),
        pytest.param("A) x\nB) x\nB) x", ["x", "x\nB) x"], id="two readings"),
        pytest.param("A) \nB) x", [" ", "x"], id="an empty option"),
    ],
)
def test_what_does_not_show_them_is_refused(prompt: str, options: list[str]) -> None:
    with pytest.raises(DataError):
        order_shown(prompt, options, "row")


def test_of_two_that_read_alike_one_may_not_be_gold() -> None:
    check_gold_alone(["no", "no ", "yes"], 2, "row")
    with pytest.raises(DataError, match="text of the gold"):
        check_gold_alone(["no", "no ", "yes"], 0, "row")


@given(
    st.lists(st.text("ab1) \n", min_size=1).filter(str.strip), min_size=2, max_size=6, unique=True),
    st.randoms(use_true_random=False),
    st.sampled_from(["{})", "({})", "{}."]),
)
def test_what_a_prompt_shows_reads_back_as_those_texts(
    options: list[str], draw: object, style: str
) -> None:
    options = list(dict.fromkeys(option.strip() for option in options))
    if len(options) < 2:
        return
    order = list(range(len(options)))
    draw.shuffle(order)  # type: ignore[attr-defined]
    labels = [style.replace("{}", letter) for letter in letters_for(len(options))]
    lines = [f"{label} {options[i]}" for label, i in zip(labels, order, strict=True)]
    assert order_shown("Which?\n" + "\n".join(lines), options, "row") == tuple(order)


def test_many_equal_options_cost_no_time() -> None:
    same = ["x"] * 20 + ["y"]
    prompt = "\n".join(f"{letter}) x" for letter in letters_for(21))
    with pytest.raises(DataError):
        order_shown(prompt, same, "row")
