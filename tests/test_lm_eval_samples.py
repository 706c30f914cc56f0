"""Samples of lm-evaluation-harness: one answer each, however many filters read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.importers.lm_eval import from_lm_eval_samples

DOC = {"question": "Which is liquid?", "options": ["iron", "mercury", "tin"], "answer": "B"}
LISTED = "A. iron\nB. mercury\nC. tin\n"
PROMPT = f"Question:\nWhich is liquid?\nOptions:\n{LISTED}Answer: Let's think step by step."
TURNED = PROMPT.replace(LISTED, "A. tin\nB. iron\nC. mercury\n")
UNTIL = {"until": ["Question:"], "max_gen_toks": 64}


def line(**changes: Any) -> dict[str, Any]:
    prompt, text = changes.pop("prompt", PROMPT), changes.pop("text", " It is B.")
    held = {
        "doc_id": 0,
        "doc": DOC,
        "target": "B",
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": UNTIL}},
        "resps": [[text]],
        "filtered_resps": ["B"],
        "filter": "custom-extract",
        "exact_match": 1.0,
    }
    return {**held, **changes}


def written(folder: Path, *lines: dict[str, Any], tail: str = "\n\n") -> Path:
    path = folder / "samples_task_2025-01-01.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + tail, encoding="utf-8")
    return path


def test_raw_answers_in_the_order_of_the_doc(tmp_path: Path) -> None:
    frame = from_lm_eval_samples(
        written(tmp_path, line(), line(doc_id=1, prompt=TURNED, target="C", text="(C)"))
    )
    assert frame["generation"].tolist() == [" It is B.", "(C)"]
    assert frame["order"].tolist() == [[0, 1, 2], [2, 0, 1]]
    assert frame["answer"].tolist() == ["B", "B"]  # the target counts as shown
    assert frame["id"].tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("doc", "options"),
    [
        pytest.param({"question": "Q", "choices": ["x", "y"], "answer": 0}, ["x", "y"], id="list"),
        pytest.param(
            {"question": "Q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}},
            ["x", "y"], id="text and label",
        ),
        pytest.param(
            {"question": {"stem": "Q", "choices": [{"text": "x", "label": "A"},
                                                   {"text": "y", "label": "B"}]}},
            ["x", "y"], id="nested",
        ),
        pytest.param({"question": "Q", "A": "x", "B": "y", "answer": "A"}, ["x", "y"], id="A, B"),
        pytest.param({"stem": "Q", "options": [1, 2.5]}, ["1", "2.5"], id="numbers"),
        pytest.param({"Question": "Q", "choices": ["x", "y"], "A": "other"}, ["x", "y"], id="both"),
    ],
)  # fmt: skip
def test_docs_of_many_shapes(tmp_path: Path, doc: dict[str, Any], options: list[str]) -> None:
    prompt = f"Q\n(A) {options[0]}\n(B) {options[1]}\nAnswer:"
    frame = from_lm_eval_samples(written(tmp_path, line(doc=doc, prompt=prompt, target="(A)")))
    assert frame["options"].tolist() == [options]
    assert frame["question"].tolist() == ["Q"]
    assert frame["answer"].tolist() == ["A"]


def test_fields_of_other_names_are_named_by_the_caller(tmp_path: Path) -> None:
    doc = {"frage": "Q", "antworten": ["iron", "mercury", "tin"]}
    path = written(tmp_path, line(doc=doc))
    for missing in ({}, {"question": "frage"}, {"options": "antworten"}):
        with pytest.raises(DataError, match="Name the field"):
            from_lm_eval_samples(path, **missing)
    frame = from_lm_eval_samples(path, question="frage", options="antworten")
    assert frame["question"].tolist() == ["Q"]


@pytest.mark.parametrize("named", [True, False], ids=["filters named", "older files"])
def test_one_answer_read_by_two_filters_counts_once(tmp_path: Path, named: bool) -> None:
    lines = [line(doc_id=d, filter=f) for f in ("strict", "flexible") for d in (0, 1)]
    for one in lines if not named else ():
        del one["filter"]
    assert from_lm_eval_samples(written(tmp_path, *lines))["id"].tolist() == ["0", "1"]


def test_several_samples_of_one_prompt_are_repeats(tmp_path: Path) -> None:
    frame = from_lm_eval_samples(written(tmp_path, line(resps=[["A", "B", "B"]])))
    assert frame["generation"].tolist() == ["A", "B", "B"]
    assert frame["repeat"].tolist() == [0, 1, 2]


CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TURNED}]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([[TURNED, UNTIL]], id="as a list"),
        pytest.param({"gen_args_0": {"arg_0": [json.dumps(CHAT)], "arg_1": UNTIL}}, id="chat text"),
        pytest.param({"gen_args_0": {"arg_0": CHAT, "arg_1": UNTIL}}, id="chat"),
        pytest.param(
            {"gen_args_0": {"arg_0": json.dumps(
                [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": "B"},
                 *CHAT]), "arg_1": UNTIL}},
            id="chat with an example",
        ),
    ],
)  # fmt: skip
def test_prompts_of_many_forms(tmp_path: Path, arguments: Any) -> None:
    frame = from_lm_eval_samples(written(tmp_path, line(arguments=arguments, target="C")))
    assert frame["order"].tolist() == [[2, 0, 1]]
    assert frame["answer"].tolist() == ["B"]


SCORED = {
    f"gen_args_{i}": {"arg_0": PROMPT, "arg_1": f" {letter}"} for i, letter in enumerate("ABC")
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"arguments": SCORED, "resps": [[["-1.0", "False"]], [["-0.1", "True"]]]},
            "log-likelihood task", id="scores of options",
        ),
        pytest.param(
            {"arguments": {"gen_args_0": {"arg_0": PROMPT, "arg_1": " A"}}},
            "log-likelihood task", id="scores of one",
        ),
        pytest.param({"resps": [[["-1.0", "False"]]]}, "holds no texts", id="pairs for texts"),
        pytest.param({"target": "1"}, "must name one option", id="counts from zero or one?"),
        pytest.param({"target": "['A', 'B']"}, "must name one option", id="two targets"),
        pytest.param({"prompt": "Which is liquid?"}, "order is not known", id="no list"),
        pytest.param({"doc": {"question": "Q"}}, "no list of options", id="no options"),
        pytest.param({"doc": "text"}, "no sample of", id="no doc"),
        pytest.param({"arguments": {}}, "no prompt", id="no prompt"),
        pytest.param(
            {"doc": {"question": "Q", "options": ["B", "A", "O"]},
             "prompt": "A. B\nB. A\nC. O", "target": "A"},
            "must name one option", id="a letter that is a text as well",
        ),
        pytest.param(
            {"doc": {"question": "Q", "options": ["x", "x", "y"]},
             "prompt": "A. x\nB. x\nC. y", "target": "A"},
            "text of the gold", id="gold twice",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_and_named(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        from_lm_eval_samples(written(tmp_path, line(), line(doc_id=1, **changes)))
    assert "line 2" in str(caught.value)


def test_a_target_by_text_and_an_order_vouched_for(tmp_path: Path) -> None:
    path = written(tmp_path, line(target="mercury", prompt="Which is liquid?"))
    frame = from_lm_eval_samples(path, order="as-is")
    assert (frame["answer"].tolist(), frame["order"].tolist()) == (["B"], [[0, 1, 2]])
    with pytest.raises(SettingsError, match="order"):
        from_lm_eval_samples(path, order="any")


def test_bad_rows_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, line(), line(doc_id=1, target="7"))
    with pytest.warns(UserWarning, match="left out"):
        assert len(from_lm_eval_samples(path, on_bad_rows="skip")) == 1


@pytest.mark.parametrize("tail", ["\n{", "\n[1]\n", '\n"x"\n'])
def test_a_torn_or_strange_line_is_named(tmp_path: Path, tail: str) -> None:
    with pytest.raises(DataError, match="line 2"):
        from_lm_eval_samples(written(tmp_path, line(), tail=tail))


def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, line())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(from_lm_eval_samples(path)) == 1
