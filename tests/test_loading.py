"""How weights are loaded: adapters, dtype and the rest, and what a run says of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
import torch
import yaml
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from rank_jobs import written_recipe
from tiny import byte_tokenizer, saved, tiny_model, tiny_of

import mlflow_mcq
from mlflow_mcq.engines import loading
from mlflow_mcq.engines.described import described, forward_hooks
from mlflow_mcq.engines.label_scores import LabelScorer
from mlflow_mcq.engines.local import LocalChat
from mlflow_mcq.engines.sharing import keep_only, loaded, weights_shared
from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.local_settings import LocalSettings, read_local
from mlflow_mcq.recipe import load_recipe, run_recipe
from mlflow_mcq.records import Decoding, Item, Orientation, Prompt, Query
from mlflow_mcq.unwrap import rows_name

QUERIES = [
    Query(f"Question {n}: which is the larger of {n} and {n + 1}? Answer:") for n in range(9)
]
DECODING = Decoding(max_new_tokens=6)


def texts(chat: Any, queries: list[Query] = QUERIES) -> list[str]:
    found = dict(chat.ask(queries, DECODING))
    return [found[place].text for place in range(len(queries))]


def lora(folder: Path, seed: int) -> str:
    model = tiny_model(max_position_embeddings=512)
    config = LoraConfig(
        r=4, lora_alpha=32, target_modules=["q_proj", "v_proj"], init_lora_weights=False
    )
    torch.manual_seed(seed)  # after the model, which has a seed of its own
    get_peft_model(model, config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("base"), max_position_embeddings=512)


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("adapters")
    return lora(folder / "one", 1), lora(folder / "two", 2)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    seen: list[str] = []
    real = loading.load_weights

    @functools.wraps(real)
    def counted(path: str, *rest: Any, **more: Any) -> Any:
        seen.append(path)
        return real(path, *rest, **more)

    monkeypatch.setattr(loading, "load_weights", counted)
    return seen


# --- adapters -------------------------------------------------------------------------


def test_an_adapter_answers_as_peft_itself(base: str, adapters: tuple[str, str]) -> None:
    from peft import PeftModel

    chat = mlflow_mcq.local_model(base, adapter=adapters[0]).chat
    theirs = PeftModel.from_pretrained(tiny_model(max_position_embeddings=512), adapters[0])
    assert texts(chat) == texts(LocalChat(theirs, byte_tokenizer()))
    assert texts(chat) != texts(mlflow_mcq.local_model(base).chat)
    assert chat.road is not None
    assert chat.road.name == "tree"


def test_arms_that_differ_in_adapter_share_one_base(
    base: str, adapters: tuple[str, str], loads: list[str]
) -> None:
    names = [None, *adapters]
    apart = [texts(loaded(LocalSettings(path=base, adapter=name), 8)) for name in names]
    loads.clear()
    with weights_shared():
        chats = [loaded(LocalSettings(path=base, adapter=name), 8) for name in names]
        # In turns, and backwards: each speaks with its own adapter whoever spoke before.
        together = {place: texts(chats[place]) for place in (0, 2, 1, 0, 2)}
        again = loaded(LocalSettings(path=base, adapter=adapters[1]), 3)
    assert loads == [base]
    assert [together[place] for place in range(3)] == apart
    assert len({tuple(found) for found in apart}) == 3
    assert texts(again) == apart[2]


def test_two_that_ask_at_the_same_time_do_not_mix(base: str, adapters: tuple[str, str]) -> None:
    alone = texts(mlflow_mcq.local_model(base).chat)
    with weights_shared():
        plain = loaded(base, 2)
        adapted = loaded(LocalSettings(path=base, adapter=adapters[0]), 2)
        asked, other = plain.ask(QUERIES, DECODING), adapted.ask(QUERIES, DECODING)
        found = {}
        for (place, reply), _ in zip(asked, other, strict=True):
            found[place] = reply.text
    assert [found[place] for place in range(len(QUERIES))] == alone


def test_letters_are_scored_with_the_adapter_of_the_arm(
    base: str, adapters: tuple[str, str]
) -> None:
    item = Item("q", "Which?", ("x", "y"), gold=0)
    prompt = Prompt(item, Orientation(0, "as-is", (0, 1)), "letters", "Which? Answer:", ("A", "B"))
    with weights_shared():
        plain = loaded(base, 8)
        before = LabelScorer(plain).score([prompt])[0].logprobs
        adapted = LabelScorer(loaded(LocalSettings(path=base, adapter=adapters[0]), 8))
        assert adapted.score([prompt])[0].logprobs != before
        assert LabelScorer(plain).score([prompt])[0].logprobs == before


def test_names_of_models_hold_what_was_loaded(
    base: str, adapters: tuple[str, str], tmp_path: Path
) -> None:
    def named(**more: Any) -> tuple[str, str]:
        chat = loaded(LocalSettings(path=base, **more), 8)
        return chat.fingerprint, chat.origin

    with weights_shared():
        one, two, plain = named(adapter=adapters[0]), named(adapter=adapters[1]), named()
    assert len({one, two, plain}) == 3
    assert len({one[0], two[0], plain[0]}) == 3
    # Neither the order of loading nor sharing changes a name: rows are found again by it.
    assert (named(), named(adapter=adapters[1])) == (plain, two)
    assert named(dtype="bfloat16")[0] != plain[0]
    assert named(attn_implementation="eager")[1] != plain[1]
    assert named(device_map={"": "cpu"}) == plain
    moved = lora(tmp_path / "elsewhere", 1)
    assert named(adapter=moved)[0] == one[0]
    assert named(adapter=moved)[1] != one[1]


def test_virtual_tokens_are_an_adapter_too(base: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    get_peft_model(tiny_model(max_position_embeddings=512), config).save_pretrained(tmp_path)
    with weights_shared():
        plain = texts(loaded(base, 8))
        chat = loaded(LocalSettings(path=base, adapter=str(tmp_path)), 8)
        assert texts(chat) != plain
        assert "virtual tokens" in chat.road.reason
        assert texts(loaded(base, 8)) == plain


@pytest.mark.parametrize("kind", ["nothing there", "another base", "weights left out"])
def test_an_adapter_that_does_not_fit_is_refused(base: str, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "a"
    if kind == "another base":
        wide = tiny_of("llama", hidden_size=48)
        get_peft_model(wide, LoraConfig(target_modules=["q_proj"])).save_pretrained(folder)
    if kind == "weights left out":
        from safetensors.torch import load_file, save_file

        lora(folder, 1)
        file = folder / "adapter_model.safetensors"
        weights = load_file(file)
        save_file({k: v for k, v in weights.items() if "layers.0" in k}, file)
    with pytest.raises(ModelError, match=r"model\.adapter: cannot be loaded over these weights"):
        mlflow_mcq.local_model(base, adapter=str(folder))


def test_peft_is_named_where_it_is_not_there(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(ModelError, match=r'pip install "mlflow-mcq\[peft\]"'):
        mlflow_mcq.local_model(base, adapter="out/lora")


def test_bitsandbytes_is_named_where_it_is_not_there(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install bitsandbytes"):
        mlflow_mcq.local_model(base, quantization="4bit")


@pytest.mark.parametrize(("kind", "layer"), [("8bit", "Linear8bitLt"), ("4bit", "Linear4bit")])
def test_quantised_weights_answer(base: str, kind: Any, layer: str) -> None:
    pytest.importorskip("bitsandbytes", reason="there is none for this platform")
    chat = mlflow_mcq.local_model(base, quantization=kind).chat
    assert type(chat.model.model.layers[0].mlp.up_proj).__name__ == layer
    answers = dict(chat.ask(QUERIES, DECODING))
    assert sorted(answers) == list(range(len(QUERIES)))
    assert all(reply.error is None and reply.n_tokens for reply in answers.values())


# --- what else can be set -------------------------------------------------------------


def test_what_is_set_reaches_the_model(base: str) -> None:
    chat = mlflow_mcq.local_model(
        base, dtype=torch.bfloat16, attn_implementation="eager", device_map="cpu", compile=True
    ).chat
    assert chat.model.dtype == torch.bfloat16
    assert chat.model.config._attn_implementation == "eager"
    assert chat.model.model.layers[0].mlp._compiled_call_impl is not None
    assert described(chat) == {
        "mcq.model_dtype": "bfloat16",
        "mcq.model_attn_implementation": "eager",
        "mcq.model_device_map": "cpu",
        "mcq.model_compile": True,
    }


def test_weights_that_no_later_arm_needs_are_let_go(base: str, loads: list[str]) -> None:
    half = LocalSettings(path=base, dtype="bfloat16")
    with weights_shared():
        loaded(base, 8)
        loaded(half, 8)
        keep_only([half])
        loaded(half, 4)
        loaded(base, 8)
    assert loads == [base, base, base]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"adaptor": "x"}, 'model.adaptor.*Did you mean "adapter"', id="misspelt"),
        pytest.param({"dtype": "float8"}, "model.dtype.*'float32', 'bfloat16'", id="value"),
        pytest.param({"quantization": "2bit"}, "model.quantization.*8bit", id="bits"),
        pytest.param({"compile": "yes"}, "model.compile.*valid boolean", id="no truth by guess"),
        pytest.param({"trust_remote_code": 1}, "model.trust_remote_code", id="trust is spelt out"),
        pytest.param({"path": ""}, "model.path", id="empty path"),
    ],
)
def test_what_cannot_be_set_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_local({"path": "m", **given})


def test_a_mapping_without_a_path_says_so() -> None:
    with pytest.raises(SettingsError, match=r"model\.path: field required"):
        mlflow_mcq.evaluate({"dtype": "auto"}, [], evaluators="mcq_regex")


def test_a_model_in_memory_is_as_it_is() -> None:
    with pytest.raises(ModelError, match="dtype: says how weights are read from disk"):
        mlflow_mcq.local_model(tiny_model(), byte_tokenizer(), dtype="float16")


# --- hooks ----------------------------------------------------------------------------


def pushed(module: Any, given: Any, out: Any) -> Any:
    push = torch.linspace(-2, 2, 32)
    return (out[0] + push, *out[1:]) if isinstance(out, tuple) else out + push


def test_hooks_are_seen_and_said() -> None:
    model = tiny_model()
    chat = LocalChat(model, byte_tokenizer())
    model(input_ids=torch.tensor([[2, 3]]), output_hidden_states=True)  # transformers hangs its own
    assert any(module._forward_hooks for module in model.modules())
    assert "mcq.model_hooks" not in described(chat)
    model.model.layers[1].register_forward_hook(pushed)
    model.register_forward_pre_hook(functools.partial(print))
    assert forward_hooks(model) == ["model (print)", "model.layers.1 (pushed)"]
    assert described(chat)["mcq.model_hooks"] == "2: model (print), model.layers.1 (pushed)"


def last_only(module: Any, given: Any, out: Any) -> Any:
    states = (out[0] if isinstance(out, tuple) else out).clone()
    states[:, -1] += torch.linspace(-2, 2, 32)
    return (states, *out[1:]) if isinstance(out, tuple) else states


def test_a_hook_that_comes_later_is_checked_anew() -> None:
    model = tiny_model(max_position_embeddings=512)
    chat = LocalChat(model, byte_tokenizer(), 1)
    texts(chat)
    assert chat.road.name == "tree"
    hook = model.model.layers[0].register_forward_hook(last_only)
    steered = texts(chat)
    assert chat.road.name != "tree"
    assert steered == texts(LocalChat(model, byte_tokenizer(), 1))
    hook.remove()
    texts(chat)
    assert chat.road.name == "tree"


def test_rows_of_hooked_weights_are_not_kept(base: str) -> None:
    from mlflow_mcq.settings import Settings

    handle = mlflow_mcq.local_model(base)
    assert rows_name(handle.engine, [], Settings())
    handle.chat.model.model.layers[0].register_forward_hook(pushed)
    assert rows_name(handle.engine, [], Settings()) is None


@pytest.mark.parametrize("adapter", ["default", "other", None])
def test_which_adapter_of_a_model_in_memory_is_on(adapter: str | None) -> None:
    torch.manual_seed(0)
    config = LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    model = get_peft_model(tiny_model(), config)
    model.add_adapter("other", config)
    first = LocalChat(model, byte_tokenizer()).fingerprint
    if adapter is None:
        with model.disable_adapter():
            chat = LocalChat(model, byte_tokenizer())
            assert described(chat)["mcq.model_adapter"] == "all adapters off"
    else:
        model.set_adapter(adapter)
        chat = LocalChat(model, byte_tokenizer())
        assert described(chat)["mcq.model_adapter"] == adapter
    assert (chat.fingerprint == first) is (adapter == "default")


# --- all the way ----------------------------------------------------------------------


def test_a_recipe_of_one_base_and_two_adapters(
    base: str,
    adapters: tuple[str, str],
    loads: list[str],
    tmp_path: Path,
    store: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mlflow_mcq.report._log_pictures", lambda *_: None)  # seconds each
    path = written_recipe(tmp_path / "r", 9, base, compare=False)
    recipe = yaml.safe_load(path.read_text())
    recipe["model"] = {"path": base, "dtype": "float32"}
    recipe["arms"] = [
        {"name": "base"},
        {"name": "tuned", "grid": {"model.adapter": {"one": adapters[0], "two": adapters[1]}}},
    ]
    path.write_text(yaml.safe_dump(recipe))
    results = run_recipe(path)
    assert loads == [base]
    runs = {one.name: mlflow.get_run(one.run_id).data for one in results}
    params = {name: run.params for name, run in runs.items()}
    assert params["base"].get("mcq.model_adapter") is None
    assert params["tuned model.adapter=two"]["mcq.model_adapter"] == adapters[1]
    assert params["tuned model.adapter=one"]["mcq.model"] == f"{base} + {adapters[0]}"
    assert {run.params["mcq.model_dtype"] for run in runs.values()} == {"float32"}
    assert not any("mcq.model_hooks" in one for one in params.values())  # none but the user's
    assert len({run.tags["mcq.engine"] for run in runs.values()}) == 3
    assert all(run.tags["mcq.engine.road"].startswith("tree") for run in runs.values())


def test_a_recipe_with_a_misspelt_part_is_refused(tmp_path: Path) -> None:
    path = written_recipe(tmp_path / "r", 3, "m")
    recipe = yaml.safe_load(path.read_text())
    for model, said in [
        ({"path": "m", "revison": "x"}, 'Did you mean "revision"'),
        ({"base_url": "http://h/v1", "modle": "m"}, "modle|model"),
    ]:
        path.write_text(yaml.safe_dump({**recipe, "model": model}))
        with pytest.raises(SettingsError, match=said):
            load_recipe(path)
