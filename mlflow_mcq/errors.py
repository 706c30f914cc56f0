"""The tree of errors.

    McqError                    everything this package raises on purpose
    ├── SettingsError           a setting is unknown, out of range or missing
    │   ├── JudgeNotConfigured  judged numbers were asked for without naming a judge
    │   └── RunInUse            a run that holds one arm was given another
    ├── DataError               a row of the data cannot be read without guessing
    ├── JudgeUnavailable        the judge answers nobody: nothing there, wrong key, wrong model
    ├── ModelError              the evaluated model cannot be used, or returned something else
    └── StoreError              rows cannot be kept on disk, or their folder is in use

Each says who complains, which rule was broken, what was got and what is possible.
None is a subclass of ValueError: a caller must not swallow them by accident.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "JudgeNotConfigured",
    "JudgeUnavailable",
    "McqError",
    "ModelError",
    "RunInUse",
    "SettingsError",
    "StoreError",
]

_LONGEST_SHOWN = 200


class McqError(Exception):
    """Any fault that this package reports on purpose.

    Args:
        who: What complains: a setting, a row, a model.
        rule: The rule that was broken, as a sentence.
        got: What was met instead; shown with ``repr``, cut to 200 characters. Left out, nothing
            is shown: an empty text and None are things that were met.
        possible: What to do, or what would have been legal.

    Example:
        >>> print(McqError("repeats", "must be at least 1", got=0, possible="Use repeats=1."))
        repeats: must be at least 1; got 0. Use repeats=1.
    """

    def __init__(self, who: str, rule: str, got: object = ..., possible: str = "") -> None:
        super().__init__(who, rule, got, possible)

    def __str__(self) -> str:
        who, rule, got, possible = self.args
        text = f"{who}: {rule}"
        if got is not ...:  # of all words for nothing the one that survives a pickle as itself
            shown = repr(got)
            text += "; got " + (
                shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "…"
            )
        end = "" if text.endswith("?") else "."
        return f"{text}{end} {possible}".rstrip()


class SettingsError(McqError):
    """A setting is unknown, out of range or missing."""


class JudgeNotConfigured(SettingsError):
    """Judged numbers were asked for, but no judge was named.

    A judge is part of the metric, so none is ever chosen for the user.
    """

    def __init__(
        self,
        got: object = ...,
        without: str = 'use the evaluator mcq_regex: evaluators="mcq_regex"',
    ) -> None:
        self._without = without
        super().__init__(
            "mcq_judge",
            "no judge is configured, so nothing is judged and no judged number is reported",
            got,
            "Supply three things: judge.model (its name), judge.base_url (an OpenAI-compatible "
            'server, or "local" to load the model here with transformers) and judge.api_key_env '
            "(the name of the environment variable that holds the key; leave it out for a server "
            "that needs none). On the command line these are --judge-model, --judge-url and "
            f"--judge-key-env. For numbers without a judge {without}.",
        )

    def __reduce__(self) -> tuple[type[JudgeNotConfigured], tuple[object, str]]:
        return type(self), (self.args[2], self._without)


class RunInUse(SettingsError):
    """A run that holds one arm was given another."""


class DataError(McqError):
    """A row of the data cannot be read without guessing."""


class JudgeUnavailable(McqError):
    """The judge answers nobody, as found before anything was generated."""


class ModelError(McqError):
    """The evaluated model cannot be used, or returned something other than text."""


class StoreError(McqError):
    """Rows cannot be kept on disk, or their folder is in use by another run."""
