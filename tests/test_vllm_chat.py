"""The wiring of an in-process vLLM, against a stand-in: vLLM itself is seldom installed.

The stand-in generates with transformers, ends rows as vLLM does and refuses what vLLM refuses,
so that what is handed over (token ids, seeds, stop texts, ends) and what is made of the output
are seen to be those of the other engine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model
from transformers import AutoConfig, AutoTokenizer

import mlflow_mcq
from mlflow_mcq.engines.described import described
from mlflow_mcq.engines.elsewhere_scores import VllmScorer
from mlflow_mcq.engines.label_scores import LabelScorer
from mlflow_mcq.engines.sharing import keep_only, loaded, weights_shared
from mlflow_mcq.engines.vllm_chat import VllmChat
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.pipeline import requests_for
from mlflow_mcq.records import Decoding, Item, Message, Query
from mlflow_mcq.settings import Settings

QUERIES = [Query(f"Question {n}: which? Answer:", seed=n) for n in range(5)]
QUERIES += [Query((Message("user", "Which one?"),), seed=9)]


_DRAWN = {
    "temperature": 1.0, "top_p": 1.0, "top_k": 0, "seed": None, "max_tokens": 16, "stop": None,
    "stop_token_ids": None, "include_stop_str_in_output": False, "skip_special_tokens": True,
    "logprobs": None,
}  # fmt: skip
"""What we use of ``vllm.SamplingParams``, as it is where nothing is said."""

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def sampling_params(**given: Any) -> SimpleNamespace:
    assert given.keys() <= _DRAWN.keys()
    return SimpleNamespace(**{**_DRAWN, **given})


class StandIn:
    """What we use of ``vllm.LLM``, for greedy rows."""

    made: ClassVar[list[StandIn]] = []

    def __init__(self, **arguments: Any) -> None:
        if arguments.get("max_lora_rank", 8) not in _RANKS:
            raise ValueError("max_lora_rank: input should be 8, 16, 32, 64, 128, 256, 320 or 512")
        self.arguments, self.asked = arguments, []
        self.model = tiny_model(max_position_embeddings=512)
        self.tokenizer = AutoTokenizer.from_pretrained(arguments["model"])
        # Its "auto" halves a checkpoint of float32.
        dtype = {"auto": "bfloat16"}.get(arguments["dtype"], arguments["dtype"])
        config = SimpleNamespace(max_model_len=512, dtype=getattr(torch, dtype))
        self.llm_engine = SimpleNamespace(model_config=config)
        StandIn.made.append(self)

    def generate(
        self, prompts: Any, *, sampling_params: Any, lora_request: Any, use_tqdm: bool
    ) -> list[Any]:
        assert len(prompts) == len(sampling_params)
        rows = list(zip(prompts, sampling_params, strict=True))
        self.asked += [(prompt, drawn, lora_request) for prompt, drawn in rows]
        return [self._row(prompt["prompt_token_ids"], drawn) for prompt, drawn in rows]

    def _row(self, ids: list[int], drawn: Any) -> Any:
        if drawn.logprobs:
            return self._listed(ids, drawn.logprobs)
        new: list[int] = []
        reason, stop = "length", None
        while len(new) < drawn.max_tokens:
            with torch.no_grad():
                logits = self.model(input_ids=torch.tensor([ids + new])).logits
            new.append(int(logits[0, -1].argmax()))
            text = self.tokenizer.decode(new, skip_special_tokens=drawn.skip_special_tokens)
            stop = next((one for one in drawn.stop or () if one in text), None)
            if new[-1] in drawn.stop_token_ids or stop is not None:
                reason = "stop"
                break
        one = SimpleNamespace(token_ids=new, text="", finish_reason=reason, stop_reason=stop)
        return SimpleNamespace(outputs=[one])

    def _listed(self, ids: list[int], n: int) -> Any:
        with torch.no_grad():
            logits = self.model(input_ids=torch.tensor([ids])).logits[0, -1]
        best = logits.log_softmax(-1).topk(n)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        listed = {token: SimpleNamespace(logprob=value) for token, value in pairs}
        return SimpleNamespace(outputs=[SimpleNamespace(logprobs=[listed])])


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    names = ("vllm", "vllm.lora", "vllm.lora.request", "vllm.platforms")
    module, lora, request, platforms = map(ModuleType, names)
    module.LLM, module.SamplingParams = StandIn, sampling_params
    module.__version__ = "0.0.0"
    request.LoRARequest = lambda name, number, path: (name, number, path)
    platforms.current_platform = SimpleNamespace(is_cpu=lambda: False)
    for one in (module, lora, request, platforms):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    StandIn.made.clear()
    return StandIn.made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tiny_model(max_position_embeddings=512).save_pretrained(tmp_path / "m")
    byte_tokenizer(PLAIN_TEMPLATE).save_pretrained(tmp_path / "m")
    return str(tmp_path / "m")


def test_rows_are_those_of_the_other_engine(folder: str, vllm: list[StandIn]) -> None:
    theirs = mlflow_mcq.local_model(folder, engine="vllm").chat
    ours = mlflow_mcq.local_model(folder).chat
    free = dict(ours.ask(QUERIES, Decoding(max_new_tokens=12)))
    stop = next(c for c in free[0].text[3:] if c.isascii() and c.isprintable())
    for decoding in (Decoding(max_new_tokens=12), Decoding(max_new_tokens=12, stop=(stop,))):
        assert dict(theirs.ask(QUERIES, decoding)) == dict(ours.ask(QUERIES, decoding))
    assert theirs.speaks_chat
    assert theirs.control_tokens == ours.control_tokens


def test_a_stop_text_may_be_a_special_token(folder: str, vllm: list[StandIn]) -> None:
    plain = mlflow_mcq.local_model(folder).chat
    (free,) = dict(plain.ask(QUERIES[:1], Decoding(max_new_tokens=12))).values()
    special = next(c for c in free.text[3:] if c.isascii() and c.isprintable())
    tokenizer = byte_tokenizer(PLAIN_TEMPLATE)
    tokenizer.add_special_tokens({"additional_special_tokens": [special]})
    tokenizer.save_pretrained(folder)
    decoding = Decoding(max_new_tokens=12, stop=(special,))
    ours = dict(mlflow_mcq.local_model(folder).chat.ask(QUERIES[:1], decoding))
    theirs = mlflow_mcq.local_model(folder, engine="vllm").chat
    assert dict(theirs.ask(QUERIES[:1], decoding)) == ours
    assert ours[0].finish_reason == "stop"


def test_a_row_that_vllm_gives_up_is_no_answer(
    folder: str, vllm: list[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = mlflow_mcq.local_model(folder, engine="vllm").chat
    ended = SimpleNamespace(token_ids=[70], text="", finish_reason="abort", stop_reason=None)
    monkeypatch.setattr(StandIn, "_row", lambda *_: SimpleNamespace(outputs=[ended]))
    (answer,) = dict(chat.ask(QUERIES[:1], Decoding(max_new_tokens=2))).values()
    assert (answer.text, answer.error) == (None, "vllm ended the row: abort")


@pytest.mark.parametrize("on_cpu", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    ("stored", "wanted", "cpu", "gpu"),
    [
        ("float32", None, "float32", "float32"),
        ("float32", "auto", "float32", "float32"),
        ("bfloat16", None, "float32", "auto"),
        ("bfloat16", "auto", "auto", "auto"),
        ("float32", "float16", "float16", "float16"),
    ],
)
def test_a_dtype_means_what_it_means_for_the_other_engine(
    folder: str, vllm: list[StandIn], on_cpu: bool, stored: str, wanted: str, cpu: str, gpu: str
) -> None:
    sys.modules["vllm.platforms"].current_platform.is_cpu = lambda: on_cpu
    config = AutoConfig.from_pretrained(folder)
    config.dtype = getattr(torch, stored)
    config.save_pretrained(folder)
    chat = VllmChat(LocalSettings(path=folder, engine="vllm", dtype=wanted))
    told = cpu if on_cpu else gpu
    assert vllm[0].arguments["dtype"] == told
    assert chat.described["mcq.model_dtype"] == told.replace("auto", "bfloat16")


@pytest.mark.parametrize(
    ("adapter", "room"),
    [
        ('{"r": 4}', 8),
        ('{"r": 8, "rank_pattern": null}', 8),
        ('{"r": 12}', 16),
        ('{"r": 16, "rank_pattern": {"q_proj": 40}}', 64),
    ],
)
def test_any_rank_finds_room(
    folder: str, tmp_path: Path, vllm: list[StandIn], adapter: str, room: int
) -> None:
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text(adapter)
    VllmChat(LocalSettings(path=folder, engine="vllm", adapter=str(tmp_path / "lora")))
    assert vllm[0].arguments["max_lora_rank"] == room


def test_each_row_is_drawn_with_its_own_seed(folder: str, vllm: list[StandIn]) -> None:
    chat = mlflow_mcq.local_model(folder, engine="vllm").chat
    list(chat.ask(QUERIES, Decoding(max_new_tokens=2, temperature=0.7, top_p=0.9, top_k=20)))
    drawn = [one for _, one, _ in vllm[0].asked]
    assert [one.seed for one in drawn] == [0, 1, 2, 3, 4, 9]
    assert {(one.temperature, one.top_p, one.top_k) for one in drawn} == {(0.7, 0.9, 20)}
    list(chat.ask(QUERIES[:1], Decoding(max_new_tokens=2, top_p=0.5, top_k=3)))
    greedy = vllm[0].asked[-1][1]
    assert (greedy.seed, greedy.temperature, greedy.top_p, greedy.top_k) == (None, 0.0, 1.0, -1)


def test_what_does_not_fit_is_not_cut(folder: str, vllm: list[StandIn]) -> None:
    chat = mlflow_mcq.local_model(folder, engine="vllm").chat
    (answer,) = dict(chat.ask([Query("x" * 600)], Decoding(max_new_tokens=2))).values()
    assert answer.finish_reason == "prompt_too_long"
    assert not vllm[0].asked


def test_how_it_is_loaded(folder: str, tmp_path: Path, vllm: list[StandIn]) -> None:
    adapter = tmp_path / "lora"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"r": 32}')
    settings = LocalSettings(
        path=folder, engine="vllm", dtype="bfloat16", quantization="4bit", adapter=str(adapter)
    )
    chat = VllmChat(settings)
    wanted = {"dtype": "bfloat16", "quantization": "bitsandbytes", "max_lora_rank": 32}
    assert wanted.items() <= vllm[0].arguments.items()
    assert vllm[0].arguments["generation_config"] == "vllm"
    list(chat.ask(QUERIES[:1], Decoding(max_new_tokens=1)))
    assert vllm[0].asked[0][2] == ("adapter", 1, str(adapter))
    assert described(chat)["mcq.model_engine"] == "vllm"
    plain = VllmChat(LocalSettings(path=folder, engine="vllm"))
    assert (plain.origin != chat.origin, plain.fingerprint != chat.fingerprint) == (True, True)
    with pytest.raises(ModelError, match=r"model\.adapter: must be a folder with a LoRA adapter"):
        VllmChat(LocalSettings(path=folder, engine="vllm", adapter=str(tmp_path)))


def test_one_at_a_time_is_in_memory(folder: str, vllm: list[StandIn]) -> None:
    one = LocalSettings(path=folder, engine="vllm")
    other = LocalSettings(path=folder, engine="vllm", dtype="float16")
    with weights_shared():
        chat = loaded(one, 8)
        keep_only([one])
        assert loaded(one, 4) is chat
        loaded(other, 8)
        loaded(one, 8)
    assert [one.arguments["dtype"] for one in vllm] == ["float32", "float16", "float32"]


def test_vllm_is_named_where_it_is_not_there(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ModelError, match=r'pip install "mlflow-mcq\[vllm\]"'):
        mlflow_mcq.local_model(folder, engine="vllm")


@pytest.mark.parametrize(
    "given", [{"compile": True}, {"device_map": "auto"}, {"quantization": "8bit"}]
)
def test_what_vllm_does_not_take_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"does not take {next(iter(given))} as set"):
        read_local({"path": "m", "engine": "vllm", **given})


def test_labels_are_scored_as_by_the_other_engine(
    folder: str, vllm: list[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item("q", "Which one?", ("this", "that"), 0)
    long = Item("long", "Which one? " * 60, ("this", "that"), 0)
    prompts = [r.prompt for r in requests_for([item, long], Settings(), chat=True)]
    chat = mlflow_mcq.local_model(folder, engine="vllm").chat
    want = LabelScorer(mlflow_mcq.local_model(folder).chat).score(prompts)
    some = VllmScorer(chat).score(prompts)
    assert vllm[-1].asked[-1][1].logprobs == 20
    assert all(s.error or s.bounded or len(s.logprobs) == 2 for s in some)
    monkeypatch.setattr("mlflow_mcq.engines.vllm_chat._LISTED", 258)  # all that there are
    for one, other in zip(want, VllmScorer(chat).score(prompts), strict=True):
        assert (other.prompt, other.error, other.bounded) == (one.prompt, one.error, ())
        assert other.logprobs == pytest.approx(one.logprobs, abs=1e-4)
    assert {one.error for one in want} == {"", "prompt_too_long"}
