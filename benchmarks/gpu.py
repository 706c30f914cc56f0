"""Generated tokens a second on one accelerator, beside plain `generate` and the hardware's limit.

A decoder of the shape of an 8B model with random weights: nothing is downloaded, and the
time does not depend on what the weights say. Rotated few-shot prompts of random tokens;
every row ends at a length drawn once, the same on every road, through its own end token.

    python benchmarks/gpu.py                   # one accelerator, under 8 minutes
    python benchmarks/gpu.py --tiny            # a small model, also on a CPU: does it run

``of_limit`` is the share of the time that the work would take if reading prompts ran at the
measured speed of a large matrix product, and each step of decoding read the weights, the
shared beginning and each row's own keys once at the measured bandwidth.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

SHAPE = {
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": False,
}  # fmt: skip
TINY = {
    **SHAPE, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """Rotated prompts, and how many tokens each is answered with."""

    prompts: list[list[int]]
    lengths: list[int]


def job_of(n_items: int, shared: int, n_new: int, vocabulary: int) -> Job:
    rng = random.Random(0)

    def tokens(n: int) -> list[int]:
        return [rng.randrange(5, vocabulary) for _ in range(n)]

    head, prompts, lengths = tokens(shared), [], []
    for _ in range(n_items):
        stem, options = tokens(rng.randint(32, 96)), [tokens(rng.randint(5, 14)) for _ in range(4)]
        for turn in range(4):
            shown = [*options[turn:], *options[:turn]]
            prompts.append([*head, *stem, *(token for option in shown for token in option), 7, 8])
            lengths.append(min(n_new, max(2, int(rng.lognormvariate(2.7, 0.8)))))
    return Job(prompts, lengths)


def seconds(work: Callable[[], Any], device: torch.device, times: int = 1) -> float:
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    wait()
    start = time.monotonic()
    for _ in range(times):
        work()
    wait()
    return (time.monotonic() - start) / times


def speeds(device: torch.device, kind: torch.dtype) -> tuple[float, float]:
    """Bytes a second that are read, and operations a second of a matrix product."""
    large = device.type == "cuda"
    block = torch.zeros(2**30 if large else 2**24, dtype=torch.int32, device=device)
    side = 8192 if large else 512
    one = torch.randn(side, side, device=device, dtype=kind)
    for warm in (lambda: block.sum(), lambda: one @ one):
        warm()
    reading = block.numel() * 4 / seconds(lambda: block.sum(), device, 10)
    return reading, 2 * side**3 / seconds(lambda: one @ one, device, 10)


def limit(model: Any, job: Job, n_slots: int, device: torch.device) -> float:
    """Seconds below which this hardware cannot answer the job, over the prefix tree."""
    from mlflow_mcq.engines.prefix_tree import families_of, pieces_of
    from mlflow_mcq.engines.slab import token_bytes

    reading, product = speeds(device, model.dtype)
    heads = [prompt[:-1] for prompt in job.prompts]
    shared = families_of(heads)[0].n_shared
    tree = shared + sum(piece.end - piece.begin for piece in pieces_of(sorted(heads), shared))
    n_weights = sum(weight.numel() for weight in model.parameters())
    weights = n_weights * model.dtype.itemsize
    own = sum(
        (len(prompt) - shared + length / 2) * length
        for prompt, length in zip(job.prompts, job.lengths, strict=True)
    )
    n_new = sum(job.lengths)
    steps = max(max(job.lengths), n_new // n_slots)
    kept = token_bytes(model.config, model.dtype.itemsize)
    decoding = (steps * (weights + shared * kept) + own * kept) / reading
    return 2 * n_weights * tree / product + max(decoding, 2 * n_weights * n_new / product)


def plain(model: Any, job: Job, batch: int, limit_s: float) -> tuple[dict[int, list[int]], int]:
    """Plain `generate`, the longest first; stops early where it takes too long."""
    from transformers import StoppingCriteriaList

    order = sorted(range(len(job.prompts)), key=lambda place: -len(job.prompts[place]))
    found: dict[int, list[int]] = {}
    start = time.monotonic()
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        rows = [job.prompts[place] for place in places]
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=model.device)
        mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=model.device
        )
        ends = torch.tensor([job.lengths[place] for place in places], device=model.device)
        stop = StoppingCriteriaList([lambda seen, _, w=width, e=ends, **__: seen.shape[1] - w >= e])
        with torch.no_grad():
            out = model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=int(ends.max()),
                do_sample=False, pad_token_id=0, stopping_criteria=stop,
            )[:, width:].tolist()  # fmt: skip
        found |= {p: row[: job.lengths[p]] for p, row in zip(places, out, strict=True)}
        if time.monotonic() - start > limit_s:
            break
    return found, sum(len(row) for row in found.values())


def fast(model: Any, job: Job, n_new: int) -> tuple[dict[int, list[int]], Any]:
    """The fast road; rows end where the job says, by a stop that counts."""
    from mlflow_mcq.engines.rotated import RotatedGenerator
    from mlflow_mcq.engines.work import Work
    from mlflow_mcq.records import Decoding

    lengths = {tuple(p): n for p, n in zip(job.prompts, job.lengths, strict=True)}

    class Counted(RotatedGenerator):
        def _is_over(self, row: Any, token: int) -> tuple[bool, bool]:
            return len(row.new) >= lengths[tuple(row.ids)], False

    made = Counted(model, None, Decoding(max_new_tokens=n_new), [])
    return {one.place: one.new for one in made.run([Work(p) for p in job.prompts])}, made.tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--items", type=int, default=None)
    parser.add_argument("--shared", type=int, default=None, help="tokens of the few-shot beginning")
    parser.add_argument("--new", type=int, default=64, help="most tokens of an answer")
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--limit-s", type=float, default=60.0, help="of each plain run")
    args = parser.parse_args()
    from transformers import LlamaConfig, LlamaForCausalLM

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    shape = TINY if args.tiny else SHAPE
    torch.manual_seed(0)
    torch.set_default_dtype(kind)
    with device:
        model = LlamaForCausalLM(LlamaConfig(**shape)).eval()
    torch.set_default_dtype(torch.float32)
    model.generation_config.eos_token_id = None
    n_items = args.items or (4 if args.tiny else 128)
    job = job_of(n_items, args.shared or (80 if args.tiny else 1024), args.new, shape["vocab_size"])
    fast(model, Job(job.prompts[:8], job.lengths[:8]), args.new)  # first touch of every kernel
    start = time.monotonic()
    mine, tally = fast(model, job, args.new)
    wall = time.monotonic() - start
    bound = limit(model, job, tally.slots, device)
    n_new = sum(job.lengths)
    rate = n_new / wall
    print(json.dumps({"road": "tree", "wall_s": wall, "new_per_s": rate, "of_limit": bound / wall,
                      "limit_s": bound, "slots": tally.slots, "read": tally.read,
                      "prompts": tally.prompts}), flush=True)  # fmt: skip
    best = 0.0
    for batch in args.batches:
        start = time.monotonic()
        theirs, done = plain(model, job, batch, args.limit_s)
        best = max(best, done / (time.monotonic() - start))
        equal = sum(mine[place] == row for place, row in theirs.items())
        print(json.dumps({"road": "generate", "batch": batch, "rows": len(theirs),
                          "rows_equal": equal, "new_per_s": done / (time.monotonic() - start)}),
              flush=True)  # fmt: skip
    print(json.dumps({"vs_generate": rate / best}))


if __name__ == "__main__":
    main()
