"""Seconds that rotated prompts take: this package, plain `generate`, and lm-eval's hf backend.

SmolLM2-135M-Instruct in float32 on one thread, greedy, the same prompts everywhere, in one
run and in turn, so that a busy machine is busy for all of them. lm-eval is installed from
PyPI into an environment of its own (``--environment``) and runs there as a process beside
this one; it and plain `generate` get the batch size that was best for them on a part of the
prompts. Outputs are compared token by token.

    python benchmarks/generation.py --json              # half an hour or more on one core
    python benchmarks/generation.py --items 50 --sets few_shot --against lm_eval --json

``vs_lm_eval`` and ``vs_generate`` say how many times the time of this package the others
take, in processor time and in wall time; ``check_s`` is what the first call pays for its
comparison with plain generation, and is not in the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LM_EVAL = "0.4.13"
SHOTS = {"few_shot": 3, "eight_shot": 8, "zero_shot": 0}
NEW_TOKENS = 64
OTHERS = ["lm_eval", "generate"]
Tokens = list[list[int]]

# --- the work -------------------------------------------------------------------------

SUBJECTS = ("a glass of water", "the moon", "a copper wire", "an old bicycle", "the river",
            "a loaf of bread", "a sailing boat", "the kitchen clock", "a violin", "a greenhouse",
            "an oak tree", "the town library")  # fmt: skip
ACTS = ("left in the sun for a whole afternoon", "carried up a high mountain",
        "put into a cold cellar in winter", "cut into two equal halves",
        "observed for a month by a patient child", "sold at the market on a Saturday",
        "compared with one of twice its size", "kept in a dark and closed box")  # fmt: skip
CLAIMS = ("It gets warmer and slowly loses water to the air", "Nothing about it changes at all",
          "It becomes lighter because the pressure falls", "Its colour turns from red to blue",
          "It grows by the width of a finger", "Two people can share it without a quarrel",
          "It makes a sound that only dogs can hear", "It is worth more than it was before",
          "Its shape stays the same but its mass is halved", "It breaks along the oldest part",
          "The heat flows from the warm side to the cold one",
          "It becomes brittle and has to be handled with care")  # fmt: skip


def question(rng: random.Random) -> tuple[str, list[str]]:
    """A question of one or two sentences and four options."""
    stem = f"What happens to {rng.choice(SUBJECTS)} that is {rng.choice(ACTS)}"
    if rng.random() < 0.5:
        stem += f", when {rng.choice(SUBJECTS)} is {rng.choice(ACTS)} at the same time"
    return stem + "?", rng.sample(CLAIMS, 4)


def page(stem: str, options: list[str]) -> str:
    lines = [f"{letter}) {text}" for letter, text in zip("ABCD", options, strict=True)]
    return "\n".join([f"Question: {stem}", *lines, "Name the best option and say why."])


def prompts_of(tokenizer: Any, n_items: int, shots: int, seed: int) -> list[str]:
    """Every item in its four rotations, through the model's chat template."""
    rng = random.Random(seed)
    head = [{"role": "system", "content": "You answer questions about everyday things briefly."}]
    for _ in range(shots):
        stem, options = question(rng)
        gold = rng.randrange(4)
        reply = f"{'ABCD'[gold]}) {options[gold]}, since this is what {stem[13:-1]} would show."
        head += [
            {"role": "user", "content": page(stem, options)},
            {"role": "assistant", "content": reply},
        ]
    sent = []
    for _ in range(n_items):
        stem, options = question(rng)
        for turn in range(4):
            shown = [*options[turn:], *options[:turn]]
            messages = [*head, {"role": "user", "content": page(stem, shown)}]
            sent.append(
                tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            )
    return sent


# --- lm-eval, in a process of its own ---------------------------------------------------


