"""Whatever stands in a file or a reply: an answer, or an error of our own."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_chat import generation
from fuzz_targets import SEEDS, TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError, McqError, SettingsError
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.records import Grade
from mlflow_mcq.table import generations_frame, generations_from, grades_frame, grades_from

BOMB = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9 if n else 1}]\n" for n in range(30))
few = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
PIECES = (
    b'"', b"[", b"]", b"{", b"}", b"null", b"NaN", b"1e999", b"-1", b"[]", b"{}", b"true",
    b"\n", b"\x00", b"\xff", b"9" * 5000, b"[" * 3000, b"\\ud800", b"*a", b"!!int ", b"- ",
    b'{"a": 1}', b"1.5", b'"question"', b"2001-99-99",
)  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with a few parts cut out or replaced."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = start + draw(st.integers(0, 12))
        data = data[:start] + draw(st.sampled_from((b"", *PIECES))) + data[end:]
    return data


@pytest.mark.parametrize("target", TARGETS)
def test_no_bytes_bring_down_a_reader(target: str) -> None:
    @few
    @given(st.one_of(st.binary(max_size=200), changed(SEEDS[target])))
    def read(data: bytes) -> None:
        TARGETS[target](data)

    read()


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_cut_anywhere_is_read_or_refused(target: str) -> None:
    seed = SEEDS[target][0]
    for end in range(0, len(seed), max(1, len(seed) // 40)):
        TARGETS[target](seed[:end])


words = st.sampled_from(
    ["arms", "grid", "data", "name", "model", "judge", "limit", "seed", "few_shot", "regrade",
     "orientations", "original", "evaluators", "path", "base_url", "regex", "columns", "split"]
)  # fmt: skip
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=10,
)
fields = st.dictionaries(words, values, max_size=3)
overrides = st.dictionaries(
    st.sampled_from(["model", "data", "limit", "orientations", "judge_model", "judge_url"]),
    st.text("12axyz:./", max_size=6),
    max_size=3,
)


@few
@given(shared=fields, own=fields, overrides=overrides)
def test_no_values_bring_down_a_recipe(
    tmp_path: Path, shared: Any, own: Any, overrides: Any
) -> None:
    path = tmp_path / "recipe.yaml"
    sound = {"name": "r", "model": "m", "data": "d.jsonl", "evaluators": ["mcq_regex"]}
    recipe = {**sound, "arms": [{"name": "a", **own}], **shared}
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    with contextlib.suppress(McqError):
        load_recipe(path, overrides)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(BOMB, "more than a million values", id="aliases of aliases"),
        pytest.param("arms: &a [*a]\n", "more than a million values", id="holds itself"),
        pytest.param("a: " + "[" * 5000, "cannot be read", id="nested deeply"),
        pytest.param("a: !!python/object/apply:os.getcwd []", "cannot be read", id="a call"),
        pytest.param("a: 2001-99-99\n", "cannot be read", id="no date"),
        pytest.param("a: \x00", "cannot be read", id="a null byte"),
        pytest.param("# " + "x" * 2**22, "larger than 4 MiB", id="too large"),
        pytest.param("[1, 2]", "must be a mapping", id="a list"),
    ],
)  # fmt: skip
def test_what_no_recipe_is_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        load_recipe(path)


cells = st.sampled_from([None, float("nan"), -1, 1.5, 10**30, "", "x", [], ["a"], [9], [None], {}])


@few
@given(column=st.sampled_from(list(generations_frame([generation("B")]).columns)), cell=cells)
def test_a_changed_row_of_answers_is_read_or_refused(column: str, cell: Any) -> None:
    frame = generations_frame([generation("B")]).astype(object)
    frame.at[0, column] = cell
    with contextlib.suppress(DataError):
        generations_from(frame)


@few
@given(column=st.sampled_from(list(grades_frame([Grade.unread(generation("B"), "g", "")]).columns)),
       cell=cells)  # fmt: skip
def test_a_changed_row_of_grades_is_read_or_refused(column: str, cell: Any) -> None:
    one = generation("B")
    frame = grades_frame([Grade.of_choice(one, "g", 1, "regex")]).astype(object)
    frame.at[0, column] = cell
    with contextlib.suppress(DataError):
        grades_from(frame, [one])
