"""Places and labels: counted apart where they come apart, and not at all where none exist."""

from __future__ import annotations

import pytest

from mlflow_mcq.metrics import Summary
from mlflow_mcq.orientations import orientations_for
from mlflow_mcq.places import label_picks, slot_names, without_places
from mlflow_mcq.protocols import Style, prompt_family
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply

ITEMS = [Item(f"i{n}", "Which?", ("w", "x", "y", "z"), n % 4) for n in range(60)]


def prompts(protocol: str, **style) -> list[Prompt]:
    family = prompt_family(protocol, Style(**style))
    return [family(i, o, chat=True) for i in ITEMS for o in orientations_for(4, "rotations")]


def picking(protocol: str, pick) -> list[Grade]:
    """Grades of a model that picks the slot that ``pick`` finds in a prompt."""
    return [
        Grade.of_choice(Generation(p, 0, Reply("?")), "judge", p.orientation.order[pick(p)])
        for p in prompts(protocol)
    ]


def test_a_taste_for_a_label_shows_where_labels_are_shuffled() -> None:
    found = label_picks(picking("letters-shuffled-labels", lambda p: p.labels.index("A")))
    assert found.values == {f"pick_rate_label_{x}": float(x == "A") for x in "ABCD"}


def test_a_taste_for_a_place_is_no_taste_for_a_label() -> None:
    found = label_picks(picking("letters-shuffled-labels", lambda p: 0)).values
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(abs(rate - 0.25) < 0.1 for rate in found.values())


def test_where_a_label_is_a_place_nothing_is_said_twice() -> None:
    assert label_picks(picking("letters", lambda p: 0)) == Summary()
    assert label_picks(picking("dashes", lambda p: 0)) == Summary()


def test_what_was_never_shown_has_no_place() -> None:
    prompt = prompt_family("cloze")(ITEMS[0], Orientation(0, "as-is", (0, 1, 2, 3)), chat=True)
    grades = [Grade.of_choice(Generation(prompt, 0, Reply("w")), "similarity", 0)]
    before = Summary({"accuracy": 1.0}, {"consistency": "?", "pick_rate_slot_1": "?"})
    after = without_places(before, grades)
    assert after.values == {"accuracy": 1.0}
    assert all("shows no options" in why for why in after.undefined.values())
    shown = picking("letters", lambda p: 0)
    assert without_places(before, shown) == before


@pytest.mark.parametrize(
    ("protocol", "style", "names"),
    [
        pytest.param("letters", {}, ("A", "B", "C", "D"), id="letters"),
        pytest.param("letters", {"labels": "digits"}, ("1", "2", "3", "4"), id="digits"),
        pytest.param("dashes", {}, ("A", "B", "C", "D"), id="none shown"),
        pytest.param(
            "letters", {"labels": "katakana"}, ("slot 1", "slot 2", "slot 3", "slot 4"), id="font"
        ),
        pytest.param(
            "letters-shuffled-labels", {}, ("slot 1", "slot 2", "slot 3", "slot 4"), id="shuffled"
        ),
    ],
)
def test_slots_are_called_by_their_label_where_it_is_theirs_alone(protocol, style, names) -> None:
    assert slot_names(prompts(protocol, **style), 4) == names