def serve(folder: str) -> None:
    """Answer one JSON line with another; runs inside lm-eval's environment."""
    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    torch.set_num_threads(1)
    out, sys.stdout = sys.stdout, sys.stderr  # lm-eval prints where it likes

    class Watched(HFLM):  # type: ignore[misc]
        seen: dict[tuple[int, ...], list[int]]

        def _model_generate(self, context: Any, *args: Any, **options: Any) -> Any:
            made = super()._model_generate(context, *args, **options)
            mask = options["attention_mask"]
            for row, kept, full in zip(context.tolist(), mask.tolist(), made.tolist(), strict=True):
                ids = tuple(token for token, real in zip(row, kept, strict=True) if real)
                self.seen[ids] = full[len(row) :]
            return made

    model = Watched(pretrained=folder, dtype="float32", device="cpu", batch_size=1)
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        options = {"until": [], "max_gen_toks": NEW_TOKENS, "do_sample": False, "temperature": 0.0}
        requests = [
            Instance("generate_until", {}, (prompt, dict(options)), place)
            for place, prompt in enumerate(asked["prompts"])
        ]
        model.batch_size_per_gpu, model.seen = asked["batch"], {}
        wall, cpu = time.monotonic(), time.process_time()
        model.generate_until(requests, disable_tqdm=True)
        spent = {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}
        rows = [[list(ids), new] for ids, new in model.seen.items()]
        print(json.dumps({**spent, "rows": rows}), file=out, flush=True)


