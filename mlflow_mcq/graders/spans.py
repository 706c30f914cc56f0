"""The part of a reply that holds the answer: four levels, the last occurrence of each.

After the Matched-and-Dashed protocol of Nowak et al., ABCD (arXiv 2602.17445). The levels,
tried in turn:

1. after the last "answer is";
2. after the last "Answer:";
3. the last literal mention of an option's text;
4. the last sentence.

What is captured stands after the marker, on the same line or the next, and ends with its
sentence or line. The markers are English, as published; replies in other languages are
read by levels 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlflow_mcq.graders.labels import fold, peel
from mlflow_mcq.graders.mentions import begins_with, last_mention, plain
from mlflow_mcq.graders.option_texts import option_texts
from mlflow_mcq.graders.thought import answer_part

__all__ = ["Span", "extract_span"]

_LONGEST = 2000
"""Characters of a span: a reply without one full stop must not be embedded whole."""
_MARKER = re.compile(
    r"(?<!\w)answer(?:[\s*_\"'`”’]{1,16}(?P<is>is)(?!\w)|[\s*_\"'`”’]{0,16}[:：])", re.IGNORECASE
)
_SPACE = re.compile(r"\s*")
# Colons, bold that closes, bullets, and lines that only open a block of code or of LaTeX.
_OPENING = re.compile(
    r"(?:\s|[:：=>]|[*_]{1,3}(?=\s|:)|[-–—•](?=\s)|(?:```\w{0,16}|\\\[|\$\$)(?=\s*\n))*"
)
_CLOSERS = r"[)\]}\"'”’»*_`$]{0,8}"
_END = re.compile(
    rf"(?P<dot>\.){_CLOSERS}(?=\s|\Z)|[!?…]{_CLOSERS}(?=\s|\Z)"
    r"|[。！？।؟۔．][」』”\"’）)*]{0,4}|[\n\r\u2028\u2029]"
)
_LABEL_ONLY = re.compile(r"[(\[]?\w{1,4}[)\]]?\.?")
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # e.g, U.S, Ph.D
_ABBREVIATIONS = frozenset(
    {
        *("dr", "mr", "mrs", "ms", "mx", "prof", "st", "jr", "sr", "mt", "rev", "gen", "col"),
        *("lt", "sgt", "vs", "cf", "ca", "al", "approx", "fig", "figs", "eq", "vol", "ed"),
        *("bzw", "usw", "nr", "sra", "srta"),
    }
)
_BEFORE_NUMBERS = frozenset({"no", "nos", "p", "pp", "sec", "ch", "art"})
_LONGEST_ABBREVIATION = 12
_FINAL = ".,;:!?。．！？؟۔।…、，"
_MARKUP = "*` \t\r\n"
_KEEPS_POINT = re.compile(r"(?:^|[\s(])(?:[^\W\d_]\.){2,}$")


@dataclass(frozen=True, slots=True)
class Span:
    """What is taken for the answer.

    Attributes:
        text: Without its final punctuation and wrappers; never empty. At level 3, and where
            the answer begins with an option's text, exactly that text.
        level: 1 to 4, see above.
    """

    text: str
    level: int


def extract_span(text: str, options: Sequence[str] = (), sent: str = "") -> Span | None:
    """Find the part of a reply that holds the answer.

    A marker with nothing after it (a reply cut there) is passed over for the one before.
    Takes time in proportion to the length of the reply.

    Args:
        text: The reply, raw; thinking is left out.
        options: Option texts. They also keep an answer whole that a sentence end would cut
            ("J. R. Smith").
        sent: The text that reached the model, which may have opened its thinking.

    Returns:
        None where there is nothing: an empty reply, or thinking that never ended.

    Example:
        >>> extract_span("Maybe the answer is tin. No, the **answer is** :\\n**iron**.")
        Span(text='iron', level=1)
        >>> extract_span("Well, tin melts. Iron does too!", ["tin", "iron"])
        Span(text='iron', level=3)
        >>> extract_span("It melts. About 3.5 g, i.e. all of it.")
        Span(text='About 3.5 g, i.e. all of it', level=4)
    """
    answer = answer_part(text, sent)
    body = answer.text
    if answer.unfinished or not body.strip():
        return None
    markers = [*_MARKER.finditer(body)]
    for level in (1, 2):
        found = _after_last(body, markers, level == 1, options)
        if found:
            return Span(found, level)
    last = last_mention(body, options)
    if last is not None:
        return Span(options[last.places[0]].strip(), 3)
    sentence = _last_sentence(body)
    return Span(sentence, 4) if sentence else None


def _after_last(
    text: str, markers: list[re.Match[str]], is_kind: bool, options: Sequence[str]
) -> str:
    """What follows the last marker of one kind that has anything after it."""
    stop = len(text)
    for marker in reversed(markers):
        if bool(marker["is"]) is is_kind:
            end = marker.end()  # hostile text holds a million markers with nothing between
            found = text[end:stop].strip() and _captured(text, end, stop, options)
            if found:
                return found
        stop = marker.start()  # "the answer is: Answer: tin" says nothing after its "is"
    return ""


def _captured(text: str, start: int, stop: int, options: Sequence[str]) -> str:
    space = _SPACE.match(text, start, stop)
    start = space.end() if space else start
    body = text[start : min(stop, start + _LONGEST)]
    if not body.strip(_MARKUP + _FINAL):
        return ""  # soon decided: hostile text holds a million markers in a row
    opening = _OPENING.match(body)
    body = body[opening.end() :] if opening else body
    end = next(_ends(body), len(body))
    found = _clean(body[:end])
    if not found:
        return ""
    if _LABEL_ONLY.fullmatch(body[:end].strip()):
        found += _text_of_label(body[end:], options)
    whole = begins_with(body.lstrip(_MARKUP + "\"'“‘"), options)
    if whole is not None and len(plain(options[whole])) > len(plain(found)):
        return options[whole].strip()
    return found


def _text_of_label(rest: str, options: Sequence[str]) -> str:
    """The option's text in "B. mercury", whose full stop ends no sentence; else nothing."""
    end = next(_ends(rest.lstrip()), len(rest))
    named = _clean(rest.lstrip()[:end])
    known = named and option_texts(tuple(options)).find(fold(named))
    return f". {named}" if known else ""


