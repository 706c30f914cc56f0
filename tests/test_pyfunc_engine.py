"""Engines: functions are matched by position, failures name their rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlflow_mcq.doors import Engine
from mlflow_mcq.engines import chat_engine
from mlflow_mcq.engines.chat_engine import ChatEngine
from mlflow_mcq.engines.pyfunc import OUTPUT_COLUMNS, CallableEngine, is_raw_transformers
from mlflow_mcq.engines.stored import StoredEngine
from mlflow_mcq.errors import ModelError
from mlflow_mcq.records import (
    Decoding,
    Generation,
    Item,
    Message,
    Orientation,
    Prompt,
    Query,
    Reply,
    Request,
)

DECODING = Decoding()


def request(name: str, *, chat: bool = False, repeat: int = 0) -> Request:
    item = Item(name, f"question {name}?", ("yes", "no"), 0)
    text = f"prompt {name}"
    content = (Message("system", "s"), Message("user", text)) if chat else text
    prompt = Prompt(item, Orientation(1, "rot1", (1, 0)), "letters", content, ("A", "B"))
    return Request(prompt, repeat)


REQUESTS = [request(name) for name in ("q1", "q2", "q3", "q4", "q5")]


def texts(engine: Engine, requests: Sequence[Request] = REQUESTS) -> list[str]:
    return [g.text for g in engine.generate(requests, DECODING)]


def told(frame: pd.DataFrame) -> list[str]:
    """The right answer to each prompt."""
    return [f"answer to {prompt}" for prompt in frame["prompt"]]


RIGHT = [f"answer to prompt q{n}" for n in range(1, 6)]


def choice(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


def as_object(text: str) -> SimpleNamespace:
    message = SimpleNamespace(content=text)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


# --- functions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(list, id="list"),
        pytest.param(tuple, id="tuple"),
        pytest.param(np.array, id="array"),
        pytest.param(lambda got: np.array(got, dtype=object), id="array of objects"),
        pytest.param(lambda got: np.array(got).reshape(-1, 1), id="array of one column"),
        pytest.param(pd.Series, id="Series"),
        pytest.param(lambda got: pd.Series(got, index=range(len(got))[::-1]), id="index backwards"),
        pytest.param(lambda got: pd.Series(got, index=[7] * len(got)), id="index all the same"),
        pytest.param(lambda got: pd.Series(got, dtype="string"), id="Series of strings"),
        pytest.param(lambda got: pd.DataFrame({"any": got}), id="DataFrame of one column"),
        pytest.param(
            lambda got: pd.DataFrame({"other": [0] * len(got), "response": got}),
            id="DataFrame with a named column",
        ),
        pytest.param(
            lambda got: pd.DataFrame({"any": got}, index=range(len(got))[::-1]),
            id="DataFrame, index backwards",
        ),
        pytest.param(lambda got: [choice(text) for text in got], id="completions as dicts"),
        pytest.param(lambda got: [as_object(text) for text in got], id="completions as objects"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_answers_are_matched_by_position(wrap, batch_size):
    engine = CallableEngine(lambda frame: wrap(told(frame)), batch_size=batch_size)
    assert texts(engine) == RIGHT


@pytest.mark.parametrize("name", OUTPUT_COLUMNS)
def test_a_named_column_is_taken(name):
    def predict(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(score=1.0, **{name: told(frame)})

    assert texts(CallableEngine(predict, input_column="prompt")) == RIGHT


def test_a_single_completion_answers_a_batch_of_one():
    engine = CallableEngine(lambda frame: choice("yes"), batch_size=1)
    assert texts(engine, REQUESTS[:1]) == ["yes"]


def test_a_function_sees_one_column_in_batches():
    seen: list[pd.DataFrame] = []

    def predict(frame: pd.DataFrame) -> list[str]:
        seen.append(frame)
        return [""] * len(frame)

    texts(CallableEngine(predict, input_column="inputs", batch_size=2))
    assert [list(frame.columns) for frame in seen] == [["inputs"]] * 3
    assert [list(frame.index) for frame in seen] == [[0, 1], [0, 1], [0]]
    assert seen[2]["inputs"].tolist() == ["prompt q5"]


def test_a_function_can_be_given_messages():
    seen: list[Any] = []

    def predict(frame: pd.DataFrame) -> list[str]:
        seen.extend(frame["prompt"])
        return [""] * len(frame)

    engine = CallableEngine(predict, messages=True)
    assert engine.speaks_chat
    texts(engine, [request("q1", chat=True), request("q2")])
    assert seen == [
        [{"role": "system", "content": "s"}, {"role": "user", "content": "prompt q1"}],
        [{"role": "user", "content": "prompt q2"}],
    ]


@pytest.mark.parametrize(
    ("got", "rule"),
    [
        pytest.param("B", "not one str", id="one text for a batch"),
        pytest.param(b"B", "not one bytes", id="bytes for a batch"),
        pytest.param(None, "not one NoneType", id="nothing"),
        pytest.param(["B"], "1 answers for 5 rows", id="too few"),
        pytest.param(["B"] * 6, "6 answers for 5 rows", id="too many"),
        pytest.param(np.array("B"), "not one ndarray", id="array without rows"),
        pytest.param(np.full((5, 2), "B"), "not one ndarray", id="array of two columns"),
        pytest.param(
            pd.DataFrame({"a": ["B"] * 5, "b": ["B"] * 5}), "2 columns", id="columns without a name"
        ),
        pytest.param(
            pd.DataFrame({"text": ["B"] * 5, "output": ["B"] * 5}), "2 columns", id="two names"
        ),
        pytest.param(["A", "B", None, "A", "B"], "returned NoneType", id="None in a row"),
        pytest.param(["A", "B", float("nan"), "A", "B"], "returned float", id="NaN in a row"),
        pytest.param(["A", "B", 2, "A", "B"], "returned int", id="number in a row"),
        pytest.param(["A", "B", b"B", "A", "B"], "returned bytes", id="bytes in a row"),
        pytest.param(["A", "B", {"choices": []}, "A", "B"], "returned dict", id="no choices"),
        pytest.param(["A", "B", choice(None), "A", "B"], "returned dict", id="null content"),
    ],
)
def test_anything_but_one_text_a_row_names_the_row(got, rule):
    with pytest.raises(ModelError, match=rule) as caught:
        texts(CallableEngine(lambda frame: got))
    named = "q3" if rule.startswith("returned") else "q1"
    assert f"'{named}" in str(caught.value)
    assert "rot1, repeat 0" in str(caught.value)


def test_one_bare_text_is_refused_for_a_single_row_too():
    with pytest.raises(ModelError, match=r"not one str for item 'q1', rot1, repeat 0"):
        texts(CallableEngine(lambda frame: "B", batch_size=1))


def test_an_exception_of_the_function_names_its_rows():
    def predict(frame: pd.DataFrame) -> list[str]:
        if "prompt q4" in list(frame["prompt"]):
            raise KeyError("column")
        return told(frame)

    generations: list[Generation] = []
    with pytest.raises(ModelError, match=r"2 rows from item 'q3'.* to item 'q4'") as caught:
        generations.extend(CallableEngine(predict, batch_size=2).generate(REQUESTS, DECODING))
    assert isinstance(caught.value.__cause__, KeyError)
    assert "one column, 'prompt'" in str(caught.value)


def test_messages_for_a_function_of_texts_are_refused():
    with pytest.raises(ModelError, match="takes texts"):
        texts(CallableEngine(told), [request("q1", chat=True)])


def test_texts_stay_raw():
    engine = CallableEngine(lambda frame: [" B\n"] * len(frame), fingerprint="f")
    (generation,) = engine.generate(REQUESTS[:1], DECODING)
    assert generation.reply == Reply(" B\n")
    assert (generation.engine, generation.key) == ("f", REQUESTS[0].key)


def transformers_class(name: str, base: type = object) -> type:
    return type(name, (base,), {"__module__": "transformers.somewhere"})


class OwnModel(transformers_class("PreTrainedModel")):  # type: ignore[misc]
    pass


@pytest.mark.parametrize(
    ("model", "raw"),
    [
        pytest.param(OwnModel(), True, id="subclass of a transformers model"),
        pytest.param(
            transformers_class("TextGenerationPipeline", transformers_class("Pipeline"))(),
            True,
            id="pipeline",
        ),
        pytest.param(type("Pipeline", (), {"__module__": "sklearn.pipeline"})(), False, id="other"),
        pytest.param(told, False, id="function"),
        pytest.param(None, False, id="none"),
    ],
)
def test_raw_transformers_objects_are_recognised(model, raw):
    assert is_raw_transformers(model) is raw


def test_the_real_classes_are_recognised():
    from transformers import LlamaForCausalLM, TextGenerationPipeline

    for kind in (LlamaForCausalLM, TextGenerationPipeline):
        assert is_raw_transformers(kind.__new__(kind))


# --- chats --------------------------------------------------------------------------


class FakeChat:
    """Answers backwards, from a function of the query."""

    fingerprint = "fake"
    deterministic = True
    speaks_chat = True

    def __init__(self, answer: Callable[[Query], Reply | None]) -> None:
        self.answer = answer
        self.queries: list[Query] = []

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        self.queries = list(queries)
        for place in reversed(range(len(queries))):
            reply = self.answer(queries[place])
            if reply is not None:
                yield place, reply


def test_replies_go_to_their_own_requests():
    chat = FakeChat(lambda query: Reply(f"answer to {query.content}"))
    generations = list(ChatEngine(chat).generate(REQUESTS, DECODING))
    assert {g.key: g.text for g in generations} == {
        r.key: text for r, text in zip(REQUESTS, RIGHT, strict=True)
    }
    assert {g.engine for g in generations} == {"fake"}


def test_each_row_has_its_own_seed():
    chat = FakeChat(lambda query: Reply(""))
    rows = [*REQUESTS, request("q1", repeat=1)]
    list(ChatEngine(chat).generate(rows, Decoding(seed=3)))
    seeds = [query.seed for query in chat.queries]
    assert seeds == [row.seed(3) for row in rows]
    assert len(set(seeds)) == len(seeds)


def test_a_failed_row_carries_its_reason_and_costs_no_other():
    def answer(query: Query) -> Reply | None:
        number = int(str(query.content)[-1])
        return [Reply("ok"), Reply(None, "429 slow down"), None][number % 3]

    got: list[Generation] = []
    engine = ChatEngine(FakeChat(answer))
    got.extend(engine.generate(REQUESTS, DECODING))
    assert len(got) == len(REQUESTS)
    errors = {g.prompt.item.id: g.reply.error for g in got}
    assert errors.pop("q3") is None
    assert set(errors.values()) == {"429 slow down", "the chat never answered"}


def test_a_model_that_never_answers_is_an_error():
    engine = ChatEngine(FakeChat(lambda query: Reply(None, "401 who are you")))
    with pytest.raises(ModelError) as caught:
        list(engine.generate(REQUESTS, DECODING))
    message = str(caught.value)
    assert "5 of 5 rows" in message
    assert "item 'q" in message
    assert "and 2 more" in message
    assert "401 who are you" in message


# --- stored answers -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "reply"),
    [
        pytest.param(" B ", Reply(" B "), id="text, raw"),
        pytest.param("", Reply(""), id="the model said nothing"),
        pytest.param(None, Reply("", finish_reason="missing"), id="None"),
        pytest.param(float("nan"), Reply("", finish_reason="missing"), id="NaN"),
        pytest.param(np.float64("nan"), Reply("", finish_reason="missing"), id="numpy's NaN"),
        pytest.param(pd.NA, Reply("", finish_reason="missing"), id="pandas' NA"),
    ],
)
def test_stored_answers_come_out_as_they_are(stored, reply):
    engine = StoredEngine({("q1", 1, 0): stored})
    (generation,) = engine.generate(REQUESTS[:1], DECODING)
    assert generation.reply == reply


@pytest.mark.parametrize(
    ("stored", "rule"),
    [
        pytest.param({}, "there is none for item 'q1', rot1, repeat 0", id="no such row"),
        pytest.param({("q1", 1, 0): 2}, "item 'q1', rot1, repeat 0 is none", id="a number"),
    ],
)
def test_what_is_no_stored_answer_names_its_row(stored, rule):
    with pytest.raises(ModelError, match=rule):
        texts(StoredEngine(stored), REQUESTS[:1])


# --- all ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(CallableEngine(told), id="function"),
        pytest.param(ChatEngine(FakeChat(lambda query: None)), id="chat"),
        pytest.param(StoredEngine({}), id="stored"),
    ],
)
def test_engines_satisfy_the_door(engine):
    assert isinstance(engine, Engine)
    assert list(engine.generate([], DECODING)) == []


AT_WORK = {"norms", "rotated", "shared_attention", "slab", "wide_head"}
"""Rooms that only loaded weights enter; everybody else's import must not pay for torch."""


def test_engines_are_light_to_import():
    folder = Path(chat_engine.__file__).parent
    files = folder.glob("*.py")
    rooms = sorted(file.stem for file in files if file.stem not in {"__init__", *AT_WORK})
    code = "import sys\n" + "".join(f"import mlflow_mcq.engines.{room}\n" for room in rooms)
    code += "print(*{'torch', 'transformers', 'openai', 'pandas', 'mlflow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
