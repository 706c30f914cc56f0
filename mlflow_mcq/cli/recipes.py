"""Commands over recipes: list them, make their rows, run them."""

from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mlflow_mcq.cli.compared import GATE, comparison_data, gate, share_of
from mlflow_mcq.cli.options import GATES, options, over_the_recipe
from mlflow_mcq.cli.said import Outcome, spoken
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names

__all__ = ["cost", "generate", "recipes", "run", "shipped"]


def shipped() -> dict[str, Path]:
    """The recipes that come with the package, by name: a checkout's, or those installed."""
    beside = Path(__file__).parents[2] / "recipes"
    data = Path(sysconfig.get_path("data")) / "share" / "mlflow-mcq" / "recipes"
    folder = next((f for f in (beside, data) if (f / "demo.yaml").exists()), beside)
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def found(recipe: str) -> str:
    """The path of a recipe that is named by its path or, if shipped, by its name.

    Raises:
        SettingsError: It is neither.
    """
    if os.path.exists(recipe):  # Path's own raises where a name is too long
        return recipe
    known = shipped()
    if recipe not in known:
        possible = known_names(recipe, known)
        raise SettingsError(
            "recipe", "is no file, and none of this name is shipped", recipe, possible
        )
    return str(known[recipe])


@click.command()
@click.argument("recipe")
@over_the_recipe
@click.option(
    "--num-processes", default="", metavar="N",
    help="Processes that generate: a number, or auto for one on each GPU.",
)  # fmt: skip
@options(GATES)
@spoken
def run(recipe: str, num_processes: str, fail_if_worse: str, **given: str) -> Outcome:
    """Run every arm of RECIPE: a YAML file, or the name of a shipped recipe.

    \b
    mlflow-mcq run demo --limit 6
    mlflow-mcq run my.yaml --judge-model gpt-4.1-mini \\
        --judge-url https://api.openai.com/v1 --judge-key-env OPENAI_API_KEY
    mlflow-mcq run my.yaml --fail-if-worse 0.02
    """
    from mlflow_mcq.launch import launch_generation, number_of_processes
    from mlflow_mcq.ranks import launched_ranks
    from mlflow_mcq.recipe import load_recipe, measure_recipe
    from mlflow_mcq.terminal import show_results

    path, n_processes = found(recipe), number_of_processes(num_processes)
    loss = share_of(fail_if_worse)
    if loss is not None:
        _refuse_uncompared(path, given)
    if n_processes > 1:
        load_recipe(path, given)  # refused once, and not by every process
        launch_generation(path, given, n_processes)
    elif launched_ranks() > 1 and not _make_rows(path, given)[1]:
        return Outcome(None, lambda: None)  # grading and MLflow are the main process's
    done = measure_recipe(path, given)
    code, said = gate(done.comparison, loss, done.not_compared)
    arms = [
        {"arm": one.name, "run_id": one.run_id, "alarms": one.alarms, "metrics": {**one.metrics}}
        for one in done.arms
    ]
    compared = None if done.comparison is None else comparison_data(done.comparison)
    data = {
        "arms": arms, "comparison": compared, "not_compared": done.not_compared, "failed": said,
    }  # fmt: skip

    def show() -> None:
        show_results(done.arms)
        if said:
            click.echo(f"error: {said}", err=True)

    return Outcome(data, show, code)


def _refuse_uncompared(path: str, given: dict[str, str]) -> None:
    """Refuse a gate over arms that will not be compared, before hours of work."""
    from mlflow_mcq.recipe import load_recipe, no_comparison

    recipe = load_recipe(path, given)
    # Which arms a recipe reads again is only known when they are looked up.
    why = no_comparison(recipe, 2 if recipe.regrade else len(recipe.arms))
    if why:
        raise SettingsError(
            GATE, f"has nothing to hold against each other: {why}",
            possible="Leave it out, or run several arms and compare them.",
        )  # fmt: skip


@click.command()
@click.argument("recipe")
@over_the_recipe
@spoken
def generate(recipe: str, **given: str) -> Outcome:
    """Make the rows of RECIPE ahead of its run.

    Under torchrun or accelerate launch every process makes its share:

    \b
    torchrun --nproc-per-node 8 -m mlflow_mcq generate recipe.yaml
    """
    from mlflow_mcq.terminal import show_rows

    made, is_main = _make_rows(found(recipe), given)
    data = [
        {"arm": one.name, "n_rows": one.n_rows, "n_found": one.n_found, "n_missing": one.n_missing}
        for one in made
    ]
    return Outcome(data, (lambda: show_rows(made)) if is_main else (lambda: None))


def _make_rows(recipe: str, given: dict[str, str]) -> tuple[Any, bool]:
    """Make all rows, with every process that was launched; whether this is the main one."""
    from mlflow_mcq.generation import generate_recipe
    from mlflow_mcq.ranks import leave_ranks, present_ranks

    made = generate_recipe(recipe, given)
    is_main = present_ranks().is_main
    leave_ranks()
    return made, is_main


@click.command()
@click.argument("recipe")
@over_the_recipe
@click.option(
    "--probe", default=0, metavar="N",
    help="Prompts to try on models loaded here, for seconds and memory; 0 for none.",
)  # fmt: skip
@spoken
def cost(recipe: str, probe: int, **given: str) -> Outcome:
    """Count what RECIPE will take: prompts, tokens, calls of a judge. Nobody is asked.

    \b
    mlflow-mcq cost my.yaml --probe 8
    """
    from mlflow_mcq.recipe import load_recipe, recipe_costs
    from mlflow_mcq.terminal import show_costs

    costs = recipe_costs(load_recipe(found(recipe), given), probe=probe)
    return Outcome([asdict(one) for one in costs], lambda: show_costs(costs))


@click.command()
@click.argument("name", required=False)
@click.option("--copy", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Copy it, and the data it names, into a folder of yours.")  # fmt: skip
@spoken
def recipes(name: str | None, copy: Path | None) -> Outcome:
    """List the shipped recipes, show one, or copy one to work from.

    \b
    mlflow-mcq recipes
    mlflow-mcq recipes answer_moving --copy .
    """
    known = shipped()
    if name is None:
        told = {one: _first_line(path) for one, path in known.items()}
        wide = max(map(len, told), default=0)
        data = [{"name": n, "path": str(known[n]), "about": text} for n, text in told.items()]
        lines = [f"{one:<{wide}}  {text}" for one, text in told.items()]
        return Outcome(data, lambda: click.echo("\n".join(lines)))
    if name not in known:
        raise SettingsError("recipes", "no such recipe", name, known_names(name, known))
    text = known[name].read_text(encoding="utf-8")
    copied = _copied(known[name], copy) if copy is not None else []
    shown = "\n".join(f"copied {path}" for path in copied) or text
    data_of = {"name": name, "path": str(known[name]), "text": text, "copied": copied}
    return Outcome(data_of, lambda: click.echo(shown))


def _first_line(path: Path) -> str:
    """The sentence that a recipe opens with."""
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        words.append(line.lstrip("# ").strip())
    return " ".join(words).partition(". ")[0].rstrip(".")


def _copied(path: Path, folder: Path) -> list[str]:
    """Copy a recipe and the files beside it that it names; nothing is written over."""
    folder.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8")
    files = [
        path,
        *(f for f in sorted(path.parent.iterdir()) if f.suffix != ".yaml" and f.name in text),
    ]
    for file in files:
        if (folder / file.name).exists():
            raise SettingsError("copy", "never writes over a file", str(folder / file.name))
    return [str(shutil.copy(file, folder / file.name)) for file in files]
