"""Weights loaded once for several arms, and never shared behind anybody's back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import byte_tokenizer, tiny_model

from mlflow_mcq.engines.sharing import keep_only, loaded, weights_shared


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tiny_model().save_pretrained(tmp_path / "m")
    byte_tokenizer().save_pretrained(tmp_path / "m")
    return str(tmp_path / "m")


def test_arms_share_weights_and_each_has_its_batch_size(folder: str) -> None:
    with weights_shared():
        one, same, other = loaded(folder, 8), loaded(folder, 8), loaded(folder, 3)
        assert one is same
        assert other.model is one.model
        assert (other.batch_size, one.batch_size) == (3, 8)
        assert (other.fingerprint, other.origin) == (one.fingerprint, one.origin)


def test_elsewhere_two_models_are_two(folder: str) -> None:
    one = loaded(folder, 8)
    assert loaded(folder, 8).model is not one.model
    with weights_shared():
        inside = loaded(folder, 8)
    assert loaded(folder, 8).model is not inside.model


def test_weights_that_no_later_arm_needs_are_let_go(folder: str) -> None:
    with weights_shared():
        one = loaded(folder, 8)
        keep_only([folder])
        assert loaded(folder, 8) is one
        keep_only(["another"])
        assert loaded(folder, 8) is not one
