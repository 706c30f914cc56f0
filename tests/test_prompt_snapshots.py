"""Every protocol, byte for byte: a change of any prompt changes every measured number.

``snapshots/prompts.json`` holds a digest for each protocol, way of speaking, number of
examples and language; ``snapshots/prompts.txt`` shows the English ones to a reader. After a
change that is meant: ``UPDATE_SNAPSHOTS=1 pytest tests/test_prompt_snapshots.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mlflow_mcq.prompt_settings import FewShotSettings
from mlflow_mcq.protocols import (
    PROTOCOLS,
    PROTOCOLS_FOR_ALL,
    WORDINGS,
    Protocol,
    Style,
    few_shot,
    prompt_family,
)
from mlflow_mcq.protocols import reads_of as reads
from mlflow_mcq.records import Conversation, Item, Orientation

FOLDER = Path(__file__).parent / "snapshots"
ITEM = Item("lever", "Which tool lifts\na stone {0}?", ("lever", "spoon\nB) trap", "筛子 %s"), 0)
TURNED = Orientation(1, "rot1", (1, 2, 0))
POOL = [
    Item(f"t{n}", f"Example {n}?", (f"p{n}", f"q{n}", f"r{n}"), n % 3, {"why": f"Reason {n}."})
    for n in range(6)
]
REPLY = "Stones are heavy.\n\nA lever, perhaps."


def conversations() -> Iterator[tuple[str, Conversation]]:
    """Each combination with its name."""
    for name in PROTOCOLS:
        for language in WORDINGS if "language" in reads(name) else ("en",):
            for k in (0, 2) if "few_shot" in reads(name) else (0,):
                why = "why" if "rationale" in reads(name) else None
                chosen = FewShotSettings(path="x", k=2, rationale=why)
                family = prompt_family(
                    name, Style(language=language), few_shot(POOL, chosen) if k else None
                )
                for chat in (True, False):
                    way = "chat" if chat else "plain"
                    prompt = family(ITEM, TURNED, chat=chat)
                    yield f"{name} {way} {k}-shot {language}", prompt.content
                    if isinstance(family, Protocol) and family.then is not None:
                        second = family.second(prompt, REPLY).content
                        turn = f"second turn {k}-shot" if k else "second turn"
                        yield f"{name} {way} {turn} {language}", second
                    if name in PROTOCOLS_FOR_ALL and not k:
                        asked = family(replace(ITEM, policy="all"), TURNED, chat=chat).content
                        yield f"{name} {way} all right options {language}", asked


def shown(content: Conversation) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(f"[{message.role}]\n{message.content}" for message in content)


def digest(content: Conversation) -> str:
    return hashlib.sha256(shown(content).encode()).hexdigest()[:16]


def kept(name: str, found: str) -> str:
    """The stored snapshot; written first where that is asked for."""
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / name).write_text(found, encoding="utf-8", newline="\n")
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_prompt_is_as_it_was() -> None:
    found = {name: digest(content) for name, content in conversations()}
    assert len(found) > 400
    stored = json.loads(kept("prompts.json", json.dumps(found, indent=0) + "\n"))
    changed = sorted(name for name in {*found, *stored} if found.get(name) != stored.get(name))
    assert not changed, f"{len(changed)} prompts have changed: {changed[:5]}"


def test_the_english_prompts_read_as_they_did() -> None:
    pages = [
        f"===== {name} =====\n{shown(content)}\n"
        for name, content in conversations()
        if name.endswith(" en")
    ]
    found = "\n".join(pages)
    assert found == kept("prompts.txt", found)
