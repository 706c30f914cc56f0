"""Descriptions of runs: ours beside the user's own."""

from __future__ import annotations

import pytest

from mlflow_mcq.diagnostics.arm import Alarm
from mlflow_mcq.run_note import escaped, summary_note, table_lines, with_section


@pytest.mark.parametrize("words", ["", "# my run\n\nwords", "a [link](x) and \\1"], ids=str)
def test_a_section_is_replaced_and_the_rest_is_left(words: str) -> None:
    one = with_section(words, "mcq", "first\n\ntext \\1")
    both = with_section(one, "mcq comparison", "beside")
    again = with_section(both, "mcq", "second")
    assert again.startswith(words)
    assert "first" not in again
    assert again.index("second") < again.index("beside")
    assert with_section(again, "mcq", "second") == again


def test_a_description_never_outgrows_its_tag() -> None:
    note = with_section(with_section("", "mcq", "line\n" * 9_000), "mcq comparison", "x\n" * 9_000)
    assert len(note) < 8_000
    assert note.count("(end mcq") == 2


@pytest.mark.parametrize("text", ["<b>x</b>", "a|b", "**x**", "[x](y)", "`x`", "a\nb"])
def test_no_text_of_a_user_is_markup(text: str) -> None:
    (_, _, row) = table_lines(["one"], [[text]])
    assert row.count("|") - row.count("\\|") == 2
    assert "<" not in escaped(text)
    assert "\n" not in row


def test_numbers_of_the_judge_come_first_and_alarms_are_told() -> None:
    values = {"regex_naive/accuracy": 0.25, "judge/accuracy": 0.5, "judge/accuracy_decided": 0.625}
    alarm = Alarm("other_rate_up", "rule", "a|b", "do this")
    note = summary_note(values, [alarm])
    assert note.index("judge") < note.index("regex")
    assert "0.625" in note
    assert "- **other_rate_up**: a\\|b. do this" in note
    assert "none" in summary_note(values, [])


def test_guessing_is_told_where_there_is_a_band() -> None:
    values = {"judge/accuracy": 0.3, "judge/nonsense_accuracy": 0.4, "judge/chance_low": 0.2}
    assert "Guessing" not in summary_note(values, [])
    note = summary_note(values | {"judge/chance_high": 0.3}, [])
    assert "**Guessing**: read by judge, 0.400 of nonsense is right; guessing is 0.200" in note
    assert "outside" in note
