"""Data on its way to a judge: text that a chat template or a reader takes for text only.

Signs are replaced one for one and never removed: the judge still sees that something stood
there, and what two sides of a removed sign would spell together never comes to be.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from mlflow_mcq.graders.translated import translated

__all__ = ["HARMLESS_VERSION", "harmless"]

HARMLESS_VERSION = 2
"""Counts the rules below: another rule shows the judge other pages, so it is another judge."""

# Tokens that steer chat templates. Inside a quotation they could close our message and
# open another, so their first character is replaced by a look-alike: the judge still
# sees what stood there, a tokenizer no longer does.
_CONTROL = re.compile(
    # A letter first: of a million "<" each would be held against every name.
    r"<(?=[|｜]|(?=/?[a-z])/?(?:s|bos|eos|pad|unk|mask|cls|sep|start_of_turn|end_of_turn|think|thinking"
    r"|tool_call|tool_response|extra_id_\d{1,3}|endoftext|im_start|im_end|begin_of_text"
    r"|image|audio|video|human|assistant|system|user)>|</?SYS>|/?SYS>|(?:channel|turn|tool)\|>)"
    r"|\[(?=/?[a-z])(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT|gMASK|THINK"
    r"|CLS|SEP|MASK|PAD|UNK|BOS|EOS)\])",
    re.IGNORECASE,
)
_STANDS_FOR = "‹"
_LOST = "\ufffd"

# Tokenizers that fold widths would read these as the ASCII signs.
_WIDE = {
    code: folded
    for code in (*range(0xFE50, 0xFE70), *range(0xFF01, 0xFF5F))
    for folded in [unicodedata.normalize("NFKC", chr(code))]
    if len(folded) == 1 and folded.isascii()
}
# Needed in Persian, Hindi, Hebrew or emoji, so they stay; but a token may hide behind them.
_JOINERS = frozenset("\u200c\u200d\u200e\u200f\u061c")
# What nobody sees (C0, C1, fillers, tags), what turns text around on a screen (overrides,
# isolates), what begins another line, and half a surrogate pair. Tab and line feed stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
    "\ud800-\udfff]|\r(?!\n)"
)


def harmless(text: str, control: tuple[str, ...] = ()) -> str:
    """Replace what a chat template, an encoder or an eye would not take as text.

    Args:
        text: Anything.
        control: Further tokens of one model, in any case of letters.

    Returns:
        A text of the same length.

    Example:
        >>> harmless("B<|im_end|> [INST] a < b")
        'B‹|im_end|> ‹INST] a < b'
        >>> harmless("a <repo> b", ("<repo>",)), harmless("x\\x1b[2J")
        ('a ‹repo> b', 'x\ufffd[2J')
    """
    seen = _UNSEEN.sub(_LOST, text)
    for find in (_CONTROL, _own(control)):
        seen = _replaced(seen, find)
    return seen


@lru_cache(maxsize=32)
def _own(control: tuple[str, ...]) -> re.Pattern[str] | None:
    if not control:
        return None
    longest_first = sorted(control, key=len, reverse=True)
    # Looked ahead for, so that tokens which overlap are all found.
    names = "|".join(re.escape(token.translate(_WIDE)) for token in longest_first)
    return re.compile(rf"(?={names}).", re.IGNORECASE | re.DOTALL)


def _replaced(text: str, find: re.Pattern[str] | None) -> str:
    """Put the stand-in where a token begins, wide signs and joiners notwithstanding."""
    if find is None:
        return text
    if text.isascii():
        return find.sub(_STANDS_FOR, text)
    if _JOINERS.isdisjoint(text):
        starts = [match.start() for match in find.finditer(translated(text, _WIDE))]
    else:
        places = [place for place, sign in enumerate(text) if sign not in _JOINERS]
        plain = translated("".join([text[place] for place in places]), _WIDE)
        starts = [places[match.start()] for match in find.finditer(plain)]
    if not starts:
        return text
    signs = [*text]
    for start in starts:
        signs[start] = _STANDS_FOR
    return "".join(signs)
