"""The 8-token analogy match reads tokens, whole choices, and nothing after the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import byte_tokenizer

from mlflow_mcq.doors import Grader, Tokenizer
from mlflow_mcq.engines.tokenizer import ReplyTokenizer, load_tokenizer
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.grader_settings import AnalogySettings
from mlflow_mcq.graders import AnalogyGrader
from mlflow_mcq.graders.analogy import analogy_numbers, fewest_tokens, match_window, unwinnable
from mlflow_mcq.graders.mentions import begins_with, mentions
from mlflow_mcq.records import Generation, Grade, Item, Orientation, Prompt, Reply, Verdict

PAIRS = ("river : boat", "road : car", "road : carriage", "sky : kite")


class Pieces:
    """A tokenizer over a list of pieces; text is cut into them greedily, longest first."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = [*dict.fromkeys([*pieces, *map(chr, range(32, 127)), "\n"])]

    def encode(self, text: str) -> list[int]:
        ids = []
        while text:
            piece = max((p for p in self.pieces if text.startswith(p)), key=len)
            ids.append(self.pieces.index(piece))
            text = text[len(piece) :]
        return ids

    def decode(self, ids) -> str:
        return "".join(self.pieces[i] for i in ids)


def _generation(reply: Reply | str, options=PAIRS, gold=1, order=None) -> Generation:
    item = Item("q", "Anchor is to ship as?", tuple(options), gold)
    orientation = Orientation(0, "as-is", tuple(order or range(len(options))))
    prompt = Prompt(item, orientation, "dashes", "", ())
    return Generation(prompt, 0, Reply(reply) if isinstance(reply, str) else reply)


def _of_tokens(*pieces: str, **more) -> tuple[Grade, Pieces]:
    tokenizer = Pieces(*pieces)
    ids = tuple(tokenizer.pieces.index(piece) for piece in pieces)
    generation = _generation(Reply("".join(pieces), token_ids=ids), **more)
    (grade,) = AnalogyGrader(tokenizer=tokenizer).grade([generation])
    return grade, tokenizer


@pytest.mark.parametrize(
    ("pieces", "verdict", "choice", "reason"),
    [
        pytest.param(
            (" road", " :", " car", ".", "\n", "Q", ":", " What", " now"),
            Verdict.CORRECT, 1, "match", id="gold at the front",
        ),
        pytest.param(
            ("I", " would", " then", " say", ",", " road", " :", " c", "ar"),
            Verdict.OTHER, None, "no_match", id="completed by the ninth token",
        ),
        pytest.param(
            (" road", " :", " carriage", "\n"),
            Verdict.INCORRECT, 2, "match", id="gold is the beginning of another choice",
        ),
        pytest.param(
            (" road", " :", " car", "\n", " road", " :", " car", "\n"),
            Verdict.CORRECT, 1, "match", id="the same choice twice counts once",
        ),
        pytest.param(
            (" road", " :", " car", "\n", " sky", " :", " kite", "\n"),
            Verdict.OTHER, None, "double_match", id="two choices",
        ),
        pytest.param(
            (" road", " :", " car", "\n", "\n", " sky", " :", " k", "ite"),
            Verdict.CORRECT, 1, "match", id="the second choice is outside",
        ),
        pytest.param((" sky", " :", " kite"), Verdict.INCORRECT, 3, "match", id="stops early"),
        pytest.param(
            ("Road", "  :", " CAR"), Verdict.CORRECT, 1, "match", id="case and white space"
        ),
        pytest.param(("rail", "road", " :", " car"), Verdict.OTHER, None, "no_match", id="bounded"),
    ],
)  # fmt: skip
def test_reads_the_first_eight_tokens(pieces, verdict, choice, reason):
    grade, _ = _of_tokens(*pieces)
    assert (grade.verdict, grade.choice, grade.reason) == (verdict, choice, reason)
    assert grade.evidence == "".join(pieces[:8])


def test_the_copied_recipe_scores_zero_where_ours_is_right():
    golds = ["river : boat", "road : carriage", "a hundred : one"]
    generations = [_generation(gold, options=(gold, "sky : kite"), gold=0) for gold in golds]
    copied = [g.text[:8] == g.prompt.item.options[0] for g in generations]
    tokenizer = Pieces(*(word for gold in golds for word in gold.replace(" ", "\x00 ").split("\0")))
    ours = [*AnalogyGrader(tokenizer=tokenizer).grade(generations)]
    assert sum(copied) == 0
    assert [grade.verdict for grade in ours] == [Verdict.CORRECT] * 3


