"""What three harnesses report of the same answers, and where they differ, row by row.

One small model, served on the loopback interface and decoded greedily, answers each item
once. Twinkle Eval 2.10 asks it (letters, its method ``pattern``); lm-evaluation-harness
0.4.13 sends the very same messages and reads the very same answers with the two filters of
its generative MMLU (``strict-match``, ``flexible-extract``); this package reads what Twinkle
stored. Both are installed from PyPI, each into an environment of its own. So whatever
differs is the reading.

    python benchmarks/side_by_side.py
    python benchmarks/side_by_side.py --limit 20 --judge-model my-judge --judge-url http://...

Without a judge this package says which rows no rule settles, and nothing about them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NEW_TOKENS = 48
SYSTEM = "Answer the multiple-choice question."
PACKAGES = {"twinkle": "twinkle-eval==2.10.0", "lm-eval": "lm-eval[api]==0.4.13"}

# As lm-eval ships it for MMLU with generation, over our own items.
TASK = """
task: side_by_side
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{['(A)', '(B)', '(C)', '(D)'][answer]}}"
filter_list:
  - name: strict-match
    filter: [{function: take_first}]
  - name: flexible-extract
    filter:
      - function: multi_choice_regex
        group_select: 0
        regex_pattern: "(\\\\([A-Z]\\\\))"
        ignore_case: true
        ignore_punctuation: true
      - function: take_first
generation_kwargs: {until: [], max_gen_toks: NEW_TOKENS, do_sample: false, temperature: 0.0}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


class Model:
    """The model behind a door that both harnesses can ask; equal questions, equal answers."""

    def __init__(self, name: str) -> None:
        import mlflow_mcq

        self._chat = mlflow_mcq.local_model(name).chat
        self._lock = threading.Lock()
        self.answers: dict[str, str] = {}

    def __call__(self, messages: list[dict[str, str]]) -> str:
        from mlflow_mcq.records import Decoding, Message, Query

        key = json.dumps(messages, ensure_ascii=False)
        with self._lock:
            if key not in self.answers:
                content = tuple(Message(one["role"], one["content"]) for one in messages)
                decoding = Decoding(max_new_tokens=NEW_TOKENS)
                [(_, reply)] = self._chat.ask([Query(content)], decoding)
                self.answers[key] = reply.text or ""
            return self.answers[key]


