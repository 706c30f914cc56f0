"""The house itself: layers, types, style, and what an import costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import mlflow_mcq

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "mlflow_mcq").rglob("*.py"))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "check", "."], id="ruff"),
        pytest.param(["ruff", "format", "--check", "."], id="format"),
        pytest.param(["mypy"], id="mypy --strict"),
        pytest.param(["importlinter.cli"], id="imports only go down"),
    ],
)
def test_checks(command: list[str]) -> None:
    module, *rest = command
    script = (
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
        if module == "importlinter.cli"
        else [sys.executable, "-m", module, *rest]
    )
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_fit_in_the_head(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            documented = ast.get_docstring(node, clean=False) or ""
            length = (node.end_lineno or 0) - node.lineno - len(documented.splitlines())
            assert length <= 45, f"{node.name} has {length} lines of code"


def test_evaluators_are_found_by_mlflow() -> None:
    from mlflow.models.evaluation.base import ModelEvaluator

    found = {e.name: e.load() for e in entry_points(group="mlflow.model_evaluator")}
    assert {"mcq_judge", "mcq_regex"} <= set(found)
    assert all(issubclass(found[name], ModelEvaluator) for name in ("mcq_judge", "mcq_regex"))


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        pytest.param("mlflow_mcq", ("torch", "transformers", "mlflow", "pandas"), id="package"),
        pytest.param("mlflow_mcq.plugin", ("torch", "transformers", "openai"), id="plugin"),
        pytest.param("mlflow_mcq.graders", ("torch", "mlflow", "pandas"), id="graders"),
    ],
)
def test_imports_are_light(module: str, absent: tuple[str, ...]) -> None:
    code = f"import {module}, sys; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    assert mlflow_mcq.__all__ == [
        "analogy_items", "chance_band", "compare", "cost_before", "evaluate", "examine_judge",
        "extra_metrics", "fail_if_worse", "folded",
        "from_inspect_log", "from_lm_eval_samples", "from_twinkle", "genai_evaluate", "lint_items",
        "local_model", "loss_thresholds", "nonsense_items", "orientations_for",
        "parse_judge_reply", "regrade", "remote_model", "rotated", "run_recipe", "scorers",
        "strict_choice", "training",
    ]  # fmt: skip
    for name in mlflow_mcq.__all__:
        assert getattr(mlflow_mcq, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        mlflow_mcq.evalute  # type: ignore[attr-defined]


def modules_by_name() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    found = {}
    for path in SOURCES:
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[dotted] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def listed(module: ast.Module) -> set[str] | None:
    """The names in a module's ``__all__``; None where it has none."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def test_a_name_that_another_module_uses_is_a_public_one() -> None:
    modules, hidden = modules_by_name(), set()
    public = {name: listed(module) for name, module in modules.items()}
    for user, module in modules.items():
        for node in ast.walk(module):
            if not isinstance(node, ast.ImportFrom) or node.module not in public:
                continue
            names = {alias.name for alias in node.names} - (public[node.module] or set())
            taken = {name for name in names if f"{node.module}.{name}" not in modules}
            hidden |= {f"{node.module}.{name} in {user}" for name in taken}
    assert not sorted(hidden)


def test_a_table_of_modules_names_them_all() -> None:
    tables = 0
    for path in SOURCES:
        if path.name != "__init__.py":
            continue
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        named = re.findall(r"^``(\w+)`` {2,}\w", about, re.MULTILINE)
        inside = {one.stem for one in path.parent.glob("*.py")} - {"__init__"}
        tables += bool(named)
        assert not named or set(named) == inside, path
    assert tables > 3


def test_data_never_reaches_a_format_string() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in ("format", "format_map"), f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), f"{path}:{node.lineno}"
