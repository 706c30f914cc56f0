"""What the world writes before a bare label: "Answer:", "La respuesta es", "答案是".

Only words that announce an answer stand here. A word outside the table makes the
strict rule abstain, which costs one judge call and is never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["ANSWER_WORDS", "Lead", "without_lead"]

# "La respuesta es la B": the article goes only where nothing but a capital follows, since
# "es la luna" may be an option's text.
_ARTICLE = r"(?: {0}(?=\s+\W{0,4}(?-i:[A-Z])\W{0,4}$))?"
_LA, _A = _ARTICLE.replace("{0}", "la"), _ARTICLE.replace("{0}", "a")

ANSWER_WORDS: dict[str, str] = {
    "en": r"(?:the |my )?(?:(?:final|correct|right|best) ){0,2}"
    r"(?:answer|option|choice|letter|ans)(?: is| would be)?",
    "de": r"(?:die |meine )?(?:(?:richtige|korrekte|endgültige) )?"
    r"(?:antwort|lösung|option|antwortmöglichkeit|antwortoption|buchstabe)(?: ist| lautet| wäre)?",
    "fr": r"(?:la |ma |l'|l’)?(?:bonne )?(?:réponse|option|lettre)(?: correcte| exacte| finale)?"
    rf"(?: est(?:{_LA})?)?",
    "es": r"(?:la |mi )?(?:respuesta|opción|opcion|letra)(?: correcta| final)?(?: es| sería)?"
    rf"{_LA}",
    "pt": r"(?:a |minha )?(?:resposta|opção|alternativa|letra)(?: correta| certa| final)?(?: é)?"
    rf"{_A}",
    "ca": r"(?:la )?(?:resposta|opció|lletra)(?: correcta| final)?(?: és)?"
    rf"{_LA}",
    "it": r"(?:la |l'|l’)?(?:risposta|opzione|lettera)(?: corretta| giusta| esatta| finale)?(?: è)?"
    rf"{_LA}",
    "nl": r"(?:het |de )?(?:juiste |correcte )?(?:antwoord|optie)(?: is)?",
    "pl": r"(?:poprawna |prawidłowa )?(?:odpowiedź|opcja)(?: to)?",
    "ru": r"(?:правильный |верный )?(?:ответ|вариант)(?: это)?",
    "uk": r"(?:правильна |правильний )?(?:відповідь|варіант)(?: це)?",
    "cs, sk": r"(?:správná |správna )?(?:odpověď|odpoveď|možnost|možnosť)(?: je)?",
    "hr, sr, sl": r"(?:tačan |točan |pravilen |pravilan )?(?:odgovor|opcija|možnost)(?: je)?",
    "sr (Cyrillic)": r"(?:тачан )?одговор(?: је)?",
    "bg, mk": r"(?:верният |правилният |точниот )?(?:отговор|отговорът|одговор)(?: е)?",
    "lt": r"(?:teisingas )?(?:atsakymas|variantas)(?: yra)?",
    "lv": r"(?:pareizā )?(?:atbilde|opcija)(?: ir)?",
    "et": r"(?:õige )?(?:vastus|variant)(?: on)?",
    "eu": r"(?:erantzuna|erantzun)(?: zuzena)?",
    "sw": r"(?:jibu|jawabu)(?: sahihi)?(?: ni)?",
    "tl": r"(?:ang )?(?:tamang )?sagot(?: ay)?",
    "af": r"(?:die )?(?:korrekte )?(?:antwoord|opsie)(?: is)?",
    "is": r"(?:rétt )?(?:svarið|svar)(?: er)?",
    "az, uz, kk": r"(?:düzgün |to'g'ri |дұрыс )?(?:cavab|javob|жауап)",
    "ka": r"(?:სწორი )?(?:პასუხი|პასუხია)",
    "hy": r"(?:ճիշտ )?(?:պատասխանը|պատասխան)",
    "ta": r"(?:சரியான )?(?:பதில்|விடை)",
    "te": r"(?:సరైన )?(?:సమాధానం|జవాబు)",
    "kn, ml": r"(?:ಸರಿಯಾದ )?(?:ಉತ್ತರ)|(?:ശരിയായ )?(?:ഉത്തരം)",
    "gu, pa": r"(?:સાચો )?(?:જવાબ)|(?:ਸਹੀ )?(?:ਜਵਾਬ|ਉੱਤਰ)",
    "ur": r"(?:صحیح |درست )?جواب",
    "ro": r"(?:răspunsul|răspuns|opțiunea|varianta)(?: corect| corectă)?(?: este)?",
    "hu": r"(?:a )?(?:helyes )?(?:válasz|megoldás|lehetőség)",
    "fi": r"(?:oikea )?(?:vastaus|vaihtoehto)(?: on)?",
    "sv, da, no": r"(?:rätt |riktig |rigtigt )?(?:svaret|svar|alternativ)(?: är| er)?",
    "el": r"(?:η )?(?:σωστή )?(?:απάντηση|επιλογή)(?: είναι)?",
    "tr": r"(?:doğru )?(?:cevap|yanıt|seçenek|şık)",
    "he": r"(?:תשובה|התשובה|אפשרות|האפשרות)(?: הנכונה)?(?: היא)?",
    "ar": r"(?:الإجابة|الجواب|إجابة|الخيار)(?: الصحيحة| الصحيح)?(?: هي| هو)?",
    "fa": r"(?:پاسخ|جواب|گزینه)(?: صحیح| درست)?",
    "hi, mr, ne": r"(?:सही |बरोबर |योग्य )?(?:उत्तर|जवाब|विकल्प)",
    "bn": r"(?:সঠিক )?(?:উত্তর|বিকল্প)(?: হলো| হল)?",
    "id, ms": r"(?:jawabannya|jawaban|jawapan|pilihan|opsi)(?: yang benar)?(?: adalah| ialah)?",
    "vi": r"(?:đáp án|câu trả lời|lựa chọn|phương án)(?: đúng)?(?: là)?",
    "th": r"(?:คำตอบ|ตัวเลือก)(?:ที่ถูกต้อง)?(?:คือ)?",
    # Before Chinese, whose one-character word for "answer" begins the Japanese one.
    "ja": r"(?:正しい)?(?:答え|解答|回答|正解|選択肢)(?:は)?",
    "zh": r"(?:正确|正確|最终|最終)?(?:答案|选项|選項|选择|選擇|答|故选|应选|應選|选|選)"
    r"(?:是|为|為)?",
    "ko": r"(?:최종 )?(?:정답|답변|답|선택지|보기)(?:은|는)?",
}
"""Regular expressions by language; a space stands for any white space."""

_OPTION_WORD = re.compile(
    "option|choice|letter|lettre|letra|lletra|lettera|buchstabe|opció|opción|opcion|opção|"
    "alternativa|opzione|optie|opcja|вариант|варіант|možnost|"
    "opțiunea|varianta|lehetőség|vaihtoehto|alternativ|επιλογή|seçenek|şık|אפשרות|الخيار|گزینه|"
    "opcija|opsie|možnosť|variantas|variant|"
    "विकल्प|বিকল্প|pilihan|opsi|lựa chọn|phương án|ตัวเลือก|选项|選項|選択肢|선택지|보기"
)
_UNSPACED = ("zh", "ja", "th", "ko")
# Copulas that these languages put after the label.
_AFTER = ("です", "だ", "である", "입니다", "번입니다", "번", "이다", " है", " ہے", "'dir", "'dır")


def _alternatives(languages: frozenset[str]) -> str:
    words = [words for name, words in ANSWER_WORDS.items() if name in languages]
    return "|".join(words).replace(" ", r"\s{1,8}") or r"(?!)"


@lru_cache(maxsize=64)
def _lead_of(spaced: frozenset[str], tight: frozenset[str]) -> re.Pattern[str]:
    """Answer words of some languages, with what may stand around them."""
    return re.compile(
        r"(?:\#{1,6}\s{1,8})?(?P<mark>\*\*|__|\*|)\s{0,8}"
        rf"(?:(?P<word>{_alternatives(spaced)})(?=[\s:=*_])|(?P<tight>{_alternatives(tight)}))"
        r"(?:\s{0,8}(?P<inner>\*\*|__|\*))?"
        r"(?P<colon>\s{0,8}[:=]|\s{1,8}[-–—](?=\s)|)\s{0,8}(?P<after>\*\*|__|\*|)\s*",
        re.IGNORECASE,
    )


_TIGHT = frozenset(_UNSPACED)
_SPACED = frozenset(ANSWER_WORDS) - _TIGHT
_NONE: frozenset[str] = frozenset()
_RUN = re.compile(r"[^\W_]+")


def _languages_by_word() -> dict[str, frozenset[str]]:
    """Languages by each word of their patterns, so that few patterns are tried.

    Trying them all costs more than all the rest of the strict rule.
    """
    table: dict[str, set[str]] = {}
    for name in _SPACED:
        for word in _RUN.findall(ANSWER_WORDS[name]):
            table.setdefault(_plain(word), set()).add(name)
    return {word: frozenset(names) for word, names in table.items()}


def _plain(word: str) -> str:
    # re.IGNORECASE takes the Turkish dotless i for an i.
    return word.lower().replace("ı", "i")


_BY_WORD = _languages_by_word()


def _match(text: str) -> re.Match[str] | None:
    """Match answer words at the front, trying only languages that have the first word."""
    first = _RUN.match(text.lstrip("#*_ \t\n\r\f\v"))
    if first is None:
        return None
    languages = _BY_WORD.get(_plain(first[0]))
    if languages is not None:
        return _lead_of(languages, _NONE).match(text)
    # Other scripts may join words to what follows; plain letters never do.
    return None if first[0].isascii() else _lead_of(_SPACED, _TIGHT).match(text)


@dataclass(frozen=True, slots=True)
class Lead:
    """What stood before the answer.

    Attributes:
        found: There were answer words.
        colon: They ended with a colon.
        option: They said "option", which only a label follows.
    """

    found: bool = False
    colon: bool = False
    option: bool = False


def without_lead(text: str) -> tuple[str, Lead]:
    """Take answer words off the front, at most one run of them.

    Example:
        >>> without_lead("Die Antwort ist: C")
        ('C', Lead(found=True, colon=True, option=False))
        >>> without_lead("Answers vary")
        ('Answers vary', Lead(found=False, colon=False, option=False))
    """
    mark = _match(text)
    if mark is None or mark.end() == len(text):
        return text, Lead()
    end = mark.end()
    inner = mark["inner"]
    closing = [inner, mark["after"]]
    if mark["mark"] and mark["mark"] not in closing:
        return text, Lead()  # bold that is still open wraps the label as well: not ours
    if not mark["mark"] and mark["after"]:
        end = mark.start("after")  # bold that opens here belongs to the label
    elif not mark["mark"] and inner and not mark["colon"] and inner in text[end:]:
        end = mark.start("inner")  # "The answer is **B**."
    word = (mark["word"] or mark["tight"]).casefold()
    rest = text[end:]
    if not rest.isascii() or "'" in rest:
        for copula in _AFTER:
            bare = rest.removesuffix(".")
            # The full stop stays where nothing stood before it: it marks a label.
            rest = bare.removesuffix(copula) if bare.endswith(copula) else rest
    return rest, Lead(True, bool(mark["colon"]), bool(_OPTION_WORD.search(word)))
