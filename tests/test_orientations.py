"""Orientations: every order is a permutation, gold goes by index, nothing depends on luck."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.orientations import (
    check_scheme,
    duplicate_options,
    fixed_options,
    letters_for,
    orientations_for,
    plan_for,
)
from mlflow_mcq.records import Item

sizes = st.integers(2, 12)
seeds = st.integers(-(2**40), 2**40)
schemes = st.one_of(
    st.sampled_from(["as-is", "rotations"]),
    st.integers(1, 14).map("rotations:{}".format),
    st.integers(1, 14).map("shuffles:{}".format),
)


def orders(n: int, scheme: str, **more) -> list[tuple[int, ...]]:
    return [o.order for o in orientations_for(n, scheme, **more)]


# Every scheme


@given(sizes, schemes, seeds, st.sets(st.integers(0, 11)))
def test_every_orientation_is_a_permutation_and_none_comes_twice(n, scheme, seed, fixed) -> None:
    plan = orientations_for(n, scheme, item_id="i", seed=seed, fixed=fixed)
    assert plan
    assert all(sorted(o.order) == list(range(n)) for o in plan)
    assert len({o.order for o in plan}) == len({o.name for o in plan}) == len(plan)
    assert [o.index for o in plan] == list(range(len(plan)))


@given(sizes, schemes, seeds, st.sets(st.integers(0, 11)))
def test_fixed_options_never_move(n, scheme, seed, fixed) -> None:
    for order in orders(n, scheme, seed=seed, fixed=fixed):
        assert all(order[option] == option for option in fixed if option < n)


@given(sizes, schemes, st.data())
def test_gold_follows_by_index_also_where_all_texts_are_equal(n, scheme, data) -> None:
    gold = data.draw(st.integers(0, n - 1))
    for o in plan_for(Item("same", "?", ("same",) * n, gold), scheme):
        assert o.order[o.slot_of(gold)] == gold
        assert o.order.count(gold) == 1


@pytest.mark.parametrize("scheme", ["as-is", "rotations", "rotations:3", "shuffles:6"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_equal_texts_make_no_plan_endless_or_shorter(n: int, scheme: str) -> None:
    same = Item("i", "?", ("same",) * n, 0)
    differ = Item("i", "?", tuple(f"text {i}" for i in range(n)), 0)
    assert plan_for(same, scheme) == plan_for(differ, scheme)


# Rotations


@given(st.integers(2, 40))
def test_rotations_put_every_option_in_every_slot_exactly_once(n: int) -> None:
    plan = orders(n, "rotations")
    assert len(plan) == n
    for slot in range(n):
        assert sorted(order[slot] for order in plan) == list(range(n))


@pytest.mark.parametrize(
    ("n", "scheme", "shifts"),
    [
        pytest.param(2, "rotations", [0, 1], id="two options, both orders"),
        pytest.param(3, "rotations:4", [0, 1, 2], id="never more than there are"),
        pytest.param(4, "rotations:4", [0, 1, 2, 3], id="all four"),
        pytest.param(4, "rotations:2", [0, 2], id="opposite halves"),
        pytest.param(5, "rotations:4", [0, 1, 2, 3], id="four of five"),
        pytest.param(6, "rotations:4", [0, 1, 3, 4], id="four of six"),
        pytest.param(8, "rotations:4", [0, 2, 4, 6], id="every second"),
        pytest.param(26, "rotations:2", [0, 13], id="alphabet halved"),
        pytest.param(30, "rotations:3", [0, 10, 20], id="beyond the alphabet"),
        pytest.param(5, "rotations:1", [0], id="order of the data"),
    ],
)
def test_rotations_are_evenly_spaced_and_named_by_their_shift(n, scheme, shifts) -> None:
    plan = orientations_for(n, scheme)
    assert [o.name for o in plan] == [f"rot{r}" for r in shifts]
    assert [o.order for o in plan] == [tuple((slot + r) % n for slot in range(n)) for r in shifts]


@given(st.integers(2, 60), st.integers(1, 60))
def test_gaps_between_rotations_differ_by_at_most_one(n: int, k: int) -> None:
    starts = [order[0] for order in orders(n, f"rotations:{k}")]
    assert len(starts) == min(n, k)
    gaps = {b - a for a, b in zip(starts, [*starts[1:], n], strict=True)}
    assert max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize(
    ("n", "gold", "letters"),
    [
        pytest.param(2, 1, ["B", "A"], id="two"),
        pytest.param(3, 0, ["A", "C", "B"], id="three"),
        pytest.param(5, 4, ["E", "D", "C", "B", "A"], id="five"),
    ],
)
def test_the_letter_of_gold_walks_up_the_page(n, gold, letters) -> None:
    names = letters_for(n)
    assert [names[o.slot_of(gold)] for o in orientations_for(n, "rotations")] == letters


@given(st.integers(2, 30), st.data())
def test_a_parrot_that_names_one_slot_picks_each_option_equally_often(n, data) -> None:
    slot = data.draw(st.integers(0, n - 1))
    picked = Counter(order[slot] for order in orders(n, "rotations"))
    assert picked == dict.fromkeys(range(n), 1)


@given(st.integers(3, 12), st.data())
def test_options_that_may_move_still_visit_all_their_slots(n, data) -> None:
    fixed = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    free = [o for o in range(n) if o not in fixed]
    plan = orders(n, "rotations", fixed=fixed)
    assert len(plan) == len(free)
    for slot in free:
        assert sorted(order[slot] for order in plan) == free


# As it is, and swap


@pytest.mark.parametrize("n", [2, 3, 27])
def test_as_is_shows_the_order_of_the_data_once(n: int) -> None:
    assert orders(n, "as-is", seed=5) == [tuple(range(n))]


def test_swap_shows_both_orders_of_two_options() -> None:
    plan = orientations_for(2, "swap")
    assert [(o.name, o.order) for o in plan] == [("as-is", (0, 1)), ("swap", (1, 0))]


@pytest.mark.parametrize("n", [3, 4, 26])
def test_swap_is_refused_where_there_are_more_than_two(n: int) -> None:
    with pytest.raises(SettingsError, match=r"'q-9'.*two options.*rotations"):
        orientations_for(n, "swap", item_id="q-9")


# Shuffles


@given(sizes, st.integers(1, 30), seeds, st.text(max_size=8))
def test_more_shuffles_begin_with_the_fewer(n, k, seed, item_id) -> None:
    fewer = orientations_for(n, f"shuffles:{k}", item_id=item_id, seed=seed)
    more = orientations_for(n, f"shuffles:{k + 1}", item_id=item_id, seed=seed)
    assert more[: len(fewer)] == fewer


@settings(deadline=None)
@given(st.integers(2, 5), seeds)
def test_shuffles_are_distinct_and_end_when_none_is_left(n: int, seed: int) -> None:
    plan = orders(n, "shuffles:500", seed=seed)
    assert len(set(plan)) == len(plan) == math.factorial(n)


def test_items_are_not_all_shuffled_alike() -> None:
    firsts = {orders(6, "shuffles:1", item_id=f"item-{i}")[0] for i in range(30)}
    assert len(firsts) > 20


def test_shuffles_prefer_no_slot() -> None:
    slots = Counter(orders(4, "shuffles:1", item_id=f"i{i}")[0].index(0) for i in range(4000))
    # 1000 each expected; five standard deviations are 137.
    assert all(abs(slots[slot] - 1000) < 137 for slot in range(4))


def test_a_shuffle_is_the_same_on_every_machine() -> None:
    assert orders(6, "shuffles:2", item_id="river", seed=7) == [
        (4, 1, 0, 2, 5, 3),
        (5, 0, 1, 4, 3, 2),
    ]


# Nobody else's doing changes a plan


@given(schemes, seeds, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_items(scheme, seed, shuffler) -> None:
    items = [Item(f"i{i}", "?", tuple("vwxyz"[: 2 + i % 4]), 0) for i in range(12)]
    before = {item.id: plan_for(item, scheme, seed) for item in items}
    shuffler.shuffle(items)
    assert {item.id: plan_for(item, scheme, seed) for item in items} == before
    assert plan_for(items[0], scheme, seed) == before[items[0].id]


def test_a_plan_neither_reads_nor_disturbs_the_global_random_state() -> None:
    random.seed(1)
    first = orders(7, "shuffles:5", item_id="i", seed=3)
    random.seed(2)
    state = random.getstate()
    assert orders(7, "shuffles:5", item_id="i", seed=3) == first
    assert random.getstate() == state


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(True, id="shuffle=True is not seed 1"),
        pytest.param(False, id="shuffle=False is not seed 0"),
        pytest.param(None, id="no seed"),
        pytest.param(1.0, id="float"),
        pytest.param("1", id="text"),
    ],
)
@pytest.mark.parametrize("scheme", ["as-is", "rotations", "shuffles:2"])
def test_a_seed_is_a_whole_number_and_no_bool(scheme: str, seed) -> None:
    with pytest.raises(SettingsError, match="whole number"):
        orientations_for(4, scheme, seed=seed)


# Schemes


@pytest.mark.parametrize(
    ("scheme", "parts"),
    [
        pytest.param("as-is", ("as-is", None), id="as-is"),
        pytest.param("swap", ("swap", None), id="swap"),
        pytest.param("rotations", ("rotations", None), id="all rotations"),
        pytest.param("rotations:12", ("rotations", 12), id="some rotations"),
        pytest.param("shuffles:1", ("shuffles", 1), id="one shuffle"),
    ],
)
def test_legal_schemes(scheme, parts) -> None:
    assert check_scheme(scheme) == parts


@pytest.mark.parametrize(
    "scheme",
    [
        *("", "all", "rotation", "Rotations", " rotations", "rotations ", "rotations\n"),
        *("rotations:", "rotations:0", "rotations:-1", "rotations:1.5", "rotations:٣"),
        *("shuffles", "shuffles:0", "shuffles:x", "swap:2", "as-is:1", True, None, 4),
    ],
    ids=repr,
)
def test_other_schemes_are_refused_and_the_legal_ones_listed(scheme) -> None:
    with pytest.raises(SettingsError, match=r"as-is, swap, rotations, rotations:k or shuffles:k"):
        orientations_for(4, scheme)


@pytest.mark.parametrize("n", [-1, 0, 1])
def test_one_option_is_no_item(n: int) -> None:
    with pytest.raises(SettingsError, match="at least two"):
        orientations_for(n)


# Letters


@pytest.mark.parametrize(
    ("n", "last"),
    [(1, "A"), (2, "B"), (26, "Z"), (27, "AA"), (28, "AB"), (52, "AZ"), (53, "BA"), (702, "ZZ")],
)
def test_letters_count_as_spreadsheets_do(n: int, last: str) -> None:
    names = letters_for(n)
    assert len(set(names)) == n
    assert names[-1] == last


@pytest.mark.parametrize("n", [-1, 703])
def test_there_are_letters_for_so_many_slots_only(n: int) -> None:
    with pytest.raises(SettingsError, match="702"):
        letters_for(n)


# Options that cannot move

POINTING_UP = {
    "English": [
        *("All of the above", "all of the above.", "ALL OF THE ABOVE", " All  of the above\n"),
        *("None of the above", "Any of the above", "Both of the above", "Neither of the above"),
        *("All the above", "All above", "None of the above is correct", "None of these"),
        *("None of them", "Neither of these", "Some of the above", "Two of the above"),
        *("All of these answers are correct", "None of the other options", "All other answers"),
        *("None of the answers above", "None of the listed options", "All of the preceding"),
        *(
            "All of the above are true",
            "None of the above applies",
            "No correct answer",
            "No answer is right",
        ),
        *("All of the above except the first", "Nothing of the above kind", "All are correct"),
        *("None of these choices", "All of the aforementioned", "Everything listed"),
    ],
    "German": ["Alle oben genannten", "Keine der genannten Antworten", "Keines davon"],
    "French": ["Toutes les réponses ci-dessus", "Aucune des réponses précédentes"],
    "Spanish": ["Todas las anteriores", "Ninguno de los anteriores"],
    "Portuguese": ["Todas as alternativas acima", "Nenhuma das anteriores"],
    "Italian": ["Tutte le precedenti", "Nessuna delle risposte precedenti"],
    "Dutch": ["Alle bovenstaande", "Geen van de bovenstaande antwoorden"],
    "Polish": ["Wszystkie powyższe", "Żadna z powyższych odpowiedzi"],
    "Russian": ["Все перечисленные", "Ничего из вышеперечисленного", "Всё перечисленное"],
    "Turkish": ["Yukarıdakilerin hepsi", "Yukarıdakilerin hiçbiri"],
    "Vietnamese": ["Tất cả các đáp án trên", "Tất cả đáp án ở trên"],
    "Indonesian": ["Semua jawaban di atas benar", "Semua di atas"],
    "Chinese": [
        "以上都是",
        "以上都不对",
        "以上选项均正确",
        "以上皆非",
        "上述全部",
        "以上三项都对。",
    ],
    "Japanese": ["上記のすべて", "上記のいずれでもない", "以上の全て"],
    "Korean": ["위의 모든 것", "위 모두", "위의 보기 모두"],
    "Arabic": ["جميع ما سبق", "كل ما ذكر", "لا شيء مما سبق"],
    "Hindi": ["उपरोक्त सभी", "इनमें से कोई नहीं"],
}


@pytest.mark.parametrize(
    "text",
    [pytest.param(t, id=f"{lang}: {t!a}") for lang, texts in POINTING_UP.items() for t in texts],
)
@pytest.mark.parametrize("place", [0, 3])
def test_an_option_that_points_at_the_others_keeps_its_place(text: str, place: int) -> None:
    options = ["copper", "iron", "tin"]
    options.insert(place, text)
    assert fixed_options(options) == {place}


@pytest.mark.parametrize(
    "text",
    [
        *("Both A and C", "both (a) and (b)", "A and B", "A & B", "A or D", "Neither A nor B"),
        *("A, B and C", "A, B, and D", "A, C", "Only A and B", "A and C only", "All of A, B and C"),
        *("Both A and B are correct.", "Options A and B", "Both answers A and D", "Only B"),
        *("All of the above except C", "All but (D)", "Everything except option A"),
        *("A und C", "A et B", "A y D", "A e C", "A и B", "A和B", "A 和 C 都对"),
        *("AとB", "A 와 B", "A 或 B", "A through C"),
    ],
    ids=ascii,
)
def test_an_option_that_names_letters_pins_the_whole_item(text: str) -> None:
    options = ["copper", "iron", "tin", text]
    assert fixed_options(options) == {0, 1, 2, 3}
    assert len(plan_for(Item("i", "?", tuple(options), 0), "rotations")) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("None", "Both", "All", "Neither", "Nothing", "Other", "Above", "above the door"),
        *("Vitamin A and C", "hepatitis A and B", "Both sides of the river", "Both banks"),
        *("all the king's men", "All dogs", "None of the patients recovered", "Some people"),
        *("None of the planets", "No one", "Any number above ten", "All above zero degrees"),
        *("Two of these bridges fell", "The floor above", "Each of the twelve months"),
        *("all of the above-ground pipes", "None the wiser", "Neither fish nor fowl"),
        *("A", "C", "B.", "A cat and B movies", "Section A and B", "E and F", "ABBA", "BAD", "a"),
        *("Plan A and plan B", "DOB", "A flat and B flat", "Only A major", "and", "CoD"),
        *("Alle Hunde", "Keine Ahnung", "todas las noches", "toutes les heures", "все люди"),
        *("100以上", "以上海为例", "위장", "すべて", "全部", "كل يوم", "tutti i giorni"),
        *(
            "No response",
            "No choice",
            "True",
            "False",
            "Yes",
            "10",
            "3.5 and 4",
            "one of the king's three daughters",
        ),
    ],
    ids=ascii,
)
def test_ordinary_texts_are_free_to_move(text: str) -> None:
    assert fixed_options(["copper", "iron", "tin", text]) == set()


def test_letters_that_are_not_shown_name_no_slot() -> None:
    assert fixed_options(["x", "y", "both D and E"]) == set()
    assert fixed_options(["x", "y", "z", "w", "both D and E"]) == {0, 1, 2, 3, 4}


@given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=30))
def test_any_texts_give_a_plan(options: list[str]) -> None:
    assert fixed_options(options) <= set(range(len(options)))


@pytest.mark.parametrize("word", ["all ", "none of the ", "A, ", "A and ", "以上", "semua yang "])
def test_long_near_misses_are_read_quickly(word: str) -> None:
    assert fixed_options(["x", "y", word * 5000 + "!?"]) == set()


@pytest.mark.parametrize("scheme", ["rotations", "rotations:4", "shuffles:9"])
def test_all_of_the_above_stays_last_while_the_others_move(scheme: str) -> None:
    plan = plan_for(Item("i", "?", ("oak", "elm", "ash", "All of the above"), 3), scheme)
    assert {o.order[3] for o in plan} == {3}
    assert len(plan) >= 3


def test_a_swap_with_one_fixed_option_shows_one_order() -> None:
    item = Item("i", "?", ("oak", "None of the above"), 0)
    assert [o.order for o in plan_for(item, "swap")] == [(0, 1)]


# Duplicates


@pytest.mark.parametrize(
    ("options", "twins"),
    [
        pytest.param(["8", "9", "8"], (0, 2), id="equal"),
        pytest.param(["8", " 8 ", "9"], (0, 1), id="spaces around"),
        pytest.param(["red  fox", "red fox"], (0, 1), id="spaces between"),
        pytest.param(["Straße", "STRASSE"], (0, 1), id="case"),
        pytest.param(["x", "x", "x"], (0, 1, 2), id="all"),
        pytest.param(["8", "8.0", "08"], (), id="equal numbers are different texts"),
        pytest.param(["1", "10", "100"], (), id="one inside the other"),
        pytest.param(["a", "b"], (), id="none"),
    ],
)
def test_duplicate_texts_are_reported_by_index(options, twins) -> None:
    assert duplicate_options(options) == twins
