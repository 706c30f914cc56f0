"""Seconds that reading answers by embedding takes, beside encoding row by row.

Made-up answers to made-up questions, each question in four rotations: some name an option
in a few words, most explain first. Row by row means what a plain script does: for each
row encode its whole reply and its options. Processor time, one thread, in one run; loading
the encoder is in neither.

    python benchmarks/similarity.py --rows 1000 --json

``vs_row_by_row`` says how many times our time the plain way takes, ``vs_cached`` how many
times it the same rows take once their vectors are on disk.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from typing import Any

from generation import ACTS, CLAIMS, SUBJECTS, question

from mlflow_mcq.engines.embedder import SentenceEmbedder
from mlflow_mcq.graders import SimilarityGrader
from mlflow_mcq.orientations import plan_for
from mlflow_mcq.protocols import PROTOCOLS
from mlflow_mcq.records import Generation, Item, Reply


def option(rng: random.Random) -> str:
    return f"{rng.choice(CLAIMS)}, unlike {rng.choice(SUBJECTS)} {rng.choice(ACTS)}"


def reply(rng: random.Random, item: Item) -> str:
    """An answer of a chat model: short, or after some sentences of thought."""
    text = rng.choice(item.options)
    said = f"It is this: {text.lower().replace('it ', 'that ')}"
    if rng.random() < 0.3:
        return said
    thoughts = [f"{rng.choice(CLAIMS)}, as one sees when it is {rng.choice(ACTS)}."]
    thoughts += [f"Think of {rng.choice(SUBJECTS)}: {rng.choice(CLAIMS).lower()}." for _ in "123"]
    return " ".join([*thoughts, f"So the answer is: {said}."])


def generations(n_rows: int) -> list[Generation]:
    rng = random.Random(11)
    made: list[Generation] = []
    for n in range(n_rows // 4):
        item = Item(
            str(n), question(rng)[0], tuple(option(rng) for _ in range(4)), rng.randrange(4)
        )
        for orientation in plan_for(item, "rotations"):
            prompt = PROTOCOLS["dashes"](item, orientation, chat=False)
            made.append(Generation(prompt, 0, Reply(reply(rng, item))))
    return made


def spent(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def row_by_row(model: Any, rows: list[Generation]) -> None:
    for row in rows:
        texts = [row.text, *row.prompt.item.options]
        for text in texts:
            model.encode([text], normalize_embeddings=True, show_progress_bar=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--encoder", default="demo:minilm")
    parser.add_argument("--json", action="store_true", help="nothing but JSON")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    rows = generations(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        encoder = SentenceEmbedder(args.encoder, cache_dir=folder)
        encoder.fingerprint  # noqa: B018  loads the weights
        ours = spent(lambda: list(SimilarityGrader(encoder).grade(rows)))
        again = SentenceEmbedder(args.encoder, cache_dir=folder)
        again.fingerprint  # noqa: B018
        cached = spent(lambda: list(SimilarityGrader(again).grade(rows)))
        plain = spent(lambda: row_by_row(encoder._loaded(), rows))
    found = {
        "unit": "cpu s",
        "n_rows": len(rows),
        "n_texts_encoded": encoder.n_encoded,
        "seconds": {"ours": ours, "cached": cached, "row_by_row": plain},
        "seconds_a_row": ours / len(rows),
        "vs_row_by_row": round(plain / ours, 2),
        "vs_cached": round(ours / cached, 2),
    }
    print(json.dumps(found, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
