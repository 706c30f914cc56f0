"""What prompts share is found in their token ids alone, and read once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.engines.prefix_tree import common, families_of, passes_of, pieces_of

LONG, OTHER = [7] * 60, [8] * 60
token_rows = st.lists(
    st.tuples(st.sampled_from([[], LONG, OTHER, [*LONG, *OTHER]]), st.lists(st.integers(0, 2)))
    .map(lambda parts: [*parts[0], *parts[1]]),
    max_size=80,
)  # fmt: skip


def nodes(rows: list[list[int]], start: int = 0) -> int:
    """Tokens of the prefix tree beyond its first ones: what cannot be read less often."""
    return len({tuple(row[:end]) for row in rows for end in range(start + 1, len(row) + 1)})


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_is_the_first_difference(one: list[int], other: list[int]) -> None:
    n = common(one, other)
    assert one[:n] == other[:n]
    assert n in (len(one), len(other)) or one[n] != other[n]


@given(token_rows)
def test_every_row_has_one_place_and_its_family_s_beginning(rows: list[list[int]]) -> None:
    families = families_of(rows)
    places = [place for family in families for group in family.groups for place in group]
    assert sorted(places) == list(range(len(rows)))
    for family in families:
        members = [rows[place] for group in family.groups for place in group]
        assert all(len(row) >= family.n_shared for row in members)
        assert len({tuple(row[: family.n_shared]) for row in members}) == 1


@given(token_rows)
def test_each_token_of_the_tree_is_read_once(rows: list[list[int]]) -> None:
    heads = sorted(rows)
    pieces = pieces_of(heads, 0)
    assert [piece.row for piece in pieces] == list(range(len(rows)))
    assert sum(piece.end - piece.begin for piece in pieces) == nodes(rows)


@given(token_rows)
def test_a_piece_copies_only_what_stands_there(rows: list[list[int]]) -> None:
    heads = sorted(rows)
    pieces = pieces_of(heads, 0)
    for piece in pieces:
        if piece.source is not None:
            source = pieces[piece.source]
            assert source.row < piece.row
            assert heads[source.row][: piece.begin] == heads[piece.row][: piece.begin]
            assert source.begin < piece.begin <= source.end
        else:
            assert piece.begin == 0


@given(token_rows, st.integers(1, 12))
def test_a_pass_comes_after_what_it_goes_on_from(rows: list[list[int]], most: int) -> None:
    pieces = pieces_of(sorted(rows), 0)
    read: set[int] = set()
    for one in passes_of(pieces, most):
        assert one
        assert all(piece.source is None or piece.source in read for piece in one)
        assert len(one) == 1 or sum(map(len, one)) <= most
        assert not read & {piece.row for piece in one}
        read |= {piece.row for piece in one}
    assert read == set(range(len(rows)))


def test_prompts_that_share_nothing_fill_passes() -> None:
    pieces = pieces_of([[n, 1, 2, 3] for n in range(8)], 0)
    assert [len(one) for one in passes_of(pieces, 16)] == [4, 4]


@pytest.mark.parametrize(
    ("rows", "held"),
    [
        pytest.param([[*LONG, n] for n in range(8)], [60], id="one beginning, few rows"),
        pytest.param([[1] * 40 + [n] for n in range(99)], [0], id="too short to be worth holding"),
        pytest.param([[n] for n in range(40)], [0], id="nothing in common"),
        pytest.param(
            [[1, *head, n] for head in (LONG, OTHER) for n in range(40)],
            [61, 61],
            id="two beginnings behind one token, many rows each",
        ),
        pytest.param(
            [[*LONG, *head, n] for head in ([], OTHER) for n in range(40)],
            [60, 120],
            id="a beginning that goes on from another",
        ),
        pytest.param(
            [[*LONG, n, *[n] * 70, turn] for n in range(30) for turn in range(4)],
            [60],
            id="long passages with four rows each stay in one family",
        ),
    ],
)
def test_held_beginnings(rows: list[list[int]], held: list[int]) -> None:
    assert [family.n_shared for family in families_of(rows)] == held


def test_rotations_of_an_item_enter_together() -> None:
    rows = [[*LONG, item, item, turn] for turn in range(4) for item in range(20)]
    [family] = families_of(rows)
    groups = {frozenset(rows[place][60] for place in group) for group in family.groups}
    assert groups == {frozenset([item]) for item in range(20)}


def test_longest_groups_come_first() -> None:
    rows = [[item, *[item] * item, turn] for item in range(30) for turn in range(4)]
    [family] = families_of(rows)
    sizes = [max(len(rows[place]) for place in group) for group in family.groups]
    assert sizes == sorted(sizes, reverse=True)


def test_a_tree_as_deep_as_there_are_rows() -> None:
    rows = [[1] * n for n in range(3000)]
    places = [p for family in families_of(rows) for group in family.groups for p in group]
    assert sorted(places) == list(range(3000))
