"""Models that the fast road would get wrong never take it, and the reason is on record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mlflow
import pandas as pd
import pytest
import torch
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model, tiny_of

import mlflow_mcq
from mlflow_mcq.engines import roads
from mlflow_mcq.engines.gate import refusal
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.roads import disagreement
from mlflow_mcq.engines.shared_attention import Unsupported, attend
from mlflow_mcq.records import Decoding, Query, Reply

TOKENIZER = byte_tokenizer(PLAIN_TEMPLATE)
RULES = "Answer with one letter and nothing else. Here are the rules of it, in full: none. "
QUERIES = [Query(f"{RULES}{'x' * (n // 2)}{'?!'[n % 2]}") for n in range(12)]
SHORT = Decoding(max_new_tokens=6)


def asked(chat: LocalChat, queries: list[Query] = QUERIES) -> list[Reply]:
    return [reply for _, reply in sorted(chat.ask(queries, SHORT), key=lambda pair: pair[0])]


def road(chat: LocalChat) -> str:
    asked(chat)
    assert chat.road is not None
    return str(chat.road)


REFUSED = [
    pytest.param("mistral", {"sliding_window": 16}, "sliding window of 16", id="window"),
    pytest.param("cohere2", {"sliding_window": 16}, "sliding", id="window in some layers"),
    pytest.param("gemma2", {"head_dim": 8, "sliding_window": 16}, "sliding", id="soft cap"),
    pytest.param(
        "gpt_oss", {"head_dim": 8, "num_local_experts": 4, "sliding_window": 16}, "sliding",
        id="attention sinks",
    ),
    pytest.param("bloom", {}, "cannot be exchanged", id="bloom: biased by distance"),
    pytest.param("falcon", {}, "cannot be exchanged", id="falcon: attention of its own"),
    pytest.param("stablelm", {}, "check failed", id="stablelm: hands on nothing"),
    pytest.param("mamba", {"state_size": 4}, "linear_attention", id="recurrent"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "reason"), REFUSED)
def test_what_would_be_wrong_goes_another_way(kind: str, changes: Any, reason: str) -> None:
    model = tiny_of(kind, **changes)
    attention = model.config._attn_implementation
    chat = LocalChat(model, TOKENIZER, 4)
    together = asked(chat)
    assert chat.road is not None
    assert chat.road.name in ("plain", "prefix")
    assert reason in chat.road.reason
    assert model.config._attn_implementation == attention
    one_by_one = [asked(LocalChat(model, TOKENIZER), [query])[0] for query in QUERIES]
    if kind != "mamba":  # padding moves its state, on any road
        assert together == one_by_one


def test_a_window_that_is_switched_off_closes_nothing() -> None:
    model = tiny_of("qwen2", sliding_window=16, use_sliding_window=False)
    assert road(LocalChat(model, TOKENIZER)).startswith("tree")


class Plain:
    """A model of which nothing but a few values of the configuration is known."""

    def __init__(self, **config: object) -> None:
        self.config = SimpleNamespace(max_position_embeddings=64, **config)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        pytest.param({"is_encoder_decoder": True}, "an encoder", id="encoder and decoder"),
        pytest.param({"attn_logit_softcapping": 50.0}, "soft-capped", id="soft cap"),
        pytest.param({"attention_chunk_size": 8}, "chunks of 8", id="chunks"),
        pytest.param({"alibi": True}, "by distance", id="alibi"),
        pytest.param(
            {"layer_types": ["full_attention", "linear_attention"]}, "linear", id="hybrid layers"
        ),
        pytest.param({"rope_scaling": {"type": "longrope"}}, "longrope", id="old rope settings"),
    ],
)
def test_a_configuration_is_believed(config: dict[str, object], reason: str) -> None:
    assert reason in refusal(Plain(**config), 100)


@pytest.mark.parametrize("option", ["s_aux", "softcap", "sliding_window"])
def test_the_attention_refuses_what_it_would_leave_out(option: str) -> None:
    states = torch.zeros(1, 1, 1, 4)
    with pytest.raises(Unsupported, match=option):
        attend(None, states, states, states, page=object(), **{option: 1})


@pytest.mark.parametrize(
    ("longest", "refused"),
    [pytest.param(60, False, id="within"), pytest.param(70, True, id="beyond")],
)
def test_rotary_tables_that_follow_the_longest_row(longest: int, refused: bool) -> None:
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model = tiny_model(max_position_embeddings=64, rope_parameters=rope)
    assert bool(refusal(model, longest)) is refused


def test_a_replaced_generate_is_used() -> None:
    model = tiny_model(max_position_embeddings=512)
    own, calls = model.generate, []

    def generate(**options: Any) -> Any:
        calls.append(options)
        return own(**options)

    model.generate = generate
    assert "replaced" in road(LocalChat(model, TOKENIZER))
    assert calls


def test_weights_that_are_elsewhere() -> None:
    model = tiny_model()
    model.lm_head = torch.nn.Linear(32, 258, bias=False, device="meta")
    assert refusal(model, 10) == "some weights are not in memory"
    offloaded = tiny_model()
    offloaded.model.layers[0]._hf_hook = object()
    assert "Accelerate" in refusal(offloaded, 10)


def test_a_compiled_model_is_left_to_generate() -> None:
    assert "compiled" in refusal(torch.compile(tiny_model()), 10)


def test_few_rows_do_not_pay_for_a_check() -> None:
    chat = LocalChat(tiny_model(max_position_embeddings=512), TOKENIZER)
    asked(chat, QUERIES[:3])
    assert str(chat.road) == "prefix: 3 rows are too few to pay for a check"


def test_a_model_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checks, compared = [], roads.RoadChoice._compared

    def counted(self: Any, rows: list[list[int]]) -> str:
        checks.append(len(rows))
        return compared(self, rows)

    monkeypatch.setattr(roads.RoadChoice, "_compared", counted)
    chat = LocalChat(tiny_model(max_position_embeddings=512), TOKENIZER)
    assert road(chat) == road(chat) == "tree: agrees with plain generation on the rows checked"
    asked(chat, QUERIES[:3])
    assert chat.road is not None
    assert chat.road.name == "tree"
    assert checks == [3]


def test_an_attention_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow_mcq.engines import shared_attention

    monkeypatch.setattr(shared_attention, "merged", lambda one, a, other, b: (one + other) / 2)
    model = tiny_model(max_position_embeddings=512)
    chat = LocalChat(model, TOKENIZER, 4)
    got = asked(chat)
    assert chat.road is not None
    assert "standard deviations of the logits" in chat.road.reason
    monkeypatch.undo()
    assert got == asked(LocalChat(model, TOKENIZER, 4))


A, B = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("plain", "fast", "worst"),
    [
        pytest.param([A, A], [A, A], 0.0, id="equal"),
        pytest.param([A], [B], 2 / 1.527525, id="in standard deviations"),
        pytest.param([A, A], [A], 0.0, id="the fast one ended earlier"),
        pytest.param([A, A], [B, 100 * A], 2 / 1.527525, id="not beyond where tokens part"),
        pytest.param([], [], float("inf"), id="nothing to compare"),
    ],
)
def test_disagreement(plain: Any, fast: Any, worst: float) -> None:
    assert disagreement(plain, fast) == pytest.approx(worst)


def test_no_number_is_a_disagreement() -> None:
    assert not disagreement([A], [A * float("nan")]) <= 1


def test_the_road_is_on_record_in_the_run(tmp_path: Any) -> None:
    data = pd.DataFrame(
        {
            "question": ["Which metal is liquid?", "Which star is nearest?", "2 + 2?"],
            "options": [["copper", "mercury", "tin"], ["the Sun", "Sirius"], ["3", "4", "5"]],
            "answer": ["B", "A", "B"],
        }
    )
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    model = tiny_model(max_position_embeddings=2048)
    try:
        mlflow.create_experiment("roads", str(tmp_path / "artifacts"))
        mlflow.set_experiment("roads")
        with mlflow.start_run() as run:
            mlflow_mcq.evaluate(
                mlflow_mcq.local_model(model, byte_tokenizer()), data,
                evaluators="mcq_regex", max_new_tokens=4,
            )  # fmt: skip
        tags = mlflow.get_run(run.info.run_id).data.tags
    finally:
        mlflow.set_tracking_uri(before)
    assert tags["mcq.engine.road"].startswith("tree: ")
