"""Analogies: one right option, three wrong ones, and no cue which is which."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_mcq.datasets.analogies import RESERVED_PAIRS, analogy_items
from mlflow_mcq.datasets.pairs import Pair, Relations, pair_text, read_pairs
from mlflow_mcq.errors import DataError, SettingsError

VARIANTS = [
    pytest.param(rule, duplicate, id=f"{rule}{', duplicate' if duplicate else ''}")
    for rule in ("other-relation", "broken-pairs")
    for duplicate in (False, True)
]


def made(prefix: str, n: int, ending: str = "") -> list[Pair]:
    """Pairs of made-up words; with an ending the second word is the first with it."""
    stems = [prefix + a + b for a in "abcdef" for b in "klmnop"][:n]
    return [(stem, stem + ending if ending else stem[::-1] + "x") for stem in stems]


PAIRS = {
    "land": made("ba", 18),
    "land-too": made("ba", 18)[:12] + made("qu", 4),
    "many": made("di", 16, "s"),
    "verbs": made("fo", 16, "s"),
    "past": made("gu", 16, "ed"),
    "kin": made("hy", 20),
}


def written(folder: Path, pairs: dict[str, list[Pair]] = PAIRS) -> Path:
    lines = []
    for name, some in pairs.items():
        lines.append(f": {name}")
        lines += [
            f"{a} {b} {c} {d}" for (a, b), (c, d) in zip(some, some[1:] + some[:1], strict=True)
        ]
    path = folder / "pairs.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def split(text: str) -> Pair:
    first, _, second = text.partition(" : ")
    return first, second


def rows(frame: pd.DataFrame) -> list[tuple[Pair, list[Pair], int, str]]:
    return [
        (split(row.question), [split(o) for o in row.options], row.answer, row.relation)
        for row in frame.itertuples()
    ]


@pytest.mark.parametrize(("rule", "duplicate"), VARIANTS)
def test_just_one_option_is_right_and_all_differ(rule: str, duplicate: bool) -> None:
    frame = analogy_items(PAIRS, 20, rule, duplicate)
    assert len(frame) == 20 * len(PAIRS)
    assert frame["id"].is_unique
    for question, options, answer, relation in rows(frame):
        same = {"land": PAIRS["land"] + PAIRS["land-too"]}.get(
            relation.removesuffix("-too"), PAIRS.get(relation, [])
        )
        assert [i for i, option in enumerate(options) if option in same] == [answer]
        assert question in same
        assert len({*options, question}) == 5
        assert not set(question) & {word for option in options for word in option}


@pytest.mark.parametrize(("rule", "duplicate"), VARIANTS)
def test_the_gold_stands_everywhere_equally_often(rule: str, duplicate: bool) -> None:
    frame = analogy_items(PAIRS, 20, rule, duplicate)
    for _, golds in frame.groupby("relation")["answer"]:
        assert Counter(golds) == dict.fromkeys(range(4), 5)


def test_a_distractor_never_changes_its_word_as_the_question_does() -> None:
    frame = analogy_items(PAIRS, 30)
    for question, options, answer, relation in rows(frame):
        if relation in ("many", "verbs"):
            assert question[1] == question[0] + "s"
            assert sum(b == a + "s" for a, b in options) == 1
            assert options[answer][1] == options[answer][0] + "s"


def test_other_relation_means_whole_pairs_and_broken_pairs_mean_its_own_words() -> None:
    for _, options, answer, relation in rows(analogy_items(PAIRS, 10, "other-relation")):
        known = [pair for name, some in PAIRS.items() if name != relation for pair in some]
        assert all(option in known for i, option in enumerate(options) if i != answer)
    for _, options, answer, relation in rows(analogy_items(PAIRS, 10, "broken-pairs")):
        firsts, seconds = zip(*PAIRS[relation], strict=True)
        wrong = [option for i, option in enumerate(options) if i != answer]
        assert all(a in firsts and b in seconds for a, b in wrong)


def test_three_share_a_word_in_the_duplicate_variant_whether_gold_is_among_them_or_not() -> None:
    shares = Counter()
    for _, options, answer, _ in rows(analogy_items(PAIRS, 40, duplicate=True)):
        ((word, n),) = Counter(a for a, _ in options).most_common(1)
        assert n == 3
        shares[options[answer][0] == word] += 1
    # Three in four, as for every other option: 240 items, sd 6.7; 5 sd either way.
    assert 146 <= shares[True] <= 214


def test_variants_ask_the_same_and_can_be_compared_item_by_item() -> None:
    plain = analogy_items(PAIRS, 15)
    other = analogy_items(PAIRS, 15, "broken-pairs", duplicate=True)
    for one, two in zip(plain.itertuples(), other.itertuples(), strict=True):
        assert (one.id, one.question, one.answer) == (two.id, two.question, two.answer)
        assert one.options[one.answer] == two.options[two.answer]
    assert set(plain["variant"]) == {"standard"}
    assert set(other["variant"]) == {"duplicate"}


@pytest.mark.parametrize(("rule", "duplicate"), VARIANTS)
@pytest.mark.parametrize("seed", [0, 7])
def test_examples_and_items_share_no_pair(rule: str, duplicate: bool, seed: int) -> None:
    def pairs_of(part: str, n: int) -> set[str]:
        frame = analogy_items(PAIRS, n, rule, duplicate, seed, part)
        asked = set(frame["question"])
        golds = {o[a] for o, a in zip(frame["options"], frame["answer"], strict=True)}
        whole = {pair_text(pair) for some in PAIRS.values() for pair in some}
        shown = {option for options in frame["options"] for option in options}
        return asked | golds | (shown & whole)

    assert not pairs_of("train", 3) & pairs_of("test", 30)


def test_the_same_everywhere_and_another_seed_differs() -> None:
    first = analogy_items(PAIRS, 2)
    assert first.equals(analogy_items(PAIRS, 2))
    assert first["question"][0] == "baal : laabx"
    assert not first["question"].equals(analogy_items(PAIRS, 2, seed=1)["question"])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_laws_hold_for_any_seed(seed: int) -> None:
    relations = Relations.of(PAIRS)
    for question, options, answer, relation in rows(analogy_items(PAIRS, 4, seed=seed)):
        right = [relations.is_right(option, question, relation) for option in options]
        assert right == [i == answer for i in range(4)]


def test_a_file_in_the_word2vec_layout_says_the_same_as_its_pairs(tmp_path: Path) -> None:
    assert Relations.of(read_pairs(written(tmp_path))).pairs == Relations.of(PAIRS).pairs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a b c d\n", "line 1", id="no relation yet"),
        pytest.param(": r\na b c d\nsan francisco california x y\n", "line 3", id="five words"),
        pytest.param(": r\na b\n", "line 2", id="two words"),
        pytest.param("", "holds no pairs", id="empty"),
        pytest.param(": r\n: s\n", "holds no pairs", id="relations only"),
    ],
)
def test_a_line_of_another_form_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_pairs(path)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        pytest.param({"per_relation": 0}, SettingsError, "per_relation", id="no items"),
        pytest.param({"distractors": "easy"}, SettingsError, "other-relation", id="no such rule"),
        pytest.param({"duplicate": "yes"}, SettingsError, "duplicate", id="a word for a bool"),
        pytest.param({"part": "dev"}, SettingsError, "part", id="no such part"),
        pytest.param({"seed": 1.5}, SettingsError, "seed", id="half a seed"),
        pytest.param({"per_relation": 10_000}, DataError, "enough for", id="too many"),
        pytest.param({"pairs": {"one": made("ba", 20)}}, DataError, "too few pairs", id="lonely"),
        pytest.param({"pairs": {"one": [("a",)]}}, DataError, "two texts", id="half a pair"),
        pytest.param({"pairs": "nowhere.txt"}, DataError, "cannot be read", id="no file"),
    ],
)
def test_faults(arguments: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        analogy_items(**{"pairs": PAIRS, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "candidate", "right"),
    [
        pytest.param(("cat", "cats"), ("run", "runs"), True, id="the same ending"),
        pytest.param(("cat", "cats"), ("Run", "RUNS"), True, id="in any case"),
        pytest.param(("cat", "cats"), ("run", "ran"), False, id="another change"),
        pytest.param(("easy", "easily"), ("happy", "happily"), True, id="y to ily"),
        pytest.param(("rome", "italy"), ("oslo", "norway"), False, id="nothing in common"),
        pytest.param(("mouse", "mice"), ("louse", "lice"), False, id="no ending"),
    ],
)
def test_what_could_be_argued_to_be_right(question: Pair, candidate: Pair, right: bool) -> None:
    relations = Relations.of({"r": [question], "s": [("x", "y")]})
    assert relations.is_right(candidate, question, "r") is right


def test_kinship_goes_by_any_number_of_steps() -> None:
    a, b, c, d = (("k", str(i)) for i in range(4))
    for order in permutations({"1": [a, b], "2": [b, c], "3": [c, d]}.items()):
        kin = Relations.of({**dict(order), "4": [("l", "m")]}).kin
        assert kin["1"] == kin["2"] == kin["3"] == {"1", "2", "3"}
        assert kin["4"] == {"4"}


def test_enough_is_reserved_for_one_hard_example() -> None:
    few = {"r": made("ba", RESERVED_PAIRS + 6), "s": made("qu", RESERVED_PAIRS + 6)}
    assert len(analogy_items(few, 1, "broken-pairs", part="train")) == 2
