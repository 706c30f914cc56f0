"""Signs put for signs: in long texts as in short ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.graders import harmless, labels
from mlflow_mcq.graders.translated import translated


@pytest.mark.parametrize("table", [labels._WIDE, harmless._WIDE], ids=["labels", "harmless"])
@given(text=st.text("aＡ（）\u3000‘😀\ud800\udc00\ufeff\uffff\x00", min_size=1, max_size=8))
def test_a_long_text_is_translated_as_a_short_one_is(
    table: dict[int, str | int], text: str
) -> None:
    assert translated(text * 1000, table) == text.translate(table) * 1000