def _last_sentence(text: str) -> str:
    # Stops after the last word end nothing, and a hostile reply has a million of them.
    text = text[: len(text.rstrip(_MARKUP + _FINAL)) + _LONGEST_ABBREVIATION]
    stop = len(text)
    for end in reversed([0, *_ends(text)]):
        found = _clean(text[end : min(stop, end + _LONGEST)])
        if found:
            return found
        stop = end
    return ""


def _ends(text: str) -> Iterator[int]:
    """One past the end of each sentence or line."""
    for mark in _END.finditer(text):
        if not mark["dot"] or not _abbreviated(text, mark.start()):
            yield mark.end()


def _abbreviated(text: str, dot: int) -> bool:
    """Whether a full stop belongs to an abbreviation."""
    before = text[max(0, dot - _LONGEST_ABBREVIATION) : dot]
    if not before or before[-1].isspace():
        return False
    word = before.split()[-1].lstrip("([{\"'“‘*_").casefold()
    if word in _BEFORE_NUMBERS:
        return text[dot + 1 : dot + 8].lstrip()[:1].isdigit()
    if word == "etc":
        return text[dot + 1 : dot + 8].lstrip()[:1].islower()
    return word in _ABBREVIATIONS or bool(_INITIALS.fullmatch(word))


def _clean(text: str) -> str:
    """Take off wrappers, markup and final punctuation, which belong to no answer."""
    if not text.strip(_MARKUP + _FINAL):
        return ""  # soon decided: hostile text holds a million empty sentences
    opening = _OPENING.match(text)
    text = text[opening.end() :] if opening else text
    for _ in range(4):
        before = text
        text = peel(text, brackets=False).strip(_MARKUP)
        if not _KEEPS_POINT.search(text[-_LONGEST_ABBREVIATION:]):
            text = text.rstrip(_FINAL)
        if text.endswith(")") and text.count(")") > text.count("("):
            text = text[:-1]
        if text == before:
            break
    return text