@pytest.mark.parametrize(
    ("window", "options", "expected"),
    [
        pytest.param("acid rain", ("acid", "acid rain"), (1, "match"), id="longest first"),
        pytest.param(
            "acid rain and acid", ("acid", "acid rain"), (None, "double_match"), id="and apart"
        ),
        pytest.param(
            "York City Hall is New", ("New York", "York City"), (1, "match"), id="beginning"
        ),
        pytest.param(
            "New York City", ("New York", "York City"), (None, "double_match"), id="overlap"
        ),
        pytest.param("tin", ("tin", "Tin", "iron"), (None, "duplicate_option"), id="same text"),
        pytest.param("it is 3.5 g", ("5", "3"), (None, "no_match"), id="inside a decimal"),
        pytest.param("it is 5.", ("5", "3"), (0, "match"), id="number before a full stop"),
        pytest.param("it is -5", ("5", "-5"), (1, "match"), id="negative number"),
        pytest.param("about 5,000", ("5", "000"), (None, "no_match"), id="thousands"),
        pytest.param("答案是水星", ("水星", "火星"), (0, "match"), id="no spaces: Chinese"),
        pytest.param(
            "リンゴジュース", ("リンゴ", "みかん"), (None, "no_match"), id="katakana word"
        ),
        pytest.param("यह कि है", ("क", "कि"), (1, "match"), id="vowel signs belong to the word"),
        pytest.param("Ответ: Земля", ("земля", "зем"), (0, "match"), id="Cyrillic"),
        pytest.param("Ｍａｒｓ", ("Mars", "Venus"), (0, "match"), id="full width"),
        pytest.param("ma\u0301rs", ("ma", "márs"), (1, "match"), id="accent apart"),
        pytest.param("", ("a", "b"), (None, "no_match"), id="empty"),
    ],
)
def test_what_counts_as_a_mention(window, options, expected):
    assert match_window(window, options) == expected


@given(st.permutations(range(4)), st.text("rivead :kytscbo\n", max_size=40))
def test_the_order_of_the_options_never_changes_the_choice(order, noise):
    for window in (noise, f"road : car {noise}", f"{noise} sky : kite"):
        choice, reason = match_window(window, PAIRS)
        turned, reason_2 = match_window(window, [PAIRS[place] for place in order])
        assert reason == reason_2
        assert (None if turned is None else order[turned]) == choice


@pytest.mark.parametrize(
    ("reply", "tokenizer", "verdict", "reason"),
    [
        pytest.param(
            Reply("road : car"), None, Verdict.CORRECT, "match; window_unverified", id="words"
        ),
        pytest.param(
            Reply("one two three four five six seven eight road : car"), None,
            Verdict.OTHER, "no_match; window_unverified", id="beyond eight words",
        ),
        pytest.param(
            Reply("road : car", token_ids=(7, 8, 9)), None,
            Verdict.CORRECT, "match", id="no more tokens than the window",
        ),
        pytest.param(
            Reply("road : car", n_tokens=4), None,
            Verdict.CORRECT, "match", id="counted by a server",
        ),
        pytest.param(
            Reply("say road : car"), Pieces("road", " :", " car"),
            Verdict.CORRECT, "match", id="encoded here",
        ),
        pytest.param(
            Reply("so say: road : car"), Pieces("road", " :", " car"),
            Verdict.OTHER, "no_match", id="encoded here, outside",
        ),
        pytest.param(
            Reply("sky : kite", token_ids=tuple(range(8))), Pieces("road : car"),
            Verdict.CORRECT, "match; window_unverified", id="ids of another tokenizer",
        ),
        pytest.param(
            Reply("<think>sky : kite? No.</think>\n\nroad : car", token_ids=(1,)),
            Pieces("road", " :", " car"), Verdict.CORRECT, "match", id="after the thinking",
        ),
        pytest.param(
            Reply("<think>road : car"), None, Verdict.OTHER, "unfinished_thought", id="thinking"
        ),
        pytest.param(
            Reply(None, finish_reason="prompt_too_long"), None,
            Verdict.OTHER, "prompt_too_long", id="never asked",
        ),
    ],
)  # fmt: skip
def test_where_the_window_comes_from(reply, tokenizer, verdict, reason):
    (grade,) = AnalogyGrader(tokenizer=tokenizer).grade([_generation(reply)])
    assert (grade.verdict, grade.reason) == (verdict, reason)


