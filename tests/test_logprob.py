"""The log-probability diagnostic: ties, joins by key, and the laws of the slot prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_mcq.logprob import (
    SlotPrior,
    debiased,
    label_logprobs,
    picks,
    slot_priors,
    summarize_logprobs,
)
from mlflow_mcq.orientations import letters_for, orientations_for
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply, Verdict
from mlflow_mcq.scores import LabelScores


def item_of(id: str, n_options: int = 4, gold: int = 0) -> Item:
    return Item(id, "?", tuple(f"option {place}" for place in range(n_options)), gold)


def score_of(
    logprobs: tuple[float, ...],
    *,
    id: str = "q1",
    gold: int = 0,
    order: tuple[int, ...] | None = None,
    index: int = 0,
) -> LabelScores:
    n_options = len(logprobs)
    labels = letters_for(n_options)
    shown = Orientation(index, f"o{index}", order or tuple(range(n_options)))
    prompt = Prompt(item_of(id, n_options, gold), shown, "letters", "?", labels)
    return LabelScores(prompt, logprobs, labels)


def unscored(id: str) -> LabelScores:
    prompt = Prompt(item_of(id), Orientation(0, "o0", (0, 1, 2, 3)), "letters", "?", tuple("ABCD"))
    return LabelScores(prompt, (), (), "prompt_too_long")


def graded(score: LabelScores, slot: int | None, repeat: int = 0) -> Grade:
    """The grade of an answer that named a slot; None is a refusal."""
    generation = Generation(score.prompt, repeat, Reply("…"))
    if slot is None:
        return Grade.unread(generation, "judge", "refusal")
    return Grade.of_choice(generation, "judge", score.prompt.orientation.order[slot])


NEAR = (math.log(0.4), math.log(0.3), math.log(0.1), math.log(0.1))
TIED = (-2.0, -2.0, -5.0, -5.0)


# --- picks and rates ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("logprobs", "pick"),
    [
        pytest.param(NEAR, 0, id="one is likeliest"),
        pytest.param(TIED, None, id="a tie is not the first of its labels"),
        pytest.param((-5.0, -5.0, -5.0, -1.0), 3, id="a tie below the top is none"),
    ],
)
def test_picks(logprobs, pick):
    assert picks([score_of(logprobs)]) == [pick]


def test_what_could_not_be_scored_picks_nothing():
    assert picks([unscored("q")]) == [None]


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        pytest.param(
            [score_of(NEAR, id="a"), score_of(NEAR, id="b", gold=1)],
            {"accuracy": 0.5, "tie_rate": 0.0, "n_rows": 2.0, "n_items": 2.0, "mass": 0.9},
            id="right and wrong",
        ),
        pytest.param(
            [score_of(TIED, id="a"), score_of(NEAR, id="b")],
            {"accuracy": 0.5, "tie_rate": 0.5},
            id="a tie is not correct although gold is in it",
        ),
        pytest.param(
            [score_of(NEAR, id="a"), unscored("b")],
            {"accuracy": 1.0, "n_rows": 1.0, "n_items": 1.0, "n_unscored": 1.0},
            id="an unscored row is in no denominator",
        ),
        pytest.param(
            [score_of(NEAR, id="a"), score_of(NEAR, id="a")],
            {"n_rows": 1.0, "n_unscored": 0.0},
            id="equal keys count once",
        ),
        pytest.param(
            [score_of(NEAR, gold=2, order=(2, 3, 0, 1))],
            {"accuracy": 1.0},
            id="gold is where it was shown, not where the data has it",
        ),
        pytest.param(
            [score_of((-9.0, -10.0, -math.inf, -math.inf))],
            {"accuracy": 1.0, "mass": math.exp(-9) + math.exp(-10)},
            id="labels that the model would hardly write",
        ),
    ],
)
def test_rates(scores, values):
    found = summarize_logprobs(scores).values
    assert {name: found[name] for name in values} == pytest.approx(values)


def test_nothing_scored_is_undefined_with_a_reason():
    summary = summarize_logprobs([unscored("q")])
    names = {"accuracy", "tie_rate", "mass", "prior_distance", "accuracy_debiased"}
    assert names <= set(summary.undefined)
    assert not names & set(summary.values)
    assert all(why.startswith("undefined: 0 ") for why in summary.undefined.values())


# --- beside the generated answers ---------------------------------------------------

FIRST, SECOND = score_of(NEAR, id="a"), score_of(NEAR, id="b", gold=1)
EVEN = score_of(TIED, id="t")


def failed(score: LabelScores) -> Grade:
    return Grade.failed(Generation(score.prompt, 0, Reply("…")), "judge", "timeout")


def wrong_somehow(score: LabelScores) -> Grade:
    generation = Generation(score.prompt, 0, Reply("…"))
    return Grade.of_verdict(generation, "judge", Verdict.INCORRECT)


@pytest.mark.parametrize(
    ("grades", "values"),
    [
        pytest.param(
            [graded(FIRST, 0), graded(SECOND, 1)],
            {"generation_disagreement": 0.5, "n_compared": 2.0, "accuracy_shift": -0.5},
            id="one differs",
        ),
        pytest.param(
            [graded(SECOND, 1), graded(FIRST, 0)],
            {"generation_disagreement": 0.5},
            id="joined by key, not by place",
        ),
        pytest.param(
            [graded(FIRST, 0), graded(SECOND, None)],
            {
                "generation_disagreement": 0.0,
                "n_compared": 1.0,
                "generation_other_rate": 0.5,
                "n_generation_other": 1.0,
                "accuracy_shift": 0.0,
            },
            id="OTHER is apart",
        ),
        pytest.param(
            [graded(FIRST, None)],
            {"generation_other_rate": 1.0, "accuracy_shift": 1.0},
            id="a model that refuses what it finds likely",
        ),
        pytest.param(
            [graded(EVEN, 0), graded(EVEN, 1, 1), graded(EVEN, 2, 2), graded(EVEN, 3, 3)],
            {"generation_disagreement": 0.5, "n_compared": 4.0},
            id="a tie agrees with each of its labels",
        ),
        pytest.param(
            [failed(FIRST), graded(SECOND, 0)],
            {"n_compared": 1.0, "generation_other_rate": 0.0},
            id="a failed judge is no answer",
        ),
        pytest.param(
            [wrong_somehow(FIRST), graded(SECOND, 0)],
            {"n_compared": 1.0, "n_generation_unnamed": 1.0, "n_generation_other": 0.0},
            id="wrong without saying which",
        ),
        pytest.param(
            [graded(score_of(NEAR, id="never scored"), 2), graded(FIRST, 0)],
            {"n_compared": 1.0, "generation_disagreement": 0.0},
            id="an answer without scores",
        ),
    ],
)
def test_disagreement(grades, values):
    found = summarize_logprobs([FIRST, SECOND, EVEN], grades).values
    assert {name: found[name] for name in values} == pytest.approx(values)


def test_without_answers_the_disagreement_is_undefined():
    summary = summarize_logprobs([FIRST])
    names = {"generation_disagreement", "generation_other_rate", "accuracy_shift"}
    assert names <= set(summary.undefined)
    assert summary.values["accuracy"] == 1.0


# --- the prior ----------------------------------------------------------------------


def simulated(
    n_items: int, prior: tuple[float, ...], knowledge: float, noise: float = 0.5, seed: int = 0
) -> list[LabelScores]:
    """All rotations of items, scored by a model with a prior and some knowledge.

    log p(slot) = log prior(slot) + content(option shown there) + noise, where the content of
    the gold option is raised by ``knowledge``.
    """
    draw, n = np.random.default_rng(seed), len(prior)
    scores = []
    for number in range(n_items):
        gold = int(draw.integers(n))
        content = draw.normal(0, noise, n) + knowledge * (np.arange(n) == gold)
        for turned in orientations_for(n, "rotations"):
            values = np.log(prior) + content[list(turned.order)] + draw.normal(0, 0.1, n)
            values -= np.logaddexp.reduce(values) - math.log(0.8)
            scores.append(
                score_of(
                    tuple(values.tolist()),
                    id=f"q{number}",
                    gold=gold,
                    order=turned.order,
                    index=turned.index,
                )
            )
    return scores


SKEWED = (0.55, 0.25, 0.15, 0.05)
UNIFORM = (0.25,) * 4


def test_a_model_of_pure_prior_is_recovered_and_left_at_chance():
    scores = simulated(1000, SKEWED, knowledge=0.0, noise=0.0)
    summary = summarize_logprobs(scores, prior_items=50)
    found = [summary.values[f"prior_slot_{slot}"] for slot in (1, 2, 3, 4)]
    assert found == pytest.approx(SKEWED, abs=0.01)
    assert summary.values["prior_distance"] == pytest.approx(0.30, abs=0.01)
    assert summary.values["n_prior_items"] == 50
    # Gold stands in each slot once per item: a model that always says A is at chance too.
    assert summary.values["accuracy"] == pytest.approx(0.25, abs=1e-9)
    # Four standard errors of 950 items.
    assert summary.values["accuracy_debiased"] == pytest.approx(0.25, abs=0.06)
    first = sum(score.pick == 0 for score in scores) / len(scores)
    prior = slot_priors(scores)[4]
    after = sum(debiased(score, prior).pick == 0 for score in scores) / len(scores)
    assert first > 0.95
    assert after == pytest.approx(0.25, abs=0.06)


def test_an_unbiased_oracle_stays_what_it_was():
    scores = simulated(200, UNIFORM, knowledge=5.0)
    summary = summarize_logprobs(scores, prior_items=20)
    assert summary.values["accuracy"] == summary.values["accuracy_debiased"] == 1.0
    assert summary.values["debias_shift"] == 0.0
    assert summary.values["prior_distance"] < 0.02


def test_knowledge_hidden_by_a_prior_comes_back():
    scores = simulated(400, SKEWED, knowledge=1.5)
    values = summarize_logprobs(scores).values
    unbiased = summarize_logprobs(simulated(400, UNIFORM, knowledge=1.5)).values
    assert values["accuracy"] < unbiased["accuracy"] - 0.05
    assert values["accuracy_debiased"] == pytest.approx(unbiased["accuracy"], abs=0.02)
    assert values["debias_shift"] > 0.05


def test_content_does_not_leak_into_the_prior():
    """One item whose first option is loved: over all rotations that says nothing of slots."""
    loved = [
        score_of(
            tuple(-1.0 if option == 0 else -4.0 for option in turned.order),
            order=turned.order,
            index=turned.index,
        )
        for turned in orientations_for(4, "rotations")
    ]
    assert slot_priors(loved)[4].by_slot == pytest.approx(UNIFORM)


@pytest.mark.parametrize(
    ("kept", "usable"),
    [
        pytest.param((0, 1, 2, 3), True, id="all rotations"),
        pytest.param((0, 1, 2), False, id="one rotation missing"),
        pytest.param((0, 2), False, id="half of them"),
        pytest.param((0,), False, id="as it stands"),
    ],
)
def test_only_items_in_all_rotations_tell_of_slots(kept, usable):
    scores = [s for s in simulated(3, SKEWED, 0.0) if s.prompt.orientation.index in kept]
    assert bool(slot_priors(scores)) is usable
    summary = summarize_logprobs(scores)
    names = ("prior_distance", "prior_slot_1", "accuracy_debiased", "debias_shift")
    assert all((name in summary.values) is usable for name in names)
    assert all((name in summary.undefined) is not usable for name in names)
    assert summary.values["n_prior_items"] == float(usable)


def test_options_that_keep_their_place_say_nothing_of_slots():
    scores = [
        score_of((-1.0, -2.0, -3.0, -4.0), order=turned.order, index=turned.index)
        for turned in orientations_for(4, "rotations", fixed=[3])
    ]
    assert slot_priors(scores) == {}


def test_all_orders_tell_of_slots_as_rotations_do():
    scores = [
        score_of((-1.0, -2.0, -3.0), order=turned.order, index=turned.index)
        for turned in orientations_for(3, "shuffles:6")
    ]
    assert list(slot_priors(scores)) == [3]


@pytest.mark.parametrize(
    ("n_items", "prior_items", "n_used"),
    [(1, 50, 1), (2, 50, 1), (9, 50, 4), (200, 50, 50), (200, 7, 7)],
)
def test_at_most_half_of_the_items_go_into_the_prior(n_items, prior_items, n_used):
    scores = simulated(n_items, SKEWED, 0.0)
    assert len(slot_priors(scores, prior_items=prior_items)[4].items) == n_used
    values = summarize_logprobs(scores, prior_items=prior_items)
    assert ("accuracy_debiased" in values.values) is (n_items > 1)


def test_the_items_of_the_prior_are_drawn_by_id_and_seed():
    scores = simulated(40, SKEWED, 0.0)
    drawn = slot_priors(scores, prior_items=10)[4]
    assert slot_priors(scores[::-1], prior_items=10)[4].items == drawn.items
    assert slot_priors(scores, prior_items=10, seed=1)[4].items != drawn.items
    assert drawn.items != {(f"q{number}", "letters") for number in range(10)}


def test_items_with_other_option_counts_have_a_prior_of_their_own():
    three = simulated(10, (0.2, 0.2, 0.6), 0.0)
    three = [
        score_of(
            s.logprobs,
            id=f"three {s.key[0]}",
            gold=s.prompt.item.gold,
            order=s.prompt.orientation.order,
            index=s.key[2],
        )
        for s in three
    ]
    scores = [*simulated(30, SKEWED, 0.0), *three]
    priors = slot_priors(scores, prior_items=10)
    assert {n: len(prior.items) for n, prior in priors.items()} == {3: 5, 4: 10}
    values = summarize_logprobs(scores, prior_items=10).values
    assert values["prior_of_3_slot_3"] == priors[3].by_slot[2]
    assert values["prior_of_4_slot_1"] == priors[4].by_slot[0]
    assert "prior_slot_1" not in values
    weighted = (5 * priors[3].distance + 10 * priors[4].distance) / 15
    assert values["prior_distance"] == pytest.approx(weighted)


def test_a_label_that_is_impossible_leaves_numbers_finite():
    never = simulated(10, SKEWED, 0.0)
    never = [
        score_of(
            (*s.logprobs[:3], -math.inf),
            id=s.key[0],
            gold=s.prompt.item.gold,
            order=s.prompt.orientation.order,
            index=s.key[2],
        )
        for s in never
    ]
    summary = summarize_logprobs(never)
    assert all(math.isfinite(value) for value in summary.values.values())
    assert summary.values["prior_slot_4"] == pytest.approx(0.0, abs=1e-12)


LOGPROBS = st.lists(st.floats(-200, 0) | st.just(-math.inf), min_size=2, max_size=7).map(tuple)


@given(LOGPROBS)
def test_normalised_scores_are_probabilities_in_the_same_order(logprobs):
    values = label_logprobs(score_of(logprobs))
    assert np.exp(values).sum() == pytest.approx(1.0)
    assert values.argmax() in score_of(logprobs).best


@given(LOGPROBS)
def test_a_uniform_prior_changes_no_pick(logprobs):
    score = score_of(logprobs)
    uniform = SlotPrior((1 / len(logprobs),) * len(logprobs), frozenset())
    assert set(score.best) & set(debiased(score, uniform).best)
    if score.pick is not None and sorted(logprobs)[-2] < max(logprobs) - 1e-4:
        assert debiased(score, uniform).pick == score.pick


@given(st.lists(st.floats(1e-3, 1), min_size=2, max_size=8))
def test_the_distance_is_a_share_of_probability(weights):
    prior = SlotPrior(tuple(w / sum(weights) for w in weights), frozenset())
    assert 0 <= prior.distance <= 1 - 1 / len(weights) + 1e-9


def test_the_distance_is_largest_where_one_label_has_all():
    assert SlotPrior((1.0, 0.0, 0.0, 0.0), frozenset()).distance == 0.75
    assert SlotPrior(UNIFORM, frozenset()).distance == 0.0
