"""Graders by what a scorer is told, and enough of them for MLflow's threads.

MLflow calls one scorer from many threads at once, and our graders count and remember as
they go: each is lent to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import LifoQueue
from typing import Any

from mlflow_mcq.doors import Grader
from mlflow_mcq.errors import JudgeNotConfigured, SettingsError
from mlflow_mcq.graders.judge import JudgeGrader
from mlflow_mcq.graders.usage import Usage
from mlflow_mcq.judge_settings import JudgeSettings
from mlflow_mcq.settings import Settings, read_settings

__all__ = ["FAMILIES", "GraderPool", "judge_settings", "regex_name"]

_AT_ONCE = 32


class GraderPool:
    """Graders of one kind, each in the hands of one thread at a time.

    Args:
        build: Makes another one.
        limit: Most at once; further threads wait.

    Attributes:
        built: All that were made.
    """

    def __init__(self, build: Callable[[], Grader], limit: int) -> None:
        self.built: list[Grader] = []
        self._build = build
        self._free: LifoQueue[Grader | None] = LifoQueue()
        for _ in range(limit):
            self._free.put(None)

    @contextmanager
    def one(self) -> Iterator[Grader]:
        """Borrow a grader."""
        grader = self._free.get()
        try:
            if grader is None:
                grader = self._build()
                self.built.append(grader)
            yield grader
        finally:
            self._free.put(grader)

    @property
    def usage(self) -> Usage | None:
        """What the judges among them have cost; None where there is none."""
        spent = [one.usage for one in self.built if isinstance(one, JudgeGrader)]
        return sum(spent[1:], spent[0]) if spent else None


def judge_settings(told: Mapping[str, Any]) -> JudgeSettings:
    """The settings of a judge, checked as those of an evaluator are.

    Raises:
        JudgeNotConfigured: It says not who judges.
        SettingsError: Anything else is wrong.
    """
    judge = read_settings({"judge": dict(told)}).judge
    if judge is None:
        raise JudgeNotConfigured
    return judge


def regex_name(name: str) -> str:
    """The full name of a regex baseline; ``bounded`` is ``regex_bounded``.

    Raises:
        SettingsError: There is none of this name.
    """
    from mlflow_mcq.graders import ALL_REGEX_GRADERS

    full = name if name.startswith("regex_") else f"regex_{name}"
    if full not in ALL_REGEX_GRADERS:
        raise SettingsError(
            "regex", "is not a parser", name, f"Known: {', '.join(ALL_REGEX_GRADERS)}."
        )
    return full


def _judges(told: Mapping[str, Any]) -> GraderPool:
    from mlflow_mcq.judges import judge_of

    settings = judge_settings(told)
    limited = settings.max_calls is not None or settings.max_judge_tokens is not None
    # A budget is counted by one grader, and weights loaded here answer one caller at a time.
    alone = limited or settings.base_url == "local"
    return GraderPool(lambda: judge_of(settings), 1 if alone else settings.concurrency)


def _strict(told: Mapping[str, Any]) -> GraderPool:
    from mlflow_mcq.graders.strict_alone import StrictGrader

    return GraderPool(StrictGrader, _AT_ONCE)


def _regex(told: Mapping[str, Any]) -> GraderPool:
    from mlflow_mcq.graders import ALL_REGEX_GRADERS

    name = regex_name(str(told["name"]))
    return GraderPool(lambda: ALL_REGEX_GRADERS[name], _AT_ONCE)


def _similarity(told: Mapping[str, Any]) -> GraderPool:
    chosen = _part("similarity", told).similarity

    def build() -> Grader:
        from mlflow_mcq.engines.embedder import SentenceEmbedder
        from mlflow_mcq.graders import SimilarityGrader

        embedder = SentenceEmbedder(chosen.encoder, chosen.batch_size, chosen.cache_dir)
        return SimilarityGrader(embedder, chosen)

    return GraderPool(build, 1)


def _analogy(told: Mapping[str, Any]) -> GraderPool:
    chosen = _part("analogy", told).analogy

    def build() -> Grader:
        from mlflow_mcq.engines.tokenizer import load_tokenizer
        from mlflow_mcq.graders import AnalogyGrader

        named = chosen.tokenizer
        return AnalogyGrader(chosen, load_tokenizer(named) if named else None)

    return GraderPool(build, 1)


def _part(name: str, told: Mapping[str, Any]) -> Settings:
    return read_settings({name: dict(told)})


FAMILIES: dict[str, Callable[[Mapping[str, Any]], GraderPool]] = {
    "judge": _judges,
    "strict": _strict,
    "regex": _regex,
    "similarity": _similarity,
    "analogy": _analogy,
}
"""What a scorer may be, by name; each takes its settings and checks them at once."""