def test_a_broken_call_is_an_error_and_no_verdict():
    (grade,) = AnalogyGrader().grade([_generation(Reply(None, "timeout"))])
    assert grade.verdict is None
    assert "timeout" in grade.error


def test_is_a_grader_with_a_window_of_its_own():
    grader = AnalogyGrader(AnalogySettings(window=3), Pieces("road", " :", " car"))
    assert isinstance(grader, Grader)
    assert isinstance(grader.tokenizer, Tokenizer)
    replies = ["road : car", "a road : car"]
    assert [g.reason for g in grader.grade([*map(_generation, replies)])] == ["match", "no_match"]


def test_a_tokenizer_that_adds_tokens_is_refused():
    with pytest.raises(SettingsError, match="without adding special tokens"):
        AnalogyGrader(tokenizer=byte_tokenizer())  # begins every text with <s>
    wrapped = ReplyTokenizer(byte_tokenizer())
    assert wrapped.decode(wrapped.encode("tin\n  é")) == "tin\n  é"
    (grade,) = AnalogyGrader(tokenizer=wrapped).grade([_generation("tin : can", ("tin", "é"), 0)])
    assert (grade.verdict, grade.evidence) == (Verdict.CORRECT, "tin : ca")


def test_a_window_that_ends_within_a_character():
    wrapped = ReplyTokenizer(byte_tokenizer())
    reply = Reply("tin: éé", token_ids=tuple(wrapped.encode("tin: éé")))
    grader = AnalogyGrader(AnalogySettings(window=6), wrapped)  # the first byte of two
    (grade,) = grader.grade([_generation(reply, ("tin", "é"), 0)])
    assert (grade.reason, grade.evidence) == ("match", "tin: \ufffd")


def test_a_named_tokenizer_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_tokenizer(str(tmp_path / "nowhere"))
    byte_tokenizer().save_pretrained(tmp_path)
    assert load_tokenizer(str(tmp_path)).encode("ab") == ReplyTokenizer(byte_tokenizer()).encode(
        "ab"
    )


def test_golds_longer_than_the_window_are_found_before_the_run():
    tokenizer = Pieces(" road", " :", " car", " riverboat")
    items = [
        Item("short", "?", ("road : car", "x"), 0),
        Item("long", "?", ("x", "riverboat captain : sea"), 1),
        Item("long, but not gold", "?", ("x", "a very long distractor"), 0),
    ]
    assert [item.id for item in unwinnable(items, tokenizer)] == ["long"]
    assert [item.id for item in unwinnable(items, tokenizer, window=2)] == ["short", "long"]


@pytest.mark.parametrize(
    ("gold", "n_tokens"),
    [
        pytest.param("pine", 1, id="short at the start of a reply"),
        pytest.param("oak", 1, id="short after a blank"),
        pytest.param("PINE", 1, id="capitals are long, and small letters match them"),
        pytest.param(" pine\n", 1, id="white space around it is not written"),
        pytest.param("elm", 3, id="long in both forms"),
    ],
)
def test_a_gold_has_the_length_of_its_shortest_form(gold, n_tokens):
    assert fewest_tokens(gold, Pieces("pine", " oak")) == n_tokens


def test_numbers_with_double_matches_in_and_out():
    replies = ["road : car", "road : car sky : kite", "sky : kite", "no idea"]
    broken = _generation(Reply(None, "timeout"))
    grades = [*AnalogyGrader().grade([*map(_generation, replies), broken])]
    assert analogy_numbers(grades) == {
        "accuracy_double_in": 1 / 4,
        "accuracy_double_out": 1 / 3,
        "double_match_rate": 1 / 4,
        "no_match_rate": 1 / 4,
        "window_unverified_rate": 1.0,
    }
    assert analogy_numbers(grades[-1:]) == {}
    assert "accuracy_double_out" not in analogy_numbers(grades[1:2])


def test_the_longest_option_at_the_beginning():
    assert begins_with("tin foil hat", ["tin", "tin foil", "foil"]) == 1
    assert begins_with("tinfoil", ["tin"]) is None
    assert [m.places for m in mentions("tin, iron, tin", ["iron", "tin"])] == [(1,), (0,), (1,)]
