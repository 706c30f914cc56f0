"""Start the processes that make a recipe's rows: Accelerate's own launcher, as a command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlflow_mcq.errors import ModelError, SettingsError
from mlflow_mcq.ranks import count_accelerators, launched_ranks

__all__ = [
    "generate_command",
    "launch_generation",
    "number_of_processes",
    "worker_environments",
]

# Of this process, when it is itself a rank: a launcher below would take them for its own.
_OURS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def number_of_processes(asked: str) -> int:
    """How many processes ``--num-processes`` means.

    Args:
        asked: A number, ``auto`` for one on each GPU of this machine (and one where there
            is none: the cores of a CPU work together in one process), or nothing for one.

    Raises:
        SettingsError: It is neither, or a launcher has started several already.

    Example:
        >>> number_of_processes(""), number_of_processes("3")
        (1, 3)
    """
    if asked == "auto":
        found = max(1, count_accelerators())
    elif asked.isdecimal() and int(asked) > 0:
        found = int(asked)
    elif not asked:
        return 1
    else:
        raise SettingsError("num_processes", 'must be a whole number from 1, or "auto"', asked)
    if launched_ranks() > 1:
        raise SettingsError(
            "num_processes",
            f"starts processes, and a launcher has started {launched_ranks()} already",
            asked,
            "Leave it out: all of them generate.",
        )
    return found


def generate_command(recipe: str, given: Mapping[str, str], n: int, on_cpu: bool) -> list[str]:
    """The command that makes the rows of a recipe with ``n`` processes of this machine.

    Example:
        >>> command = generate_command("r.yaml", {"limit": "4", "data": ""}, 2, on_cpu=True)
        >>> command[-6:]
        ['-m', 'mlflow_mcq', 'generate', 'r.yaml', '--limit', '4']
    """
    # All that Accelerate would otherwise warn of, or take from the user's training set-up.
    # Its port 0 is a free one: two of these on a machine must not meet.
    launcher = [
        sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu",
        "--num_processes", str(n), "--num_machines", "1", "--mixed_precision", "no",
        "--dynamo_backend", "no", "--main_process_port", "0",
        *(["--num_cpu_threads_per_process", str(_threads(n))] if on_cpu else []),
    ]  # fmt: skip
    options = [
        part for key, value in given.items() if value
        for part in (f"--{key.replace('_', '-')}", value)
    ]  # fmt: skip
    return [*launcher, "-m", "mlflow_mcq", "generate", recipe, *options]


def launch_generation(recipe: str, given: Mapping[str, str], n: int) -> None:
    """Make the rows of a recipe with several processes, and wait for them.

    Args:
        recipe: Path of the recipe.
        given: What the command line puts over it, as in `mlflow_mcq.recipe.load_recipe`.
        n: Number of processes.

    Raises:
        ModelError: A process ended before its time. What it said stands above; the rows
            that were made are kept.
    """
    on_cpu = not count_accelerators()
    environment = _plain_environment()
    if on_cpu:
        environment["ACCELERATE_USE_CPU"] = "true"
    command: Sequence[str] = generate_command(recipe, given, n, on_cpu)
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode:
        raise ModelError(
            f"{n} processes",
            f"ended before all rows were made (exit code {done.returncode})",
            possible="The first error above says why. Every row made is kept: the same "
            "command makes the others, with any number of processes.",
        )


def worker_environments(n: int) -> list[dict[str, str]]:
    """The environment of each of ``n`` resident workers: a GPU of its own, where there are any.

    Raises:
        SettingsError: There are fewer GPUs than that.
    """
    home = str(Path(__file__).parent.parent)
    plain = _plain_environment()
    # The very package that is running, however it was found.
    plain["PYTHONPATH"] = os.pathsep.join(filter(None, [home, plain.get("PYTHONPATH", "")]))
    n_devices = count_accelerators()
    if not n_devices:
        return [plain | {"OMP_NUM_THREADS": str(_threads(n))} for _ in range(n)]
    if n > n_devices:
        raise SettingsError(
            "processes", "starts one process on each GPU", n, f"This machine has {n_devices}."
        )
    return [plain | _device(place, n_devices) for place in range(n)]


def _device(place: int, n_devices: int) -> dict[str, str]:
    import torch

    # Behind the GPU that this process works on itself, which comes last.
    busy = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    number = (place + 1 + torch.cuda.current_device()) % n_devices if busy else place
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = listed.split(",") if listed else [str(one) for one in range(n_devices)]
    return {"CUDA_VISIBLE_DEVICES": names[number]}


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OURS}


def _threads(n: int) -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else max(1, (os.cpu_count() or 1) // n)
