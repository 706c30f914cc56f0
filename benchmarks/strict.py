"""Speed of the strict rule: replies a second on one core, by kind of reply, as JSON.

    python benchmarks/strict.py [--seconds 0.2]

``cold`` gives every reply an option set that was never seen before; otherwise a set
comes back, as it does when an item is shown in several orientations.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import cycle

from mlflow_mcq.graders.strict import strict_choice

Row = tuple[str, list[str]]

KINDS: dict[str, tuple[str, ...]] = {
    "bare": ("B", "c", "(A)", "D.", "(b).", "C:"),
    "wrapped": ("**B**", "`C`", '"A"', r"\boxed{D}", r"$\boxed{B}$", "【C】", "**(A)**"),
    "announced": ("Answer: B", "The answer is C.", "**Answer:** (A)", "Option D", "答案：B"),
    "label_and_text": ("B) iron {n}", "C. mercury {n}", "(A) copper {n}.", "**D) tin {n}**"),
    "text": ("mercury {n}", "Iron {n}.", "The answer is tin {n}."),
    "prose": (
        "I think it is mercury.",
        "B, because it is heavy.",
        "I'm sorry, I can't help with that.",
        "None of these.",
        "Because it stays liquid, so C",
    ),
    "foreign": (
        "Die Antwort ist C.",
        "La respuesta es B",
        "Ответ: A",
        "答えはBです",
        "정답은 D입니다",
    ),
    "conflict": ("B) tin {n}", "A. mercury {n}"),
}
SHARE = {
    "bare": 40, "wrapped": 12, "announced": 14, "label_and_text": 16, "text": 6, "prose": 8,
    "foreign": 2, "conflict": 2,
}  # fmt: skip
"""Of a hundred short replies; chat models mostly answer with a label."""


def rows(kind: str, n_sets: int) -> list[Row]:
    """Replies of one kind over ``n_sets`` option sets."""
    templates = KINDS[kind]
    made = []
    for n in range(n_sets):
        options = [f"{metal} {n}" for metal in ("copper", "iron", "mercury", "tin")]
        made.append((templates[n % len(templates)].replace("{n}", str(n)), options))
    return made


def mixed(n_sets: int) -> list[Row]:
    """Replies of all kinds in the shares above."""
    pools: dict[str, Iterator[Row]] = {kind: cycle(rows(kind, n_sets)) for kind in KINDS}
    order = [kind for kind, share in SHARE.items() for _ in range(share)]
    order = [order[(i * 37) % len(order)] for i in range(len(order))]
    return [next(pools[kind]) for _, kind in zip(range(max(n_sets, 100)), cycle(order))]


def rate(work: list[Row], seconds: float) -> int:
    """Replies a second over the rows, again and again for about this long."""
    n = 0
    start = time.process_time()
    while (spent := time.process_time() - start) < seconds:
        for reply, options in work:
            strict_choice(reply, options)
        n += len(work)
    return round(n / spent)


def once(work: list[Row]) -> int:
    """Replies a second over the rows, each read once."""
    start = time.process_time()
    for reply, options in work:
        strict_choice(reply, options)
    return round(len(work) / (time.process_time() - start))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    seconds = parser.parse_args().seconds
    speeds = {kind: rate(rows(kind, 60), seconds) for kind in KINDS}
    speeds["mix"] = rate(mixed(100), 2 * seconds)
    speeds["mix_cold"] = once(mixed(20_000)[:20_000])
    speeds["label_and_text_cold"] = once(rows("label_and_text", 20_000))
    print(json.dumps({"unit": "replies/s", "speed": speeds}, indent=1))


if __name__ == "__main__":
    main()
