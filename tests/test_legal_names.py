"""Names that users give become names of numbers and never paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from mlflow_mcq.tracking import _legal


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        pytest.param("judge/accuracy", "judge/accuracy", id="as it is"),
        pytest.param("accuracy_shift/../../etc", "accuracy_shift/_/_/etc", id="up"),
        pytest.param("/etc/passwd", "_/etc/passwd", id="from the root"),
        pytest.param("a//b", "a/_/b", id="empty part"),
        pytest.param("p_value/.", "p_value/_", id="here"),
        pytest.param("p_value/", "p_value/_", id="nothing after"),
        pytest.param("=cmd|'/c calc'", "_cmd__/c calc_", id="formula"),
        pytest.param("v1.5", "v1.5", id="a point"),
    ],
)
def test_a_name_is_made_legal(name: str, legal: str) -> None:
    assert _legal(name) == legal


@given(st.text("ab./\\:=@% é\x00", min_size=1, max_size=8))
def test_mlflow_takes_every_name(name: str) -> None:
    _validate_metric_name(_legal(name))
