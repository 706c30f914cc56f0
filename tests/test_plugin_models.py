"""What may be evaluated through MLflow: functions, pyfuncs, weights, servers, stored answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from fake_server import FakeServer, Script
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from two_items import FRAME, N_ROWS, bare_oracle, evaluate, grades_of, run_of

import mlflow_mcq

pytestmark = pytest.mark.usefixtures("shared_store")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param(["A"] * 4, "4", id="too few"),
        pytest.param(["A", "B", None, "A", "B"], "metal", id="None"),
        pytest.param(["A", "B", "A", 3, "B"], "star", id="a number"),
        pytest.param("A", "str", id="one text for all"),
    ],
)
def test_a_function_that_returns_something_else(answers: Any, said: str) -> None:
    with pytest.raises(MlflowException, match=said):
        evaluate(lambda frame: answers)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(list, id="list"),
        pytest.param(np.array, id="array"),
        pytest.param(lambda a: pd.Series(a, index=range(len(a), 0, -1)), id="series, odd index"),
        pytest.param(lambda a: pd.DataFrame({"out": a}, index=[0] * len(a)), id="frame, odd index"),
    ],
)
def test_answers_go_by_position(wrap: Callable[[list[str]], Any]) -> None:
    result = evaluate(lambda frame: wrap(bare_oracle(frame)))
    assert result.metrics["regex_bounded/accuracy"] == 1


def test_input_column_and_messages() -> None:
    seen: list[Any] = []

    def model(frame: pd.DataFrame) -> list[str]:
        seen.append(list(frame.columns))
        seen.extend(frame["chat"])
        return ["A"] * len(frame)

    evaluate(model, evaluator_config={"input_column": "chat", "input_format": "messages"})
    assert seen[0] == ["chat"]
    assert seen[1][0]["role"] == "user"
    assert "Which metal" in seen[1][0]["content"]


def test_a_raw_transformers_object_is_recognised() -> None:
    from tiny import byte_tokenizer, tiny_model
    from transformers import pipeline

    pipe = pipeline("text-generation", model=tiny_model(), tokenizer=byte_tokenizer())
    with pytest.raises(MlflowException, match=r"mlflow_mcq\.local_model"):
        evaluate(pipe)


class Oracle(mlflow.pyfunc.PythonModel):
    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> list[str]:
        return bare_oracle(model_input)


def test_logged_models_by_every_address_are_linked() -> None:
    with mlflow.start_run() as training, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.pyfunc.log_model(name="oracle", python_model=Oracle())
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    for model in (loaded, info.model_uri, f"runs:/{training.info.run_id}/oracle"):
        result = evaluate(model)
        assert result.metrics["regex_bounded/accuracy"] == 1
        run = run_of(result)
        assert run.data.metrics["regex_bounded/accuracy"] == 1
        on_model = MlflowClient().get_logged_model(info.model_id).metrics
        linked = [m for m in on_model or [] if m.run_id == result.run_id]
        means = [m for m in linked if m.key == "regex_bounded/accuracy"]
        assert len(means) == 1, "linked once, not twice"


def test_a_logged_transformers_model_runs_on_our_engine() -> None:
    from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

    model = tiny_model(max_position_embeddings=1024)
    parts = {"model": model, "tokenizer": byte_tokenizer(PLAIN_TEMPLATE)}
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.transformers.log_model(
            parts, name="tiny", task="text-generation", pip_requirements=["transformers"]
        )
    result = evaluate(info.model_uri, evaluator_config={"max_new_tokens": 5})
    rows = result.artifacts["mcq_generations_parquet"].content
    assert set(rows["finish_reason"]) <= {"eos", "length"}
    assert rows["prompt"].str.startswith("<s>[user]Which").all()
    assert not any(
        text.startswith(prompt)
        for text, prompt in zip(rows["generation"], rows["prompt"], strict=True)
    )


def test_a_model_in_memory_and_a_remote_model(
    judge_server: Callable[[Script], FakeServer],
) -> None:
    from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model

    local = mlflow_mcq.local_model(
        tiny_model(max_position_embeddings=1024), byte_tokenizer(PLAIN_TEMPLATE)
    )
    local_rows = evaluate(local, evaluator_config={"max_new_tokens": 3}).artifacts[
        "mcq_generations_parquet"
    ]
    assert (local_rows.content["n_tokens"] <= 3).all()
    server = judge_server(
        lambda request, n: bare_oracle(
            pd.DataFrame({"prompt": [request["messages"][0]["content"]]})
        )[0]
    )
    result = evaluate(mlflow_mcq.remote_model(base_url=server.url, model="m"))
    assert result.metrics["regex_bounded/accuracy"] == 1
    assert len(server.requests) == N_ROWS


def test_stored_answers_are_read_in_their_stored_order() -> None:
    data = pd.DataFrame(
        {
            "id": ["q", "q", "r"],
            "question": ["Liquid metal?"] * 2 + ["Biggest?"],
            "options": [["copper", "mercury"]] * 2 + [["sun", "moon"]],
            "answer": ["mercury", "mercury", "sun"],
            "order": [[0, 1], [1, 0], [0, 1]],
            "generation": ["B", "A", None],
        }
    )
    result = evaluate(None, data)
    grades = grades_of(result, "regex_bounded")
    assert grades["verdict"].tolist() == ["CORRECT", "CORRECT", "OTHER"]
    assert grades["gold_slot"].tolist() == [1, 0, 0]
    by_column = evaluate(None, data.rename(columns={"generation": "said"}), predictions="said")
    assert by_column.metrics["regex_bounded/accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(MlflowException, match="column with answers"):
        evaluate(None, data.drop(columns="generation"))


def test_stored_answers_carry_no_settings_of_ours() -> None:
    data = FRAME.reset_index(drop=True).assign(generation=["B", "A"])
    params = run_of(evaluate(None, data)).data.params
    assert params == {"mcq.protocol": "stored"}
    with pytest.raises(MlflowException, match="orientations, repeats: says how answers are made"):
        evaluate(None, data, evaluator_config={"repeats": 2, "orientations": "swap"})


class Chatty(mlflow.pyfunc.ChatModel):
    def predict(self, context: Any, messages: Any, params: Any = None) -> Any:
        from mlflow.types.llm import ChatChoice, ChatCompletionResponse, ChatMessage

        said = bare_oracle(pd.DataFrame({"prompt": [messages[-1].content]}))[0]
        choice = ChatChoice(message=ChatMessage(role="assistant", content=said))
        return ChatCompletionResponse(choices=[choice], model="m")


class Agent(mlflow.pyfunc.ResponsesAgent):
    def predict(self, request: Any) -> Any:
        from mlflow.types.responses import ResponsesAgentResponse

        said = bare_oracle(pd.DataFrame({"prompt": [request.input[-1].content]}))[0]
        return ResponsesAgentResponse(output=[self.create_text_output_item(text=said, id="1")])


@pytest.mark.parametrize("kind", [Chatty, Agent])
def test_chat_models_and_agents_of_mlflow(kind: Any) -> None:
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mlflow.pyfunc.log_model(name="chat", python_model=kind(), pip_requirements=[])
    assert evaluate(info.model_uri).metrics["regex_bounded/accuracy"] == 1


def test_a_function_that_returns_several_columns_says_which() -> None:
    def model(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"said": bare_oracle(frame), "text": "A"})

    assert evaluate(model, predictions="said").metrics["regex_bounded/accuracy"] == 1
    with pytest.raises(MlflowException, match="returned 2 columns"):
        evaluate(model, predictions="other")


def test_the_words_of_a_users_exception_are_shown_but_not_stored() -> None:
    def model(frame: pd.DataFrame) -> list[str]:
        raise RuntimeError("401 for key sk-canary-77")

    with mlflow.start_run() as run, pytest.raises(MlflowException, match="sk-canary-77"):
        evaluate(model)
    tags = MlflowClient().get_run(run.info.run_id).data.tags
    assert tags["mcq.error"] == "function: RuntimeError"
