"""A ``config.yaml`` of Twinkle Eval, read as a recipe; what is not taken over is said.

=========================  =======================================================
``dataset_paths``          an arm for each data file
``shuffle_options``        ``orientations: shuffles:k``, k the number of runs; seeded here
``repeat_runs``            that k, or where nothing is shuffled ``repeats``
``evaluation_method``      ``pattern`` and ``box``: the published parsers; ``logit``: the
                           log-probabilities of the letters, beside them
``datasets_prompt_map``    ``language`` of the instruction
``llm_api``, ``model``     a model behind a server, and its decoding
=========================  =======================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names

__all__ = ["KEY_VARIABLE", "is_twinkle", "recipe_of_twinkle"]

KEY_VARIABLE = "TWINKLE_API_KEY"
"""Where a key is looked for, in place of the configuration."""

_WHO = "Twinkle configuration"
_ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
_METHODS: dict[str, dict[str, Any]] = {
    "pattern": {},
    "box": {},
    "logit": {"logprob": {"enabled": True}},
}
_DECODING = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_new_tokens"}
_SERVER = {"base_url": "base_url", "max_workers": "concurrency", "timeout": "timeout_s"}
_PENALTIES = ("frequency_penalty", "presence_penalty")
_TAKEN = {
    "llm_api": {*_SERVER, "api_key"},
    "model": {"name", *_DECODING, *_PENALTIES},
    "evaluation": {
        "dataset_paths", "evaluation_method", "datasets_prompt_map", "shuffle_options",
        "repeat_runs",
    },
}  # fmt: skip


def is_twinkle(given: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of Twinkle Eval and no recipe of ours.

    Example:
        >>> is_twinkle({"llm_api": {}, "model": {"name": "m"}, "evaluation": {}})
        True
    """
    parts = ("llm_api", "model", "evaluation")
    return "arms" not in given and all(isinstance(given.get(part), Mapping) for part in parts)


def recipe_of_twinkle(
    given: Mapping[str, Any], folder: Path, name: str = "twinkle"
) -> tuple[dict[str, Any], list[str]]:
    """Translate a configuration.

    Args:
        given: As read from its file.
        folder: That of the file; paths are looked for there, then in the working directory.
        name: Of the recipe.

    Returns:
        The recipe as a mapping, and what to say about the translation, a line each. A key in
        the configuration is in neither.

    Raises:
        SettingsError: It asks for what cannot be done here, or holds no data.
    """
    evaluation, model = given["evaluation"], given["model"]
    runs = evaluation.get("repeat_runs") or 1
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise SettingsError(_WHO, "repeat_runs must be a whole number from 1", runs)
    shuffled = bool(evaluation.get("shuffle_options", False))
    recipe: dict[str, Any] = {
        "name": name,
        "model": _model(given["llm_api"], model),
        "evaluators": ["mcq_judge", "mcq_regex"],
        "regex": {"parsers": "all"},
        "orientations": f"shuffles:{runs}" if shuffled else "as-is",
        "repeats": 1 if shuffled else runs,
        "tables": ["repeats"],
        **_method(evaluation),
        **_decoding(model),
        "arms": _arms(evaluation, folder),
    }
    said = [
        f"read as a configuration of Twinkle Eval: {len(recipe['arms'])} data files, "
        f"orientations {recipe['orientations']}, repeats {recipe['repeats']}",
        "shuffles are seeded and distinct for each item, where Twinkle's differ from run to run",
        "the wording is that of the protocol letters, not a system prompt",
    ]
    if given["llm_api"].get("api_key"):
        said.append(f"the key is not taken over: it is read from the variable {KEY_VARIABLE}")
    left = _left(given)
    if left:
        said.append(f"not taken over: {', '.join(left)}")
    return recipe, said


def _model(api: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    if not api.get("base_url") or not model.get("name"):
        raise SettingsError(_WHO, "must name llm_api.base_url and model.name")
    server = {ours: api[theirs] for theirs, ours in _SERVER.items() if api.get(theirs)}
    key = {"api_key_env": KEY_VARIABLE} if api.get("api_key") else {}
    return {**server, **key, "model": str(model["name"])}


def _decoding(model: Mapping[str, Any]) -> dict[str, Any]:
    for name in _PENALTIES:
        if model.get(name):
            raise SettingsError(
                f"{_WHO}, model.{name}",
                "changes answers and is no setting here",
                model[name],
                "Set it to 0.",
            )
    extra = model.get("extra_body")
    if extra:
        raise SettingsError(
            f"{_WHO}, model.extra_body",
            "changes what is sent and cannot be taken over",
            sorted(extra) if isinstance(extra, Mapping) else type(extra).__name__,
            "Leave it out; a switch of thinking is the setting thinking of a recipe.",
        )
    return {ours: model[theirs] for theirs, ours in _DECODING.items() if theirs in model}


def _method(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    method = evaluation.get("evaluation_method", "pattern")
    if method not in _METHODS:
        raise SettingsError(
            f"{_WHO}, evaluation_method",
            "is none of those for multiple choice",
            method,
            known_names(str(method), _METHODS),
        )
    return dict(_METHODS[method])


def _arms(evaluation: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    paths = evaluation.get("dataset_paths")
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
        raise SettingsError(f"{_WHO}, dataset_paths", "must name files or folders", paths)
    languages = evaluation.get("datasets_prompt_map") or {}
    arms = []
    for given in paths:
        place = folder / given if (folder / given).exists() else Path(given)
        for file in _files(place, given):
            inside = file.relative_to(place) if place.is_dir() else Path(file.name)
            name = Path(place.name, inside) if place.is_dir() else inside
            # Twinkle's own default is its Chinese prompt.
            language = languages.get(given, "zh")
            arms.append({"name": name.as_posix(), "data": str(file), "language": language})
    return arms


def _files(place: Path, given: str) -> list[Path]:
    if place.is_file():
        return [place]
    found = sorted(p for p in place.rglob("*") if p.suffix.lower() in _ENDINGS and p.is_file())
    if not found:
        raise SettingsError(
            f"{_WHO}, dataset_paths",
            f"holds no data file ({', '.join(_ENDINGS)})",
            given,
            "Paths are looked for beside the configuration, then in the working directory.",
        )
    return found


def _left(given: Mapping[str, Any]) -> list[str]:
    """Names of what is set and has no counterpart; values are not repeated."""
    inside = [
        f"{part}.{name}"
        for part, taken in _TAKEN.items()
        for name, value in given[part].items()
        if name not in taken and value not in (None, "", False)
    ]
    return inside + [str(name) for name in given if name not in _TAKEN]
