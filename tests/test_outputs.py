"""Damaged answers: what is found, and what sound models write that must not be."""

from __future__ import annotations

import pytest

from mlflow_mcq.diagnostics.outputs import check_outputs, kind_of_damage, output_alarm
from mlflow_mcq.errors import DataError

ENGLISH = (
    "Which metal is liquid at room temperature?\n\nA) iron\nB) mercury\n\nAnswer with the letter."
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param(" \n\t\u200b", "empty", id="only what cannot be seen"),
        pytest.param("and so on " * 12, "loop", id="a phrase"),
        pytest.param("The answer is B.\n" * 8, "loop", id="a line"),
        pytest.param("B" * 90, "loop", id="one letter"),
        pytest.param("Let me see. " + "wait, " * 30 + "wa", "loop", id="cut within the unit"),
        pytest.param("我不知道。" * 20, "loop", id="without spaces"),
        pytest.param("\ufffd\ufffd\ufffd\x00\x07 a", "gibberish", id="no characters"),
        pytest.param("}])({-+=/#@!&%]);{*~^$<>|:?_" + "}{", "gibberish", id="punctuation"),
        pytest.param("qwrtpsdfghjklzxcvbnm " * 2 + "xkcdqrtz", "gibberish", id="no vowels"),
        pytest.param("lorem" * 3 + "abcdefghij" * 9 + "!", "gibberish", id="no word ends"),
        pytest.param(
            "hello кто там مرحبا بكم नमस्ते दोस्त ไทย ครับ world", "gibberish", id="salad of scripts"
        ),
        pytest.param("水银在室温下是液体，因为它的熔点很低", "off_language", id="another script"),
        pytest.param("Ртуть жидкая при комнатной температуре", "off_language", id="Cyrillic"),
    ],
)
def test_damage_is_found(text: str, kind: str) -> None:
    assert kind_of_damage(text, ENGLISH) == kind


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        pytest.param("B", ENGLISH, id="a letter"),
        pytest.param("(b).", ENGLISH, id="a bracketed letter"),
        pytest.param("42", ENGLISH, id="a number"),
        pytest.param("I'm sorry, but I can't help with that.", ENGLISH, id="a refusal"),
        pytest.param("It is very, very, very, very, very good.", ENGLISH, id="emphasis"),
        pytest.param("Working\n" + "-" * 120 + "\nB", ENGLISH, id="a rule"),
        pytest.param("Answer: B\n" + "-" * 120, ENGLISH, id="a rule at the end"),
        pytest.param("A" + "h" * 20 + "! It is B.", ENGLISH, id="an exclamation"),
        pytest.param(r"$\frac{1}{2}(x^2+y^2) = \int_0^1 f(t)\,dt$, so C", ENGLISH, id="LaTeX"),
        pytest.param("x = [i**2 for i in range(10)]; print(x[::-1])", ENGLISH, id="code"),
        pytest.param(
            "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz", ENGLISH, id="German"
        ),
        pytest.param("Zmrzl strč prst skrz krk, řekl starý pán a odešel domů", ENGLISH, id="Czech"),
        pytest.param("https://example.org/" + "path/" * 8 + "page", ENGLISH, id="an address"),
        pytest.param("The metal is mercury (Hg, 水银), B.", ENGLISH, id="one foreign word"),
        pytest.param("B", "室温下哪种金属是液体？", id="a Latin label under a Chinese question"),
        pytest.param(
            "答案是水银", "室温下哪种金属是液体？\n\nA) 铁\nB) 水银", id="Chinese to Chinese"
        ),
        pytest.param(
            "これは水銀です、室温で液体だからです", "室温下哪种金属是液体？", id="kana beside Han"
        ),
        pytest.param("ปรอทเป็นโลหะเหลวที่อุณหภูมิห้อง", "โลหะใดเป็นของเหลว?", id="Thai, no spaces"),
        pytest.param(
            "पारा कमरे के तापमान पर तरल होता है", "कौन सी धातु तरल है?", id="Hindi, with marks"
        ),
        pytest.param(
            "1. iron: solid\n2. mercury: liquid\n3. tin: solid\nSo B.", ENGLISH, id="a list"
        ),
    ],
)
def test_sound_answers_are_let_be(text: str, prompt: str) -> None:
    assert kind_of_damage(text, prompt) == ""


def test_without_prompts_no_script_is_foreign() -> None:
    assert kind_of_damage("Ртуть жидкая при комнатной температуре") == ""


def test_rates_and_samples_over_rows() -> None:
    texts = ["B"] * 90 + [""] * 10
    check = check_outputs(texts)
    assert check.rates["empty"] == 0.1
    assert check.samples["empty"] == (90, 92, 94, 96, 98)
    assert sum(check.rates.values()) == 0.1


def test_a_cut_answer_counts_where_nothing_was_read() -> None:
    cut = [True] * 10 + [False] * 90
    assert check_outputs(["Let us think"] * 100, cut=cut).rates["truncated"] == 0.1
    # One damage a row: a loop is cut as well, and is a loop.
    looped = check_outputs(["so " * 60] * 100, cut=cut)
    assert (looped.rates["loop"], looped.rates["truncated"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("n_bad", "bad", "fires"),
    [(2, "", False), (3, "", True), (2, "so " * 60, False), (3, "so " * 60, True)],
    ids=["2 % empty", "3 % empty", "2 % loops", "3 % loops"],
)
def test_the_alarm_names_rows(n_bad: int, bad: str, fires: bool) -> None:
    check = check_outputs(["B"] * (100 - n_bad) + [bad] * n_bad)
    alarm = output_alarm(check, [f"q{i}/o0" for i in range(100)])
    assert (alarm is not None) is fires
    if alarm is not None:
        assert alarm.name == "output_corrupted"
        assert "q97/o0" in alarm.found
        assert alarm.rule
        assert alarm.next_step


def test_no_rows_and_rows_of_other_lengths() -> None:
    assert output_alarm(check_outputs([])) is None
    with pytest.raises(DataError, match="prompts"):
        check_outputs(["a", "b"], ["one"])
