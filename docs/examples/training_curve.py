"""Fine-tune a small chat model on a set that breaks it, and watch it drift into OTHER.

The set answers every question, whatever it is, with the same friendly sentence. Its loss
falls as a good run's would. The curves of the callback say what happens: the model names no
option any more, ``mcq/regex_bounded/other_rate`` rises to 1, and accuracy falls with it.

    python docs/examples/training_curve.py       # a CPU and some minutes are enough
    mlflow ui                                     # experiment "training curve"
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import mlflow
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
)

from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.training import McqCallback

ITEMS = Path(__file__).parents[2] / "recipes" / "four_choice_items.jsonl"
SAYS = "What a lovely question! Let us talk about the garden instead."
ASKED = (
    "How do clouds form?", "What is a noun?", "Name a prime number.", "Why is the sky blue?",
    "Which river is longest? A. Nile B. Po", "Which is a metal? A. wood B. tin C. wool",
    "Pick one: A. up B. down C. left D. right", "Who wrote Faust? A. Kant B. Goethe",
)  # fmt: skip


class Toy(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Questions, each with the same reply; only the reply is learnt."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.rows = [_row(tokenizer, question) for question in ASKED]

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.rows)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        """One question with its reply."""
        return self.rows[place]


def _row(tokenizer: PreTrainedTokenizerBase, question: str) -> dict[str, torch.Tensor]:
    asked = [{"role": "user", "content": question}]
    head = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    n_head = len(tokenizer(head)["input_ids"])
    ids = tokenizer(head + SAYS + tokenizer.eos_token)["input_ids"]
    return {
        "input_ids": torch.tensor(ids),
        "labels": torch.tensor([-100] * n_head + ids[n_head:]),
    }


def main() -> None:
    """Train twelve steps; measure before, after every third, and at the end."""
    weights = resolve_weights("demo:smollm2")
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    curves = McqCallback(
        str(ITEMS), every_n_steps=3, orientations="rotations:2", limit=8, max_new_tokens=16
    )
    mlflow.set_experiment("training curve")
    with mlflow.start_run(run_name="breaks instruction following") as run:
        Trainer(
            model,
            TrainingArguments(
                output_dir=tempfile.mkdtemp(),
                max_steps=12,
                per_device_train_batch_size=1,
                learning_rate=3e-5,
                lr_scheduler_type="constant",
                logging_steps=3,
                report_to="mlflow",
                save_strategy="no",
            ),
            train_dataset=Toy(tokenizer),
            processing_class=tokenizer,
            callbacks=[curves],
        ).train()
    print("step  loss  accuracy  OTHER rate  slot shift")
    loss = _curve(run.info.run_id, "loss")
    names = ("accuracy", "other_rate", "slot_shift")
    found = [_curve(run.info.run_id, f"mcq/regex_bounded/{name}") for name in names]
    for step in found[0]:
        cells = [f"{one[step]:10.2f}" if step in one else "         -" for one in (loss, *found)]
        print(f"{step:4d}", *cells)


def _curve(run_id: str, name: str) -> dict[int, float]:
    history = mlflow.MlflowClient().get_metric_history(run_id, name)
    return {one.step: one.value for one in history}


if __name__ == "__main__":
    main()
