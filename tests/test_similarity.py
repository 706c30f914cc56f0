"""Similarity grades by meaning, reads letters as letters, and says when it knows nothing."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_mcq.doors import Grader
from mlflow_mcq.engines.embedder import SentenceEmbedder
from mlflow_mcq.errors import ModelError
from mlflow_mcq.grader_settings import SimilaritySettings
from mlflow_mcq.graders import SimilarityGrader
from mlflow_mcq.graders.similarity import similarity_numbers
from mlflow_mcq.records import Generation, Item, Orientation, Prompt, Reply, Verdict

METALS = ("copper", "zinc", "nickel", "silver")
LETTERS = ("A", "B", "C", "D")


class Bag:
    """Vectors of character pairs: alike in letters is alike in meaning."""

    fingerprint = "bag"

    def __init__(self, **vectors: tuple[float, ...]) -> None:
        self.vectors = vectors
        self.calls: list[list[str]] = []

    def embed(self, texts):
        self.calls.append([*texts])
        return np.stack([self._one(text) for text in texts])

    def _one(self, text):
        if text in self.vectors:
            return np.array(self.vectors[text], dtype=np.float32)
        vector = np.zeros(2 if self.vectors else 512, dtype=np.float32)
        for pair in zip(f" {text}", f"{text} ", strict=True):
            vector[zlib.crc32("".join(pair).lower().encode()) % len(vector)] += 1
        return vector / max(np.linalg.norm(vector), 1e-9)


def _generation(reply, options=METALS, gold=1, labels=LETTERS, order=None) -> Generation:
    item = Item("q", "Which?", tuple(options), gold)
    orientation = Orientation(0, "o", tuple(order or range(len(options))))
    prompt = Prompt(item, orientation, "letters", "", labels[: len(options)])
    return Generation(prompt, 0, Reply(reply) if isinstance(reply, str) else reply)


def _grade(reply, embedder=None, floor=0.5, margin=0.02, **more):
    grader = SimilarityGrader(embedder or Bag(), SimilaritySettings(floor=floor, margin=margin))
    (grade,) = grader.grade([_generation(reply, **more)])
    return grade


@pytest.mark.parametrize(
    ("reply", "choice", "reason"),
    [
        pytest.param("The answer is Zinc.", 1, "similarity level 1", id="own text"),
        pytest.param("The answer is zincs.", 1, "similarity level 1", id="nearly its text"),
        pytest.param("Answer: the nickels", 2, "similarity level 2", id="level 2"),
        pytest.param("Well, zinc it is", 1, "similarity level 3", id="level 3"),
        pytest.param("Hm. Silvery", 3, "similarity level 4", id="level 4"),
        pytest.param("B", 1, "label level 4", id="bare letter"),
        pytest.param("The answer is (c).", 2, "label level 1", id="bracketed letter"),
        pytest.param("Answer: option D", 3, "label level 2", id="option and letter"),
        pytest.param("Answer: B) zinc", 1, "similarity level 2", id="letter with its text"),
        pytest.param("B) nickel", None, "label_text_conflict", id="letter with another's text"),
        pytest.param(
            "Answer: B) nickel", None, "label_text_conflict", id="conflict after a marker"
        ),
        pytest.param("The answer is E.", None, "unclear_label", id="letter that was not shown"),
        pytest.param("The answer is a", None, "unclear_label", id="article or letter"),
        pytest.param("I cannot answer this question.", None, "refusal", id="refusal"),
        pytest.param("I can't choose between zinc and nickel", None, "refusal", id="with options"),
        pytest.param("Sorry, I can't help. Ask a silversmith.", None, "refusal", id="not last"),
        pytest.param("The answer is: I don't know", None, "refusal", id="after a marker"),
        pytest.param(
            "I don't know why, but the answer is zinc", 1, "similarity level 1", id="hedge"
        ),
        pytest.param(
            "A) copper\nB) zinc\nC) nickel\nD) silver", None, "lists_options", id="list copied"
        ),
        pytest.param(
            "Copper, zinc, nickel, silver: zinc.", 1, "similarity level 3", id="list, then a choice"
        ),
        pytest.param("qqq xxyy", None, "below_floor", id="gibberish"),
        pytest.param("", None, "empty", id="empty"),
        pytest.param("!!", None, "no_span", id="punctuation"),
        pytest.param("<think>zinc", None, "unfinished_thought", id="thinking"),
        pytest.param("<think>zinc?</think>nickel", 2, "similarity level 3", id="after thinking"),
    ],
)
def test_what_a_reply_is_read_as(reply, choice, reason):
    grade = _grade(reply)
    assert (grade.choice, grade.reason) == (choice, reason)


@pytest.mark.parametrize(
    ("reply", "choice", "reason"),
    [
        pytest.param("B", None, "letter_without_labels", id="bare"),
        pytest.param("The answer is option C.", None, "letter_without_labels", id="named option"),
        pytest.param("The answer is zinc.", 1, "similarity level 1", id="text is read"),
    ],
)
def test_letters_mean_nothing_where_none_were_shown(reply, choice, reason):
    grade = _grade(reply, labels=())
    assert (grade.choice, grade.reason) == (choice, reason)


def test_a_letter_that_is_an_options_own_text_is_that_text():
    assert _grade("The answer is K.", options=("K", "Na"), labels=(), gold=0).choice == 0


def test_a_letter_is_never_embedded():
    embedder = Bag()
    _grade("B", embedder)
    _grade("B", embedder, labels=())
    assert embedder.calls == []


def test_letters_are_read_in_the_order_shown():
    assert _grade("B", order=(2, 3, 0, 1)).choice == 3


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        pytest.param(((1.0, 0.0), (0.0, 1.0)), "similarity level 1", id="clear"),
        pytest.param(((1.0, 0.0), (0.9999, 0.014)), "too_close", id="within the margin"),
        pytest.param(((0.3, 0.954), (0.0, 1.0)), "below_floor", id="below the floor"),
        pytest.param(((0.0, 0.0), (0.0, 0.0)), "below_floor", id="zero vectors"),
        pytest.param(((float("nan"), 0.0), (0.0, 1.0)), "below_floor", id="NaN is no closeness"),
    ],
)
def test_floor_and_margin(scores, reason):
    embedder = Bag(span=(1.0, 0.0), one=scores[0], two=scores[1])
    grade = _grade("The answer is span", embedder, options=("one", "two"))
    assert grade.reason == reason
    assert json.loads(grade.evidence)["forced"] == 0


def test_the_longest_vector_does_not_win():
    embedder = Bag(span=(1.0, 1.0), one=(10.0, 0.0), two=(0.9, 1.1), three=(0.0, 3.0))
    assert _grade("The answer is span", embedder, options=("one", "two", "three")).choice == 1


def test_its_own_text_needs_no_margin():
    embedder = Bag(**{"zinc(II)": (1.0, 0.0), "ZINC(II)": (1.0, 0.0), "zinc(I)": (1.0, 0.001)})
    grade = _grade("The answer is ZINC(II)", embedder, options=("zinc(I)", "zinc(II)"))
    assert grade.choice == 1


@pytest.mark.parametrize("reply", ["The answer is zinc.", "The answer is zincs.", "zinc"])
def test_repeated_options_cannot_be_told_apart(reply):
    grade = _grade(reply, options=("zinc", "nickel", "zinc"), gold=2, margin=0.0)
    assert (grade.verdict, grade.reason) == (Verdict.OTHER, "too_close")


@pytest.mark.parametrize(
    ("reply", "choice", "reason"),
    [
        pytest.param("The answer is 250.", None, "unlisted_number", id="no option has it"),
        pytest.param("25", None, "unlisted_number", id="part of an option's number"),
        pytest.param("The answer is 2.5", 1, "similarity level 1", id="its unit left out"),
        pytest.param("2,500 m", 2, "similarity level 3", id="its own text"),
    ],
)
def test_numbers_are_not_near_each_other(reply, choice, reason):
    grade = _grade(reply, options=("0.25 m", "2.5 m", "2,500 m"), labels=LETTERS, floor=0.1)
    assert (grade.choice, grade.reason) == (choice, reason)


@pytest.mark.parametrize(
    ("reply", "verdict", "reason"),
    [
        pytest.param("So we look at how a", Verdict.OTHER, "truncated", id="no answer yet"),
        pytest.param(
            "The answer is zinc. Now, wh", Verdict.CORRECT, "similarity level 1", id="had"
        ),
        pytest.param("B", Verdict.CORRECT, "label level 4", id="label"),
    ],
)
def test_replies_cut_at_the_token_limit(reply, verdict, reason):
    grade = _grade(Reply(reply, finish_reason="length"))
    assert (grade.verdict, grade.reason) == (verdict, reason)


def test_rows_without_a_reply():
    assert _grade(Reply(None, "timeout")).verdict is None
    too_long = _grade(Reply(None, finish_reason="prompt_too_long"))
    assert (too_long.verdict, too_long.reason) == (Verdict.OTHER, "prompt_too_long")


def test_evidence_holds_the_published_reading():
    assert json.loads(_grade("The answer is zincs").evidence).keys() == {
        "level", "span", "forced", "scores",
    }  # fmt: skip
    refusal = json.loads(_grade("I cannot answer, {nickels} aside").evidence)
    assert refusal["forced"] == np.argmax(refusal["scores"])
    assert json.loads(_grade("B").evidence) == {
        "level": 4, "span": "B", "forced": 1, "scores": [],
    }  # fmt: skip
    assert json.loads(_grade("").evidence)["forced"] is None


def test_everything_is_embedded_in_one_call_each_text_once():
    embedder = Bag()
    replies = ["The answer is zincs", "The answer is zincs", "nickels", "B", ""]
    generations = [_generation(r, order=o) for r in replies for o in (None, (3, 2, 1, 0))]
    grader = SimilarityGrader(embedder)
    assert isinstance(grader, Grader)
    grades = [*grader.grade(generations)]
    assert [grade.generation for grade in grades] == generations
    (texts,) = embedder.calls
    assert sorted(texts) == sorted({"zincs", "nickels", *METALS})


def test_an_embedder_that_loses_a_text_is_reported():
    class Short(Bag):
        def embed(self, texts):
            return super().embed(texts)[1:]

    with pytest.raises(ModelError, match="one vector for each of 5 texts"):
        _grade("zincs", Short())


@settings(max_examples=50)
@given(
    st.lists(st.text("abcdef ", min_size=2).filter(str.strip), min_size=2, max_size=5, unique=True),
    st.text("abcdef ", min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_permuting_the_options_never_changes_the_option(options, said, random):
    order = [*range(len(options))]
    random.shuffle(order)
    turned = [options[place] for place in order]
    one = _grade(f"The answer is {said}", options=options, labels=())
    other = _grade(f"The answer is {said}", options=turned, labels=())
    assert one.reason == other.reason
    assert one.choice == (None if other.choice is None else order[other.choice])
    shown = _grade(f"The answer is {said}", options=options, labels=(), order=order)
    assert (shown.choice, shown.evidence) == (one.choice, one.evidence)


@settings(max_examples=50)
@given(
    st.sampled_from(METALS), st.sampled_from(["{}", "The answer is {}.", "Answer:\n{}", "so {}!"])
)
def test_identical_text_is_that_option(metal, frame):
    grade = _grade(frame.replace("{}", metal), labels=())
    assert METALS[grade.choice] == metal
    assert json.loads(grade.evidence)["scores"][grade.choice] == pytest.approx(1)


def test_numbers():
    replies = ["The answer is zincs", "Answer: zincs", "so zinc", "zincs", "", "I cannot answer"]
    generations = [*map(_generation, replies), _generation(Reply(None, "timeout"))]
    grades = [*SimilarityGrader(Bag()).grade(generations)]
    numbers = similarity_numbers(grades)
    rates = [numbers.pop(f"level_{n}_rate") for n in (1, 2, 3, 4)]
    assert rates == [1 / 6, 1 / 6, 1 / 6, 2 / 6]
    assert numbers.pop("no_span_rate") == 1 / 6
    assert 4 / 6 <= numbers.pop("accuracy_forced") <= 5 / 6
    assert not numbers
    assert similarity_numbers(grades[-1:]) == {}


def test_with_real_vectors():
    grader = SimilarityGrader(SentenceEmbedder("demo:minilm"))
    options = (
        "a large cat with stripes",
        "a bird that cannot fly",
        "a fish of the deep sea",
        "rain",
    )
    replies = {
        "So the answer is: the striped big cat": 0,
        "**Answer:** Penguins, which are flightless birds.": 1,
        "I would say that it's a deep-sea fish.": 2,
        "B": 1,
        "I am unable to answer that.": None,
        "Thank you for the question!": None,
    }
    grades = [*grader.grade([_generation(reply, options=options) for reply in replies])]
    assert [grade.choice for grade in grades] == [*replies.values()]
