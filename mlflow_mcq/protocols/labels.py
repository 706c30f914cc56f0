"""Labels: the names of the slots on paper, in the alphabet that a setting names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from mlflow_mcq.errors import SettingsError
from mlflow_mcq.nearest import known_names
from mlflow_mcq.orientations import MOST_SLOTS, letters_for, orientations_for

__all__ = ["LABEL_STYLES", "check_labels", "kind_of", "labels_for", "shuffled"]

_LONGEST = 12
"""Characters of a label: what is longer is a text, and reads like an option."""

# As examinations of the language list their options, which is not always its whole
# alphabet: Russian leaves out the letters that are taken for others.
_ALPHABETS = {
    "katakana": "ア イ ウ エ オ カ キ ク ケ コ サ シ ス セ ソ タ チ ツ テ ト ナ ニ ヌ ネ ノ",
    "hangul": "가 나 다 라 마 바 사 아 자 차 카 타 파 하",
    "cyrillic": "А Б В Г Д Е Ж З И К Л М Н О П Р С Т У Ф Х Ц Ч Ш Щ Э Ю Я",
    "greek": "α β γ δ ε ζ η θ ι κ λ μ ν ξ ο π ρ σ τ υ φ χ ψ ω",
    "arabic": "أ ب ج د هـ و ز ح ط ي",
    "devanagari": "क ख ग घ ङ च छ ज झ ञ",
    "hebrew": "א ב ג ד ה ו ז ח ט י",
}
_NATIVE = {
    "ja": "katakana",
    "ko": "hangul",
    "ru": "cyrillic",
    "ar": "arabic",
    "hi": "devanagari",
}
_ROMAN = ((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def _roman(number: int) -> str:
    parts = []
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        parts.append(sign * count)
    return "".join(parts)


def _alphabet(name: str) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(_ALPHABETS[name].split())


LABEL_STYLES: dict[str, Callable[[], tuple[str, ...]]] = {
    "upper": lambda: letters_for(MOST_SLOTS),
    "lower": lambda: tuple(letter.lower() for letter in letters_for(MOST_SLOTS)),
    "digits": lambda: tuple(str(number) for number in range(1, MOST_SLOTS + 1)),
    "roman": lambda: tuple(_roman(number) for number in range(1, 51)),
    **{name: _alphabet(name) for name in _ALPHABETS},
}
"""Every named style: all the labels it has, first slot first."""


def labels_for(style: str | Sequence[str], n_options: int, language: str = "en") -> tuple[str, ...]:
    """The labels of an item's slots.

    Args:
        style: A name of `LABEL_STYLES`, ``native`` (the alphabet that examinations in the
            language use; A, B, C where it has none of its own here), or the labels themselves.
        n_options: Number of slots.
        language: For ``native``.

    Raises:
        SettingsError: The style has fewer labels than the item has options.

    Example:
        >>> labels_for("lower", 3), labels_for("roman", 4)
        (('a', 'b', 'c'), ('i', 'ii', 'iii', 'iv'))
        >>> labels_for("native", 3, "ja"), labels_for(["X", "Y"], 2)
        (('ア', 'イ', 'ウ'), ('X', 'Y'))
    """
    name = _NATIVE.get(language, "upper") if style == "native" else style
    known = LABEL_STYLES[name]() if isinstance(name, str) else tuple(name)
    if len(known) < n_options:
        raise SettingsError(
            "labels",
            f"has {len(known)} labels, and an item has {n_options} options",
            style,
            f'Give a longer list, or use "upper", which has {MOST_SLOTS}.',
        )
    return known[:n_options]


def check_labels(style: str | Sequence[str]) -> None:
    """Refuse a style that is unknown, or a list that could not be read back.

    Raises:
        SettingsError: Says what is wrong, with the nearest known name.

    Example:
        >>> check_labels("upper"), check_labels(["1st", "2nd"])
        (None, None)
    """
    if isinstance(style, str):
        known = sorted([*LABEL_STYLES, "native"])
        if style not in known:
            possible = known_names(style, known, f"{', '.join(known)}, or a list")
            raise SettingsError("labels", "is unknown", style, possible)
        return
    if len(style) < 2:
        raise SettingsError("labels", "must name at least two slots", list(style))
    for label in style:
        if label != label.strip() or not label or len(label) > _LONGEST or len(label.split()) > 1:
            raise SettingsError(
                "labels", f"must be single words of at most {_LONGEST} characters", label
            )
    # Readers take "b" for "B": two labels that differ by case alone cannot be told apart.
    folded = [label.casefold() for label in style]
    twice = [label for label in style if folded.count(label.casefold()) > 1]
    if twice:
        raise SettingsError("labels", "must differ in more than case", twice)


def kind_of(labels: Sequence[str]) -> str:
    """What the labels are, as an instruction calls them: a letter, a number or a label.

    Example:
        >>> kind_of(("A", "B")), kind_of(("1", "2")), kind_of(("ii", "iii"))
        ('letter', 'number', 'label')
    """
    if labels and all(label.isdecimal() for label in labels):
        return "number"
    # Beyond Z the letters go on with AA, AB, ...: the first is still a letter.
    lettered = labels and all(len(label) == 1 and label.isalpha() for label in labels[:26])
    return "letter" if lettered and labels[0] != "i" else "label"


def shuffled(labels: Sequence[str], *key: object) -> tuple[str, ...]:
    """The labels in an order drawn from a key alone, on any machine.

    Example:
        >>> shuffled(("A", "B"), 1, "q1"), sorted(shuffled(("A", "B", "C"), 0, "q1"))
        (('B', 'A'), ['A', 'B', 'C'])
    """
    drawn = orientations_for(len(labels), "shuffles:1", item_id=json.dumps(["labels", *key]))
    return tuple(labels[place] for place in drawn[0].order)
