"""Guesses save steps and never change an answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_rotated import TOKENIZER, alone, ended, generator, rotations, work_of
from tiny import EOS, tiny_model

from mlflow_mcq.engines import drafts, rotated
from mlflow_mcq.engines.drafts import SEEN, Drafts
from mlflow_mcq.engines.rotated import RotatedGenerator
from mlflow_mcq.engines.work import Work
from mlflow_mcq.records import Decoding

TEXTS = st.lists(st.integers(0, 5), min_size=3, max_size=40)


@given(TEXTS)
def test_what_is_guessed_followed_the_same_tokens_last(ids: list[int]) -> None:
    told = Drafts([[0]])
    told.learn(0, ids, 0)
    context = ids[-SEEN:]
    for token in told.guess(0, tuple(context), 1, most=3):
        n, same = next(
            (n, same)
            for n in (SEEN, SEEN - 1)
            if (same := [at for at in range(n, len(ids)) if ids[at - n : at] == context[-n:]])
        )
        assert token == ids[same[-1]], n
        context.append(token)


@given(TEXTS, st.integers(0, 4))
def test_no_more_is_guessed_than_is_asked_for(ids: list[int], most: int) -> None:
    told = Drafts([[0]])
    told.learn(0, ids * 2, 0)
    assert len(told.guess(0, tuple(ids[:SEEN]), 1, most)) <= most


def test_siblings_learn_from_each_other_and_strangers_do_not() -> None:
    told = Drafts([[0, 1], [2]])
    told.learn(0, [1, 2, 3, 4], 0)
    assert told.guess(1, (1, 2, 3), 1, 4) == [4]
    assert told.guess(2, (1, 2, 3), 1, 4) == []


def test_what_ends_a_row_is_no_guess_and_counts_as_none() -> None:
    told = Drafts([[0]], ends=[9])
    told.learn(0, [1, 2, 3, 4, 9, 5, 6], 0)
    assert told.guess(0, (1, 2, 3), 1, 4) == [4]
    assert told.guess(0, (2, 3, 4), 1, 4) == []
    before = dict(told.shares)
    told.heed(0, (2, 3, 4), 9)
    assert told.shares == before


def test_a_group_is_forgotten_with_its_last_row() -> None:
    told = Drafts([[0, 1]])
    told.learn(0, [1, 2, 3, 4], 0)
    told.end(0)
    assert told.guess(1, (1, 2, 3), 1, 4) == [4]
    told.end(1)
    assert not told._seen


def test_wrong_guesses_are_given_up_and_right_ones_taken_up_again() -> None:
    told = Drafts([[0]])
    for step in range(1000):
        told.heed(0, (1, 2, 3), step)
    assert told.shares[3] < 0.1
    assert told.guess(0, (1, 2, 3), 50, 4) == []
    for _ in range(1000):
        told.heed(0, (1, 2, 3), 7)
    assert told.shares[3] > 0.9
    assert told.guess(0, (1, 2, 3), 50, 4) == [7]


def test_shares_are_kept_apart_by_how_many_tokens_were_known() -> None:
    told = Drafts([[0]])
    for step in range(100):
        told.heed(0, (step, 2, 3), step % 2)  # three tokens never seen before, two always
    assert told.shares[2] < 0.5
    assert told.shares[3] == Drafts([[0]]).shares[3]


@pytest.mark.parametrize(
    ("n_rows", "expected"), [(1, 8), (24, 7), (40, 3), (48, 3), (96, 1), (97, 0), (500, 0)]
)
def test_guesses_fill_a_step_and_no_more(n_rows: int, expected: int) -> None:
    told = Drafts([[0]])
    told.learn(0, list(range(20)), 0)
    told.shares = {2: 1.0, 3: 1.0}
    assert told.guess(0, (0, 1, 2), n_rows, 99) == list(range(3, 3 + expected))


def test_the_fewer_rows_the_less_likely_a_guess_may_be() -> None:
    told = Drafts([[0]])
    told.learn(0, list(range(20)), 0)
    told.shares = {2: 0.7, 3: 0.7}
    n_guessed = [len(told.guess(0, (0, 1, 2), n_rows, 99)) for n_rows in (60, 20, 10, 2)]
    assert n_guessed == sorted(n_guessed)
    assert n_guessed[0] == 1 < n_guessed[-1]
    # What all before it makes likely, not what it would be by itself.
    assert all(0.7**n >= told.worth(n_rows) > 0.7 ** (n + 1)
               for n, n_rows in zip(n_guessed[:3], (60, 20, 10), strict=True))  # fmt: skip


# --- on the fast road -------------------------------------------------------------------


@pytest.fixture
def no_guesses(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda: monkeypatch.setitem(drafts._FILLING, "cpu", 1)


def test_guesses_change_no_answer(no_guesses: Any) -> None:
    model, work = tiny_model(max_position_embeddings=512), work_of(rotations())
    decoding = Decoding(max_new_tokens=40)
    fast = generator(model, decoding)
    with_guesses = ended(fast.run(work))
    no_guesses()
    slow = generator(model, decoding)
    assert {place: one.new for place, one in with_guesses.items()} == {
        place: one.new for place, one in ended(slow.run(work)).items()
    }
    n_said = sum(len(one.new) for one in with_guesses.values())
    assert slow.tally.fed == n_said < fast.tally.fed


def test_what_a_sibling_has_said_takes_a_quarter_of_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(rotated._MOST_SLOTS, "cpu", 1)
    model = tiny_model(max_position_embeddings=512)
    one = work_of(rotations())[0]
    steps = []
    for n_rows in (1, 2):
        made = generator(model, Decoding(max_new_tokens=40))
        answers = ended(made.run([one] * n_rows))
        steps.append(made.tally.steps)
    assert answers[0].new == answers[1].new
    assert steps[1] - steps[0] <= len(answers[0].new) / 4


@pytest.mark.parametrize("n_new", [1, 2, 3, 7])
def test_an_answer_is_never_longer_than_allowed(n_new: int) -> None:
    model = tiny_model(max_position_embeddings=512)
    work = work_of(rotations()[:4])
    answers = ended(generator(model, Decoding(max_new_tokens=n_new)).run(work))
    assert [answers[place].new for place in range(4)] == [
        alone(model, one.ids, n_new) for one in work
    ]


def test_the_last_position_of_a_model_is_never_passed() -> None:
    work = [Work([5, 6] * 20)]
    model = tiny_model(max_position_embeddings=40 + 24)
    answers = ended(generator(model, Decoding(max_new_tokens=24)).run(work))
    assert answers[0].new == alone(model, work[0].ids, 24)


@pytest.mark.parametrize("end", ["token", "text"])
def test_an_end_amid_right_guesses_ends_the_row_there(end: str) -> None:
    model = tiny_model(max_position_embeddings=512)
    ids = work_of(rotations())[0].ids
    said = alone(model, ids, 40)
    text = TOKENIZER.decode(said)
    # A row whose siblings have said the same already: each guess is right.
    work = [Work(ids), Work([*ids[:-1], ids[-1]])]
    last = said[20]
    stop = (TOKENIZER.decode([last]),) if end == "text" else ()
    eos = [EOS] if end == "text" else [last]
    made = RotatedGenerator(model, TOKENIZER, Decoding(max_new_tokens=40, stop=stop), eos)
    expected = said[: said.index(last) + 1]
    if end == "text":
        n = next(n for n in range(1, 41) if stop[0] in TOKENIZER.decode(said[:n]))
        expected = said[:n]
    answers = ended(made.run(work))
    assert [answers[place].new for place in (0, 1)] == [expected, expected], text


def test_logits_of_each_token_are_shown_once() -> None:
    model = tiny_model(max_position_embeddings=512)
    work = work_of(rotations())
    shown: dict[tuple[int, int], int] = {}

    def watch(place: int, n: int, logits: torch.Tensor) -> None:
        assert (place, n) not in shown
        shown[place, n] = int(logits.argmax())

    made = RotatedGenerator(model, TOKENIZER, Decoding(max_new_tokens=20), [EOS], watch)
    answers = ended(made.run(work))
    assert shown == {
        (place, n): token for place, one in answers.items() for n, token in enumerate(one.new)
    }


def test_drawn_answers_are_not_guessed() -> None:
    model, work = tiny_model(max_position_embeddings=512), work_of(rotations())
    made = generator(model, Decoding(max_new_tokens=20, temperature=0.7))
    answers = ended(made.run(work))
    assert made.tally.fed == sum(len(one.new) for one in answers.values())
