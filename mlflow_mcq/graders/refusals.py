"""What the world writes instead of an answer: "I cannot answer", "je ne sais pas".

A small table, for graders that have no judge: similarity would find an option near any
sentence. Only phrases that decline to name an option stand here, not those that merely
hedge ("I'm not sure, but"). A refusal in other words is left to the floor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlflow_mcq.graders.mentions import plain

__all__ = ["REFUSALS", "is_refusal"]

_CANNOT = (
    r"(?:cannot|can't|can not|could not|couldn't|won't|will not|(?:am|i'm|is|be) unable to|"
    r"unable to|not able to|decline to|refuse to)"
)
REFUSALS: dict[str, str] = {
    "en": rf"{_CANNOT} (?:(?:really|possibly|directly|confidently) )?(?:answer|help|assist|"
    r"determine|choose|decide|pick|select|comply|fulfill|respond|provide|give|offer)|"
    r"cannot be (?:answered|determined)|as an ai(?: language model)?|"
    r"(?:i|we) (?:don't|do not) know|(?:i )?have no idea|no idea|"
    r"(?:not enough|insufficient) (?:information|context)|i'd rather not|"
    r"none of (?:the (?:above|options|answers|choices|given|listed)|these|them)",
    "de": r"(?:kann|könnte|möchte) (?:ich )?(?:(?:diese|die|das|ihnen|dir|leider|frage) ){0,4}"
    r"nicht (?:beantworten|helfen|sagen|entscheiden)|ich weiß (?:es )?nicht|"
    r"keine der (?:genannten |obigen )?(?:antworten|optionen|möglichkeiten)|keine ahnung",
    "fr": r"ne (?:peux|puis|pourrais) pas (?:vous |t'|y )?(?:répondre|aider|choisir|déterminer)|"
    r"(?:je )?ne sais pas|aucune (?:des|de ces) (?:réponses|options)|aucune idée",
    "es": r"no puedo (?:responder|contestar|ayudar\w*|elegir|determinar)|no (?:lo )?sé|"
    r"ninguna de las (?:anteriores|opciones|respuestas)|no tengo (?:ni )?idea",
    "pt": r"não (?:posso|consigo) (?:responder|ajudar|escolher|determinar)|(?:eu )?não sei|"
    r"nenhuma das (?:anteriores|opções|alternativas|respostas)|não faço ideia",
    "it": r"non posso (?:rispondere|aiutar\w*|scegliere|determinare)|non (?:lo )?so|"
    r"nessuna delle (?:precedenti|opzioni|risposte)|non ne ho idea",
    "nl": r"kan (?:ik )?(?:(?:deze|de|vraag|je|u|helaas) ){0,4}niet (?:beantwoorden|helpen|kiezen)|"
    r"(?:ik )?weet (?:het )?niet|geen van (?:de|deze) (?:opties|antwoorden)|geen idee",
    "pl": r"nie mogę (?:odpowiedzieć|pomóc|wybrać)|nie wiem|"
    r"żadna z (?:powyższych|opcji|odpowiedzi)",
    "ru": r"не могу (?:ответить|помочь|выбрать|определить)|(?:я )?не знаю|"
    r"ни один из (?:вариантов|ответов|перечисленных)",
    "uk": r"не можу (?:відповісти|допомогти|вибрати|визначити)|(?:я )?не знаю|жоден з варіантів",
    "cs": r"nemohu (?:odpovědět|pomoci|vybrat)|nevím|žádná z (?:možností|odpovědí|uvedených)",
    "ro": r"nu pot (?:să )?(?:răspund\w*|ajut\w*|aleg\w*)|nu știu|"
    r"niciuna dintre (?:variante|opțiuni)",
    "hu": r"nem tudok (?:válaszolni|segíteni|választani)|nem tudom|egyik sem",
    "fi": r"en (?:voi|pysty) (?:vastata|vastaamaan|auttaa|auttamaan|valita)|en tiedä|"
    r"ei mikään (?:näistä|vaihtoehdoista)",
    "sv, da, no": r"kan (?:jag|jeg)? ?(?:inte|ikke) (?:svara|svare|besvara|besvare|hjälpa|hjælpe|"
    r"hjelpe|välja|vælge|velge)|(?:jag|jeg) (?:vet|ved) (?:inte|ikke)",
    "el": r"δεν μπορώ να (?:απαντήσω|βοηθήσω|επιλέξω)|δεν (?:γνωρίζω|ξέρω)",
    "tr": r"(?:cevap|yanıt) veremem|cevaplayamam|yanıtlayamam|yardımcı olamam|bilmiyorum|hiçbiri",
    "he": r"(?:לא יכול|איני יכול|לא יכולה) (?:לענות|לעזור|לבחור)|(?:אני )?לא יודע(?:ת)?",
    "ar": r"لا (?:أستطيع|يمكنني) (?:الإجابة|المساعدة|الاختيار|تحديد)|لا أعرف|لا أعلم",
    "fa": r"نمی.?توانم (?:پاسخ|جواب|کمک)|نمی.?دانم",
    "hi": r"(?:उत्तर|जवाब|मदद) नहीं (?:दे|कर) सकत[ाी]|(?:मुझे )?नहीं पता|नहीं जानत[ाी]",
    "id, ms": r"tidak (?:bisa|dapat|boleh) (?:menjawab|membantu|memilih)|(?:saya )?tidak tahu",
    "vi": r"không thể (?:trả lời|giúp|chọn|xác định)|(?:tôi )?không biết",
    "th": r"ไม่สามารถ(?:ตอบ|ช่วย|เลือก)|ไม่ทราบ|ไม่รู้",
    "ja": r"(?:お)?答え(?:する)?(?:ことは|ことが)?(?:でき|られ)(?:ません|ない)|お答えできません|"
    r"わかりません|分かりません",
    "zh": r"(?:无法|不能|無法|没法)(?:回答|确定|確定|选择|選擇|提供|帮助|判断|判斷)|"
    r"不知道|我不确定",
    "ko": r"(?:답변|대답|답)(?:을|할|해)? ?(?:드릴 )?수 ?(?:가 )?없|모르겠|알 수 없",
}
"""Regular expressions by language, over text as `mlflow_mcq.graders.mentions.plain` has it."""

_UNBOUNDED = ("hi", "th", "ja", "zh", "ko")
_LOOKED_AT = 4000


def _alternatives(bounded: bool) -> str:
    return "|".join(w for name, w in REFUSALS.items() if (name not in _UNBOUNDED) == bounded)


_REFUSAL = re.compile(rf"(?<!\w)(?:{_alternatives(True)})(?!\w)|(?:{_alternatives(False)})")


def is_refusal(text: str, options: Sequence[str] = ()) -> bool:
    """Whether a text declines to name an option.

    Args:
        text: An answer; its first 4000 characters are looked at.
        options: Option texts. A phrase that an option contains ("It cannot be
            determined") is an answer here, no refusal.

    Example:
        >>> is_refusal("I'm sorry, but I can’t help with that."), is_refusal("Tin can help.")
        (True, False)
        >>> is_refusal("It cannot be determined", ["Cannot be determined", "Tin"])
        False
    """
    said = plain(text[:_LOOKED_AT])
    known = [plain(option) for option in options]
    return any(all(found[0] not in option for option in known) for found in _REFUSAL.finditer(said))