@contextmanager
def served(model: Model) -> Iterator[str]:
    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = {"role": "assistant", "content": model(asked["messages"])}
            body = json.dumps(
                {
                    "id": "x", "object": "chat.completion", "created": 0, "model": asked["model"],
                    "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def environment(name: str, folder: Path) -> Path:
    """The interpreter of a harness, installed at first use."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        command = [str(python), "-m", "pip", "install", "-q", PACKAGES[name]]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def run(command: list[str], folder: Path) -> None:
    clean = {**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def ask_twinkle(python: Path, url: str, items: list[dict[str, Any]], folder: Path) -> Any:
    """Twinkle's verdicts, and the table of answers that we read from its file."""
    import yaml

    import mlflow_mcq

    (folder / "data").mkdir()
    rows = [
        {
            "question": item["question"],
            **dict(zip("ABCD", item["options"], strict=True)),
            "answer": "ABCD"[item["answer"]],
        }
        for item in items
    ]
    write(folder / "data" / "items.jsonl", rows)
    config = {
        "llm_api": {"base_url": url, "api_key": "none", "disable_ssl_verify": False,
                    "api_rate_limit": -1, "max_retries": 1, "timeout": 600},
        "model": {"name": "small", "temperature": 0.0, "top_p": 1.0, "max_tokens": NEW_TOKENS,
                  "frequency_penalty": 0.0, "presence_penalty": 0.0, "extra_body": None},
        "evaluation": {"dataset_paths": ["data/"], "evaluation_method": "pattern",
                       "system_prompt": {"zh": SYSTEM, "en": SYSTEM},
                       "datasets_prompt_map": {"data/": "en"},
                       "shuffle_options": False, "repeat_runs": 1},
        "logging": {"level": "ERROR"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    run([str(python.parent / "twinkle-eval"), "--config", "config.yaml"], folder)
    [stored] = (folder / "results").glob("eval_results_*.jsonl")
    lines = [json.loads(line) for line in stored.read_text(encoding="utf-8").splitlines()]
    table = mlflow_mcq.from_twinkle(stored)
    return lines, table


def ask_lm_eval(python: Path, url: str, docs: list[dict[str, Any]], folder: Path) -> Any:
    """lm-eval's readings: filter -> row -> (what it took, whether it called it right)."""
    write(folder / "docs.jsonl", docs)
    text = TASK.replace("DATA", str(folder / "docs.jsonl")).replace("NEW_TOKENS", str(NEW_TOKENS))
    (folder / "tasks").mkdir()
    (folder / "tasks" / "side_by_side.yaml").write_text(text, encoding="utf-8")
    run(
        [str(python), "-m", "lm_eval", "--model", "local-chat-completions",
         "--model_args", f"model=small,base_url={url}/chat/completions,num_concurrent=1,"
         f"tokenizer_backend=None,eos_string=<|im_end|>",
         "--tasks", "side_by_side", "--include_path", "tasks", "--apply_chat_template",
         "--system_instruction", SYSTEM, "--log_samples", "--output_path", "out"],
        folder,
    )  # fmt: skip
    [stored] = (folder / "out").rglob("samples_*.jsonl")
    read: dict[str, dict[int, tuple[str, bool]]] = {}
    for line in stored.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        taken = str(row["filtered_resps"][0])
        by_row = read.setdefault(row["filter"], {})
        by_row[int(row["doc"]["row"])] = (taken, bool(row["exact_match"]))
    return read


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ours(table: Any, judge: dict[str, str] | None, folder: Path) -> dict[str, dict[str, Any]]:
    """Our readings: grader -> item -> (letter taken, verdict, reason)."""
    import mlflow
    import pandas as pd

    import mlflow_mcq
    from mlflow_mcq.graders import read_strict

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("side by side")
    names = ["mcq_judge"] if judge else ["mcq_regex"]
    result = mlflow_mcq.evaluate(None, table, judge, evaluators=names)
    path = mlflow.MlflowClient().download_artifacts(result.run_id, "mcq_grades.parquet")
    read: dict[str, dict[str, Any]] = {"strict": {}}
    for row in pd.read_parquet(path).itertuples():
        taken = "-" if pd.isna(row.choice) else "ABCD"[int(row.slot)]
        read.setdefault(row.grader, {})[row.item_id] = (taken, row.verdict, row.reason)
    for row in table.itertuples():
        found = read_strict(row.generation, row.options)
        taken = "-" if found.slot is None else "ABCD"[found.slot]
        read["strict"][str(row.id)] = (taken, None, "left to the judge" if taken == "-" else "")
    return read


def reason(text: str, options: list[str], taken: set[str]) -> str:
    """Why one answer is read in several ways, in words."""
    named = [letter for letter, option in zip("ABCD", options, strict=True)
             if option.casefold() in text.casefold()]  # fmt: skip
    alone = sorted(set(re.findall(r"(?<![^\W_])[A-D](?![^\W_])", text)))
    parts = []
    if len(alone) > 1 or len(named) > 1:
        parts.append(f"several are named: letters {alone}, texts {named}")
    elif alone and named and alone != named:
        parts.append(f"letter {alone[0]} stands beside the text of {named[0]}")
    elif not alone and not named:
        parts.append("no option is named")
    elif not alone:
        parts.append(f"only the text of {named[0]} stands there")
    stray = sorted(taken - {"-"} - set(alone) - set(named))
    if stray:
        parts.append(f"{stray[0]} was read out of a word or bracket")
    return "; ".join(parts) or "one letter, with words around it"


def compared(args: argparse.Namespace) -> dict[str, Any]:
    items = [
        json.loads(line)
        for line in (ROOT / "recipes" / "four_choice_items.jsonl").read_text("utf-8").splitlines()
    ][: args.limit]
    home = args.environments or Path.home() / ".cache" / "mlflow_mcq" / "harnesses"
    judge = {"model": args.judge_model, "base_url": args.judge_url} if args.judge_model else None
    model = Model(args.model)
    with tempfile.TemporaryDirectory() as name, served(model) as url:
        folder = Path(name)
        lines, table = ask_twinkle(environment("twinkle", home), url, items, folder)
        asked = {key: json.loads(key)[-1]["content"] for key in model.answers}
        docs = []
        for row, item in enumerate(items):
            [prompt] = [text for text in asked.values() if item["question"] in text]
            docs.append({"row": row, "prompt": prompt, "choices": item["options"],
                         "answer": item["answer"]})  # fmt: skip
        n_asked = len(model.answers)
        theirs = ask_lm_eval(environment("lm-eval", home), url, docs, folder)
        if len(model.answers) != n_asked:
            raise SystemExit("lm-eval sent other messages than Twinkle: nothing is comparable")
        mine = ours(table, judge, folder)
    return merged(items, lines, table, theirs, mine)


def merged(items: Any, lines: Any, table: Any, theirs: Any, mine: Any) -> dict[str, Any]:
    by_question = {row.question: row for row in table.itertuples()}
    pattern = {line["question"].partition("\n")[0]: line for line in lines}
    rows = []
    for number, item in enumerate(items):
        [stored] = [row for text, row in by_question.items() if item["question"] in text]
        [line] = [one for text, one in pattern.items() if item["question"] in text]
        read = {"twinkle pattern": letter_of(line["predicted_answer"])}
        for name, rows_of in theirs.items():
            read[f"lm-eval {name}"] = letter_of(rows_of[number][0])
        read |= {name: by_id[str(stored.id)][0] for name, by_id in mine.items()}
        why = reason(stored.generation, item["options"], set(read.values()))
        rows.append({
            "item": item["id"], "gold": "ABCD"[item["answer"]], "answer": stored.generation,
            "read": read, "differ": len(set(read.values())) > 1, "reason": why,
        })  # fmt: skip
    names = list(rows[0]["read"])
    scores = {name: sum(r["read"][name] == r["gold"] for r in rows) / len(rows) for name in names}
    silent = {name: sum(r["read"][name] == "-" for r in rows) / len(rows) for name in names}
    return {"accuracy": scores, "nothing read": silent, "n_items": len(rows), "rows": rows}


def letter_of(taken: Any) -> str:
    """The letter that a harness took; ``-`` where what it took is no letter of an option."""
    found = re.fullmatch(r"\(?([A-D])\)?\.?", str(taken or "").strip())
    return found[1] if found else "-"


def page(args: argparse.Namespace) -> str:
    found = compared(args)
    lines = [f"{found['n_items']} items, one answer each", ""]
    for name, score in found["accuracy"].items():
        lines.append(
            f"{name:<26}accuracy {score:.3f}   nothing read {found['nothing read'][name]:.3f}"
        )
    for row in found["rows"]:
        if row["differ"]:
            lines += ["", f"{row['item']} (gold {row['gold']}): {row['answer']!r}"]
            lines += [f"    {name:<24}{taken}" for name, taken in row["read"].items()]
            lines.append(f"    {row['reason']}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="demo:smollm2")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--environments", type=Path, default=None, help="of the harnesses")
    parser.add_argument("--judge-model", default="")
    parser.add_argument("--judge-url", default="")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    print(json.dumps(compared(args), indent=1, ensure_ascii=False) if args.json else page(args))


if __name__ == "__main__":
    main()
