"""What the judge said, read by full match of the legal values and in no other way.

CORRECT is a part of INCORRECT, and a judge that explains itself names every verdict on
its way. So a reply either is a legal value as a whole or it is a failure of the judge,
which is asked again: never INCORRECT, and never OTHER of the evaluated model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mlflow_mcq.graders.labels import fold, forms_of, peel, split_label
from mlflow_mcq.graders.option_texts import own_text
from mlflow_mcq.graders.strict import label_names
from mlflow_mcq.graders.thought import answer_part
from mlflow_mcq.records import Verdict

__all__ = ["JudgeReading", "parse_judge_reply"]

Status = Literal["ok", "judge_parse_failure", "judge_error"]

_LONGEST_VALUE = 4000
_ALPHABET = 26
_KEYS = {"direct": ("verdict",), "extract": ("verdict", "answer", "option", "choice")}
_ANNOUNCED = {
    shape: re.compile(
        rf"(?P<final>\bfinal\s{{1,8}})?\b(?:{'|'.join(names)})\b[*_\s]{{0,4}}:", re.IGNORECASE
    )
    for shape, names in _KEYS.items()
}
_OTHER = re.compile(r"other\s{0,4}(?:[-–—:]|\()\s{0,4}(?P<why>\S[^\n]{0,400})", re.IGNORECASE)
_RIVAL = re.compile(r"\b(?:CORRECT|INCORRECT)\b")
_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JudgeReading:
    """One reply of a judge, read.

    Attributes:
        verdict: The verdict. In the extract shape only OTHER: which slot is right is
            for the caller to say.
        slot: The slot named in the extract shape.
        slots: The slots named where several may be, in ascending order; ``slot`` is then empty.
        status: ``ok``; ``judge_parse_failure`` for a reply that is no legal value;
            ``judge_error`` where there is no reply.
    """

    verdict: Verdict | None = None
    slot: int | None = None
    status: Status = "ok"
    slots: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether something was read."""
        return self.status == "ok"

    @property
    def error(self) -> str:
        """The status of a failure; empty where something was read."""
        return "" if self.ok else self.status


_FAILURE = JudgeReading(status="judge_parse_failure")


def parse_judge_reply(
    reply: str | None,
    shape: Literal["extract", "direct"] = "extract",
    labels: Sequence[str] | None = None,
    options: Sequence[str] | None = None,
    several: bool = False,
) -> JudgeReading:
    """Read a judge's reply.

    Legal are: the value alone, in any case, with quotes, bold or a full stop; OTHER with
    a reason after a dash or colon; a label with its own text; a JSON object with the
    value under ``verdict`` (also ``answer``, ``option`` or ``choice`` in the extract
    shape); and any of these announced by "Final verdict:" at the very end. The judge's
    own thinking is left out.

    Args:
        reply: The judge's text; None where the call failed.
        shape: ``extract``: a label or OTHER. ``direct``: one of three words.
        labels: Labels that the judge could name. None means A, B, C, ... for ``options``,
            or A to Z where those are missing too.
        options: Option texts in the order shown. A text after a label must then be that
            label's own; without them it cannot be checked and is not looked at.
        several: In the extract shape, labels separated by commas are legal too (in JSON also
            a list of them); one that is unknown or named twice makes the reply a failure.

    Example:
        >>> parse_judge_reply("**Incorrect**.", "direct").verdict
        <Verdict.INCORRECT: 'INCORRECT'>
        >>> parse_judge_reply("(B)", labels="ABCD").slot
        1
        >>> parse_judge_reply("A, C", several=True).slots
        (0, 2)
        >>> parse_judge_reply("GRID: C", "direct").status
        'judge_parse_failure'
    """
    if reply is None:
        return JudgeReading(status="judge_error")
    answer = answer_part(reply)
    body = answer.text.strip()
    if answer.unfinished or not body:
        return _FAILURE
    n_options = _ALPHABET if options is None else len(options)
    names = label_names(n_options if labels is None else len(labels), labels)
    known = None if options is None else tuple(options)
    value = _Value(shape, names, known, several and shape == "extract")
    if len(body) <= _LONGEST_VALUE:
        unfenced = _FENCE.fullmatch(body)
        if unfenced or body.startswith("{"):
            return _from_json(unfenced[1] if unfenced else body, value)
        whole = value.read(body)
        if whole.ok:
            return whole
    return _from_last_line(body, value)


