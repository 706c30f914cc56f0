"""README and docs as they are written: their code blocks, and what these need to run."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scripted_arms import reading_judge

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_SERVERS = ("https://api.openai.com/v1", "http://localhost:8000/v1", "http://localhost:8001/v1")


@dataclass(frozen=True, slots=True)
class Block:
    """One code block of a page.

    Attributes:
        language: As it is marked.
        text: What stands in it.
        line: Line of the page where it begins.
        printed: The ``text`` block right after it, which is what it prints; None without one.
    """

    language: str
    text: str
    line: int
    printed: str | None = None


def _block(match: re.Match[str], text: str) -> Block:
    line = text[: match.start()].count("\n") + 1
    return Block(match[2], textwrap.dedent(match[3]), line)


def blocks_of(page: Path, language: str) -> list[Block]:
    """The blocks of one language, in order."""
    text = page.read_text(encoding="utf-8")
    found = [(match.start(), match.end(), _block(match, text)) for match in _BLOCK.finditer(text)]
    blocks = []
    for place, (_, end, block) in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        follows = after and after[2].language == "text" and not text[end : after[0]].strip()
        printed = after[2].text if after and follows else None
        blocks.append(Block(block.language, block.text, block.line, printed))
    return [block for block in blocks if block.language == language]


def pages_with(language: str) -> list[Path]:
    """The pages that hold such blocks."""
    return [page for page in PAGES if blocks_of(page, language)]


def name_of(page: Path) -> str:
    """A page's name in a test's id."""
    return str(page.relative_to(ROOT))


def on_server(code: str, url: str) -> str:
    """The code with the scripted server in place of every server that it names."""
    for server in _SERVERS:
        code = code.replace(server, url)
    return code


def answer(request: dict[str, Any], n_calls: int) -> str:
    """The evaluated model says A; the judge reads what it is shown."""
    asked = request["messages"][-1]["content"]
    if "The candidate's reply:" not in asked:
        return "A"
    read = reading_judge(request, n_calls)
    quoted = asked.split("The candidate's reply:")[1].split("==")  # mark, reply, mark
    letters = set(re.findall(r"\b[A-D]\b", quoted[2]))
    return letters.pop() if read == "OTHER" and len(letters) == 1 else read


def write_files(folder: Path) -> None:
    """The files that pages speak of, as small as can be."""
    shown = "Which metal is liquid?\nA. iron\nB. mercury"
    rows = {"Frage": ["Which metal is liquid?"], "Auswahl": ['["iron", "mercury"]']}
    pd.DataFrame({**rows, "richtig": ["B"]}).to_csv(folder / "exam.csv", index=False)
    columns = {"question": ["Which metal is liquid?"], "A": ["iron"], "B": ["mercury"]}
    frame = pd.DataFrame({**columns, "answer": ["B"], "generation": ["It is B."]})
    frame.to_csv(folder / "answers.csv", index=False)
    sample = {
        "doc_id": 0,
        "doc": {"question": "Which metal is liquid?", "options": ["iron", "mercury"]},
        "target": "B",
        "arguments": {"gen_args_0": {"arg_0": f"{shown}\nAnswer:", "arg_1": {"until": ["\n"]}}},
        "resps": [[" It is B."]],
        "filtered_resps": ["B"],
        "filter": "none",
    }
    (folder / "samples_metals.jsonl").write_text(json.dumps(sample), encoding="utf-8")
    told = {"role": "user", "content": shown.replace("A. ", "A) ").replace("B. ", "B) ")}
    said = {"role": "assistant", "content": "ANSWER: B"}
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "metals"},
        "samples": [
            {
                "id": "metal", "epoch": 1, "input": "Which metal is liquid?", "target": "B",
                "choices": ["iron", "mercury"], "messages": [told, said],
                "output": {"model": "m", "choices": [{"message": said}]},
            }
        ],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(log), encoding="utf-8")
    row = {
        "question_id": 0, "sample_id": 0, "correct_answer": "B", "llm_output": "It is B.",
        "question": "Which metal is liquid?\nA: iron\nB: mercury", "predicted_answer": "B",
    }  # fmt: skip
    (folder / "eval_results_run0.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")


def write_weights(folder: Path) -> None:
    """A model as `save_pretrained` leaves it, as small as can be."""
    from tiny import byte_tokenizer, tiny_model

    tiny_model().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
