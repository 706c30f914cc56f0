"""Items with several right options: nothing takes one of them for the only one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.grader_settings import AnalogySettings
from mlflow_mcq.grader_tables import unwinnable_frame
from mlflow_mcq.graders import ALL_REGEX_GRADERS, grade
from mlflow_mcq.graders.analogy import AnalogyGrader, unwinnable
from mlflow_mcq.graders.strict_set import read_strict_set
from mlflow_mcq.logprob import summarize_logprobs
from mlflow_mcq.metrics import confusion, disagreement, summarize
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.pipeline import data_digest
from mlflow_mcq.protocols import (
    PROTOCOLS,
    PROTOCOLS_FOR_ALL,
    WORDINGS,
    WORDINGS_ALL,
    Style,
    prompt_family,
)
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply, Verdict
from mlflow_mcq.scores import LabelScores
from mlflow_mcq.settings import Settings, read_settings
from mlflow_mcq.table import generations_frame, generations_from, grades_frame, grades_from

GASES = ("helium", "argon", "hydrogen", "xenon")
LIGHT = Item("gas", "Which is lighter than air?", GASES, 0, also_right=(2,))
LIGHT_ALL = replace(LIGHT, policy="all")
ONE_ALL = Item("one", "Which is a liquid?", ("iron", "mercury", "tin"), 1, policy="all")
Reader = Callable[[Generation], Grade]


def shown(item: Item, order: tuple[int, ...] | None = None) -> Prompt:
    order = order or tuple(range(len(item.options)))
    return PROTOCOLS["letters"](item, Orientation(0, "any", order), chat=False)


def answered(item: Item, text: str = "x", order: tuple[int, ...] | None = None) -> Generation:
    return Generation(shown(item, order), 0, Reply(text))


def graded(items: list[Item], read: Reader, scheme: str = "rotations") -> pd.DataFrame:
    return grades_frame(
        read(Generation(PROTOCOLS["letters"](item, orientation, chat=False), 0, Reply("x")))
        for item in items
        for orientation in plan_for(item, scheme)
    )


# --- the item -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "also"),
    [
        pytest.param(0, (0,), id="the gold again"),
        pytest.param(0, (1, 1), id="one twice"),
        pytest.param(0, (4,), id="beyond the options"),
        pytest.param(0, (-1,), id="from the end"),
        pytest.param(0, (True,), id="a bool"),
        pytest.param(0, ("C",), id="a letter"),
        pytest.param(0, (2.0,), id="a float"),
    ],
)
def test_right_options_are_distinct_indices(gold: int, also: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="item 'gas'"):
        Item("gas", "?", GASES, gold, also_right=also)


def test_a_policy_is_one_of_two() -> None:
    with pytest.raises(DataError, match="policy"):
        Item("gas", "?", GASES, 0, policy="some")  # type: ignore[arg-type]


def test_golds_are_in_the_order_of_the_data_whatever_was_named_first() -> None:
    assert Item("gas", "?", GASES, 2, also_right=(3, 0)).golds == (0, 2, 3)
    assert Item("gas", "?", GASES, 2).golds == (2,)


several_golds = st.integers(2, 7).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.integers(0, n - 1), min_size=1, max_size=n).map(sorted),
        st.permutations(range(n)),
    )
)
item_lists = st.lists(several_golds, min_size=1, max_size=6).map(
    lambda rows: [
        Item(f"q{i}", "?", tuple(f"option {k}" for k in range(n)), golds[0], {}, (*golds[1:],))
        for i, (n, golds, _) in enumerate(rows)
    ]
)


@given(several_golds)
def test_right_slots_show_the_right_options_in_every_order(row) -> None:
    n, golds, order = row
    item = Item("q", "?", tuple(f"option {k}" for k in range(n)), golds[-1], {}, (*golds[:-1],))
    prompt = shown(item, tuple(order))
    assert {order[slot] for slot in prompt.gold_slots} == set(golds)
    assert prompt.gold_slot in prompt.gold_slots
    assert list(prompt.gold_slots) == sorted(prompt.gold_slots)


# --- verdicts -----------------------------------------------------------------------


@given(several_golds, st.data())
def test_under_any_exactly_the_golds_are_right(row, data) -> None:
    n, golds, order = row
    item = Item("q", "?", tuple(f"option {k}" for k in range(n)), golds[0], {}, (*golds[1:],))
    choice = data.draw(st.integers(0, n - 1))
    one = Grade.of_choice(answered(item, order=tuple(order)), "judge", choice)
    assert one.verdict is (Verdict.CORRECT if choice in golds else Verdict.INCORRECT)
    assert (one.choice, one.choices, one.several) == (choice, (choice,), ())


@given(several_golds, st.data())
def test_under_all_exactly_the_set_is_right(row, data) -> None:
    n, golds, _ = row
    item = Item(
        "q", "?", tuple(f"option {k}" for k in range(n)), golds[0], {}, (*golds[1:],), "all"
    )
    named = data.draw(
        st.permutations(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    )
    one = Grade.of_choices(answered(item), "judge", named)
    assert one.verdict is (Verdict.CORRECT if set(named) == set(golds) else Verdict.INCORRECT)
    assert one.choices == tuple(sorted(named))
    assert one.choice == (named[0] if len(named) == 1 else None)


@pytest.mark.parametrize(
    ("item", "named", "verdict", "reason"),
    [
        pytest.param(LIGHT_ALL, (2, 0), Verdict.CORRECT, "", id="all, the set"),
        pytest.param(LIGHT_ALL, (0,), Verdict.INCORRECT, "", id="all, a part"),
        pytest.param(LIGHT_ALL, (0, 1, 2), Verdict.INCORRECT, "", id="all, one too many"),
        pytest.param(LIGHT_ALL, (), Verdict.OTHER, "no_option", id="all, none"),
        pytest.param(ONE_ALL, (0, 1), Verdict.INCORRECT, "", id="all, too many for one gold"),
        pytest.param(LIGHT, (0, 2), Verdict.OTHER, "several_options", id="any, several"),
        pytest.param(LIGHT, (2,), Verdict.CORRECT, "", id="any, the second gold"),
        pytest.param(LIGHT, (3,), Verdict.INCORRECT, "", id="any, a wrong one"),
    ],
)
def test_verdicts_by_policy(item, named, verdict, reason) -> None:
    one = Grade.of_choices(answered(item), "judge", named)
    assert (one.verdict, one.reason) == (verdict, reason)


PAIR = Item("pair", "?", ("x", "y"), 0)


@pytest.mark.parametrize(
    ("item", "verdict", "choices"),
    [
        pytest.param(LIGHT, Verdict.CORRECT, (), id="any: one of two, unknown which"),
        pytest.param(LIGHT_ALL, Verdict.CORRECT, (0, 2), id="all: the set"),
        pytest.param(LIGHT_ALL, Verdict.INCORRECT, (), id="all, wrong: unknown"),
        pytest.param(PAIR, Verdict.INCORRECT, (1,), id="of two, the other one"),
        pytest.param(replace(PAIR, policy="all"), Verdict.INCORRECT, (), id="or both of two"),
        pytest.param(replace(PAIR, also_right=(1,)), Verdict.INCORRECT, (), id="both are right"),
    ],
)
def test_a_bare_verdict_names_what_it_must_mean(item, verdict, choices) -> None:
    one = Grade.of_verdict(answered(item), "judge", verdict)
    assert (one.verdict, one.choices) == (verdict, choices)


# --- numbers ------------------------------------------------------------------------


def naming_golds(generation: Generation) -> Grade:
    return Grade.of_choices(generation, "judge", generation.prompt.item.golds)


def parrot(generation: Generation) -> Grade:
    return Grade.of_choice(generation, "judge", generation.prompt.orientation.order[0])


@given(item_lists)
def test_naming_all_golds_is_right_everywhere_under_all(items: list[Item]) -> None:
    items = [replace(item, policy="all") for item in items]
    values = summarize(graded(items, naming_golds), judged=True).values
    assert values["accuracy"] == values["accuracy_decided"] == values["consistency"] == 1
    assert values["other_rate"] == 0


@given(item_lists)
def test_a_parrot_is_right_as_often_as_a_gold_stands_on_top(items: list[Item]) -> None:
    frame = graded(items, parrot)
    values = summarize(frame, judged=True).values
    # Each rotation puts another option on top, so each gold is there once.
    assert values["accuracy"] == pytest.approx(sum(len(i.golds) for i in items) / len(frame))
    assert values["consistency"] == 0
    strict = [replace(item, policy="all") for item in items]
    n_single = sum(1 for item in items if not item.also_right)
    under_all = summarize(graded(strict, parrot), judged=True).values
    assert under_all["accuracy"] == pytest.approx(n_single / len(frame))


@given(item_lists, st.randoms(use_true_random=False))
def test_any_is_never_harder_than_one_gold(items: list[Item], draw) -> None:
    picks = {item.id: draw.randrange(len(item.options)) for item in items}

    def read(generation: Generation) -> Grade:
        return Grade.of_choice(generation, "judge", picks[generation.prompt.item.id])

    single = [replace(item, also_right=()) for item in items]
    several, one = (summarize(graded(data, read), judged=True).values for data in (items, single))
    assert several["accuracy"] >= one["accuracy"]
    assert several["consistency"] == one["consistency"]


def test_numbers_of_one_gold_leave_items_with_several_out_and_say_so() -> None:
    single = Item("one", "?", GASES, 1)
    both = summarize(graded([LIGHT, single], parrot), judged=True)
    alone = summarize(graded([single], parrot), judged=True)
    names = [f"pick_rate_slot_{slot}" for slot in range(1, 5)]
    assert [both.values[n] for n in names] == [alone.values[n] for n in names]
    assert {both.notes[n] for n in names} == {"without 1 items that have several right options"}
    assert both.values["n_items_several_gold"] == 1
    assert alone.notes == {}
    assert "n_items_several_gold" not in alone.values
    assert confusion(graded([LIGHT, single], parrot)).equals(confusion(graded([single], parrot)))


def test_they_are_undefined_where_every_item_has_several() -> None:
    frame = graded([LIGHT], parrot)
    summary = summarize(frame, judged=True)
    assert summary.undefined["pick_rate_slot_1"] == (
        "undefined: all 1 items have several right options"
    )
    assert summary.values["accuracy"] == 0.5
    assert confusion(frame).to_numpy().sum() == 0


def test_several_named_where_one_was_right_are_counted_apart() -> None:
    def two(generation: Generation) -> Grade:
        return Grade.of_choices(generation, "judge", (0, 1))

    table = confusion(graded([ONE_ALL], two))
    assert table["several"].sum() == table.to_numpy().sum() == 3


def test_consistency_is_of_sets() -> None:
    def read(generation: Generation) -> Grade:
        named = {0: (0, 2), 1: (2, 0)}.get(generation.prompt.orientation.index, (0, 2))
        return Grade.of_choices(generation, "judge", named)

    def part(generation: Generation) -> Grade:
        first = generation.prompt.orientation.index == 0
        return Grade.of_choices(generation, "judge", (0, 2) if first else (0, 2, 3))

    assert summarize(graded([LIGHT_ALL], read), judged=True).values["consistency"] == 1
    assert summarize(graded([LIGHT_ALL], part), judged=True).values["consistency"] == 0


def test_unknown_picks_of_right_answers_leave_consistency_undefined() -> None:
    def right(generation: Generation) -> Grade:
        return Grade.of_verdict(generation, "judge", Verdict.CORRECT)

    summary = summarize(graded([LIGHT], right), judged=True)
    assert summary.values["accuracy"] == 1
    assert "without the option they name" in summary.undefined["consistency"]


def test_two_graders_differ_where_their_sets_do() -> None:
    def naming(*named: int) -> Reader:
        return lambda g: Grade.of_choices(g, "judge", named)

    one, same, other = (graded([LIGHT_ALL], naming(*named)) for named in ((0, 1), (1, 0), (0, 3)))
    assert disagreement(one, same).values["disagreement"] == 0
    assert disagreement(one, other).values["disagreement"] == 1


def test_the_likeliest_letter_may_be_any_golds() -> None:
    for best, right in ((0, 1.0), (1, 0.0), (2, 1.0)):
        logprobs = tuple(-1.0 if slot == best else -3.0 for slot in range(4))
        score = LabelScores(shown(LIGHT), logprobs, tuple("ABCD"))
        assert summarize_logprobs([score]).values["accuracy"] == right


# --- readers of single options --------------------------------------------------------


@pytest.mark.parametrize("name", ALL_REGEX_GRADERS)
def test_regexes_take_any_gold_and_refuse_sets(name: str) -> None:
    reader = ALL_REGEX_GRADERS[name]
    reply = "answer is C" if name == "regex_answer_is" else "C"
    [right] = reader.grade([answered(LIGHT, reply)])
    assert (right.verdict, right.choice) == (Verdict.CORRECT, 2)
    [refused] = reader.grade([answered(LIGHT_ALL, reply)])
    assert refused.verdict is None
    assert "reads single options" in refused.error
    numbers = summarize(grades_frame([refused]), judged=False)
    assert "accuracy" in numbers.undefined


def test_the_last_gold_is_as_right_as_the_first() -> None:
    [one] = ALL_REGEX_GRADERS["regex_bounded"].grade([answered(LIGHT, "C")])
    assert (one.verdict, one.choice) == (Verdict.CORRECT, 2)
    [one] = AnalogyGrader().grade([answered(LIGHT, "hydrogen")])
    assert (one.verdict, one.choice) == (Verdict.CORRECT, 2)
    [one] = AnalogyGrader().grade([answered(LIGHT_ALL, "hydrogen")])
    assert one.verdict is None


class Words:
    def encode(self, text: str) -> list[int]:
        return [0] * len(text.split())

    def decode(self, ids) -> str:
        return ""


def test_an_item_can_be_won_by_its_shortest_gold() -> None:
    item = Item("q", "?", ("a very long text of many words", "short"), 0)
    assert unwinnable([item], Words(), window=3) == [item]
    assert unwinnable([replace(item, also_right=(1,))], Words(), window=3) == []


def test_of_several_golds_that_are_all_too_long_the_shortest_is_shown() -> None:
    options = ("one two three four five six", "one two three four five", "no")
    item = Item("q", "?", options, 0, also_right=(1,))
    grader = AnalogyGrader(AnalogySettings(window=4), Words())
    (row,) = unwinnable_frame([item], grader).to_dict("records")
    assert (row["gold"], row["gold_text"], row["n_tokens"]) == (1, options[1], 5)


# --- plain texts ----------------------------------------------------------------------


def test_plain_texts_are_graded_by_policy() -> None:
    verdicts = [
        grade([text], GASES, gold=[[0, 2]], several_gold=policy)[0].verdict
        for policy in ("any", "all")
        for text in ("C", "A, C", "B")
    ]
    right, wrong = Verdict.CORRECT, Verdict.INCORRECT
    assert verdicts == [right, None, wrong, wrong, right, wrong]


def test_plain_texts_with_several_golds_need_a_policy() -> None:
    with pytest.raises(DataError, match=r"row 1.*not said"):
        grade(["A", "B"], GASES, gold=[0, [1, 2]])
    with pytest.raises(DataError, match="row 0"):
        grade(["A"], GASES, gold=[[]], several_gold="any")


def test_plain_choices_are_options_and_not_slots() -> None:
    [one] = grade(["A, B"], GASES, gold=[[0, 2]], several_gold="all", orders=[2, 0, 1, 3])
    assert (one.verdict, one.several, one.choice) == (Verdict.CORRECT, (0, 2), None)


# --- on record ------------------------------------------------------------------------


def test_the_digest_of_the_data_tells_further_golds_and_no_policy() -> None:
    single = Item("gas", LIGHT.question, GASES, 0)
    assert data_digest([single]) != data_digest([LIGHT])
    assert data_digest([LIGHT]) == data_digest([LIGHT_ALL])
    assert data_digest([LIGHT]) == data_digest([replace(LIGHT, gold=2, also_right=(0,))])
    assert data_digest([LIGHT]) != data_digest([replace(LIGHT, also_right=(3,))])


def test_the_digest_of_data_with_one_gold_an_item_is_what_it_was() -> None:
    assert data_digest([Item("q1", "Which {x}?", ("Venus", "Saturn"), 1)]) == "5929800e995f"


@pytest.mark.parametrize("item", [LIGHT, LIGHT_ALL, ONE_ALL, PAIR], ids=lambda item: item.id)
def test_tables_give_back_golds_policy_and_sets(item: Item, tmp_path: Path) -> None:
    row = replace(answered(item), engine="e")
    named = item.golds if item.takes_all else item.golds[-1:]
    one = Grade.of_choices(row, "judge", named, "judge", "raw")
    for name, frame in (("g", generations_frame([row])), ("r", grades_frame([one]))):
        frame.to_parquet(tmp_path / name)
    [back] = generations_from(pd.read_parquet(tmp_path / "g"))
    assert (back.prompt.item.golds, back.prompt.item.policy) == (item.golds, item.policy)
    [read] = grades_from(pd.read_parquet(tmp_path / "r"), [back])
    assert (read.verdict, read.choices, read.choice) == (one.verdict, one.choices, one.choice)
    assert summarize(grades_frame([read]), judged=True) == summarize(
        pd.read_parquet(tmp_path / "r"), judged=True
    )


def test_tables_from_before_hold_one_gold_and_one_choice() -> None:
    one = Grade.of_choice(answered(PAIR), "judge", 1)
    rows = generations_frame([one.generation]).drop(columns=["golds", "gold_policy"])
    [back] = generations_from(rows)
    assert (back.prompt.item.golds, back.prompt.item.policy) == ((0,), "any")
    [read] = grades_from(grades_frame([one]).drop(columns=["golds", "choices"]), [back])
    assert (read.choice, read.verdict) == (1, Verdict.INCORRECT)


def test_letters_in_tables_name_all_there_are() -> None:
    turned = answered(LIGHT_ALL, order=(3, 2, 1, 0))  # hydrogen is B, helium D
    [row] = generations_frame([turned]).to_dict("records")
    assert (row["gold_letter"], row["golds"]) == ("B, D", [0, 2])
    [row] = grades_frame([Grade.of_choices(turned, "judge", (3, 0))]).to_dict("records")
    assert (row["shown_letter"], row["choices"]) == ("A, D", [0, 3])
    assert pd.isna(row["choice"])


# --- what is asked, and by whom -------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS_FOR_ALL)
@pytest.mark.parametrize("chat", [True, False])
def test_under_all_every_item_asks_for_one_or_more(protocol: str, chat: bool) -> None:
    def text(item: Item) -> str:
        order = Orientation(0, "as-is", tuple(range(len(item.options))))
        content = prompt_family(protocol)(item, order, chat=chat).content
        return content if isinstance(content, str) else content[0].content

    for item in (LIGHT_ALL, ONE_ALL):
        assert "One or more" in text(item)
        assert text(item) != text(replace(item, policy="any"))
    # How many are right must not show.
    assert text(LIGHT_ALL) == text(replace(LIGHT_ALL, also_right=()))
    assert text(LIGHT) == text(replace(LIGHT, also_right=()))


@pytest.mark.parametrize("language", WORDINGS)
def test_every_language_asks_for_all_right_options_in_words_that_can_be_read(language: str) -> None:
    words, asked = WORDINGS[language], WORDINGS_ALL[language]
    for name in ("letters", "reasoned", "dashes"):
        said = getattr(asked, name)
        assert said == said.strip() != ""
        assert said not in {getattr(words, name)} | {
            getattr(other, name) for key, other in WORDINGS_ALL.items() if key != language
        }
        assert said.count("{labels}") == (name != "dashes")
    # What the model is told to write is what the readers look for.
    assert words.cue in asked.reasoned
    assert words.phrase in asked.dashes
    answer = words.cue + words.gap + "A, C"
    assert read_strict_set(answer, GASES).slots == (0, 2)
    assert read_settings({"several_gold": "all", "language": language}).language == language


def test_a_language_of_ones_own_may_lack_such_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDINGS, "xx", WORDINGS["en"])
    assert read_settings({"language": "xx"}).language == "xx"
    with pytest.raises(SettingsError, match=r"language: has no wording .* Use one of en, zh"):
        read_settings({"language": "xx", "several_gold": "all"})


def test_a_template_of_ones_own_is_left_alone() -> None:
    family = prompt_family("letters", Style(template="{question} {options} Name all."))
    order = Orientation(0, "as-is", (0, 1, 2, 3))
    assert family(LIGHT_ALL, order, chat=False).content == family(LIGHT, order, chat=False).content


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param({"several_gold": "both"}, "'any'", id="no such policy"),
        pytest.param({"several_gold": True}, "'any'", id="a switch"),
        pytest.param(
            {"several_gold": "all", "logprob": {"enabled": True}}, "one label", id="letter scores"
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(config, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_settings(config)


def test_a_family_that_asks_for_one_option_only_is_refused_under_all(monkeypatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "mine", PROTOCOLS["letters"])
    assert read_settings({"protocol": "mine"}).protocol == "mine"
    with pytest.raises(SettingsError, match="no wording"):
        read_settings({"protocol": "mine", "several_gold": "all"})


def test_rows_with_several_golds_stop_unless_something_else_is_said() -> None:
    assert Settings().several_gold == "refuse"
