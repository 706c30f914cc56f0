"""Curves in training code: what is measured, and that training does not notice."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
import torch
from fake_server import refused
from tiny import PLAIN_TEMPLATE, byte_tokenizer, tiny_model
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from mlflow_mcq.errors import DataError, JudgeUnavailable, ModelError, SettingsError
from mlflow_mcq.training import McqCallback, Probe
from mlflow_mcq.training.untouched import untouched

DATA = [
    {"id": f"q{n}", "question": f"{n}+1?", "options": ["less", "more"], "answer": "AB"[n % 2]}
    for n in range(3)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One tracking store for all of this file: making one takes seconds."""
    before = mlflow.get_tracking_uri()
    folder = tmp_path_factory.mktemp("store")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("curves", artifact_location=str(folder / "artifacts"))
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture(autouse=True)
def experiment(request: pytest.FixtureRequest) -> None:
    """Artifacts beside the store, never beside the caller."""
    if "store" in request.fixturenames:
        mlflow.set_experiment("curves")


QUICK = {"max_new_tokens": 2, "template": "{question}\n{options}\n", "orientations": "swap"}
TOKENIZER = byte_tokenizer(PLAIN_TEMPLATE, pad="</s>")


class Texts(Dataset[dict[str, torch.Tensor]]):
    """Random bytes; drawn anew at each look, so that a disturbed random state shows."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(2, 250, (8,))
        ids[0] = random.randrange(2, 250)
        ids[1] = int(np.random.randint(2, 250))
        return {"input_ids": ids, "labels": ids}


def trained(folder: Path, callbacks: list[Any], **changes: Any) -> Any:
    return trainer_of(folder, callbacks, **changes).model


def trainer_of(folder: Path, callbacks: list[Any], **changes: Any) -> Trainer:
    """A Trainer that has trained."""
    model = tiny_model(attention_dropout=0.3)
    model.train()
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=5,
        per_device_train_batch_size=2,
        learning_rate=1e-2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        **{"save_strategy": "no", **changes},
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=Texts(),
        eval_dataset=torch.utils.data.Subset(Texts(), [0]),
        callbacks=callbacks,
        processing_class=TOKENIZER,
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="plain"),
        pytest.param({"gradient_checkpointing": True}, id="checkpointing"),
    ],
)
def test_weights_are_bit_for_bit_those_without_the_callback(
    changes: dict[str, Any], tmp_path: Path, store: None
) -> None:
    with mlflow.start_run() as run:
        with_curves = trained(tmp_path, [McqCallback(DATA, 2, **QUICK)], **changes)
    without = trained(tmp_path, [], **changes)
    for (name, one), other in zip(
        with_curves.named_parameters(), without.parameters(), strict=True
    ):
        assert torch.equal(one, other), name
    history = mlflow.MlflowClient().get_metric_history
    steps = [one.step for one in history(run.info.run_id, "mcq/regex_bounded/other_rate")]
    assert steps == [0, 2, 4, 5]
    tags = mlflow.get_run(run.info.run_id).data.tags
    assert tags["mcq.curve.n_items"] == "3"
    assert tags["mcq.curve.orientations"] == "swap"


class Shown(TrainerCallback):  # type: ignore[misc]
    """Keeps what the Trainer has to choose by."""

    def __init__(self) -> None:
        self.found: list[dict[str, float]] = []

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **more: Any) -> None:
        self.found.append({"step": state.global_step, **metrics})


def test_the_trainer_chooses_its_best_weights_by_our_numbers(tmp_path: Path, store: None) -> None:
    shown, name = Shown(), "mcq/regex_naive/other_rate"
    curves = McqCallback(DATA, 4, **QUICK)
    with mlflow.start_run() as run:
        trainer = trainer_of(
            tmp_path,
            [curves, shown],
            eval_strategy="steps",
            eval_steps=2,
            save_strategy="steps",
            save_steps=2,
            load_best_model_at_end=True,
            metric_for_best_model=name,
            greater_is_better=False,
            gradient_checkpointing=True,
        )
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, name)
    curve = {one.step: one.value for one in history}
    assert [*curve] == [0, 2, 4, 5]
    chosen_from = {row["step"]: row[f"eval_{name}"] for row in shown.found}
    assert {2, 4} <= set(chosen_from)  # some releases look at the last step as well
    assert chosen_from == {step: curve[step] for step in chosen_from}
    assert trainer.state.best_metric == min(chosen_from.values())
    best = trainer.state.best_global_step
    assert curves.probe.measure(trainer.model, TOKENIZER)[name] == curve[best]
    trainer.evaluate()  # after training: no point of a curve, and no run is open
    assert f"eval_{name}" not in shown.found[-1]


def test_an_evaluation_of_the_trainer_costs_nothing_where_nobody_chooses_by_ours(
    tmp_path: Path, store: None
) -> None:
    shown = Shown()
    with mlflow.start_run() as run:
        trainer_of(
            tmp_path, [McqCallback(DATA, 4, **QUICK), shown], eval_strategy="steps", eval_steps=2
        )
    name = "mcq/regex_naive/other_rate"
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, name)
    assert [one.step for one in history] == [0, 4, 5]
    steps = {row["step"]: f"eval_{name}" in row for row in shown.found}
    assert (steps[2], steps[4]) == (False, True)  # what was measured anyway is there


def test_every_process_chooses_by_the_numbers_of_the_main_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"mcq/regex_naive/accuracy": 0.25}
    there = types.SimpleNamespace(from_main=lambda work: found)
    monkeypatch.setattr("mlflow_mcq.training.huggingface.present_ranks", lambda: there)
    state = types.SimpleNamespace(is_world_process_zero=False, global_step=2, max_steps=9)
    curves = McqCallback(DATA, 2, **QUICK)
    curves.on_train_begin(None, state, None)
    for chosen_by, expected in (
        (next(iter(found)), {"eval_mcq/regex_naive/accuracy"}),
        ("loss", set()),
    ):
        metrics: dict[str, float] = {}
        arguments = types.SimpleNamespace(metric_for_best_model=chosen_by)
        curves.on_evaluate(arguments, state, None, metrics=metrics)
        assert set(metrics) == expected


def test_a_run_is_opened_and_closed_where_none_is_active(tmp_path: Path, store: None) -> None:
    callback = McqCallback(DATA, 5, **QUICK)
    trained(tmp_path, [callback])
    assert mlflow.active_run() is None
    found = mlflow.get_run(callback.probe.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["mcq/regex_naive/accuracy"] >= 0


class Awkward(torch.nn.Module):
    """A model with everything that a measurement could leave changed."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.live = torch.nn.Dropout(), torch.nn.Dropout()
        self.gradient_checkpointing = True
        self.config = types.SimpleNamespace(use_cache=False)
        self.train()
        self.frozen.eval()