@dataclass(frozen=True, slots=True)
class _Value:
    """The legal values of one question."""

    shape: Literal["extract", "direct"]
    labels: tuple[str, ...]
    options: tuple[str, ...] | None
    several: bool = False

    def read(self, text: str) -> JudgeReading:
        """Read a text that must be one legal value, or fail."""
        if "\n" in text.strip():
            return _FAILURE
        text = peel(fold(text), brackets=False)
        bare = peel(text.removesuffix(".")).removesuffix(".")
        word = bare.upper() if bare.isascii() else ""
        if word == "OTHER":
            return JudgeReading(Verdict.OTHER)
        if self.shape == "direct" and word in ("CORRECT", "INCORRECT"):
            return JudgeReading(Verdict[word])
        forms = forms_of(self.labels)
        if self.shape == "extract":
            read = self._labels(text, bare) if self.several else self._label(text, bare)
            if read.ok:
                return read
        reasoned = _OTHER.fullmatch(text)
        # "OTHER - no, CORRECT" and "OTHER: B" take back what they say.
        if reasoned and not _RIVAL.search(reasoned["why"]) and reasoned["why"] not in forms:
            return JudgeReading(Verdict.OTHER)
        return _FAILURE

    def _labels(self, text: str, bare: str) -> JudgeReading:
        parts = bare.split(",")
        read = [self._label(text, bare)] if len(parts) == 1 else [*map(self._lone, parts)]
        slots = {one.slot for one in read if one.slot is not None}
        whole = len(slots) == len(read)  # else one is unknown, or named twice
        return JudgeReading(slots=tuple(sorted(slots))) if whole else _FAILURE

    def _lone(self, text: str) -> JudgeReading:
        hit = forms_of(self.labels).get(peel(text, brackets=False))
        return JudgeReading(slot=hit[0]) if hit else _FAILURE

    def _label(self, text: str, bare: str) -> JudgeReading:
        forms = forms_of(self.labels)
        plain = re.sub(r"^option\s", "", text, flags=re.IGNORECASE).strip()
        hit = forms.get(plain) or forms.get(bare)
        if hit:
            return JudgeReading(slot=hit[0])
        split = split_label(plain, self.labels)
        if split is None or split.rest in forms:
            return _FAILURE
        if self.options is None:
            rivals = set(re.findall(r"\w+", split.rest)) & set(self.labels)
            return _FAILURE if rivals or split.dash else JudgeReading(slot=split.slot)
        own = own_text(split.rest, self.options, split.slot)
        return JudgeReading(slot=split.slot) if own else _FAILURE


def _from_json(text: str, value: _Value) -> JudgeReading:
    try:
        found = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return _FAILURE
    values: list[Any] = [v for k, v in found if k.lower() in _KEYS[value.shape]]
    # Two values, even equal ones, or none, or null: the judge did not keep to the form.
    found = values[0] if len(values) == 1 else None
    if value.several and isinstance(found, list) and all(isinstance(v, str) for v in found):
        found = ", ".join(found)
    return value.read(found) if isinstance(found, str) else _FAILURE


def _from_last_line(body: str, value: _Value) -> JudgeReading:
    """Read "Final verdict: X" at the very end.

    Only where it is the one announcement of the reply, since a judge that quotes the
    candidate may be quoting one made up by it.
    """
    last = body[body.rfind("\n") + 1 :][-_LONGEST_VALUE:]
    marks = [*_ANNOUNCED[value.shape].finditer(last)]
    if not marks:
        return _FAILURE
    before = last[: marks[-1].start()].rstrip(" *_")
    alone = not before and last == body
    final = marks[-1]["final"] and (not before or before[-1] in ".!?")
    if not (alone or final) or len(_ANNOUNCED[value.shape].findall(body)) > 1:
        return _FAILURE
    return value.read(last[marks[-1].end() :].strip(" *_"))
