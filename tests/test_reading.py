"""Reading: bad rows, samples, shares, labels inside options."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.datasets.frame import Row
from mlflow_mcq.datasets.labels import bare_options
from mlflow_mcq.datasets.reading import read_data
from mlflow_mcq.datasets.sampling import draw, share
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.records import Item
from mlflow_mcq.settings import Settings, read_settings

GOOD = {"id": "good", "question": "Which floats?", "options": ["lead", "cork"], "answer": "B"}


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), dtype=object)


BAD = [
    pytest.param({"options": []}, id="no options"),
    pytest.param({"options": ["cork"]}, id="one option"),
    pytest.param({"options": ["lead", " "]}, id="an empty option"),
    pytest.param({"answer": "F"}, id="a letter outside"),
    pytest.param({"answer": None}, id="no answer"),
    pytest.param({"answer": "Cork (bark)"}, id="a text that no option says"),
    pytest.param({"question": ""}, id="no question"),
]


@pytest.mark.parametrize("cells", BAD)
def test_a_bad_row_is_an_error_that_says_how_to_go_on(cells: dict[str, Any]) -> None:
    data = table(GOOD, {**GOOD, "id": "r9", **cells})
    data.attrs["source"] = "items.jsonl"
    with pytest.raises(DataError, match=r"items.jsonl, row 1 \(id 'r9'\).*on_bad_rows: skip"):
        read_data(data, Settings())


@pytest.mark.parametrize("cells", BAD)
def test_or_it_is_left_out_and_counted(cells: dict[str, Any]) -> None:
    data = table({**GOOD, "id": "r9", **cells}, GOOD)
    reading = read_data(data, Settings(on_bad_rows="skip"))
    assert [(row.item.id, row.position) for row in reading.rows] == [("good", 1)]
    assert [bad.row for bad in reading.bad] == [0]
    assert "1 row left out" in reading.said


def test_where_no_row_can_be_read_nothing_is_measured() -> None:
    with pytest.raises(DataError, match="No row can be read"):
        read_data(table({**GOOD, "answer": "F"}), Settings(on_bad_rows="skip"))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param(["0", "3"], "counting from", id="digits that fit one count each"),
        pytest.param([1, 2, 3], "counting from", id="numbers from one, the last option last"),
        pytest.param([3, 1, 2], "counting from", id="numbers from one, the last option first"),
        pytest.param([1.0, 3.0], "counting from", id="floats, as a gap makes of a column"),
        pytest.param(["1", "2", "3"], "more than one way", id="digits that nobody can place"),
        pytest.param(
            ["1", "0", "3"], "counting from", id="a zero, and the last of a count from one"
        ),
    ],
)
def test_a_column_that_counts_in_two_ways_is_no_bad_row(answers: list[Any], said: str) -> None:
    # Left out row by row, what remains would be read one option off, or have one gold in all.
    rows = [
        {**GOOD, "options": ["x", "y", "z"], "id": str(i), "answer": answer}
        for i, answer in enumerate(answers)
    ]
    with pytest.raises(DataError, match=said):
        read_data(table(*rows), Settings(on_bad_rows="skip"))
    from_one = Settings(on_bad_rows="skip", columns={"answer_as": "number"})
    read = [row.item.gold for row in read_data(table(*rows), from_one).rows]
    assert read == [int(answer) - 1 for answer in answers if int(answer)]


@pytest.mark.parametrize(
    ("answers", "columns", "doubted"),
    [
        pytest.param([1, 2, 1, 2], {}, True, id="numbers, none is 0"),
        pytest.param([1.0, 2.0, 1.0, 1.0], {}, True, id="floats, as a gap makes of a column"),
        pytest.param([1, 2, 1, 0], {}, False, id="a 0 settles it"),
        pytest.param([1, 2, 1], {}, False, id="too few to tell"),
        pytest.param(["B", "C", "B", "C"], {}, False, id="letters"),
        pytest.param([1, 2, 1, 2], {"answer_as": "index"}, False, id="said to be an index"),
        pytest.param([1, 2, 1, 2], {"answer_as": "number"}, False, id="said to be a number"),
    ],
)
@pytest.mark.parametrize("by_targets", [False, True], ids=["column", "targets"])
def test_numbers_that_may_count_from_one_are_spoken_of(
    answers: list[Any], columns: dict[str, str], doubted: bool, by_targets: bool
) -> None:
    rows = [
        {**GOOD, "options": ["x", "y", "z"], "id": str(i), "answer": answer}
        for i, answer in enumerate(answers)
    ]
    data = table(*rows)
    targets = data.pop("answer").tolist() if by_targets else None
    reading = read_data(data, Settings(columns=columns), targets)
    assert ("none is 0" in reading.said) is doubted


@pytest.mark.parametrize(
    ("n_items", "n_options", "refused"),
    [
        pytest.param(9, 2, False, id="two options: 1 in 512 sets"),
        pytest.param(10, 2, True, id="two options: 1 in 1,024"),
        pytest.param(24, 4, False, id="four options: just likely enough"),
        pytest.param(25, 4, True, id="four options"),
        pytest.param(60, 10, False, id="ten options leave one out more often"),
        pytest.param(66, 10, True, id="ten options"),
    ],
)
@pytest.mark.parametrize("by_targets", [False, True], ids=["column", "targets"])
def test_a_whole_column_that_may_be_one_option_off_is_refused(
    n_items: int, n_options: int, refused: bool, by_targets: bool
) -> None:
    options = [f"text {i}" for i in range(n_options)]
    rows = [
        {**GOOD, "options": options, "id": str(i), "answer": 1 + i % (n_options - 1)}
        for i in range(n_items)
    ]
    data = table(*rows)
    targets = data.pop("answer").tolist() if by_targets else None
    if refused:
        with pytest.raises(DataError, match="answer_as to number if 1 is the first") as caught:
            read_data(data, Settings(on_bad_rows="skip", limit=3), targets)
        assert ("targets" if by_targets else "answer") in str(caught.value)
    else:
        assert "none is 0" in read_data(data, Settings(), targets).said
    for way, gold in (("index", 1), ("number", 0)):
        told = read_data(data, Settings(columns={"answer_as": way}), targets)
        assert told.rows[0].item.gold == gold


def test_orientations_of_an_item_are_no_further_evidence() -> None:
    rows = [{**GOOD, "options": ["x", "y"], "id": str(i % 4), "answer": 1} for i in range(40)]
    assert "none is 0" in read_data(table(*rows), Settings()).said


def test_rows_without_an_id_keep_the_number_they_had() -> None:
    rows = [{k: v for k, v in GOOD.items() if k != "id"} for _ in range(3)]
    rows[0]["answer"] = "F"
    reading = read_data(table(*rows), Settings(on_bad_rows="skip"))
    assert [row.item.id for row in reading.rows] == ["1", "2"]


def rows_of(subjects: list[str], golds: list[int]) -> list[Row]:
    return [
        Row(Item(f"q{i}", "q?", ("x", "y", "z"), gold, {"subject": subject}), {}, "", i)
        for i, (subject, gold) in enumerate(zip(subjects, golds, strict=True))
    ]


def drawn_by_definition(rows: list[Row], limit: int, seed: int) -> set[str]:
    """Items in order by stratum and hash; every (n / limit)-th from a seeded start."""

    def hashed(text: str) -> str:
        return hashlib.sha256(f"limit\x1f{seed}\x1f{text}".encode()).hexdigest()

    first = {row.item.id: row.item for row in reversed(rows)}
    subjects = {item.meta["subject"] for item in first.values()}
    usable = 1 < len(subjects) <= 3 * len(first) ** 0.5
    ordered = sorted(
        first.values(),
        key=lambda item: (
            item.meta["subject"] if usable else "",
            len(item.options),
            item.golds,
            hashed(item.id),
        ),
    )
    start = int(hashed("start"), 16) % len(ordered)
    return {ordered[(start + k * len(ordered)) // limit].id for k in range(limit)}


@given(
    subjects=st.lists(st.sampled_from(["a", "b", "B", "ab", ""]), min_size=2, max_size=40),
    twice=st.sets(st.integers(0, 39)),
    share_of=st.floats(0.01, 0.99),
    seed=st.integers(0, 9),
)
def test_the_draw_is_what_it_is_said_to_be(
    subjects: list[str], twice: set[int], share_of: float, seed: int
) -> None:
    rows = rows_of(subjects, [i % 3 for i in range(len(subjects))])
    rows = [row for i, row in enumerate(rows) for _ in range(1 + (i in twice))]
    limit = max(1, int(share_of * len(subjects)))
    expected = drawn_by_definition(rows, limit, seed)
    drawn = draw(rows, limit, seed)
    assert {row.item.id for row in drawn} == expected
    assert len(drawn) == sum(row.item.id in expected for row in rows)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=6),
    limit=st.integers(1, 120),
    seed=st.integers(0, 9),
)
def test_every_subject_keeps_its_share(sizes: list[int], limit: int, seed: int) -> None:
    subjects = [f"s{k}" for k, size in enumerate(sizes) for _ in range(size)]
    rows = rows_of(subjects, [i % 3 for i in range(len(subjects))])
    drawn = draw(rows, limit, seed)
    assert len(drawn) == min(limit, len(rows))
    assert [row.position for row in drawn] == sorted(row.position for row in drawn)
    known = len(sizes) <= 3 * len(rows) ** 0.5  # otherwise they are titles
    counts = Counter(row.item.meta["subject"] for row in drawn)
    for k, size in enumerate(sizes) if known else ():
        due = size * min(limit, len(rows)) / len(rows)
        assert abs(counts[f"s{k}"] - due) < 1


@given(order=st.permutations(range(12)), seed=st.integers(0, 3))
def test_a_draw_does_not_depend_on_the_order_of_the_rows(order: list[int], seed: int) -> None:
    rows = rows_of(["a"] * 6 + ["b"] * 6, [0, 1, 2] * 4)
    chosen = {row.item.id for row in draw(rows, 5, seed)}
    assert {row.item.id for row in draw([rows[i] for i in order], 5, seed)} == chosen


def test_another_seed_draws_others_and_each_item_has_a_chance() -> None:
    rows = rows_of(["a"] * 20, [0] * 20)
    draws = [frozenset(row.item.id for row in draw(rows, 5, seed)) for seed in range(60)]
    assert len(set(draws)) > 10
    assert len(frozenset.union(*draws)) == 20


def test_rows_of_one_id_are_drawn_together() -> None:
    rows = [row for row in rows_of(["a"] * 8, [0] * 8) for _ in range(3)]
    assert set(Counter(row.item.id for row in draw(rows, 3)).values()) == {3}


@given(n_items=st.integers(1, 40), n_shards=st.integers(1, 6))
def test_shards_are_a_partition_of_nearly_equal_parts(n_items: int, n_shards: int) -> None:
    rows = rows_of(["a"] * n_items, [0] * n_items)
    parts = [share(rows, f"{i}/{n_shards}") for i in range(1, n_shards + 1)]
    assert sorted(row.position for part in parts for row in part) == list(range(n_items))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3"])
def test_a_shard_that_is_none_is_refused(shard: str) -> None:
    with pytest.raises(SettingsError, match="shard"):
        read_settings({"shard": shard})


def test_limit_and_shard_are_taken_and_said() -> None:
    rows = [{**GOOD, "id": str(i)} for i in range(20)]
    reading = read_data(table(*rows), Settings(limit=10, shard="2/2"))
    assert len(reading.rows) == 5
    assert reading.said.endswith("; 5 of them are measured")


@pytest.mark.parametrize(
    ("options", "bare"),
    [
        pytest.param(["(A) iron", "(B) tin"], ("iron", "tin"), id="brackets"),
        pytest.param(["A. iron", "B. tin", "C. zinc"], ("iron", "tin", "zinc"), id="full stops"),
        pytest.param(["A、鉄", "B、錫"], ("鉄", "錫"), id="without a space"),
        pytest.param(["A sharp knife", "B flat"], None, id="an article and a note"),
        pytest.param(["(A) iron", "tin"], None, id="only one of them"),
        pytest.param(["(B) iron", "(A) tin"], None, id="out of order"),
        pytest.param(["A", "B"], None, id="letters that are the options"),
        pytest.param(["A. ", "B. "], None, id="nothing behind them"),
    ],
)
def test_labels_leave_only_where_every_option_has_its_own(
    options: list[str], bare: tuple[str, ...] | None
) -> None:
    assert bare_options(options) == bare


def test_labels_inside_are_taken_off_and_said() -> None:
    reading = read_data(table({**GOOD, "options": ["(A) lead", "(B) cork"]}), Settings())
    assert reading.rows[0].item.options == ("lead", "cork")
    assert "taken off in 1" in reading.said