def test_every_state_is_put_back_even_after_a_fault() -> None:
    model = Awkward()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)

    def disturb() -> None:
        assert not model.gradient_checkpointing
        assert model.config.use_cache
        assert not torch.is_grad_enabled()
        model.eval()
        random.random(), np.random.rand(), torch.rand(3)
        raise RuntimeError

    with pytest.raises(RuntimeError), untouched(model):
        disturb()
    found = (random.random(), float(np.random.rand()), float(torch.rand(1)))
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    assert found == (random.random(), float(np.random.rand()), float(torch.rand(1)))
    assert [m.training for m in (model, model.frozen, model.live)] == [True, False, True]
    assert model.gradient_checkpointing
    assert model.config.use_cache is False
    assert torch.is_grad_enabled()


def test_sharded_weights_are_refused() -> None:
    """One process alone would measure, and wait for ever for the others' parts."""
    model = tiny_model()
    model.lm_head.weight.ds_id = 1
    with pytest.raises(ModelError, match="spread over the processes"):
        Probe(DATA, **QUICK).measure(model, TOKENIZER)


def test_the_model_is_measured_as_it_is_now() -> None:
    model = tiny_model()
    probe = Probe(DATA, **QUICK)
    first = probe.measure(model, TOKENIZER)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.weight[66].fill_(1.0)  # whatever is asked, one token
    second = probe.measure(model, TOKENIZER)
    assert probe.measure(model, TOKENIZER) == pytest.approx(
        second, abs=60, rel=0
    )  # seconds differ, rates do not
    same = [k for k in first if k.startswith("mcq/regex")]
    assert {k: first[k] for k in same} != {k: second.get(k) for k in same}


def test_judge_errors_are_a_curve_and_no_end(judge_server: Any, store: None) -> None:
    server = judge_server(lambda request, n: refused(400, "no"))
    judge = {"model": "m", "base_url": server.url, "max_retries": 0}
    probe = Probe(DATA, judge=judge, evaluators=["mcq_judge"], **QUICK)
    with mlflow.start_run():
        values = probe.log(tiny_model(), TOKENIZER, 7)
    assert values["mcq/judge/judge_error_rate"] == 1
    assert "mcq/judge/accuracy" not in values
    assert len(server.requests) <= 6  # each row once; no exam, no checks


