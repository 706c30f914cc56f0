"""A wording of the user's own, checked before a model reads it."""

from __future__ import annotations

import difflib
import re

from mlflow_mcq.errors import SettingsError

__all__ = ["FIELDS", "check_template"]

FIELDS = ("question", "options", "labels")
"""What a template may hold, in single braces; the first two it must."""

_WRITTEN = re.compile(r"\{\{\w+\}\}")
# \boxed{answer}, \frac{a}{b}, x_{i}: what people ask for in mathematics is no field.
_LATEX = re.compile(r"\\[A-Za-z]+(?:\{[^{}]*\})+|[\^_]\{[^{}]*\}")
_WORD = re.compile(r"\{([^\W\d]\w*)\}")


def check_template(template: str) -> None:
    """Refuse a template that would reach the model with a hole in it.

    A word alone in single braces is meant as a field, so an unknown one is a slip of the pen
    (``{lables}``) or a name from another harness (``{choices}``); sent as it is, it would spoil
    every prompt and show in no number. Other braces are text: ``{"letter": 1}``, ``{}``, ``{0}``,
    ``\\boxed{answer}``; and ``{{word}}`` is sent as ``{word}``.

    Raises:
        SettingsError: The template lacks the question or the options, or holds an unknown field.

    Example:
        >>> check_template("{question} {options} {lables}")
        Traceback (most recent call last):
        ...
        mlflow_mcq.errors.SettingsError: template: holds a field that is not known; got \
'{lables}'. Did you mean {labels}? Known: {question}, {options}, {labels}. For that text itself \
write {{lables}}.
    """
    plain = _WRITTEN.sub("", template)
    # The nearest name first: "{Question}" is told what it is, not that something is missing.
    for word in _WORD.findall(_LATEX.sub("", plain)):
        if word not in FIELDS:
            raise SettingsError(
                "template", "holds a field that is not known", f"{{{word}}}", _meant(word)
            )
    if not all("{" + field + "}" in plain for field in FIELDS[:2]):
        raise SettingsError("template", "must contain {question} and {options}", template)


def _meant(word: str) -> str:
    near = difflib.get_close_matches(word.casefold(), FIELDS, n=1, cutoff=0.6)
    hint = f"Did you mean {{{near[0]}}}? " if near else ""
    known = ", ".join(f"{{{field}}}" for field in FIELDS)
    return f"{hint}Known: {known}. For that text itself write {{{{{word}}}}}."
