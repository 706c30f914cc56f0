"""Small items of our own in every native layout: two rows each, with the gold they name."""

from __future__ import annotations

from typing import Any

Rows = list[dict[str, Any]]

METALS = ["iron", "mercury", "tin", "zinc"]
RIVERS = ["the Rhine", "the Nile", "the Volga", "the Tagus"]
Q1, Q2 = "Which metal is liquid on a warm day?", "Which river meets the Mediterranean?"


def _labelled(texts: list[str], labels: str) -> dict[str, list[str]]:
    return {"text": texts, "label": list(labels)}


def _pairs(texts: list[str], labels: str) -> list[dict[str, str]]:
    return [{"text": t, "label": x} for t, x in zip(texts, labels, strict=True)]


def _columns(names: list[str], texts: list[str]) -> dict[str, str]:
    return dict(zip(names, texts, strict=True))


ABCD = ["A", "B", "C", "D"]
_OP = ["opa", "opb", "opc", "opd"]
_OPTION = [f"option_{x}" for x in "abcd"]
_MC = [f"mc_answer{i}" for i in range(1, 5)]
_FIVE = [f"choice{i}" for i in range(5)]
_PAGE = "\nOptions:\n(A) iron\n(B) mercury\n(C) tin"

NATIVE: dict[str, tuple[Rows, list[int]]] = {
    "arc": (
        [
            {"id": "a", "question": Q1, "choices": _labelled(METALS, "ABCD"), "answerKey": "B"},
            {"id": "b", "question": Q2, "choices": _labelled(RIVERS, "1234"), "answerKey": "2"},
        ],
        [1, 1],
    ),
    "commonsense_qa": (
        [
            {
                "id": i,
                "question": q,
                "question_concept": "thing",
                "choices": _labelled(texts, "ABCD"),
                "answerKey": key,
            }
            for i, q, texts, key in (("a", Q1, METALS, "B"), ("b", Q2, RIVERS, "B"))
        ],
        [1, 1],
    ),
    "openbookqa": (
        [
            {
                "id": "a",
                "question_stem": Q1,
                "choices": _labelled(METALS, "ABCD"),
                "answerKey": "B",
            },
            {
                "id": "b",
                "question_stem": Q2,
                "choices": _labelled(RIVERS, "ABCD"),
                "answerKey": "B",
            },
        ],
        [1, 1],
    ),
    "arc-nested": (
        [
            {
                "id": "a",
                "question": {"stem": Q1, "choices": _pairs(METALS, "ABCD")},
                "answerKey": "B",
            },
            {
                "id": "b",
                "question": {"stem": Q2, "choices": _pairs(RIVERS, "1234")},
                "answerKey": "2",
            },
        ],
        [1, 1],
    ),
    "commonsense_qa-nested": (
        [
            {
                "id": "a",
                "question": {
                    "stem": Q1,
                    "question_concept": "metal",
                    "choices": _pairs(METALS, "ABCD"),
                },
                "answerKey": "B",
            },
        ],
        [1],
    ),
    "exams": (
        [
            {
                "id": "a",
                "question": {"stem": Q1, "choices": _pairs(METALS, "ABCD")},
                "answerKey": "B",
                "info": {"grade": 8, "subject": "Chemistry", "language": "English"},
            },
        ],
        [1],
    ),
    "mmlu": (
        [
            {"question": "3 - 1 = ?", "subject": "sums", "choices": list("3120"), "answer": 2},
            {"question": Q2, "subject": "rivers", "choices": RIVERS, "answer": 1},
        ],
        [2, 1],
    ),
    "mmlu-headerless": (
        [
            _columns(list("012345"), [Q1, *METALS, "B"]),
            _columns(list("012345"), [Q2, *RIVERS, "B"]),
        ],
        [1, 1],
    ),
    "mmlu_pro": (
        [
            {
                "question_id": 7,
                "question": Q1,
                "options": METALS,
                "answer": "B",
                "answer_index": 1,
                "category": "chemistry",
                "src": "own",
            },
        ],
        [1],
    ),
    "lettered": (
        [
            {"question": "What opens bread?", **_columns(ABCD, list("CADB")), "answer": "D"},
            {"question": Q2, **_columns(ABCD, RIVERS), "answer": "B"},
        ],
        [3, 1],
    ),
    "cmmlu": ([{"Question": Q1, **_columns(ABCD, METALS), "Answer": "B"}], [1]),
    "include": (
        [
            {"question": "2 + 1 = ?", **_columns(_OPTION, list("1203")), "answer": 3},
            {"question": Q1, **_columns(_OPTION, METALS), "answer": 1},
        ],
        [3, 1],
    ),
    "jcommonsenseqa": (
        [{"q_id": 9, "question": Q1, **_columns(_FIVE, [*METALS, "lead"]), "label": 1}],
        [1],
    ),
    "medqa": (
        [
            {
                "question": Q1,
                "options": _columns(ABCD, METALS),
                "answer": "mercury",
                "answer_idx": "B",
                "meta_info": "step1",
            },
            {
                "question": Q1,
                "options": [{"key": k, "value": v} for k, v in zip(ABCD, METALS, strict=True)],
                "answer": "mercury",
                "answer_idx": "B",
            },
        ],
        [1, 1],
    ),
    "medmcqa": (
        [
            {"id": "a", "question": Q1, **_columns(_OP, METALS), "cop": 1},
            {"id": "b", "question": Q2, **_columns(_OP, [*RIVERS[1:], "the Po"]), "cop": 0},
        ],
        [1, 0],
    ),
    "medmcqa-original": (
        [
            {"id": "a", "question": Q1, **_columns(_OP, METALS), "cop": 2},
            {"id": "b", "question": Q2, **_columns(_OP, ["x", "y", "z", "the Po"]), "cop": 4},
        ],
        [1, 3],
    ),
    "belebele": (
        [
            {
                "link": "x",
                "question_number": 1,
                "flores_passage": "Mercury melts early.",
                "question": Q1,
                **_columns(_MC, METALS),
                "correct_answer_num": "2",
                "dialect": "eng_Latn",
            }
        ],
        [1],
    ),
    "boolq": (
        [
            {"question": "is tin a metal", "passage": "Tin is a metal.", "answer": True},
            {"question": "is ice warm", "passage": "Ice is cold.", "answer": False},
        ],
        [0, 1],
    ),
    "boolq-superglue": (
        [{"question": "is ice warm", "passage": "Ice is cold.", "label": 0, "idx": 4}],
        [1],
    ),
    "logiqa": (
        [{"context": "All tin is soft.", "question": "So?", "options": METALS, "label": "b"}],
        [1],
    ),
    "logiqa-query": (
        [{"context": "All tin is soft.", "query": "So?", "options": METALS, "correct_option": 1}],
        [1],
    ),
    "logiqa2": (
        [{"id": 3, "text": "All tin is soft.", "question": "So?", "options": METALS, "answer": 1}],
        [1],
    ),
    "hellaswag": (
        [{"ind": 4, "ctx": "A smith heats a bar and", "endings": METALS, "label": "1"}],
        [1],
    ),
    "winogrande": (
        [
            {"sentence": "The _ melted, not the iron.", "option1": "ice", "option2": "iron",
             "answer": "1"},
            {"sentence": "Iron sank; the _ floated.", "option1": "iron", "option2": "cork",
             "answer": "2"},
        ],
        [0, 1],
    ),
    "piqa": ([{"goal": "Cool a room", "sol1": "Bake.", "sol2": "Air it.", "label": 1}], [1]),
    "social_iqa": (
        [
            {"context": "Ada lent Bo a pen.", "question": "What will Bo do?", "answerA": "shout",
             "answerB": "thank Ada", "answerC": "sleep", "label": "2"}
        ],
        [1],
    ),
    "xcopa": (
        [
            {"premise": "The lamp went out.", "choice1": "The oil was used up.",
             "choice2": "It rained.", "question": "cause", "label": 0, "idx": 0, "changed": False},
            {"premise": "The lamp went out.", "choice1": "It got bright.",
             "choice2": "It got dark.", "question": "effect", "label": 1, "idx": 1,
             "changed": False},
        ],
        [0, 1],
    ),
    "analogy": (
        [{"stem": ["seed", "tree"], "choice": [["ink", "sea"], ["egg", "hen"]], "answer": 1}],
        [1],
    ),
    "storyanalogy": ([{"source": "A dam broke.", "choices": METALS, "answer": 1}], [1]),
    "truthfulqa": (
        [
            {"question": Q1, "mc1_targets": {"choices": METALS[1:], "labels": [1, 0, 0]}},
            {"question": Q2, "mc1_targets": {"the Nile": 1, "the Rhine": 0}},
        ],
        [0, 0],
    ),
    "truthfulqa-csv": (
        [
            {"Type": "own", "Question": Q1, "Best Answer": "Mercury",
             "Correct Answers": "Mercury; quicksilver", "Incorrect Answers": "Iron; Tin;; "}
        ],
        [0],
    ),
    "truthfulqa-generation": (
        [
            {"question": Q1, "best_answer": "Mercury", "correct_answers": ["Mercury"],
             "incorrect_answers": ["Iron", "Tin"]}
        ],
        [0],
    ),
    "bbh": (
        [
            {"input": f"{Q1}{_PAGE}", "target": "(B)"},
            {"input": "Is this sound?\nOptions:\n- Yes\n- No", "target": "No"},
        ],
        [1, 1],
    ),
    "openai_evals": (
        [
            {
                "input": [
                    {"role": "system", "content": "Answer with a letter."},
                    {"role": "user", "content": f"{Q1}\n\nA) iron\nB) mercury\nAnswer:"},
                ],
                "ideal": "B",
            }
        ],
        [1],
    ),
    "inspect": (
        [
            {"input": Q1, "choices": METALS, "target": "B", "id": 1, "metadata": {"subject": "x"}},
            {"input": [{"role": "user", "content": Q2}], "choices": RIVERS, "target": ["B"],
             "id": 2},
        ],
        [1, 1],
    ),
}  # fmt: skip