class LmEval:
    """lm-eval's hf backend as a process that takes prompts and gives tokens."""

    def __init__(self, environment: Path, folder: str) -> None:
        python = environment / "bin" / "python"
        if not python.exists():
            self._install(environment, python)
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).resolve()), "--serve", folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        self._read()

    @staticmethod
    def _install(environment: Path, python: Path) -> None:
        import torch
        import transformers

        # The same releases as here: the comparison is of methods, not of versions.
        pinned = f"torch=={torch.__version__.split('+')[0]}"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"lm-eval[hf]=={LM_EVAL}", pinned,
             f"transformers=={transformers.__version__}"],
            check=True, stdout=sys.stderr,
        )  # fmt: skip

    def __call__(self, prompts: list[str], batch: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(
            json.dumps({"prompts": prompts, "batch": batch}), file=self._process.stdin, flush=True
        )
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


# --- the roads ------------------------------------------------------------------------


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.monotonic(), time.process_time()
    result = work()
    return result, {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}


def generated(chat: Any, ids: Tokens, batch: int) -> Tokens:
    """Plain `generate`, prompts of like length together."""
    import torch

    pad = chat.tokenizer.pad_token_id or 0
    order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
    out: Tokens = [[] for _ in ids]
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        rows, mask = chat.padded([ids[place] for place in places], pad)
        with torch.no_grad():
            new = chat.model.generate(
                input_ids=rows, attention_mask=mask, max_new_tokens=NEW_TOKENS,
                do_sample=False, pad_token_id=pad,
            )[:, rows.shape[1] :].tolist()  # fmt: skip
        for place, row in zip(places, new, strict=True):
            out[place] = row
    return out


def ours(chat: Any, prompts: list[str]) -> Tokens:
    from mlflow_mcq.records import Decoding, Query

    queries = [Query(prompt) for prompt in prompts]
    got = dict(chat.ask(queries, Decoding(max_new_tokens=NEW_TOKENS)))
    return [list(got[place].token_ids) for place in range(len(prompts))]


def cut(rows: Tokens, eos: tuple[int, ...]) -> Tokens:
    """Rows up to their end: what follows is padding."""
    ends = [next((i for i, token in enumerate(row) if token in eos), len(row)) for row in rows]
    return [row[:end] for row, end in zip(rows, ends, strict=True)]


def equal(one: Tokens, other: Tokens) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def best_batch(sizes: list[int], seconds: Callable[[int], float]) -> tuple[int, dict[str, float]]:
    if len(sizes) == 1:
        return sizes[0], {}
    tried = {size: seconds(size) for size in sizes}
    return min(tried, key=lambda size: tried[size]), {str(k): round(v, 2) for k, v in tried.items()}


def measured(chat: Any, lm_eval: LmEval | None, prompts: list[str], args: Any) -> dict[str, Any]:
    from mlflow_mcq.engines.decoding import eos_ids

    eos = eos_ids(chat.model, chat.tokenizer)
    ids = [list(chat.tokenizer(prompt)["input_ids"]) for prompt in prompts]
    some = slice(0, args.tuning)
    found: dict[str, Any] = {"n_prompts": len(ids), "prompt_tokens": sum(map(len, ids))}
    if "generate" in args.against:
        found["generate_batch"], found["generate_tried"] = best_batch(
            args.batches, lambda size: timed(lambda: generated(chat, ids[some], size))[1]["cpu"]
        )
    if lm_eval is not None:
        found["lm_eval_batch"], found["lm_eval_tried"] = best_batch(
            args.batches, lambda size: float(lm_eval(prompts[some], size)["cpu"])
        )
    rounds: list[dict[str, dict[str, float]]] = []
    for _ in range(args.rounds):
        mine, spent = timed(lambda: ours(chat, prompts))
        times = {"ours": spent}
        if lm_eval is not None:
            theirs = lm_eval(prompts, found["lm_eval_batch"])
            times["lm_eval"] = {key: theirs[key] for key in ("cpu", "wall")}
            seen = {tuple(row): new for row, new in theirs["rows"]}
            found["equal_to_lm_eval"] = equal(mine, cut([seen[tuple(row)] for row in ids], eos))
        if "generate" in args.against:
            size = found["generate_batch"]
            plain, times["generate"] = timed(lambda size=size: generated(chat, ids, size))
            found["equal_to_generate"] = equal(mine, cut(plain, eos))
        rounds.append(times)
    found |= {"new_tokens": sum(map(len, mine)), "road": str(chat.road), "seconds": rounds}
    for other in OTHERS:
        if other in rounds[0]:
            ratios = {
                kind: sorted(r[other][kind] / r["ours"][kind] for r in rounds)
                for kind in ("cpu", "wall")
            }
            found[f"vs_{other}"] = {
                kind: round(ratio[len(ratio) // 2], 2) for kind, ratio in ratios.items()
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--items", type=int, default=20, help="items of each set, four prompts each"
    )
    parser.add_argument("--sets", nargs="+", choices=list(SHOTS), default=list(SHOTS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--batches", type=int, nargs="+", default=[8], help="tried for the others")
    parser.add_argument("--tuning", type=int, default=8, help="prompts on which they are tried")
    parser.add_argument("--against", nargs="*", default=OTHERS, choices=OTHERS)
    parser.add_argument("--environment", type=Path, default=None, help="of lm-eval")
    parser.add_argument("--model", default="demo:smollm2")
    parser.add_argument("--json", action="store_true", help="nothing but JSON")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve)
    import torch

    from mlflow_mcq.cache_home import cache_home
    from mlflow_mcq.engines.demo import resolve_weights
    from mlflow_mcq.engines.local import load_local

    torch.set_num_threads(1)
    folder = resolve_weights(args.model)
    chat = load_local(folder)
    environment = args.environment or cache_home() / f"lm-eval-{LM_EVAL}"
    lm_eval = LmEval(environment, folder) if "lm_eval" in args.against else None
    result: dict[str, Any] = {"torch": torch.__version__, "unit": "s"}
    for name in args.sets:
        prompts = prompts_of(chat.tokenizer, args.items, SHOTS[name], seed=7)
        # The check of the first call, and everybody's first touch of the weights.
        _, spent = timed(lambda some=prompts[:8]: ours(chat, some))
        _, again = timed(lambda some=prompts[:8]: ours(chat, some))
        result[name] = measured(chat, lm_eval, prompts, args)
        result[name]["check_s"] = round(spent["cpu"] - again["cpu"], 2)
        if not args.json:
            print(name, json.dumps(result[name], indent=1), flush=True)
    if lm_eval is not None:
        lm_eval.close()
    if args.json:
        print(json.dumps(result, indent=1))
    return None


if __name__ == "__main__":
    main()