def test_a_fault_costs_a_point_and_not_the_training(
    store: None, caplog: pytest.LogCaptureFixture
) -> None:
    probe = Probe(DATA, **QUICK)
    with mlflow.start_run() as run:
        assert probe.log(tiny_model(max_position_embeddings=256), None, 3) == {}
    assert "step 3 is missing" in caplog.text
    assert mlflow.get_run(run.info.run_id).data.tags["mcq.curve.error"] == "step 3: ModelError"


@pytest.mark.first_question
def test_a_judge_that_serves_nobody_is_found_before_training(judge_server: Any) -> None:
    server = judge_server(lambda request, n: refused(401, "wrong key"))
    with pytest.raises(JudgeUnavailable):
        McqCallback(DATA, judge={"model": "m", "base_url": server.url})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({"every_n_steps": 0}, SettingsError, id="no steps"),
        pytest.param({"every_n_steps": True}, SettingsError, id="a bool"),
        pytest.param({"orientation": "swap"}, SettingsError, id="misspelt"),
        pytest.param({"directory": "rows"}, SettingsError, id="a place for rows"),
        pytest.param({"data": [{"question": "?"}]}, DataError, id="no options"),
    ],
)
def test_refused_when_made(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        McqCallback(**{"data": DATA, **arguments})


def test_the_example_learns_replies_only() -> None:
    path = Path(__file__).parent.parent / "docs/examples/training_curve.py"
    spec = importlib.util.spec_from_file_location("training_curve", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.ITEMS.is_file()
    for row in example.Toy(TOKENIZER):
        learnt = row["input_ids"][row["labels"] != -100]
        assert TOKENIZER.decode(learnt, skip_special_tokens=True) == example.SAYS


# --- Lightning -------------------------------------------------------------------------


class FakeTrainer:
    """Walks a callback through training as Lightning does: two batches make a step."""

    is_global_zero = True
    global_step = 0

    def __init__(self, callback: Any, module: Any) -> None:
        self.loggers: list[Any] = []
        self._callback, self._module = callback, module

    def fit(self, n_batches: int) -> None:
        self._callback.on_train_start(self, self._module)
        for batch in range(n_batches):
            self.global_step = (batch + 1) // 2
            self._callback.on_train_batch_end(self, self._module, None, None, batch)
        self._callback.on_train_end(self, self._module)


@pytest.fixture
def lightning(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = types.ModuleType("lightning.pytorch")
    fake.Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, "lightning.pytorch", fake)
    monkeypatch.delitem(sys.modules, "mlflow_mcq.training.lightning", raising=False)
    from mlflow_mcq.training import McqLightningCallback

    yield McqLightningCallback
    sys.modules.pop("mlflow_mcq.training.lightning", None)


def test_lightning_counts_steps_and_not_batches(lightning: Any, store: None) -> None:
    callback = lightning(DATA, 2, tokenizer=TOKENIZER, **QUICK)
    with mlflow.start_run() as run:
        FakeTrainer(callback, types.SimpleNamespace(model=tiny_model())).fit(10)
    history = mlflow.MlflowClient().get_metric_history
    steps = [one.step for one in history(run.info.run_id, "mcq/regex_naive/accuracy")]
    assert steps == [0, 2, 4, 5]


def test_lightning_logs_into_the_run_of_its_logger(lightning: Any, store: None) -> None:
    run = mlflow.MlflowClient().create_run("0")
    callback = lightning(DATA, 9, tokenizer=TOKENIZER, model=lambda module: module.inner, **QUICK)
    trainer = FakeTrainer(callback, types.SimpleNamespace(inner=tiny_model()))
    trainer.loggers = [type("MLFlowLogger", (), {"run_id": run.info.run_id})()]
    trainer.fit(2)
    assert "mcq/regex_naive/accuracy" in mlflow.get_run(run.info.run_id).data.metrics


def test_without_lightning_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "mlflow_mcq.training.lightning", raising=False)
    from mlflow_mcq.training import McqLightningCallback

    with pytest.raises(SettingsError, match=r"mlflow-mcq\[lightning\]"):
        McqLightningCallback(DATA, tokenizer=TOKENIZER)
    sys.modules.pop("mlflow_mcq.training.lightning")
