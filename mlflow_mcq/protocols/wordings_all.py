"""How every right option is asked for, in twelve languages: data, one block a language.

As `mlflow_mcq.protocols.wordings`, for items of which one or more options are right. How many
are must not show, so that an item with one right option is asked in the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WORDINGS_ALL", "WordingAll"]


@dataclass(frozen=True, slots=True)
class WordingAll:
    """What a language says where all right options are asked for.

    Attributes:
        letters: Asks for labels and nothing else.
        reasoned: Asks for reasoning, then labels after the cue.
        dashes: Asks to end with the phrase and the full texts of options, one a line.
    """

    letters: str
    reasoned: str
    dashes: str


WORDINGS_ALL: dict[str, WordingAll] = {
    "en": WordingAll(
        letters="One or more options are right. Answer with the {kind}s of all that are, "
        "separated by commas, and with nothing else: {labels}.",
        reasoned="One or more options are right. Think step by step, then end with a line that "
        'says "Answer: " and the {kind}s of all that are, separated by commas: {labels}.',
        dashes='One or more of the options above are right. End with the words "the answer is" '
        "followed by the full text of each that is, one a line.",
    ),
    "zh": WordingAll(
        letters="有一个或多个选项正确。请只回答所有正确选项的标号，用逗号分隔，不要写其他内容："
        "{labels}。",
        reasoned="有一个或多个选项正确。请逐步思考，最后单独用一行写出“答案：”和所有正确选项的标"
        "号，用逗号分隔：{labels}。",
        dashes="以上选项中有一个或多个正确。最后写出“答案是”，并在其后写出每个正确选项的完整内容"
        "，每行一个。",
    ),
    "es": WordingAll(
        letters="Una o más opciones son correctas. Responde solo con las etiquetas de todas las "
        "que lo son, separadas por comas, y con nada más: {labels}.",
        reasoned="Una o más opciones son correctas. Razona paso a paso y termina con una línea "
        'que diga "Respuesta: " y las etiquetas de todas las que lo son, separadas por comas: '
        "{labels}.",
        dashes='Una o más de las opciones anteriores son correctas. Termina con las palabras "la '
        'respuesta es" seguidas del texto completo de cada una que lo sea, una por línea.',
    ),
    "de": WordingAll(
        letters="Eine oder mehrere Optionen sind richtig. Antworte nur mit den Kennungen aller "
        "richtigen Optionen, durch Kommas getrennt, und mit nichts anderem: {labels}.",
        reasoned="Eine oder mehrere Optionen sind richtig. Denke Schritt für Schritt nach und "
        'schließe mit einer Zeile, in der "Antwort: " und die Kennungen aller richtigen Optionen '
        "stehen, durch Kommas getrennt: {labels}.",
        dashes='Eine oder mehrere der obigen Optionen sind richtig. Schließe mit den Worten "die '
        'Antwort ist", gefolgt vom vollständigen Text jeder richtigen Option, eine pro Zeile.',
    ),
    "fr": WordingAll(
        letters="Une ou plusieurs options sont correctes. Réponds uniquement par les repères de "
        "toutes celles qui le sont, séparés par des virgules, et par rien d'autre : {labels}.",
        reasoned="Une ou plusieurs options sont correctes. Raisonne étape par étape, puis "
        'termine par une ligne qui contient "Réponse : " et les repères de toutes celles qui le '
        "sont, séparés par des virgules : {labels}.",
        dashes='Une ou plusieurs des options ci-dessus sont correctes. Termine par les mots "la '
        'réponse est" suivis du texte complet de chacune de celles qui le sont, une par ligne.',
    ),
    "ja": WordingAll(
        letters="正しい選択肢は一つまたは複数あります。正しいものすべての記号だけを、カンマで区切"
        "って答えてください：{labels}。",
        reasoned="正しい選択肢は一つまたは複数あります。順を追って考え、最後の行に「答え：」と正"
        "しいものすべての記号をカンマで区切って書いてください：{labels}。",
        dashes="上の選択肢のうち一つまたは複数が正しいです。最後に「答えは」と書き、続けて正しい"
        "選択肢すべての全文を、一行に一つずつ書いてください。",
    ),
    "ko": WordingAll(
        letters="하나 이상의 선택지가 옳습니다. 옳은 선택지의 기호만 모두 쉼표로 구분하여 답하고 "
        "다른 말은 쓰지 마세요: {labels}.",
        reasoned='하나 이상의 선택지가 옳습니다. 단계별로 생각한 다음, 마지막 줄에 "정답: "과 '
        "옳은 선택지의 기호를 모두 쉼표로 구분하여 쓰세요: {labels}.",
        dashes='위의 선택지 중 하나 이상이 옳습니다. 마지막에 "정답은"이라고 쓰고, 이어서 옳은 '
        "선택지의 전체 내용을 한 줄에 하나씩 모두 쓰세요.",
    ),
    "ar": WordingAll(
        letters="خيار واحد أو أكثر صحيح. أجب برموز جميع الخيارات الصحيحة فقط، مفصولة بفواصل، دون "
        "أي شيء آخر: {labels}.",
        reasoned='خيار واحد أو أكثر صحيح. فكّر خطوة بخطوة، ثم اختم بسطر يحتوي على "الإجابة: " '
        "ورموز جميع الخيارات الصحيحة، مفصولة بفواصل: {labels}.",
        dashes='خيار واحد أو أكثر من الخيارات أعلاه صحيح. اختم بعبارة "الإجابة هي" متبوعة بالنص '
        "الكامل لكل خيار صحيح، كل خيار في سطر.",
    ),
    "hi": WordingAll(
        letters="एक या अधिक विकल्प सही हैं। केवल सभी सही विकल्पों के चिह्न, अल्पविराम से अलग "
        "करके, लिखें और कुछ नहीं: {labels}।",
        reasoned='एक या अधिक विकल्प सही हैं। चरण दर चरण सोचें, फिर अंतिम पंक्ति में "उत्तर: " और '
        "सभी सही विकल्पों के चिह्न, अल्पविराम से अलग करके, लिखें: {labels}।",
        dashes='ऊपर दिए गए विकल्पों में से एक या अधिक सही हैं। अंत में "सही उत्तर:" लिखें और '
        "उसके बाद हर सही विकल्प का पूरा पाठ, एक पंक्ति में एक, लिखें।",
    ),
    "pt": WordingAll(
        letters="Uma ou mais opções estão corretas. Responda apenas com os rótulos de todas as "
        "que estão, separados por vírgulas, e com mais nada: {labels}.",
        reasoned="Uma ou mais opções estão corretas. Pense passo a passo e termine com uma linha "
        'que diga "Resposta: " e os rótulos de todas as que estão, separados por vírgulas: '
        "{labels}.",
        dashes='Uma ou mais das opções acima estão corretas. Termine com as palavras "a resposta '
        'é" seguidas do texto completo de cada uma que está, uma por linha.',
    ),
    "ru": WordingAll(
        letters="Верны один или несколько вариантов. Ответьте только обозначениями всех верных "
        "вариантов через запятую, и ничем больше: {labels}.",
        reasoned="Верны один или несколько вариантов. Рассуждайте шаг за шагом, а в конце "
        'напишите строку со словом "Ответ: " и обозначениями всех верных вариантов через '
        "запятую: {labels}.",
        dashes='Верны один или несколько из вариантов выше. Закончите словами "правильный '
        'ответ:" и полным текстом каждого верного варианта, по одному на строке.',
    ),
    "vi": WordingAll(
        letters="Có một hoặc nhiều lựa chọn đúng. Chỉ trả lời bằng ký hiệu của tất cả các lựa "
        "chọn đúng, cách nhau bằng dấu phẩy, và không viết gì khác: {labels}.",
        reasoned="Có một hoặc nhiều lựa chọn đúng. Hãy suy nghĩ từng bước, rồi kết thúc bằng một "
        'dòng ghi "Đáp án: " và ký hiệu của tất cả các lựa chọn đúng, cách nhau bằng dấu phẩy: '
        "{labels}.",
        dashes='Có một hoặc nhiều lựa chọn ở trên là đúng. Hãy kết thúc bằng cụm từ "đáp án là", '
        "theo sau là toàn bộ nội dung của từng lựa chọn đúng, mỗi lựa chọn một dòng.",
    ),
}
"""By ISO 639-1 code."""
