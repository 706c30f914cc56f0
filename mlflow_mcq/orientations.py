"""Orientations: the orders in which the options of an item are shown.

A scheme is a word with an optional count:

======================  ===================================================
``as-is``               the order of the data, once
``swap``                both orders of a two-option item
``rotations``           all n cyclic rotations
``rotations:k``         k evenly spaced rotations; all n where n <= k
``shuffles:k``          k distinct seeded shuffles
``gold-at:k:swap``      once, gold in slot k (0 is the top): it changes places with
                        the option there (Zheng et al., arXiv 2309.03882)
``gold-at:k:rotation``  once, gold in slot k: all options move on together, as in
                        CircularEval (Liu et al., arXiv 2307.06281)
======================  ===================================================

In a rotation by r, slot s shows option ``(s + r) mod n``.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Collection, Sequence

from mlflow_mcq.draws import shuffled
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.records import Item, Orientation

__all__ = [
    "DEFAULT_SCHEME",
    "MOST_SLOTS",
    "check_scheme",
    "duplicate_options",
    "fixed_options",
    "gold_at",
    "letters_for",
    "orientations_for",
    "plan_for",
]

DEFAULT_SCHEME = "rotations:4"
"""All rotations up to four options, four evenly spaced ones beyond."""

_LEGAL = (
    "as-is, swap, rotations, rotations:k or shuffles:k (k a whole number from 1), "
    "gold-at:k:swap or gold-at:k:rotation (k a slot, 0 is the top)"
)

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Made once: every row asks for some of them, more than once.
_LETTERS = (*_ALPHABET, *(first + second for first in _ALPHABET for second in _ALPHABET))

MOST_SLOTS = len(_LETTERS)
"""So many slots have a letter, A to ZZ; no item may have more options."""


def letters_for(n_options: int) -> tuple[str, ...]:
    """Letters by slot: A to Z, then AA, AB, ... as spreadsheets count.

    Example:
        >>> letters_for(3), letters_for(28)[-2:]
        (('A', 'B', 'C'), ('AA', 'AB'))
    """
    if not 0 <= n_options <= len(_LETTERS):
        raise SettingsError(
            "letters", f"there are names for up to {len(_LETTERS)} slots", n_options
        )
    return _LETTERS[:n_options]


def orientations_for(
    n_options: int,
    scheme: str = DEFAULT_SCHEME,
    *,
    item_id: str = "",
    seed: int = 0,
    fixed: Collection[int] = (),
) -> tuple[Orientation, ...]:
    """The orientations of one item.

    They depend on these arguments alone: not on the order of items, on the number
    of processes, or on anybody's use of `random`.

    Args:
        n_options: Number of options, at least 2.
        scheme: See the table at the top of this module.
        item_id: Enters the seed of shuffles, so that items differ.
        seed: Whole number; a bool is refused (``shuffle=True`` is not seed 1).
        fixed: Options that keep their place ("all of the above"); the others move.

    Returns:
        Distinct orientations, numbered from 0. With fixed options there may be fewer.

    Raises:
        SettingsError: The scheme is unknown or does not fit the item.

    Example:
        >>> [o.order for o in orientations_for(3, "rotations")]
        [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
        >>> [o.name for o in orientations_for(10, "rotations:4")]
        ['rot0', 'rot2', 'rot5', 'rot7']
        >>> [o.order for o in orientations_for(3, "rotations", fixed=[2])]
        [(0, 1, 2), (1, 0, 2)]
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SettingsError("seed", "must be a whole number", seed)
    if n_options < 2:
        raise SettingsError("n_options", "an item has at least two options", n_options)
    word, count = check_scheme(scheme)
    if word not in _SCHEMES:
        raise SettingsError(
            "orientations", "needs to know which option is gold", scheme, "Use plan_for(item, ...)."
        )
    free = [option for option in range(n_options) if option not in fixed]
    if word == "swap" and n_options != 2:
        raise SettingsError(
            f"orientations of item {item_id!r}",
            '"swap" needs items with two options',
            n_options,
            'Use "rotations".',
        )
    orders = _SCHEMES[word](free, count, f"{seed}\x1f{item_id}")
    return tuple(
        Orientation(index, name, _place(free, moved, n_options))
        for index, (name, moved) in enumerate(orders)
    )


def plan_for(item: Item, scheme: str = DEFAULT_SCHEME, seed: int = 0) -> tuple[Orientation, ...]:
    """The orientations of an item, with options that cannot move left in place.

    Raises:
        SettingsError: The scheme is unknown or does not fit the item.

    Example:
        >>> [o.order for o in plan_for(Item("q", "?", ("x", "y", "z"), 2), "gold-at:0:rotation")]
        [(2, 0, 1)]
    """
    word, slot = check_scheme(scheme)
    if word not in _SCHEMES and slot is not None:
        return (gold_at(item, slot, word.partition(":")[2]),)
    return orientations_for(
        len(item.options),
        scheme,
        item_id=item.id,
        seed=seed,
        fixed=fixed_options(item.options),
    )


def gold_at(item: Item, slot: int, how: str) -> Orientation:
    """The orientation that shows gold in one slot, whatever it takes to get there.

    Args:
        item: Its gold moves.
        slot: Where to; 0 is the top.
        how: ``swap``: gold and the option in that slot change places, all others stay;
            ``rotation``: all options move on by the same number of slots.

    Raises:
        SettingsError: The item has no such slot, or an option that cannot move is in the
            way. It is never left where it stands: the treatment would be another one for
            this item than for the others.

    Example:
        >>> item = Item("q", "?", ("w", "x", "y", "z"), 3)
        >>> gold_at(item, 0, "swap").order, gold_at(item, 0, "rotation").order
        ((3, 1, 2, 0), (3, 0, 1, 2))
    """
    who, name = f"orientations of item {item.id!r}", f"gold-at:{slot}:{how}"
    n_options, gold = len(item.options), item.gold
    if item.also_right:
        raise SettingsError(who, "gold is moved to one slot, and several are right", item.golds)
    if slot >= n_options:
        raise SettingsError(who, f"there is no slot {slot}, 0 is the top", n_options)
    fixed = fixed_options(item.options)
    free = [option for option in range(n_options) if option not in fixed]
    if gold == slot:
        return Orientation(0, name, tuple(range(n_options)))
    if gold in fixed or slot in fixed:
        raise SettingsError(
            who,
            f"gold cannot come to slot {slot}, since an option there depends on its place",
            item.options,
            "Leave the item out of the data of this arm.",
        )
    if how == "swap":
        moved = [slot if option == gold else gold if option == slot else option for option in free]
    else:
        shift = free.index(gold) - free.index(slot)
        moved = [free[(place + shift) % len(free)] for place in range(len(free))]
    return Orientation(0, name, _place(free, moved, n_options))


def check_scheme(scheme: str) -> tuple[str, int | None]:
    """Split a scheme into its word and count.

    Raises:
        SettingsError: Unknown word, or a count where none belongs or one is missing.

    Example:
        >>> check_scheme("shuffles:3")
        ('shuffles', 3)
        >>> check_scheme("gold-at:0:swap")
        ('gold-at:swap', 0)
    """
    gold = re.fullmatch(r"gold-at:(0|[1-9][0-9]{0,2}):(swap|rotation)", str(scheme))
    if gold is not None:
        return f"gold-at:{gold[2]}", int(gold[1])
    match = re.fullmatch(r"(as-is|swap|rotations|shuffles)(?::([1-9][0-9]{0,5}))?", str(scheme))
    if match is None:
        raise SettingsError("orientations", f"must be {_LEGAL}", scheme)
    word, digits = match.groups()
    if (word == "shuffles" and not digits) or (word in ("as-is", "swap") and digits):
        raise SettingsError("orientations", f"must be {_LEGAL}", scheme)
    return word, int(digits) if digits else None


def fixed_options(options: Sequence[str]) -> frozenset[int]:
    """Options whose meaning depends on where they stand.

    "All of the above" must stay below; "Both A and C" names other slots, so with
    one such option nothing in the item may move.

    Example:
        >>> sorted(fixed_options(["oxygen", "nitrogen", "All of the above"]))
        [2]
        >>> sorted(fixed_options(["x", "y", "Both A and B"]))
        [0, 1, 2]
        >>> sorted(fixed_options(["vitamin A and C", "iron"]))
        []
    """
    texts = [" ".join(option.split()) for option in options]
    named = _names_slots("".join(letters_for(min(len(options), 26))))
    if any(named.fullmatch(text) for text in texts):
        return frozenset(range(len(options)))
    return frozenset(i for i, text in enumerate(texts) if _POINTS_UP.fullmatch(text))


def duplicate_options(options: Sequence[str]) -> tuple[int, ...]:
    """Options whose text occurs more than once (spaces and case ignored).

    Example:
        >>> duplicate_options(["4", "6", "4 ", "9"])
        (0, 2)
    """
    texts = [" ".join(option.split()).casefold() for option in options]
    return tuple(i for i, text in enumerate(texts) if texts.count(text) > 1)


_NOUN = r"(?:answers?|options?|choices?|alternatives?|responses?|answer choices)"
_ABOVE = (
    r"(?:above(?!-)|above[- ]mentioned|aforementioned|foregoing|preceding|previous|listed|given"
    r"|others?)"
)
_RIGHT = r"(?:correct|right|true|wrong|false|incorrect)"

# Phrases that only make sense below the options they speak of, by language. English needs
# a word that points at the options: "All dogs" and "None of the patients" are ordinary texts.
_POINTS_UP = re.compile(
    "(?:"
    + "|".join(
        [
            # all of the above; none of these answers is correct; both of them; any other option
            r"(?:all|none|any|both|some|two|three|either|neither|each|one|everything|nothing)(?:"
            rf"(?: of)?(?: the| these| those)? {_ABOVE}(?: {_NOUN})?"
            rf"|(?: of)? (?:the|these|those) {_NOUN}(?: (?:above|listed|given))?"
            r"|(?: of)? the above(?!-) .{0,40}"
            r"| of (?:these|those|them)"
            r")(?:,? (?:is|are|was|were|apply|applies|except|but)\b.{0,40})?",
            rf"(?:all|none)(?: {_NOUN})?(?: (?:is|are) {_RIGHT}| {_RIGHT}| apply| applies)",
            rf"(?:all(?: other)?|no(?: other| {_RIGHT})) {_NOUN}(?: (?:above|listed|given))?"
            rf"(?: (?:is|are) {_RIGHT}| applies| apply)?",
            rf"no {_NOUN} (?:above|listed|given|(?:is|are) {_RIGHT}|applies|apply)",
            r"(?:tod[ao]s|ningun[ao]|ambas?|ambos) (?:las |los |de las |de los )?"
            r"(?:opciones |respuestas |alternativas )?(?:anteriores|de arriba|mencionad[ao]s)",
            r"(?:tod[ao]s|nenhuma?) (?:as |os |das |dos )?(?:alternativas |opções |respostas )?"
            r"(?:acima|anteriores)",
            r"(?:toutes|tous|aucune?) (?:les |des )?(?:réponses |options |propositions )?"
            r"(?:ci-dessus|précédente?s)",
            r"(?:toutes|aucune de) ces (?:réponses|options|propositions)",
            r"(?:tout ce qui|rien de ce qui) précède",
            r"(?:alle|keine?[rs]?)(?: der)?(?: oben| zuvor)? "
            r"(?:genannten|obigen|vorherigen|aufgeführten)(?: (?:antworten|optionen))?",
            r"(?:nichts|keine?[rs]?) davon",
            r"(?:tutt[ei]|nessun[ao]?) (?:le |i |delle |dei )?(?:risposte |opzioni )?"
            r"(?:precedenti|sopra elencat[ei])",
            r"(?:alle|geen(?: van)?)(?: de)? (?:bovenstaande|bovengenoemde)n?(?: antwoorden)?",
            r"(?:wszystkie|żadn[ea])(?: z)? powyższ(?:e|ych)(?: odpowiedzi)?",
            r"(?:вс[её]|ни один|ни одн[оа]|ничего)(?: из)? (?:выше)?перечисленн\w+",
            r"yukarıdakilerin (?:hepsi|tümü|hiçbiri)",
            r"tất cả (?:các |những )?(?:đáp án |phương án |ý |câu )?(?:ở )?trên",
            r"(?:semua|tidak ada)(?: jawaban| pilihan| yang| dari)* di ?atas(?: benar| salah)?",
            r"위의? ?(?:모든|모두|어느|보기).{0,12}",
            r"(?:جميع|كل) (?:ما|الخيارات|الإجابات) (?:سبق|السابقة|ذكر|أعلاه)",
            r"لا شيء (?:مما|من ما) (?:سبق|ذكر)",
            r"(?:उपरोक्त|उपर्युक्त)(?: में से)? (?:सभी|कोई(?: भी)? नहीं)|इनमें से (?:सभी|कोई(?: भी)? नहीं)",
            r"(?:以上|上述)(?:选项|選項|答案|说法|說法|各项|各項|[两兩三四五][项項者])?"
            r"(?:(?:都|皆|全|均|所有|没有|沒有|无一|無一).{0,6})?",
            r"(?:上記|以上|前述)の?(?:すべて|全て|いずれ|どれ|選択肢).{0,8}",
        ]
    )
    + ")[.!。]?",
    re.IGNORECASE,
)


def _names_slots(letters: str) -> re.Pattern[str]:
    # Small letters count too: "a and b" may be prose about two variables, but then the
    # item merely stays unrotated, which is reported and harms nothing.
    one = rf"\(?[{letters}]\)?"
    noun = rf"(?:{_NOUN} )?"
    words = "and|or|nor|through|und|oder|et|ou|y|o|e|i|en|of|och|og|и|или|ve|veya|dan"
    link = rf"(?:,? (?:{words}) |, ?| ?[&+和与與及或と와과] ?)"
    return re.compile(
        rf"(?:(?:both|either|neither|(?:only|all|none|any)(?: of)?) )?{noun}{one}(?:{link}{one})+"
        rf"(?: (?:only|alone|both|together|apply|(?:is|are) (?:both |all )?{_RIGHT})"
        r"| ?[都皆均の].{0,5})?[.。]?"
        rf"|(?:only|(?:all|everything)(?: of the above)?,? (?:but|except)) {noun}{one}[.]?",
        re.IGNORECASE,
    )


def _place(free: Sequence[int], moved: Sequence[int], n_options: int) -> tuple[int, ...]:
    order = list(range(n_options))
    for slot, option in zip(free, moved, strict=True):
        order[slot] = option
    return tuple(order)


_Orders = list[tuple[str, list[int]]]


def _as_is(free: list[int], count: int | None, key: str) -> _Orders:
    return [("as-is", free)]


def _swap(free: list[int], count: int | None, key: str) -> _Orders:
    orders = [("as-is", free)]
    return [*orders, ("swap", free[::-1])] if len(free) == 2 else orders


def _rotations(free: list[int], count: int | None, key: str) -> _Orders:
    n = max(len(free), 1)
    k = n if count is None else min(count, n)
    shifts = [i * n // k for i in range(k)]
    return [(f"rot{shift}", free[shift:] + free[:shift]) for shift in shifts]


def _shuffles(free: list[int], count: int | None, key: str) -> _Orders:
    draw = random.Random(key)
    wanted = min(count or 1, math.factorial(len(free)))
    seen: dict[tuple[int, ...], None] = {}
    while len(seen) < wanted:  # distinct orders of distinct indices: always ends
        seen[tuple(shuffled(free, draw))] = None
    return [(f"shuffle{i}", list(order)) for i, order in enumerate(seen)]


_SCHEMES: dict[str, Callable[[list[int], int | None, str], _Orders]] = {
    "as-is": _as_is,
    "swap": _swap,
    "rotations": _rotations,
    "shuffles": _shuffles,
}
