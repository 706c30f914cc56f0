"""What the world writes before a bare label: "Answer:", "La respuesta es", "答案是".

Only words that announce an answer stand here. A word outside the table makes the
strict rule abstain, which costs one judge call and is never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["ANSWER_WORDS", "Lead", "without_lead"]

ANSWER_WORDS: dict[str, str] = {
    "en": r"(?:the |my )?(?:(?:final|correct|right|best) ){0,2}"
    r"(?:answer|option|choice)(?: is| would be)?",
    "de": r"(?:die |meine )?(?:(?:richtige|korrekte|endgültige) )?"
    r"(?:antwort|lösung|option|antwortmöglichkeit)(?: ist| lautet)?",
    "fr": r"(?:la |ma |l'|l’)?(?:bonne )?(?:réponse|option)(?: correcte| finale)?(?: est)?",
    "es": r"(?:la |mi )?(?:respuesta|opción|opcion)(?: correcta| final)?(?: es)?",
    "pt": r"(?:a |minha )?(?:resposta|opção|alternativa)(?: correta| certa| final)?(?: é)?",
    "it": r"(?:la |l'|l’)?(?:risposta|opzione)(?: corretta| giusta| finale)?(?: è)?",
    "nl": r"(?:het |de )?(?:juiste |correcte )?(?:antwoord|optie)(?: is)?",
    "pl": r"(?:poprawna |prawidłowa )?(?:odpowiedź|opcja)(?: to)?",
    "ru": r"(?:правильный |верный )?(?:ответ|вариант)(?: это)?",
    "uk": r"(?:правильна |правильний )?(?:відповідь|варіант)(?: це)?",
    "cs": r"(?:správná )?(?:odpověď|možnost)(?: je)?",
    "ro": r"(?:răspunsul|răspuns|opțiunea|varianta)(?: corect| corectă)?(?: este)?",
    "hu": r"(?:a )?(?:helyes )?(?:válasz|megoldás|lehetőség)",
    "fi": r"(?:oikea )?(?:vastaus|vaihtoehto)(?: on)?",
    "sv, da, no": r"(?:rätt |riktig |rigtigt )?(?:svaret|svar|alternativ)(?: är| er)?",
    "el": r"(?:η )?(?:σωστή )?(?:απάντηση|επιλογή)(?: είναι)?",
    "tr": r"(?:doğru )?(?:cevap|yanıt|seçenek|şık)",
    "he": r"(?:ה)?(?:תשובה|אפשרות)(?: הנכונה)?(?: היא)?",
    "ar": r"(?:الإجابة|الجواب|إجابة|الخيار)(?: الصحيحة| الصحيح)?(?: هي| هو)?",
    "fa": r"(?:پاسخ|جواب|گزینه)(?: صحیح| درست)?",
    "hi": r"(?:सही )?(?:उत्तर|जवाब|विकल्प)",
    "bn": r"(?:সঠিক )?(?:উত্তর|বিকল্প)(?: হলো| হল)?",
    "id, ms": r"(?:jawabannya|jawaban|jawapan|pilihan|opsi)(?: yang benar)?(?: adalah| ialah)?",
    "vi": r"(?:đáp án|câu trả lời|lựa chọn|phương án)(?: đúng)?(?: là)?",
    "th": r"(?:คำตอบ|ตัวเลือก)(?:ที่ถูกต้อง)?(?:คือ)?",
    # Before Chinese, whose one-character word for "answer" begins the Japanese one.
    "ja": r"(?:正しい)?(?:答え|解答|回答|正解|選択肢)(?:は)?",
    "zh": r"(?:正确|正確|最终|最終)?(?:答案|选项|選項|选择|選擇|答)(?:是|为|為)?",
    "ko": r"(?:최종 )?(?:정답|답변|답|선택지|보기)(?:은|는)?",
}
"""Regular expressions by language; a space stands for any white space."""

_OPTION_WORD = re.compile(
    "option|choice|opción|opcion|opção|alternativa|opzione|optie|opcja|вариант|варіант|možnost|"
    "opțiunea|varianta|lehetőség|vaihtoehto|alternativ|επιλογή|seçenek|şık|אפשרות|الخيار|گزینه|"
    "विकल्प|বিকল্প|pilihan|opsi|lựa chọn|phương án|ตัวเลือก|选项|選項|選択肢|선택지|보기"
)
_UNSPACED = ("zh", "ja", "th", "ko")
# Copulas that these languages put after the label.
_AFTER = ("です", "だ", "である", "입니다", "번입니다", "번", "이다", " है", " ہے", "'dir", "'dır")


def _alternatives(spaced: bool) -> str:
    words = [w for name, w in ANSWER_WORDS.items() if (name not in _UNSPACED) == spaced]
    return "|".join(words).replace(" ", r"\s{1,8}")


_LEAD = re.compile(
    r"(?P<mark>\*\*|__|\*|)\s{0,8}"
    rf"(?:(?P<word>{_alternatives(True)})(?=[\s:=*_])|(?P<tight>{_alternatives(False)}))"
    r"(?:\s{0,8}(?P<inner>\*\*|__|\*))?"
    r"(?P<colon>\s{0,8}[:=]|\s{1,8}[-–—](?=\s)|)\s{0,8}(?P<after>\*\*|__|\*|)\s*",
    re.IGNORECASE,
)


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
    mark = _LEAD.match(text)
    if mark is None or mark.end() == len(text):
        return text, Lead()
    end = mark.end()
    closing = [mark["inner"], mark["after"]]
    if mark["mark"] and mark["mark"] not in closing:
        return text, Lead()  # bold that is still open wraps the label as well: not ours
    if not mark["mark"] and mark["after"]:
        end = mark.start("after")  # bold that opens here belongs to the label
    word = (mark["word"] or mark["tight"]).casefold()
    rest = text[end:]
    if not rest.isascii() or "'" in rest:
        for copula in _AFTER:
            rest = rest.removesuffix(".").removesuffix(copula)
    return rest, Lead(True, bool(mark["colon"]), bool(_OPTION_WORD.search(word)))
