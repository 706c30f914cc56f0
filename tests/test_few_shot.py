"""Few-shot examples: never the item itself, gold where it was asked for, drawn from seeds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols import WORDINGS, Style, few_shot, prompt_family
from mlflow_mcq.recipe import load_recipe
from mlflow_mcq.records import Item, Orientation
from mlflow_mcq.settings import read_settings

POOL = tuple(
    Item(f"t{n}", f"Example {n}?", tuple(f"e{n}o{i}" for i in range(4)), n % 4, {"why": f"why {n}"})
    for n in range(24)
)
ASKED = Item("q1", "Asked?", ("w", "x", "y", "z"), 3)
AS_IS = Orientation(0, "as-is", (0, 1, 2, 3))


def settings(**more) -> FewShotSettings:
    return FewShotSettings(**{"path": "x.jsonl", "k": 4, **more})


def slots(shots) -> list[int]:
    return [shot.orientation.slot_of(shot.item.gold) for shot in shots]


# Which examples


@given(st.integers(1, 20), st.integers(0, 9), st.text(max_size=4), st.booleans())
def test_k_different_examples_drawn_from_seed_and_id_alone(k, seed, item_id, per_item) -> None:
    chosen = settings(k=k, seed=seed, per_item=per_item)
    item = Item(item_id, "Asked?", ("x", "y"), 0)
    shots = few_shot(POOL, chosen)(item)
    assert len({shot.item.id for shot in shots}) == k
    random.seed(1)
    random.random()
    assert few_shot(POOL, chosen)(item) == shots


def test_each_item_has_its_own_examples_unless_all_share_them() -> None:
    items = [Item(f"q{n}", f"Asked {n}?", ("x", "y"), 0) for n in range(30)]
    own = {tuple(s.item.id for s in few_shot(POOL, settings())(item)) for item in items}
    shared = [few_shot(POOL, settings(per_item=False))(item) for item in items]
    assert len(own) > 25
    assert all(shots == shared[0] for shots in shared)


@pytest.mark.parametrize("per_item", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_an_item_is_never_its_own_example(per_item: bool, seed: int) -> None:
    chosen = settings(k=23, seed=seed, per_item=per_item)
    for item in POOL:
        shots = few_shot(POOL, chosen)(item)
        assert item.id not in {shot.item.id for shot in shots}


@pytest.mark.parametrize(
    "question", ["EXAMPLE 5?", " Example\n5? ", "Ｅｘａｍｐｌｅ 5?", "example\u00a05?"]
)
def test_the_same_question_under_another_id_is_the_item_itself(question: str) -> None:
    item = Item("other", question, ("x", "y"), 0)
    shots = few_shot(POOL, settings(k=23))(item)
    assert "t5" not in {shot.item.id for shot in shots}


def test_ids_that_only_number_rows_exclude_nobody() -> None:
    pool = [Item(str(n), f"Example {n}?", ("x", "y"), 0) for n in range(3)]
    asked = Item("1", "Quite another question?", ("x", "y"), 0)
    assert len(few_shot(pool, settings(k=3))(asked)) == 3


def test_too_few_others_name_the_item_and_the_way_out() -> None:
    with pytest.raises(SettingsError, match=r"'t3'.*4 examples.*got 3.*smaller k"):
        few_shot(POOL[:4], settings(k=4))(POOL[3])


def test_all_orientations_of_an_item_have_the_same_examples() -> None:
    rows = [{"question": p.question, "options": list(p.options), "answer": "A"} for p in POOL]
    read = read_settings({"few_shot": {"rows": rows, "k": 3}, "orientations": "rotations"})
    prompts = [r.prompt.content for r in requests_for([ASKED], read, chat=True)]
    assert len({prompt[:-1] for prompt in prompts}) == 1
    assert len({prompt[-1] for prompt in prompts}) == 4


# Where their gold stands


@given(st.integers(1, 20), st.integers(0, 9))
def test_balanced_gold_differs_by_at_most_one_over_the_slots(k: int, seed: int) -> None:
    counts = Counter(slots(few_shot(POOL, settings(k=k, seed=seed))(ASKED)))
    found = [counts[slot] for slot in range(4)]
    assert max(found) - min(found) <= 1


def test_balance_has_no_favourite_slot_for_what_is_left_over() -> None:
    first = Counter(
        slots(few_shot(POOL, settings(k=1, seed=seed))(ASKED))[0] for seed in range(200)
    )
    assert all(25 < first[slot] < 80 for slot in range(4))


@pytest.mark.parametrize(("gold", "slot"), [("all-at:A", 0), ("all-at:D", 3)])
def test_all_at_puts_every_gold_in_one_slot(gold: str, slot: int) -> None:
    assert set(slots(few_shot(POOL, settings(k=9, gold=gold))(ASKED))) == {slot}


def test_as_is_leaves_the_examples_as_they_are() -> None:
    shots = few_shot(POOL, settings(k=9, gold="as-is"))(ASKED)
    assert all(shot.orientation.order == (0, 1, 2, 3) for shot in shots)
    assert slots(shots) == [shot.item.gold for shot in shots]


@pytest.mark.parametrize("how", ["swap", "rotation"])
def test_examples_move_with_the_items_where_that_is_set(how: str) -> None:
    scheme = f"gold-at:2:{how}"
    moved = few_shot(POOL, settings(moved=True), scheme)(ASKED)
    assert set(slots(moved)) == {2}
    assert {shot.orientation.name for shot in moved} == {scheme}
    stay = few_shot(POOL, settings(gold="as-is"), scheme)(ASKED)
    assert slots(stay) == [shot.item.gold for shot in stay]


@pytest.mark.parametrize("gold", ["balanced", "all-at:B"])
def test_an_example_that_cannot_move_is_not_drawn(gold: str) -> None:
    stuck = Item("stuck", "Which gas?", ("x", "y", "All of the above"), 2)
    ids = {s.item.id for s in few_shot([*POOL, stuck], settings(k=24, gold=gold))(ASKED)}
    assert "stuck" not in ids
    kept = few_shot([*POOL, stuck], settings(k=25, gold="as-is"))(ASKED)
    assert "stuck" in {shot.item.id for shot in kept}


def test_a_pool_that_cannot_be_placed_says_so_before_anything_runs() -> None:
    pool = [Item(f"t{n}", f"E{n}?", ("x", "y"), 0) for n in range(9)]
    with pytest.raises(SettingsError, match=r"0 of 9 in the pool.*all-at:C"):
        few_shot(pool, settings(gold="all-at:C"))


# How they are written


def solved(protocol: str, chat: bool, **more):
    style = more.pop("style", Style())
    shots = few_shot(POOL, settings(k=2, gold="all-at:B", **more))
    return prompt_family(protocol, style, shots)(ASKED, AS_IS, chat=chat)


def test_chat_examples_are_turns() -> None:
    content = solved("letters", chat=True).content
    assert [m.role for m in content] == ["user", "assistant"] * 2 + ["user"]
    assert [m.content for m in content if m.role == "assistant"] == ["B", "B"]
    assert content[-1].content.startswith("Asked?\n\nA) w\n")
    assert all(m.content.endswith("A, B, C or D.") for m in content if m.role == "user")


def test_plain_examples_are_blocks_with_the_cue() -> None:
    text = solved("letters", chat=False).content
    assert text.count("\nAnswer: B\n\n") == 2
    assert text.endswith("\nAnswer:")
    assert text.startswith("Example ")


@pytest.mark.parametrize("language", WORDINGS)
@pytest.mark.parametrize(
    ("protocol", "answer"),
    [
        pytest.param("letters", lambda words, text: "B", id="letters"),
        pytest.param(
            "letters-reasoned", lambda words, text: words.cue + words.gap + "B", id="reasoned"
        ),
        pytest.param("dashes", lambda words, text: words.phrase + words.gap + text, id="dashes"),
        pytest.param("no-labels", lambda words, text: text, id="no-labels"),
        pytest.param("cloze", lambda words, text: text, id="cloze"),
        pytest.param("choices-only", lambda words, text: "B", id="choices-only"),
    ],
)
def test_examples_answer_as_their_protocol_asks(language, protocol, answer) -> None:
    prompt = solved(protocol, chat=True, style=Style(language=language))
    shots = few_shot(POOL, settings(k=2, gold="all-at:B"))(ASKED)
    for shot, message in zip(shots, prompt.content[1::2], strict=True):
        text = shot.item.options[shot.item.gold]
        assert message.content == answer(WORDINGS[language], text)


@pytest.mark.parametrize(("protocol", "end"), [("letters-reasoned", "Answer: B"), ("dashes", "")])
def test_reasons_stand_before_the_answer(protocol: str, end: str) -> None:
    content = solved(protocol, chat=True, rationale="why").content
    first = few_shot(POOL, settings(k=2, gold="all-at:B", rationale="why"))(ASKED)[0]
    reason, answer = content[1].content.split("\n")
    assert reason == first.item.meta["why"]
    assert answer == (end or f"the answer is {first.item.options[first.item.gold]}")


def test_examples_of_two_turns_reason_before_they_see_options() -> None:
    first = solved("options-last", chat=True, rationale="why")
    asked, thought, shown, answer = first.content[:4]
    assert [m.role for m in first.content] == ["user", "assistant"] * 4 + ["user"]
    assert thought.content.startswith("why ")
    assert "A) " not in asked.content + first.content[-1].content
    assert (shown.content.count("A) "), answer.content) == (1, "B")


def test_examples_of_two_turns_read_as_the_item_does_in_the_end() -> None:
    family = prompt_family("options-last", Style())
    shot, _ = few_shot(POOL, settings(k=2, gold="all-at:B", rationale="why"))(ASKED)
    first = family(shot.item, shot.orientation, chat=False)
    whole = family.second(first, shot.rationale).content
    text = solved("options-last", chat=False, rationale="why").content
    assert text.startswith(f"{whole} B\n\nExample ")
    assert text.endswith("\nReasoning:")


def test_examples_of_two_turns_need_their_reasons() -> None:
    shots = {"path": "x", "k": 1}
    with pytest.raises(SettingsError, match=r"few_shot.rationale: must name a column"):
        read_settings({"protocol": "options-last", "few_shot": shots})
    whole = {"protocol": "options-last", "few_shot": shots | {"rationale": "why"}}
    assert read_settings(whole).few_shot.rationale == "why"


def test_examples_without_a_reason_are_not_drawn_where_reasons_are_asked_for() -> None:
    with pytest.raises(SettingsError, match="0 of 24"):
        few_shot(POOL, settings(rationale="because"))


def test_examples_of_an_analogy_take_the_place_of_those_that_ship() -> None:
    text = solved("analogy", chat=True).content
    assert text.count("Question: Example ") == 2
    assert "puppy" not in text


def test_examples_with_shuffled_labels_answer_with_the_label_beside_their_gold() -> None:
    shots = few_shot(POOL, settings(k=9))(ASKED)
    family = prompt_family("letters-shuffled-labels", Style(), lambda item: shots)
    content = family(ASKED, AS_IS, chat=True).content
    for shot, asked, answer in zip(shots, content[::2], content[1::2], strict=False):
        text = shot.item.options[shot.item.gold]
        assert f"\n{answer.content}) {text}\n" in asked.content
    assert len({m.content for m in content[1::2]}) > 1


# From a file


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "question": [item.question for item in POOL],
            "options": [list(item.options) for item in POOL],
            "answer": [item.gold for item in POOL],
        }
    )


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_examples_come_from_a_file_that_data_may_come_from(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"train.{ending}"
    if ending == "parquet":
        frame().to_parquet(path)
    else:
        frame().to_json(path, orient="records", lines=True)
    read = read_settings({"few_shot": {"path": str(path), "k": 3}})
    (prompt, *_) = [r.prompt for r in requests_for([ASKED], read, chat=True)]
    assert len(prompt.content) == 7


def test_columns_of_the_data_that_the_examples_lack_are_looked_for() -> None:
    row = {"question": "Example?", "options": ["x", "y"], "answer": "B"}
    columns = {"question": "question", "answer": "key", "id": "number", "order": "shown"}
    read = read_settings({"few_shot": {"rows": [row], "k": 1}, "columns": columns})
    assert len(requests_for([ASKED], read, chat=True)[0].prompt.content) == 3


@pytest.mark.parametrize(
    "few",
    [
        pytest.param({"path": "/nowhere/train.jsonl", "k": 1}, id="no file"),
        pytest.param(
            {"rows": [{"question": "?", "options": ["x"], "answer": 0}], "k": 1}, id="row"
        ),
    ],
)
def test_a_fault_in_the_examples_says_that_it_is_theirs(few) -> None:
    with pytest.raises(DataError, match=r"^few_shot: "):
        requests_for([ASKED], read_settings({"few_shot": few}), chat=True)


def test_examples_may_stand_in_a_native_layout_and_a_split(tmp_path: Path) -> None:
    rows = [
        {"goal": f"Goal {n}", "sol1": f"a{n}", "sol2": f"b{n}", "label": n % 2, "split": split}
        for n, split in enumerate(["train", "train", "train", "test"])
    ]
    path = tmp_path / "piqa.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    few = {"path": str(path), "split": "train", "k": 3, "gold": "as-is"}
    (first, *_) = requests_for([ASKED], read_settings({"few_shot": few, "limit": 1}), chat=True)
    text = str(first.prompt.content)
    assert all(f"Goal {n}" in text for n in range(3))
    assert "Goal 3" not in text


def test_examples_of_several_right_options_answer_with_all_of_them() -> None:
    rows = [
        {"question": f"E{n}?", "options": ["x", "y", "z"], "answer": ["A", "C"]} for n in range(2)
    ]
    few = {"rows": rows, "k": 2, "gold": "as-is"}
    read = read_settings({"few_shot": few, "several_gold": "all"})
    item = Item("q", "Asked?", ("u", "v"), 0, policy="all")
    (first, *_) = requests_for([item], read, chat=True)
    assert [m.content for m in first.prompt.content[1::2]] == ["A, C", "A, C"]


def test_one_of_several_right_options_is_never_moved_alone() -> None:
    several = Item("s", "S?", ("x", "y", "z"), 0, also_right=(1,))
    with pytest.raises(SettingsError, match="0 of 1"):
        few_shot([several], settings(k=1))
    assert few_shot([several], settings(k=1, gold="as-is"))(ASKED)


@pytest.mark.parametrize("place", ["recipe", "arm"])
def test_a_recipe_finds_its_examples_beside_itself(tmp_path: Path, place: str) -> None:
    few = {"few_shot": {"path": "train.jsonl", "k": 1}}
    recipe = {"name": "r", "data": "d.jsonl", "evaluators": ["mcq_regex"], "arms": [{"name": "a"}]}
    (recipe if place == "recipe" else recipe["arms"][0]).update(few)
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    read = load_recipe(tmp_path / "r.yaml")
    settings_of_arm = read.settings_of(read.arms[0])
    assert settings_of_arm["few_shot"]["path"] == str(tmp_path / "train.jsonl")
